"""Nsight Systems: `nsys export --type sqlite` or `--type parquetdir`."""

from cuzklab.ingest import nsys
from cuzklab.ingest.model import Importer
from cuzklab.ingest.registry import importer

importer(
    Importer(
        name="nsys",
        reads="an Nsight Systems export: NAME.sqlite, or a folder of .parquet files",
        recognises=nsys.recognises,
        read=nsys.read,
    )
)

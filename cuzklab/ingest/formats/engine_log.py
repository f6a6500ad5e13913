"""Logs of proving engines: lines with TIMELINE, CUZK_TIMING, CUZK_NTT_H."""

from cuzklab.ingest import engine_log
from cuzklab.ingest.model import Importer
from cuzklab.ingest.registry import importer

importer(
    Importer(
        name="engine-log",
        reads="a log of a proving engine, plain or .gz, with lines TIMELINE,… and CUZK_TIMING: …",
        recognises=engine_log.recognises,
        read=engine_log.read,
    )
)

"""Memory snapshots of PyTorch: pickles of plain data."""

from cuzklab.ingest import memory_snapshot
from cuzklab.ingest.model import Importer
from cuzklab.ingest.registry import importer

importer(
    Importer(
        name="memory-snapshot",
        reads="a memory snapshot of PyTorch (.pickle); classes in it are refused",
        recognises=memory_snapshot.recognises,
        read=memory_snapshot.read,
    )
)

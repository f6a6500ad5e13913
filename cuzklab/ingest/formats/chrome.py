"""Trace events in JSON: Chrome, Perfetto, PyTorch's profiler, and what `cuzklab runs export` writes."""

from cuzklab.ingest import chrome
from cuzklab.ingest.model import Importer
from cuzklab.ingest.registry import importer

importer(
    Importer(
        name="trace-events",
        reads="trace events in JSON (Chrome, Perfetto, PyTorch, `cuzklab runs export`), plain or .gz",
        recognises=chrome.recognises,
        read=chrome.read,
    )
)

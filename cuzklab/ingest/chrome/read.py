"""A file of trace events as a run."""

from pathlib import Path
from typing import Any

from cuzklab import __version__
from cuzklab.errors import BadInput
from cuzklab.ingest.chrome import generic, ours
from cuzklab.ingest.chrome.events import EventFile
from cuzklab.ingest.files import beginning, open_bounded
from cuzklab.ingest.model import Imported, Options, facts
from cuzklab.ingest.privacy import Texts
from cuzklab.trace import RunInfo

_MOST_BYTES = 16 << 30
_LOOKED_AT_BYTES = 4096
_REPORT_EVENTS = 20_000


def recognises(path: Path) -> bool:
    """Whether a file begins like a list or an object in JSON."""
    return path.is_file() and beginning(path, _LOOKED_AT_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{")


def read(path: Path, options: Options) -> Imported:
    """Read trace events.

    Raises
    ------
    BadInput
        Not JSON, no trace, or beyond the bounds.
    """
    texts = Texts(options.secrets, options.keep_private)
    with open_bounded(path, _MOST_BYTES) as content:
        size = max(path.stat().st_size, 1)
        events = EventFile(path, content)
        reader: Any = None
        for event in events:
            if reader is None:
                reader = ours.Reader(events.header, texts) if ours.is_ours(events.header) else generic.Reader(texts)
            if events.count % _REPORT_EVENTS == 0:
                options.report(min(0.85, content.read_bytes / size), f"{events.count:,} events")
            reader.add(event)
    if reader is None and ours.is_ours(events.header):
        reader = ours.Reader(events.header, texts)
    if reader is None:
        raise BadInput(f"{path}: holds no trace events")
    if isinstance(reader, ours.Reader):
        return reader.imported()
    tables = reader.tables()
    if not any(len(rows) for rows in tables.values()):
        raise BadInput(f"{path}: none of its {events.count:,} events is a trace event (ph, ts)")
    title = texts(path.name.removesuffix(".gz").removesuffix(".json"))
    conditions = facts(format="trace events", events=events.count)
    notes = [
        f"{count:,} {words}."
        for count, words in (
            (reader.dropped, "events have a time that cannot be, or none, and were left out"),
            (reader.unmatched, "ends have no beginning, and were left out"),
            (reader.open_count, "slices had not ended when the trace did; they last until then here"),
            (sum(reader.unknown.values()), f"events of kinds that are not read: {_kinds(reader.unknown)}"),
        )
        if count
    ]
    if events.cut:
        notes.append("The file ends in the middle: what came after is lost.")
    if texts.redacted:
        notes.append(f"Secrets were taken out of {texts.redacted} texts.")
    info = RunInfo(
        "imported", title, conditions=conditions, notes=tuple(notes), versions={"cuzklab": __version__},
        machine={"note": "a trace does not say where it was written"}, devices=_devices(tables),
    )  # fmt: skip
    return Imported(info, tables, generic.availability(tables))


def _kinds(unknown: dict[str, int]) -> str:
    return ", ".join(f"{phase!r} {count:,}" for phase, count in sorted(unknown.items())[:12])


def _devices(tables: dict) -> tuple[dict[str, object], ...]:
    numbers = {
        number for name in ("kernels", "transfers") for number in tables[name].column("device").unique().to_pylist()
    }
    return tuple({"index": number, "name": f"GPU {number}", "vram_limit_bytes": 0} for number in sorted(numbers)[:1024])

"""What became of each scheduled report: one JSON line each, appended when it has ended."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

OUTCOMES = ("done", "failed", "alarm")


@dataclass(frozen=True)
class Entry:
    """One scheduled report.

    Attributes
    ----------
    started, ended : str
        ISO 8601, local with offset.
    outcome : {"done", "failed", "alarm"}
        `alarm`: done, and a figure got worse.
    folder : str
        Of the report, beside the log; empty where nothing was kept.
    words : str
        The verdict, the reason of a failure, or what got worse.
    missed : int
        How often it was due since the last entry without being made.
    confirms : str
        Folder of the report that this one repeats to confirm it.
    """

    started: str
    ended: str
    outcome: str
    folder: str
    words: str
    missed: int = 0
    confirms: str = ""


@dataclass(frozen=True)
class Log:
    """The log of one schedule. A line that a crash tore is skipped, and the next one begins on a line of its own."""

    path: Path

    def __iter__(self) -> Iterator[Entry]:
        if not self.path.exists():
            return
        for line in self.path.read_bytes().split(b"\n"):
            try:
                record = json.loads(line)
                yield Entry(**{name: record[name] for name in Entry.__dataclass_fields__ if name in record})
            except (ValueError, TypeError, KeyError):
                continue

    def add(self, entry: Entry) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        with open(descriptor, "r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
            file.write((b"\n" if torn else b"") + json.dumps(asdict(entry)).encode() + b"\n")
            os.fsync(descriptor)

    def confirms(self) -> dict[str, str]:
        """Occasions (see `analysis.history`) that repeat an earlier one, and which."""
        folder = self.path.parent
        return {str(folder / entry.folder): str(folder / entry.confirms) for entry in self if entry.confirms}

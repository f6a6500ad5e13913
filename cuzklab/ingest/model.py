"""What an importer is, what it is asked, and what it returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from cuzklab.progress import Report
from cuzklab.trace import RunInfo

STATES = ("present", "empty", "not captured", "lost")


def silent(share: float, words: str = "") -> None:
    """A progress report to nobody."""


@dataclass(frozen=True)
class Options:
    """How a file is to be read.

    Attributes
    ----------
    keep_private : bool
        Keep the command line, and texts as they are. By default secrets are taken out and the command line stays out.
    locks : mapping
        For locks whose ranges do not follow the convention: name of the lock → names of the range in which a thread
        waits for it and of the one in which it holds it.
    report : callable (share, words)
        Is told how far it is.
    secrets : tuple of str
        Values that must not get into any output, beside those that the file itself tells.
    """

    keep_private: bool = False
    locks: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    report: Report = silent
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Availability:
    """Whether a table has what happened: one of `STATES`, and why, as a clause."""

    state: str
    reason: str = ""

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ValueError(f"{self.state!r} is not one of {', '.join(STATES)}")


@dataclass(frozen=True)
class Imported:
    """A file as a run that is not stored yet.

    Attributes
    ----------
    info : RunInfo
        Of origin `imported`.
    tables : mapping
        Tables of the trace's schema in order of time; those that are not named are empty.
    availability : mapping
        For every table of the schema.
    """

    info: RunInfo
    tables: Mapping[str, pa.Table]
    availability: Mapping[str, Availability]


@dataclass(frozen=True)
class Importer:
    """A format that can be imported.

    Attributes
    ----------
    name : str
        What a person calls it on the command line.
    reads : str
        What it reads, for help texts and for the message about a file that nothing reads.
    recognises : callable (Path) → bool
        Whether a file (or folder) is of this format, told from its first bytes; never raises.
    read : callable (Path, Options) → Imported
        Raises `cuzklab.errors.BadInput` for a file that is damaged.
    """

    name: str
    reads: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path, Options], Imported]


def facts(**known: Any) -> dict[str, Any]:
    """Conditions of a run: those that are known."""
    return {name: value for name, value in known.items() if value not in (None, "", ())}

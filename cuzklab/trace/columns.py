"""Tables that were never rows: what an importer hands over to be stored."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from cuzklab.trace.schema import arrow_schema


class Tables(Protocol):
    """What a run can be written from: a `Recorder`, or `Columns`."""

    def table(self, name: str) -> pa.Table: ...


@dataclass(frozen=True)
class Columns:
    """Tables as columns, in order of time; those that are not named are empty.

    Text may be dictionary-encoded, which keeps a million rows of few names small.

    Attributes
    ----------
    tables : mapping of str to pyarrow.Table
    lost : mapping of str to int
        Tables from which rows are missing, and how many.
    notes : tuple of str
        What a reader of the run must know, beside the notes of its `RunInfo`.
    """

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def table(self, name: str) -> pa.Table:
        """The rows of a table."""
        return self.tables[name] if name in self.tables else arrow_schema(name).empty_table()

    def batches(self, name: str) -> Iterator[pa.Table]:
        """The same rows, as a file is written."""
        yield self.table(name)

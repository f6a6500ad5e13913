"""Collects rows of a trace in memory while something runs."""

import time
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute

from cuzklab.trace.schema import TABLE_OF_ROW, TABLES, arrow_schema


class Recorder:
    """Rows by table, from any number of threads.

    Parameters
    ----------
    clock : callable returning int
        Nanoseconds; the monotonic clock for live runs, virtual time for simulations.

    Attributes
    ----------
    rows : mapping of str to list
        Rows of each table as objects of its row class, in the order of their addition.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.clock = clock
        # Appending to a list is atomic in CPython.
        self._added: dict[str, list[Any]] = {table: [] for table in TABLES}

    def add(self, row: Any) -> None:
        """Keep a row; its class says which table it belongs to."""
        self._added[TABLE_OF_ROW[type(row)]].append(row)

    @property
    def rows(self) -> Mapping[str, list[Any]]:
        return self._added

    @property
    def lost(self) -> Mapping[str, int]:
        """Tables of which rows are missing, and how many; none of this class's own accord."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the run must know about the recording."""
        return ()

    def count(self, name: str) -> int:
        """How many rows a table has."""
        return len(self._added[name])

    def table(self, name: str) -> pa.Table:
        """The rows of a table in order of time, as columns."""
        schema = arrow_schema(name)
        rows = self._added[name]
        columns = [pa.array(map(attrgetter(field.name), rows), type=field.type, size=len(rows)) for field in schema]
        return self.in_order(pa.Table.from_arrays(columns, schema=schema))

    def batches(self, name: str) -> Iterator[pa.Table]:
        """The same rows a piece at a time, as a file is written; text may be dictionaries."""
        yield self.table(name)

    @staticmethod
    def in_order(table: pa.Table) -> pa.Table:
        """Rows of a trace's table in order of time."""
        order = next(name for name in ("time", "requested", "start") if name in table.schema.names)
        return table.take(pa.compute.sort_indices(table, [(order, "ascending")])) if len(table) else table

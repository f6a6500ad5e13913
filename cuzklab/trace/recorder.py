"""Collects rows of a trace in memory while something runs."""

import time
from collections.abc import Callable
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
    rows : dict of str to list
        Rows of each table in the order of their addition. Appending to a list is atomic in CPython.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.clock = clock
        self.rows: dict[str, list[Any]] = {table: [] for table in TABLES}

    def add(self, row: Any) -> None:
        """Keep a row; its class says which table it belongs to."""
        self.rows[TABLE_OF_ROW[type(row)]].append(row)

    def table(self, name: str) -> pa.Table:
        """The rows of a table in order of time, as columns."""
        schema = arrow_schema(name)
        rows = self.rows[name]
        columns = [pa.array(map(attrgetter(field.name), rows), type=field.type, size=len(rows)) for field in schema]
        table = pa.Table.from_arrays(columns, schema=schema)
        order = "time" if "time" in schema.names else "requested" if "requested" in schema.names else "start"
        return table.take(pa.compute.sort_indices(table, [(order, "ascending")])) if rows else table

"""Tables that were never rows: what an importer hands over to be stored."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cuzklab.trace.schema import TABLES, arrow_schema

# What stands for null among int64 nanoseconds.
NULL = np.iinfo(np.int64).min


class Tables(Protocol):
    """What a run can be written from: a `Recorder`, or `Columns`."""

    lost: Mapping[str, int]
    notes: tuple[str, ...]

    def batches(self, name: str) -> Iterator[pa.Table]: ...


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


Column = NDArray[np.int64] | pa.Array | str | int | bool | float


def table(of: str, rows: int, /, **given: Column) -> pa.Table:
    """A table of the schema made of columns, in order of time.

    Parameters
    ----------
    of : str
        Its name.
    rows : int
    **given : array or value
        Columns, or one value for all rows; the others have their default. Text may be dictionary-encoded; in a
        nullable column of integers `NULL` is null.
    """
    schema, defaults = arrow_schema(of), {one.name: one.default for one in dataclasses.fields(TABLES[of])}
    columns, fields = [], []
    for one in schema:
        value = given.get(one.name, defaults[one.name])
        if isinstance(value, pa.Array):
            column = value
        elif isinstance(value, np.ndarray):
            empty = value == NULL if one.nullable and value.dtype == np.int64 else None
            column = pa.array(value, one.type, mask=empty)
        elif isinstance(value, str):
            column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([value]))
        else:
            column = pa.repeat(pa.scalar(value, one.type), rows)
        columns.append(column)
        fields.append(pa.field(one.name, column.type, one.nullable))
    made = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    order = next(key for key in ("time", "requested", "start") if key in schema.names)
    times = made.column(order).to_numpy()
    if rows and not (times[1:] >= times[:-1]).all():
        made = made.take(pa.array(np.argsort(times, kind="stable")))
    return made

"""Tables of the trace made of columns: defaults filled in, impossible rows left out, in order of time."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cuzklab.ingest.nsys.export import LATEST_NS, MISSING
from cuzklab.trace.schema import TABLES, arrow_schema

Column = NDArray[np.int64] | pa.Array | str | int | bool | float


def table(of: str, rows: int, /, **given: Column) -> pa.Table:
    """A table of the schema, in order of time.

    Parameters
    ----------
    of : str
        Its name.
    rows : int
    **given : array or value
        Columns, or one value for all rows; the others have their default. Text may be dictionary-encoded.
    """
    schema, defaults = arrow_schema(of), {one.name: one.default for one in dataclasses.fields(TABLES[of])}
    columns, fields = [], []
    for one in schema:
        value = given.get(one.name, defaults[one.name])
        if isinstance(value, pa.Array):
            column = value
        elif isinstance(value, np.ndarray):
            empty = value == MISSING if one.nullable and value.dtype == np.int64 else None
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


def merged(of: str, parts: Sequence[pa.Table]) -> pa.Table:
    """Several tables of a kind as one, in order of time."""
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        return filled[0] if filled else parts[0]
    if len({part.schema for part in filled}) > 1:  # one has plain text where another keeps each word once
        filled = [part.cast(arrow_schema(of)) for part in filled]
    together = pa.concat_tables(filled).unify_dictionaries().combine_chunks()
    return together.take(pa.array(np.argsort(together.column("start").to_numpy(), kind="stable")))


def possible(events: Mapping[str, NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Events whose times can be true: a start and an end that is not before it, within a lifetime."""
    start, end = events["start"], events.get("end", events["start"])
    return (start > -LATEST_NS) & (end < LATEST_NS) & (end >= start)


def keep(events: Mapping[str, NDArray[np.int64]], rows: NDArray[np.bool_]) -> dict[str, NDArray[np.int64]]:
    """Some rows of events."""
    if rows.all():
        return dict(events)
    return {name: column[rows] for name, column in events.items()}


def groups(keys: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each key with the rows that have it, in their order: one sort, however many keys there are."""
    order = np.argsort(keys, kind="stable")
    found, first = np.unique(keys[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, first[1:]), strict=True) if len(found) else ()

"""Events as columns: impossible rows left out, several kinds in one table, rows by thread."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cuzklab.ingest.nsys.export import LATEST_NS
from cuzklab.trace.schema import arrow_schema


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

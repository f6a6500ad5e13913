"""Ranges of threads projected onto the GPU: what they launched, when it ran, and how long it took to begin.

An operation of a device belongs to every range in which the call that launched it began, on the thread that made the
call. A range that ends on another thread owns the launches of the thread on which it began. A projection is a span,
not work: from the first start to the last end on the device. What the device really did in it is its busy time, and
the rest of the span are gaps.
"""

from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cuzklab.analysis.frames import per_run
from cuzklab.trace import Run
from cuzklab.trace.nesting import nesting

# Pairs of a range and an operation that are looked at: a hostile trace nests thousands of ranges around thousands of
# operations. Beyond this the ranges nested deepest are left out.
MOST_PAIRS = 50_000_000
_PAIRS_AT_ONCE = 1_000_000

_FIGURES = (
    "operations", "gpu_start_ns", "gpu_end_ns", "span_ns", "busy_ns", "gap_ns", "work_ns", "queue_total_ns",
    "queue_max_ns",
)  # fmt: skip
RANGE_COLUMNS = (
    "range",
    "domain",
    "style",
    "process",
    "thread",
    "depth",
    "children",
    "start_ns",
    "end_ns",
    "duration_ns",
    *_FIGURES,
)


@per_run
def operations(run: Run) -> pd.DataFrame:
    """Kernels, copies and fills with the calls that launched them.

    Returns
    -------
    DataFrame
        `kind` (kernel, copy, fill), `name`, `start_ns`, `end_ns`, `device`, `process`, `thread` (empty where the trace
        has no call for it), `called_ns`, `returned_ns` (its call; equal to the start where there is none), `queue_ns`
        (from the return of the call to the start on the device, 0 where it started before).
    """
    kernels, copies = run.table("kernels"), run.table("transfers")
    keys = ["start", "end", "device", "process", "correlation"]
    fills = copies["direction"] == "set"
    kind = np.where(fills, "fill", "copy")
    named = np.where(fills, "fill", "copy " + copies["direction"].astype(object))
    work = pd.concat(
        [
            kernels[keys].assign(kind="kernel", name=kernels["name"]),
            copies[keys].assign(kind=kind.astype(object), name=named.astype(object)),
        ],
        ignore_index=True,
    )
    calls = run.table("api_calls")
    calls = calls[(calls["correlation"] > 0) & calls["api"].isin(("runtime", "driver"))]
    calls = calls.drop_duplicates(["process", "correlation"])
    calls = calls[["process", "correlation", "thread", "start", "end"]]
    work = work.merge(
        calls.rename(columns={"start": "called_ns", "end": "returned_ns"}), how="left", on=["process", "correlation"]
    )
    for column in ("called_ns", "returned_ns"):
        work[column] = work[column].astype("Int64").fillna(work["start"]).astype(np.int64)
    work = work.rename(columns={"start": "start_ns", "end": "end_ns"})
    work["thread"] = work["thread"].fillna("")
    work["queue_ns"] = (work["start_ns"] - work["returned_ns"]).clip(lower=0).where(work["thread"] != "", 0)
    return work[
        ["kind", "name", "start_ns", "end_ns", "device", "process", "thread", "called_ns", "returned_ns", "queue_ns"]
    ]


@per_run
def projected(run: Run) -> pd.DataFrame:
    """Every range that launched something, projected onto the GPU.

    Returns
    -------
    DataFrame
        Columns `RANGE_COLUMNS` in order of start, int64 but for texts. `depth` counts the push/pop ranges of the thread
        around it, `children` those directly inside that launched something; `span_ns` reaches from the first start on
        a device to the last end; `busy_ns` is the time in it in which at least one of the range's operations ran,
        `gap_ns` the rest; `work_ns` is the sum of their durations; `queue_total_ns` and `queue_max_ns` are of
        `operations`' `queue_ns`.
    """
    work, ranges = operations(run), _ranges(run)
    parts = [_of_thread(rows, work[work["thread"] == thread]) for thread, rows in ranges.groupby("thread", sort=False)]
    filled = [part for part in parts if len(part)]
    table = pd.concat(filled, ignore_index=True) if filled else _of_thread(ranges.head(0), work.head(0))
    return table.sort_values(["start_ns", "depth"], kind="stable", ignore_index=True)[list(RANGE_COLUMNS)]


def by_name(run: Run) -> pd.DataFrame:
    """Projections summed by the name of the range.

    Returns
    -------
    DataFrame
        `range` (with its domain in front: ``cuzk:ntt_h``), `style`, `count`, `duration_total_ns` (on the CPU),
        `span_total_ns`, `busy_total_ns`, `busy_share` (of the span), `gap_total_ns`, `work_total_ns`, `operations`,
        `queue_mean_ns` (of an operation), `queue_max_ns`; the longest span first. Sums count what lies in a range of
        the same name twice where such ranges nest.
    """
    table = projected(run)
    table = table.assign(range=qualified(table["domain"], table["range"]))
    found = table.groupby(["range", "style"], sort=True, as_index=False).agg(
        count=("span_ns", "size"), duration_total_ns=("duration_ns", "sum"), span_total_ns=("span_ns", "sum"),
        busy_total_ns=("busy_ns", "sum"), gap_total_ns=("gap_ns", "sum"), work_total_ns=("work_ns", "sum"),
        operations=("operations", "sum"), queue_total_ns=("queue_total_ns", "sum"),
        queue_max_ns=("queue_max_ns", "max"),
    )  # fmt: skip
    found["busy_share"] = found["busy_total_ns"] / found["span_total_ns"].clip(lower=1)
    found["queue_mean_ns"] = found["queue_total_ns"] / found["operations"].clip(lower=1)
    columns = [
        "range", "style", "count", "duration_total_ns", "span_total_ns", "busy_total_ns", "busy_share", "gap_total_ns",
        "work_total_ns", "operations", "queue_mean_ns", "queue_max_ns",
    ]  # fmt: skip
    return found.sort_values(["span_total_ns", "range"], ascending=[False, True], ignore_index=True)[columns]


def outside(run: Run) -> pd.DataFrame:
    """Operations that no range owns, by thread.

    Returns
    -------
    DataFrame
        `process`, `thread` (empty: the trace has no call for them) and the figures of `projected`; most work first.
    """
    work, ranges = operations(run), _ranges(run)
    free = np.ones(len(work), bool)
    for thread, rows in ranges.groupby("thread", sort=False):
        here = (work["thread"] == thread).to_numpy()
        starts = np.sort(rows["start_ns"].to_numpy())
        ends = np.sort(rows["end_ns"].to_numpy())
        called = work.loc[here, "called_ns"].to_numpy()
        under_way = np.searchsorted(starts, called, side="right") - np.searchsorted(ends, called, side="right")
        free[here] = under_way == 0
    left = work[free]
    rows = []
    for (process, thread), part in left.groupby(["process", "thread"], sort=True):
        whole = np.array([0]), np.array([len(part)])
        figures = _figures(part.sort_values("called_ns"), *whole)
        rows.append({"process": process, "thread": thread, **{name: column[0] for name, column in figures.items()}})
    table = pd.DataFrame(rows, columns=["process", "thread", *_FIGURES])
    return table.sort_values("work_ns", ascending=False, ignore_index=True)


def range_times(run: Run) -> pd.DataFrame:
    """Durations of ranges on the CPU, by name.

    Returns
    -------
    DataFrame
        `range` (with its domain), `style`, `count`, `total_ns`, `median_ns`, `min_ns`, `max_ns`, `unfinished` (had not
        ended when the recording did); the largest total first.
    """
    ranges = _ranges(run)
    ranges = ranges.assign(range=qualified(ranges["domain"], ranges["range"]))
    durations = ranges.assign(length=ranges["end_ns"] - ranges["start_ns"]).groupby(["range", "style"], as_index=False)
    table = durations.agg(
        count=("length", "size"), total_ns=("length", "sum"), median_ns=("length", "median"), min_ns=("length", "min"),
        max_ns=("length", "max"), unfinished=("open", "sum"),
    )  # fmt: skip
    return table.sort_values(["total_ns", "range"], ascending=[False, True], ignore_index=True)


def qualified(domain: pd.Series, name: pd.Series) -> pd.Series:
    """Names of ranges with their domain in front, as Nsight Systems writes them: ``cuzk:hold``."""
    return (domain + ":").where(domain != "", "") + name


def _ranges(run: Run) -> pd.DataFrame:
    spans = run.table("spans")
    spans = spans[spans["style"].isin(("push_pop", "start_end"))]
    columns = {"name": "range", "start": "start_ns", "end": "end_ns"}
    kept = ["name", "domain", "style", "process", "thread", "start", "end", "open"]
    return spans[kept].rename(columns=columns).reset_index(drop=True)


def _of_thread(ranges: pd.DataFrame, work: pd.DataFrame) -> pd.DataFrame:
    """Ranges of one thread that launched something, with their figures."""
    work = work.sort_values("called_ns", kind="stable")
    called = work["called_ns"].to_numpy()
    depth, children = np.zeros(len(ranges), np.int64), np.zeros(len(ranges), np.int64)
    pushed = np.flatnonzero((ranges["style"] == "push_pop").to_numpy())
    stack = nesting(ranges["start_ns"].to_numpy()[pushed], ranges["end_ns"].to_numpy()[pushed])
    depth[pushed] = stack.depth
    first = np.searchsorted(called, ranges["start_ns"].to_numpy(), side="left")
    last = np.searchsorted(called, ranges["end_ns"].to_numpy(), side="left")
    launching = (last > first)[pushed] & (stack.parent >= 0)
    np.add.at(children, pushed[stack.parent[launching]], 1)
    rows = np.flatnonzero(last > first)
    shallow = rows[np.argsort(depth[rows], kind="stable")]
    rows = np.sort(shallow[np.cumsum((last - first)[shallow]) <= MOST_PAIRS])
    found = ranges.assign(depth=depth, children=children, duration_ns=ranges["end_ns"] - ranges["start_ns"]).iloc[rows]
    figures = _figures(work, first[rows], last[rows])
    return found.reset_index(drop=True).assign(**figures)


def _figures(work: pd.DataFrame, first: NDArray[np.int64], last: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Figures of slices ``first[k]:last[k]`` of operations, none of them empty."""
    starts, ends = work["start_ns"].to_numpy(), work["end_ns"].to_numpy()
    queue = work["queue_ns"].to_numpy()
    counts = last - first
    found = {name: np.zeros(len(counts), np.int64) for name in _FIGURES}
    pieces = np.flatnonzero(np.diff(np.cumsum(counts) // _PAIRS_AT_ONCE, prepend=-1)).tolist()
    for begin, stop in pairwise([*pieces, len(counts)]):
        some = slice(begin, stop)
        size = counts[some]
        edges = np.concatenate(([0], np.cumsum(size)[:-1]))
        owner = np.repeat(np.arange(len(size)), size)
        row = np.repeat(first[some] - edges, size) + np.arange(size.sum())
        order = np.lexsort((starts[row], owner))
        row = row[order]
        found["gpu_start_ns"][some] = np.minimum.reduceat(starts[row], edges)
        found["gpu_end_ns"][some] = np.maximum.reduceat(ends[row], edges)
        found["busy_ns"][some] = np.add.reduceat(_newly_covered(starts[row], ends[row], owner, edges), edges)
        found["work_ns"][some] = np.add.reduceat(ends[row] - starts[row], edges)
        found["queue_total_ns"][some] = np.add.reduceat(queue[row], edges)
        found["queue_max_ns"][some] = np.maximum.reduceat(queue[row], edges)
    found["operations"] = counts
    found["span_ns"] = found["gpu_end_ns"] - found["gpu_start_ns"]
    found["gap_ns"] = found["span_ns"] - found["busy_ns"]
    return found


def _newly_covered(
    starts: NDArray[np.int64], ends: NDArray[np.int64], owner: NDArray[np.int64], edges: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How much each interval adds to those of its owner before it; in order of owner and start."""
    # A running maximum within each owner: of ranks, which an owner's number in front cannot make overflow.
    times, rank = np.unique(ends, return_inverse=True)
    reached = times[np.maximum.accumulate(owner * len(times) + rank) - owner * len(times)]
    before = np.concatenate((starts[:1], reached[:-1]))
    before[edges] = starts[edges]
    return np.maximum(reached - np.maximum(starts, before), 0)

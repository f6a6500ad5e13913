"""Sets of time as half-open intervals [start, end), in exact int64 nanoseconds.

A *set* is an int64 array of shape (n, 2) whose rows are sorted, not empty and do not touch: what `union` returns.
Everything else takes and gives sets; nothing loops over rows in Python.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Intervals = NDArray[np.int64]

EMPTY: Intervals = np.empty((0, 2), dtype=np.int64)


def union(starts: ArrayLike, ends: ArrayLike) -> Intervals:
    """The times covered by at least one of the intervals.

    Parameters
    ----------
    starts, ends : array_like of int64, shape (n,)
        Nanoseconds, in any order; intervals without extent cover nothing.

    Returns
    -------
    Intervals
        Shape (m, 2).
    """
    starts, ends = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    some = ends > starts
    if not some.any():
        return EMPTY
    starts, ends = starts[some], ends[some]
    order = np.argsort(starts, kind="stable")
    starts, reached = starts[order], np.maximum.accumulate(ends[order])
    opens = np.concatenate(([True], starts[1:] > reached[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return np.column_stack((starts[opens], reached[closes]))


def merge(*sets: Intervals) -> Intervals:
    """The union of several sets."""
    if not sets:
        return EMPTY
    rows = np.concatenate(sets)
    return union(rows[:, 0], rows[:, 1])


def complement(of: Intervals, start: int, end: int) -> Intervals:
    """What of [start, end) is outside a set."""
    inside = clip(of, start, end)
    starts = np.concatenate(([start], inside[:, 1]))
    ends = np.concatenate((inside[:, 0], [end]))
    return union(starts, ends)


def clip(of: Intervals, start: int, end: int) -> Intervals:
    """What of a set is inside [start, end)."""
    return union(np.maximum(of[:, 0], start), np.minimum(of[:, 1], end))


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """The times that are in both sets."""
    if not len(left) or not len(right):
        return EMPTY
    first = np.searchsorted(right[:, 1], left[:, 0], side="right")
    last = np.searchsorted(right[:, 0], left[:, 1], side="left")
    counts = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(len(left)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    others = first[rows] + within
    return union(np.maximum(left[rows, 0], right[others, 0]), np.minimum(left[rows, 1], right[others, 1]))


def difference(left: Intervals, right: Intervals) -> Intervals:
    """The times that are in the left set and not in the right one."""
    if not len(left):
        return EMPTY
    return intersection(left, complement(right, int(left[0, 0]), int(left[-1, 1])))


def total(of: Intervals) -> int:
    """Length of a set in nanoseconds."""
    return int((of[:, 1] - of[:, 0]).sum())


def covered(starts: ArrayLike, ends: ArrayLike, by: Intervals) -> NDArray[np.int64]:
    """For each of many intervals, how much of it lies in a set.

    The intervals may overlap each other; each is measured for itself.

    Returns
    -------
    ndarray of int64, shape (n,)
        Nanoseconds.
    """
    starts, ends = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    return np.where(ends > starts, _covered_before(ends, by) - _covered_before(starts, by), 0)


def _covered_before(times: NDArray[np.int64], by: Intervals) -> NDArray[np.int64]:
    """Length of the part of a set that lies before each of the times."""
    if not len(by):
        return np.zeros(len(times), dtype=np.int64)
    lengths = by[:, 1] - by[:, 0]
    before = np.concatenate(([0], np.cumsum(lengths)))
    index = np.searchsorted(by[:, 0], times, side="right")
    inside = np.where(index > 0, np.minimum(times - by[index - 1, 0], lengths[index - 1]), 0)
    return before[np.maximum(index - 1, 0)] + inside


def time_by_depth(starts: ArrayLike, ends: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many intervals are open, as a step function.

    Returns
    -------
    times, depths : ndarray of int64, shape (m,)
        From ``times[k]`` until the next time, ``depths[k]`` intervals are open; the last depth is 0.
    """
    starts, ends = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    some = ends > starts
    edges = np.concatenate((starts[some], ends[some]))
    changes = np.concatenate((np.ones(some.sum(), np.int64), -np.ones(some.sum(), np.int64)))
    times, places = np.unique(edges, return_inverse=True)
    steps = np.zeros(len(times), dtype=np.int64)
    np.add.at(steps, places, changes)
    return times, np.cumsum(steps)


def mean_depth(starts: ArrayLike, ends: ArrayLike) -> NDArray[np.float64]:
    """For each interval, how many intervals were open during it on average, itself included."""
    starts, ends = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    times, depths = time_by_depth(starts, ends)
    if not len(times):
        return np.zeros(len(starts))
    area = np.concatenate(([0], np.cumsum(np.diff(times) * depths[:-1])))

    def area_before(moments: NDArray[np.int64]) -> NDArray[np.int64]:
        index = np.clip(np.searchsorted(times, moments, side="right") - 1, 0, len(times) - 1)
        return area[index] + (moments - times[index]) * depths[index]

    extent = ends - starts
    return np.where(extent > 0, (area_before(ends) - area_before(starts)) / np.maximum(extent, 1), 0.0)

"""Spans of a lane that overlap are drawn in rows, each of which holds spans that do not."""

import heapq

import numpy as np
from numpy.typing import NDArray


def rows_of(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each span, from 0: what encloses stands above what it encloses.

    Parameters
    ----------
    starts, ends : ndarray of int64, shape (n,)
        In order of start, the longer first where starts are equal.

    Returns
    -------
    ndarray of int64, shape (n,)
        Spans of a row do not overlap. Spans without extent may stand where another one begins or ends.
    """
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    reached = np.maximum.accumulate(ends)
    if (starts[1:] >= reached[:-1]).all():
        return np.zeros(len(starts), dtype=np.int64)
    # How many are open at its start: right for spans that lie in each other, which most are.
    closed = np.searchsorted(np.sort(ends), starts, side="right") - (ends == starts)
    depth = np.arange(len(starts)) - closed
    depth = np.maximum(depth, 0)
    order = np.lexsort((np.arange(len(starts)), depth))
    same = depth[order][1:] == depth[order][:-1]
    if (starts[order][1:] >= ends[order][:-1])[same].all():
        return depth
    return _first_free(starts.tolist(), ends.tolist())


def _first_free(starts: list[int], ends: list[int]) -> NDArray[np.int64]:
    """The topmost row that is free at each start."""
    rows, free, taken = [], [], []  # taken: (end, row)
    used = 0
    for start, end in zip(starts, ends, strict=True):
        while taken and taken[0][0] <= start:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if free:
            row = heapq.heappop(free)
        else:
            row, used = used, used + 1
        rows.append(row)
        heapq.heappush(taken, (end, row))
    return np.array(rows, dtype=np.int64)

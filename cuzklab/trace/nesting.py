"""Which range encloses which: the ranges of one thread as a stack."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Ranges of several domains on a thread may cross. The search for a parent looks past so many that do; more of them
# would let a hostile file take quadratic time.
_MOST_CROSSED = 64


@dataclass(frozen=True)
class Nesting:
    """How n ranges of a thread lie in each other.

    Attributes
    ----------
    parent : ndarray of int64, shape (n,)
        The shortest range that encloses each and began no later; −1 where there is none.
    depth : ndarray of int64, shape (n,)
        How many enclose it.
    times, inside : ndarray of int64, shape (m,)
        From ``times[k]`` until the next time, ``inside[k]`` is the range that began last of those under way; −1: none.
    """

    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    times: NDArray[np.int64]
    inside: NDArray[np.int64]

    def innermost(self, moments: ArrayLike) -> NDArray[np.int64]:
        """The innermost range at each moment; a range holds its start but not its end. −1 where there is none."""
        place = np.searchsorted(self.times, np.asarray(moments, np.int64), side="right") - 1
        return np.where(place >= 0, self.inside[np.maximum(place, 0)], -1) if len(self.times) else place


def nesting(starts: ArrayLike, ends: ArrayLike) -> Nesting:
    """Sort out how ranges lie in each other, in one pass.

    Parameters
    ----------
    starts, ends : array_like of int64, shape (n,)
        Nanoseconds, in any order, ``ends >= starts``.
    """
    start, end = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    order = np.lexsort((np.arange(len(start)), -end, start))
    begin, stop, names = start.tolist(), end.tolist(), order.tolist()
    parent, depth = [-1] * len(names), [0] * len(names)
    stack: list[int] = []
    times: list[int] = []
    inside: list[int] = []

    def close(until: int | None) -> None:
        reached = None
        while stack and (until is None or stop[stack[-1]] <= until):
            ended = stop[stack.pop()]
            reached = ended if reached is None else max(reached, ended)
            times.append(reached)
            inside.append(stack[-1] if stack else -1)

    for name in names:
        close(begin[name])
        parent[name] = enclosing = _enclosing(stack, stop, stop[name])
        depth[name] = depth[enclosing] + 1 if enclosing >= 0 else 0
        stack.append(name)
        times.append(begin[name])
        inside.append(name)
    close(None)
    return Nesting(*(np.asarray(column, np.int64) for column in (parent, depth, times, inside)))


def _enclosing(stack: Sequence[int], stop: Sequence[int], until: int) -> int:
    return next((name for name in reversed(stack[-_MOST_CROSSED:]) if stop[name] >= until), -1)

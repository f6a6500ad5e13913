"""The preparation of a split MSM: which scalars are 0, which are 1, and which need a Pippenger MSM.

Scalars are classed once for all queries over the same wires; what a query has of them follows from bitmaps, 64 wires
at a time, and only the tails are copied. Bit i of word i // 64 of a bitmap stands for scalar i.
"""

from dataclasses import dataclass

import numpy as np

from cuzklab.backends.host.parallel import ranges, run_ranges, thread_count
from cuzklab.backends.limbs import checked
from cuzklab.backends.native import load

_BLOCK_ROWS = 1 << 14
"""Fewer are not worth a thread."""


@dataclass(frozen=True)
class Classes:
    """Which scalars are one, and which are neither zero nor one.

    Attributes
    ----------
    ones, others : (⌈scalars / 64⌉,) uint64
        Bitmaps.
    scalars, one_count, other_count : int
    """

    ones: np.ndarray
    others: np.ndarray
    scalars: int
    one_count: int
    other_count: int

    @property
    def zero_count(self) -> int:
        return self.scalars - self.one_count - self.other_count


@dataclass(frozen=True)
class QueryClasses:
    """What a query has of the classes of all wires' scalars.

    Attributes
    ----------
    ones : (⌈points / 64⌉,) uint64
        Bitmap over the query's points.
    points, wires : (m,) uint32
        The tail: which points of the query, and which wires' scalars multiply them. Ascending.
    """

    ones: np.ndarray
    points: np.ndarray
    wires: np.ndarray


def classify(scalars: np.ndarray, *, threads: int | None = 1) -> Classes:
    """Sort scalars into zeros, ones and others.

    Parameters
    ----------
    scalars : (n, 4) uint64
        Plain integers, n < 2^32.
    threads : int, optional
    """
    checked("scalars", scalars, np.uint64, None, 4)
    n = len(scalars)
    if n >= 1 << 32:
        raise ValueError(f"scalars: {n} are more than 32-bit indices reach")
    ones, others = np.empty(-(-n // 64), np.uint64), np.empty(-(-n // 64), np.uint64)
    threads, native = thread_count(threads), load().library
    pieces = ranges(n, min(4 * threads, -(-n // _BLOCK_ROWS)) if threads > 1 else 1, multiple=64)
    counts = np.zeros((len(pieces), 2), np.uint64)

    def work(number: int) -> None:
        begin, end = pieces[number]
        native.fr_classify(
            scalars[begin:].ctypes.data, end - begin, ones[begin // 64 :].ctypes.data,
            others[begin // 64 :].ctypes.data, counts[number].ctypes.data,
        )  # fmt: skip

    run_ranges(lambda number, _: work(number), [(number, number + 1) for number in range(len(pieces))], threads)
    one_count, other_count = counts.sum(axis=0, dtype=np.uint64).tolist()
    return Classes(ones, others, n, one_count, other_count)


def classes_of_query(classes: Classes, density: np.ndarray, points: int, *, ones_in_tail: bool = False) -> QueryClasses:
    """What a query has of the classes of all wires' scalars.

    Parameters
    ----------
    classes : Classes
        Of the scalars of all wires.
    density : (⌈wires / 64⌉,) uint64
        Bitmap of the wires that the query has a point for.
    points : int
        How many those are.
    ones_in_tail : bool
        The tail has all that are not zero.

    Raises
    ------
    ValueError
        The density is of another number of wires, or of points.
    """
    words = len(classes.ones)
    checked("density", density, np.uint64, words)
    if (found := count_bits(density)) != points:
        raise ValueError(f"density: {found} wires, not {points}")
    tail = classes.others | classes.ones if ones_in_tail else classes.others
    most = min(points, classes.other_count + (classes.one_count if ones_in_tail else 0))
    ones = np.empty(-(-points // 64), np.uint64)
    of_points, of_wires = np.empty(most, np.uint32), np.empty(most, np.uint32)
    found = load().library.split_query(
        classes.ones.ctypes.data, tail.ctypes.data, density.ctypes.data, words, ones.ctypes.data, of_points.ctypes.data,
        of_wires.ctypes.data,
    )  # fmt: skip
    return QueryClasses(ones, of_points[:found], of_wires[:found])


def count_bits(bitmap: np.ndarray) -> int:
    """How many bits of a bitmap, (n,) uint64, are set."""
    checked("bitmap", bitmap, np.uint64, None)
    return load().library.count_bits(bitmap.ctypes.data, len(bitmap))


def gather(points: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Rows `indices` of an array of points or scalars, wherever it lies, as a new one; IndexError beyond its end."""
    return np.take(points, indices, axis=0)


def gather_rows(rows: np.ndarray, indices: np.ndarray, out: np.ndarray, *, threads: int | None = 1) -> np.ndarray:
    """Write rows `indices` of points or scalars to `out`, which it also gives back.

    Parameters
    ----------
    rows : (n, 4), (n, 12) or (n, 24) uint64
    indices : (m,) uint32
    out : (m, …) uint64
    threads : int, optional

    Raises
    ------
    IndexError
        An index is beyond the rows; `out` holds some of them.
    """
    width = rows.shape[1] if rows.ndim == 2 and rows.shape[1] in (4, 12, 24) else 4
    checked("rows", rows, np.uint64, None, width)
    checked("indices", indices, np.uint32, None)
    checked("out", out, np.uint64, len(indices), width)
    threads, native = thread_count(threads), load().library

    def work(begin: int, end: int) -> None:
        wrong = native.gather_rows(
            rows.ctypes.data, len(rows), width, indices[begin:].ctypes.data, end - begin, out[begin:].ctypes.data
        )
        if wrong >= 0:
            raise IndexError(f"indices: {indices[begin + wrong]} is beyond {len(rows)} rows")

    pieces = min(4 * threads, -(-len(indices) // _BLOCK_ROWS)) if threads > 1 else 1
    run_ranges(work, ranges(len(indices), pieces), threads)
    return out

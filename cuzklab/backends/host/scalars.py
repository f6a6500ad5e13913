"""The preparation of a split MSM: which scalars are 0, which are 1, and which need a Pippenger MSM."""

import numpy as np

from cuzklab.backends.limbs import checked
from cuzklab.backends.native import load


def classify(scalars: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Sorts scalars into zeros, ones and the tail.

    Worth it where at most half the scalars are significant; the caller decides.

    Parameters
    ----------
    scalars : (n, 4) uint64
        Plain integers, n < 2^32.

    Returns
    -------
    ones : (⌈n / 64⌉,) uint64
        Bit i of word i // 64 is set where scalar i is one.
    tail : (m,) uint32
        Indices of the scalars that are neither, ascending.
    zeros : int
        How many are zero.
    """
    checked("scalars", scalars, np.uint64, None, 4)
    n = len(scalars)
    if n >= 1 << 32:
        raise ValueError(f"scalars: {n} are more than 32-bit indices reach")
    ones, tail, counts = np.empty(-(-n // 64), np.uint64), np.empty(n, np.uint32), np.zeros(2, np.uint64)
    load().library.fr_classify(scalars.ctypes.data, n, ones.ctypes.data, tail.ctypes.data, counts.ctypes.data)
    return ones, tail[: int(counts[1])].copy(), int(counts[0])


def gather(points: np.ndarray, indices: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """Rows `indices` of an array of points or scalars, as a new array or in `out`; IndexError beyond its end."""
    if out is None:
        return np.take(points, indices, axis=0)
    if len(indices) and int(indices.max()) >= len(points):
        raise IndexError(f"indices: {int(indices.max())} is beyond {len(points)} rows")
    # With a check of its own numpy would copy everything once more.
    return np.take(points, indices, axis=0, out=out, mode="clip")


def gather_scalars(scalars: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Rows `indices` of an array of scalars, as a new array; IndexError beyond its end."""
    return np.take(checked("scalars", scalars, np.uint64, None, 4), indices, axis=0)

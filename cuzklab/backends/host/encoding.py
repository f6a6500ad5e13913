"""Points as files hold them, turned into points as the kernels take them, some or all of an array.

Two forms lie in memory-mapped files: snarkjs's, which is ours but not always on a multiple of 8 bytes, and bellman's,
Zcash's encoding without compression (big-endian, plain, coordinates of Fp2 with c1 first).
"""

from dataclasses import dataclass

import numpy as np

from cuzklab.backends.host.points import LIMBS, checked_points
from cuzklab.backends.limbs import checked
from cuzklab.backends.native import load

# In the order of `Decoding` in kernels/host/encoding.h.
_REASONS = (
    "",
    "is marked as compressed",
    "is the point at infinity, which such an array does not hold",
    "has the flag of a compressed point's sign",
    "has a coordinate that is not below the modulus",
)


@dataclass(frozen=True)
class Refused(Exception):
    """A point that is no encoding of one: its place in the result, and why."""

    place: int
    why: str


def decode_points(group: str, data: np.ndarray, indices: np.ndarray | None, out: np.ndarray) -> None:
    """Points `indices` (or the first ones) of an encoded array, one thread.

    Parameters
    ----------
    group : {"g1", "g2"}
    data : (n, 96) or (n, 192) uint8
    indices : (m,) uint32 or None
    out : (m, 12) or (m, 24) uint64
        Montgomery form. Whether points lie on the curve is not looked at.

    Raises
    ------
    Refused
        An encoding that is not canonical, or infinity.
    IndexError
        An index beyond the end.
    """
    _check(group, data, indices, out)
    reason = np.zeros(1, np.uint32)
    bad = getattr(load().library, f"{group}_decode")(
        data.ctypes.data, None if indices is None else indices.ctypes.data, len(out), out.ctypes.data,
        reason.ctypes.data,
    )  # fmt: skip
    if bad >= 0:
        raise Refused(int(bad), _REASONS[int(reason[0])])


def encode_points(group: str, points: np.ndarray) -> np.ndarray:
    """Points, (n, 12) or (n, 24) uint64 in Montgomery form, in Zcash's encoding: (n, 96) or (n, 192) uint8."""
    checked_points(group, "points", points)
    out = np.empty((len(points), 8 * LIMBS[group]), np.uint8)
    getattr(load().library, f"{group}_encode")(points.ctypes.data, len(points), out.ctypes.data)
    return out


def gather_points(group: str, data: np.ndarray, indices: np.ndarray, out: np.ndarray) -> None:
    """Points `indices` of an array in our own form that need not be aligned, given as bytes; one thread."""
    _check(group, data, indices, out)
    getattr(load().library, f"{group}_gather")(data.ctypes.data, indices.ctypes.data, len(out), out.ctypes.data)


def _check(group: str, data: np.ndarray, indices: np.ndarray | None, out: np.ndarray) -> None:
    checked("data", data, np.uint8, None, 8 * LIMBS[group])
    checked_points(group, "out", out)
    if indices is None:
        if len(out) > len(data):
            raise IndexError(f"out: {len(out)} points of {len(data)}")
    else:
        checked("indices", indices, np.uint32, len(out))
        if len(indices) and int(indices.max()) >= len(data):
            raise IndexError(f"indices: {int(indices.max())} of {len(data)} points")

"""Multi-scalar multiplication of points that stay, like a proving key's: multiples of them are stored once.

With 2^(bits·j) · P_i at hand for every window j, all windows share one set of buckets: an MSM then pays for the buckets
once instead of once a window, so windows may be wider, hence fewer. The price is device memory: all multiples of 2^24
points of G1 take 19 GB. Storing every second or third one (`multiples=`) takes a half or a third, and leaves two or
three sets of buckets.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import nvtx

from cuzklab.backends.cuda.buckets import LIMBS, SCALAR_BITS, shape, terms_of, to_join
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import (
    DOMAIN,
    NotEnoughMemory,
    blocks,
    checked_array,
    cupy,
    free_bytes,
    launch,
    multiprocessors,
    refusing_in_one_line,
)
from cuzklab.backends.cuda.msm import window_bits
from cuzklab.backends.cuda.parts import batches, equal
from cuzklab.errors import BadInput
from cuzklab.units import format_size

MULTIPLES = {group: Unit("multiples.cu", (("GROUP", number),)) for group, number in (("g1", 1), ("g2", 2))}
_GROUP = {12: "g1", 24: "g2"}
# Points whose multiples are made at once, which bounds the scratch.
_SLICE_POINTS = 1 << 22
# Smaller than msm's: all windows' lists share a region, which must stay in the L2 cache while it is filled.
_BATCH_POINTS = 1 << 21

# As msm.WINDOW_BITS: buckets are paid for once, so windows are wider.
WINDOW_BITS = {0: 8, 6: 10, 10: 12, 12: 13, 14: 14, 16: 16, 20: 20, 22: 22}


@dataclass(frozen=True, eq=False)
class Multiples:
    """Points with multiples of each, on the device.

    Attributes
    ----------
    group : {"g1", "g2"}
    bits : int
        Bits of a window.
    sets : int
        Sets of buckets that are left: 1 where the multiple of every window is stored.
    rows : (multiples, n, limbs) uint64
        Row j holds 2^(bits · sets · j) · P_i.
    """

    group: str
    bits: int
    sets: int
    rows: Any

    def __len__(self) -> int:
        return self.rows.shape[1]

    @property
    def table_bytes(self) -> int:
        return self.rows.nbytes


def units() -> list[Unit]:
    """Every unit that tables of multiples need beyond those of `msm`."""
    return list(MULTIPLES.values())


def table_bytes(group: str, points: int, *, bits: int | None = None, multiples: int | None = None) -> int:
    """Device memory of a table: 96 bytes a multiple in G1, 192 in G2."""
    return _plan(points, bits, multiples)[2] * points * LIMBS[group] * 8


def _plan(points: int, bits: int | None, multiples: int | None) -> tuple[int, int, int]:
    """Bits of a window, sets of buckets, and multiples of a point."""
    bits = bits or window_bits(points, WINDOW_BITS)
    if not 2 <= bits <= 26:
        raise ValueError(f"bits: {bits} is not between 2 and 26")
    windows = -(-SCALAR_BITS // bits)
    if multiples is not None and not 1 <= multiples <= windows:
        raise ValueError(f"multiples: {multiples} is not between 1 and the {windows} windows of {bits} bits")
    sets = -(-windows // (multiples or windows))
    return bits, sets, -(-windows // sets)


@refusing_in_one_line
def store_multiples(points: Any, *, bits: int | None = None, multiples: int | None = None) -> Multiples:
    """Compute and keep multiples of points of G1 or G2 for `msm_of_multiples`; about a second for 2^24 points.

    Parameters
    ----------
    points : (n, 12) or (n, 24) uint64, of numpy or CuPy
        As in `msm_g1` or `msm_g2`.
    bits : int, optional
        Bits of a window. Default: from a measured table.
    multiples : int, optional
        Most multiples of a point, itself counted. Default: one for each window.

    Raises
    ------
    ValueError
        Type, shape or layout; `bits` or `multiples` out of range.
    BadInput
        No usable GPU, or a table that does not fit its memory.
    """
    module = cupy()
    limbs = points.shape[1] if getattr(points, "ndim", 0) == 2 and points.shape[1] in _GROUP else 12
    checked_array("points", points, np.uint64, None, limbs)
    group, n = _GROUP[limbs], len(points)
    bits, sets, rows = _plan(n, bits, multiples)
    if rows * n >= 1 << 31:
        raise BadInput(
            f"fixed base: {rows} multiples of {n:,} points are more than indices of 31 bits reach; {_less(rows)}"
        )
    size = min(n, _SLICE_POINTS)
    needed, free = rows * n * limbs * 8 + size * limbs * 8, free_bytes()
    if needed > free:
        raise NotEnoughMemory(
            f"fixed base: the table of {rows} multiples of {n:,} points takes {format_size(needed)} of device memory, "
            f"{format_size(free)} are free; {_less(rows)}"
        )
    with nvtx.annotate(f"store_multiples_{group}", domain=DOMAIN):
        table = module.empty((rows, n, limbs), np.uint64)
        if n:
            table[0] = module.asarray(points)
        scratch = [module.empty((size, limbs // 2), np.uint64) for _ in range(2)]
        for begin in range(0, n, _SLICE_POINTS):
            part = table[:, begin : begin + size]
            for row in range(1, rows):
                grid = blocks(part.shape[1], 128, (2 if limbs == 24 else 4) * multiprocessors())
                arguments = (
                    part[row - 1], np.uint32(part.shape[1]), np.uint32(bits * sets), *scratch, part[row],
                )  # fmt: skip
                launch(MULTIPLES[group], "double_points", grid, 128, arguments)
    return Multiples(group, bits, sets, table)


def _less(rows: int) -> str:
    return f"store fewer (multiples={-(-rows // 2)} takes half) or use a multiplication without a table"


def _terms(base: Multiples, scalars: Any) -> tuple[Any, np.ndarray]:
    n, limbs = len(base), LIMBS[base.group]
    size = min(n, _BATCH_POINTS)
    cut = shape(n, base.bits, size, len(base.rows))
    flat = base.rows.reshape(-1, limbs)
    parts = ((begin, flat[begin:], part) for begin, part in batches(equal(n, size), scalars))
    return terms_of(base.group, cut, size, parts, n)


@refusing_in_one_line
def msm_of_multiples(base: Multiples, scalars: Any) -> np.ndarray:
    """Σ scalar_i · point_i of points whose multiples are stored; equal to `msm_g1` or `msm_g2` of the points.

    Parameters
    ----------
    base : Multiples
        From `store_multiples`.
    scalars : (n, 4) uint64, of numpy or CuPy
        Plain integers below r.

    Returns
    -------
    (12,) or (24,) uint64, of numpy
        Affine.

    Raises
    ------
    ValueError
        Type, shape or layout; a scalar not below r.
    BadInput
        Not enough device memory.
    """
    checked_array("scalars", scalars, np.uint64, len(base), 4)
    if len(base) == 0:
        return np.zeros(LIMBS[base.group], np.uint64)
    with nvtx.annotate(f"msm_of_multiples_{base.group}", domain=DOMAIN):
        return to_join(base.group, *_terms(base, scalars))()

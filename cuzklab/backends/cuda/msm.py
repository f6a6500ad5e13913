"""Sums of many points on the GPU: multi-scalar multiplication of any points, and masked sums.

`multiples` has the multiplication of points that stay, whose multiples are stored; `buckets` what both are made of.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import nvtx

from cuzklab.backends.cuda import arrivals, observe
from cuzklab.backends.cuda.arena import carved, clear
from cuzklab.backends.cuda.buckets import (
    ACCUMULATE,
    LIMBS,
    REDUCE,
    SORT,
    block_shape,
    host_sum,
    shape,
    terms_of,
    to_join,
)
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import (
    DOMAIN,
    blocks,
    checked_array,
    cupy,
    device_array,
    launch,
    multiprocessors,
    refusing_in_one_line,
)
from cuzklab.backends.cuda.parts import Edges, batches, equal, growing

# Points that are sorted at once; from the host, a fifth of the link's time for them stays in the open.
_BATCH_POINTS = 1 << 24
_STREAMED_POINTS = 1 << 22
# Few enough sums for the host to add up: on the device each round of additions takes as long as sixty of them do there.
_HOST_SUMS = 128

# log2 of the number of points to bits of a window, measured on an H200; in between, the one below.
WINDOW_BITS = {0: 6, 9: 7, 11: 8, 13: 11, 14: 12, 17: 16, 21: 17, 24: 20}


def units() -> list[Unit]:
    """Every unit that sums of points need."""
    return [SORT, *ACCUMULATE.values(), *REDUCE.values()]


def window_bits(points: int, table: dict[int, int] = WINDOW_BITS) -> int:
    """Bits of a window for so many points."""
    log_n = max(points, 1).bit_length() - 1
    return table[max(key for key in table if key <= log_n)]


def msm_terms(group: str, points: Any, scalars: Any, bits: int | None = None) -> tuple[Any, np.ndarray]:
    """The device's part of an MSM: XYZZ sums and the first scalar not below r, and their powers of two.

    Everything is put into the current stream. Points are taken in batches, which bounds the memory of the sort and
    lets copies from the host overlap with kernels. Returns as `buckets.terms_of`.
    """
    n, from_host = len(points), isinstance(points, np.ndarray) or isinstance(scalars, np.ndarray)
    size = min(n, _STREAMED_POINTS if from_host else _BATCH_POINTS)
    cut = shape(n, bits or window_bits(n), size)
    edges = growing(n, size) if from_host and n > size else equal(n, size)
    return terms_of(group, cut, size, batches(edges, points, scalars))


@refusing_in_one_line
def _msm(group: str, points: Any, scalars: Any, bits: int | None) -> np.ndarray:
    n = len(points)
    if n <= _STREAMED_POINTS:
        points = device_array("points", points, np.uint64, None, LIMBS[group])
        scalars = device_array("scalars", scalars, np.uint64, n, 4)
    else:
        checked_array("points", points, np.uint64, None, LIMBS[group])
        checked_array("scalars", scalars, np.uint64, n, 4)
    if n == 0:
        return np.zeros(LIMBS[group], np.uint64)
    if n >= 1 << 31:
        raise ValueError(f"points: {n} are more than indices of 31 bits reach")
    with nvtx.annotate(f"msm_{group}", domain=DOMAIN):
        return to_join(group, *msm_terms(group, points, scalars, bits))()


def msm_g1(points: Any, scalars: Any, *, bits: int | None = None) -> np.ndarray:
    """Σ scalar_i · point_i in G1, as `host.msm_g1`.

    Parameters
    ----------
    points : (n, 12) uint64, of numpy or CuPy
        Affine, Montgomery form, on the curve; repeated, opposite points and infinity are welcome.
    scalars : (n, 4) uint64, of numpy or CuPy
        Plain integers below r.
    bits : int, optional
        Bits of a window. Default: from a measured table.

    Returns
    -------
    (12,) uint64, of numpy
        Affine; infinity for n = 0.

    Raises
    ------
    ValueError
        Type, shape or layout; a scalar not below r.
    BadInput
        No usable GPU, or not enough of its memory.
    """
    return _msm("g1", points, scalars, bits)


def msm_g2(points: Any, scalars: Any, *, bits: int | None = None) -> np.ndarray:
    """Σ scalar_i · point_i in G2: points (n, 24), result (24,); otherwise as `msm_g1`."""
    return _msm("g2", points, scalars, bits)


def masked_sums(
    group: str, edges: Edges, parts: Iterable[tuple[int, Any]], bitmap: Callable[[], Any], *, streamed: bool = False
) -> Any:
    """XYZZ sums (m, 2 · limbs) on the device, at most `_HOST_SUMS`, that add up to the sum over the set bits.

    Parameters
    ----------
    edges : sequence of (int, int)
        Where the parts lie; first indices are multiples of 64.
    parts : iterable of (int, array)
        First index and points of each of them, on the device or announced to be.
    bitmap : callable
        Its array on the device.
    streamed : bool
        Parts are copied as it goes, so that there is time for their kernels: few threads then, whose sums are soon
        added up at the end.
    """
    block, per_sm = block_shape(group)
    sms, limbs, most = multiprocessors(), LIMBS[group], max(end - begin for begin, end in edges)
    grid = blocks(most, 8 * block, (128 // block if streamed else per_sm) * sms)
    per_block = 256 if grid * block <= 256 * _HOST_SUMS else 1024
    rows = -(-grid * block // per_block)
    sums, out, indices, totals = carved(
        [
            ((grid * block, 2 * limbs), np.uint64),
            ((rows, 2 * limbs), np.uint64),
            ((most,), np.uint32),
            ((len(edges),), np.uint32),
        ]
    )
    bits = bitmap()
    clear(totals, totals)

    def list_indices(part: int) -> None:
        begin, end = edges[part]
        some, total = bits[begin // 64 : -(-end // 64)], totals[part : part + 1]
        grid = blocks(len(some), 256, 16 * sms)
        launch(SORT, "mask_indices", grid, 256, (some, np.uint64(end - begin), indices, total))

    with observe.consecutive():
        list_indices(0)
        for part, (begin, points) in enumerate(parts):
            arrivals.needed(points)
            arguments = (points, indices, totals[part : part + 1], np.uint32(begin > 0), sums)
            launch(ACCUMULATE[group], "sum_listed", grid, block, arguments)
            if part + 1 < len(edges):
                list_indices(part + 1)
        launch(REDUCE[group], "block_sums", rows, 256, (sums, np.uint32(grid * block), out))
        while rows > _HOST_SUMS:
            sums, out, count = out, sums, rows
            rows = -(-count // 1024)
            launch(REDUCE[group], "block_sums", rows, 256, (sums, np.uint32(count), out))
    return out[:rows]


def to_add(group: str, sums: Any) -> Callable[[], np.ndarray]:
    """What makes the affine sum of XYZZ sums on the host: the device is done when this returns."""
    on_host = cupy().asnumpy(sums)
    return functools.partial(host_sum, group, on_host, np.zeros(len(on_host), np.uint32))


@refusing_in_one_line
def _masked_sum(group: str, points: Any, bitmap: Any) -> np.ndarray:
    points = device_array("points", points, np.uint64, None, LIMBS[group])
    n = len(points)
    bitmap = device_array("bitmap", bitmap, np.uint64, -(-n // 64))
    if n == 0:
        return np.zeros(LIMBS[group], np.uint64)
    if n >= 1 << 32:
        raise ValueError(f"points: {n} are more than 32-bit indices reach")
    with nvtx.annotate(f"masked_sum_{group}", domain=DOMAIN):
        return to_add(group, masked_sums(group, [(0, n)], [(0, points)], lambda: bitmap))()


def masked_sum_g1(points: Any, bitmap: Any) -> np.ndarray:
    """Σ point_i over the set bits of a bitmap, in G1, as `host.masked_sum_g1`.

    Parameters
    ----------
    points : (n, 12) uint64, of numpy or CuPy
    bitmap : (⌈n / 64⌉,) uint64, of numpy or CuPy
        Bit i of word i // 64; bits from n on are ignored.

    Returns
    -------
    (12,) uint64, of numpy
        Affine.
    """
    return _masked_sum("g1", points, bitmap)


def masked_sum_g2(points: Any, bitmap: Any) -> np.ndarray:
    """Σ point_i over the set bits of a bitmap, in G2: points (n, 24), result (24,); otherwise as `masked_sum_g1`."""
    return _masked_sum("g2", points, bitmap)

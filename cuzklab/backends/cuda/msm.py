"""Sums of many points on the GPU: multi-scalar multiplication by Pippenger's method, and masked sums.

The device brings each window down to one sum a bit (see `kernels/cuda/points.cu`); a few hundred additions and the 255
doublings that join them are done by the CPU code, which takes a fraction of the time of a GPU's single thread.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import nvtx

from cuzklab.backends.cuda import observe
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import DOMAIN, blocks, checked_array, cupy, device_array, launch, multiprocessors
from cuzklab.backends.native import load

_SCALAR_BITS = 255
_TOP_WORD = 0x73EDA753299D7D48  # of r
_LIMBS = {"g1": 12, "g2": 24}
_SORT = Unit("msm_sort.cu")
# Products are called: inlined, the additions' code outgrows the instruction cache and is a tenth slower in G1.
_ACCUMULATE = {
    "g1": Unit("accumulate.cu", (("GROUP", 1), ("THREADS", 128), ("BLOCKS_PER_SM", 4), ("CALLED_PRODUCTS", 1))),
    "g2": Unit(
        "accumulate.cu",
        (
            ("GROUP", 2),
            ("THREADS", 64),
            ("BLOCKS_PER_SM", 8),
            ("CALLED_PRODUCTS", 1),
            ("SHARED_SUMS", 1),
            ("MUL_AS_HALVES", 1),  # fewer spills
        ),
    ),
}
_REDUCE = {"g1": Unit("reduce.cu", (("GROUP", 1),)), "g2": Unit("reduce.cu", (("GROUP", 2),))}
_SCATTER_POINTS = 1 << 22
# Points that are sorted at once; from the host, a fifth of the link's time for them stays in the open.
_BATCH_POINTS = 1 << 24
_STREAMED_POINTS = 1 << 22

# log2 of the number of points to bits of a window, measured on an H200; in between, the one below.
WINDOW_BITS = {0: 6, 9: 7, 11: 8, 13: 10, 15: 12, 16: 13, 18: 14, 19: 15, 20: 16, 22: 17, 24: 20}


def _block_shape(group: str) -> tuple[int, int]:
    """Threads of a block of the accumulation, and blocks that fit a multiprocessor."""
    macros = dict(_ACCUMULATE[group].defines)
    return macros["THREADS"], macros["BLOCKS_PER_SM"]


def units() -> list[Unit]:
    """Every unit that sums of points need."""
    return [_SORT, *_ACCUMULATE.values(), *_REDUCE.values()]


@dataclass(frozen=True)
class Shape:
    """How a sum is cut up.

    Attributes
    ----------
    bits, windows : int
    half, last : int
        Buckets of a window, and of the last one, whose digit has no sign.
    segment : int
        Most points that one thread adds up.
    chunk : int
        Buckets that one thread brings down to two sums.
    """

    bits: int
    windows: int
    half: int
    last: int
    segment: int
    chunk: int

    @property
    def buckets(self) -> int:
        return (self.windows - 1) * self.half + self.last


def window_bits(points: int) -> int:
    """Bits of a window for so many points."""
    log_n = max(points, 1).bit_length() - 1
    return WINDOW_BITS[max(key for key in WINDOW_BITS if key <= log_n)]


def shape(points: int, bits: int | None = None, batch: int | None = None) -> Shape:
    """The cut for so many points in batches of `batch`; `bits` overrides the window."""
    bits = bits or window_bits(points)
    windows = -(-_SCALAR_BITS // bits)
    half = 1 << (bits - 1)
    position = bits * (windows - 1) - 192
    last = ((_TOP_WORD >> position) if position >= 0 else _TOP_WORD << -position) + 1
    buckets = (windows - 1) * half + last
    mean = -(-min(points, batch or points) * windows // buckets)
    segment = min(max(32, -(-4 * mean // 32) * 32), 512)
    chunk = min(max(4, 1 << (max(1, buckets // 16384).bit_length() - 1)), 64)
    return Shape(bits, windows, half, last, segment, chunk)


def _host_sum(group: str, terms: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Σ 2^shift · term of XYZZ sums (n, 2·limbs), affine."""
    order = np.argsort(shifts, kind="stable")
    terms, shifts = np.ascontiguousarray(terms[order]), np.ascontiguousarray(shifts[order], np.uint32)
    out = np.empty(_LIMBS[group], np.uint64)
    function = getattr(load().library, f"{group}_sum_of_shifted")
    function(terms.ctypes.data, shifts.ctypes.data, len(terms), out.ctypes.data)
    return out


def _sort(cut: Shape, scalars: Any, base: int, first_bad: Any) -> tuple[Any, Any, Any, Any]:
    """Sorted entries, tasks, long buckets and the totals {entries, tasks, slots, long buckets} of one batch."""
    module = cupy()
    points = len(scalars)
    n, sms = np.uint32(points), multiprocessors()
    entries, buckets = points * cut.windows, np.uint32(cut.buckets)
    count = module.zeros(cut.buckets, np.uint32)
    start = module.empty(cut.buckets, np.uint32)
    keys, ranks, entry_list = (module.empty(entries, np.uint32) for _ in range(3))
    bins, totals = module.zeros(1024, np.uint32), module.zeros(4, np.uint32)
    segment, half = np.uint32(cut.segment), np.uint32(cut.half)
    long_most = entries // cut.segment + 1
    tasks = module.empty((min(cut.buckets, entries) + long_most, 4), np.uint32)
    long_buckets = module.empty((min(long_most, cut.buckets), 4), np.uint32)
    arguments = (scalars, n, np.uint32(base), np.uint32(cut.bits), count, keys, ranks, first_bad)
    launch(_SORT, "msm_digits", blocks(points, 256, 16 * sms), 256, arguments)
    grid = blocks(cut.buckets, 256, 16 * sms)
    launch(_SORT, "msm_ranges", grid, 256, (count, buckets, segment, start, bins, totals))
    # Parts of a window's list that fit the L2 cache beside what streams through it.
    parts = min(1 << max(0, (points // _SCATTER_POINTS).bit_length() - 1), cut.half)
    part_bits = np.uint32((cut.half // parts).bit_length() - 1)
    arguments = (keys, ranks, n, half, np.uint32(parts), part_bits, start, entry_list)
    launch(_SORT, "msm_scatter", (blocks(points, 1024, 16 * sms), cut.windows * parts), 256, arguments)
    launch(_SORT, "msm_task_bins", 1, 1024, (bins, segment, totals))
    launch(_SORT, "msm_tasks", grid, 256, (count, start, buckets, segment, bins, totals, tasks, long_buckets))
    return entry_list, tasks, long_buckets, totals


def _batches(points: Any, scalars: Any, size: int) -> Iterator[tuple[int, Any, Any]]:
    """Parts of the input on the device, each with its first index: slices, or copies made while the last part is used.

    Copies overlap with kernels where the host's memory is page-locked (`cupyx.empty_pinned`).
    """
    module, n = cupy(), len(points)
    edges = [(begin, min(begin + size, n)) for begin in range(0, n, size)]
    sources = points, scalars
    if not any(isinstance(source, np.ndarray) for source in sources):
        for begin, end in edges:
            yield begin, points[begin:end], scalars[begin:end]
        return
    main, copies = module.cuda.get_current_stream(), module.cuda.Stream(non_blocking=True)
    buffers = [[module.empty((size, source.shape[1]), np.uint64) for source in sources] for _ in range(2)]
    consumed = [main.record(), main.record()]

    def upload(batch: int) -> Any:
        begin, end = edges[batch]
        copies.wait_event(consumed[batch % 2])
        for buffer, source in zip(buffers[batch % 2], sources):
            part = buffer[: end - begin]
            if isinstance(source, np.ndarray):
                with observe.copy(part.nbytes, module.cuda, copies):
                    part.set(source[begin:end], stream=copies)
            else:
                with copies:
                    part[...] = source[begin:end]
        return copies.record()

    ready = upload(0)
    for batch, (begin, end) in enumerate(edges):
        main.wait_event(ready)
        if batch + 1 < len(edges):
            ready = upload(batch + 1)
        yield begin, *(buffer[: end - begin] for buffer in buffers[batch % 2])
        consumed[batch % 2] = main.record()
    copies.synchronize()


def msm_terms(group: str, points: Any, scalars: Any, bits: int | None = None) -> tuple[Any, np.ndarray, Any]:
    """The device's part of an MSM: XYZZ sums, their powers of two, and the first scalar not below r.

    Everything is put into the current stream. Points are taken in batches, which bounds the memory of the sort and
    lets copies from the host overlap with kernels.

    Returns
    -------
    terms : (m, 2 · limbs) uint64, on the device
    shifts : (m,) uint32
    first_bad : (1,) uint32, on the device
        2^32 − 1 where all scalars are below r.
    """
    module, unit, limbs = cupy(), _REDUCE[group], _LIMBS[group]
    from_host = isinstance(points, np.ndarray) or isinstance(scalars, np.ndarray)
    size = min(len(points), _STREAMED_POINTS if from_host else _BATCH_POINTS)
    cut = shape(len(points), bits, size)
    first_bad = module.full(1, 0xFFFFFFFF, np.uint32)
    buckets = module.zeros((cut.buckets, 2 * limbs), np.uint64)
    partial = module.empty((size * cut.windows // cut.segment + 1, 2 * limbs), np.uint64)
    for begin, part, part_scalars in _batches(points, scalars, size):
        entry_list, tasks, long_buckets, totals = _sort(cut, part_scalars, begin, first_bad)
        arguments = (part, entry_list, tasks, totals, np.uint32(begin > 0), buckets, partial)
        block, _ = _block_shape(group)
        launch(_ACCUMULATE[group], "accumulate", blocks(len(tasks), block), block, arguments)
        launch(unit, "merge_long", min(len(long_buckets), 1024), 128, (long_buckets, totals, partial, buckets))
    of_window, of_last = -(-cut.half // cut.chunk), -(-cut.last // cut.chunk)
    chunks = of_window * (cut.windows - 1) + of_last
    weighted, plain = (module.empty((chunks, 2 * limbs), np.uint64) for _ in range(2))
    arguments = (
        buckets, np.uint32(cut.windows), np.uint32(cut.half), np.uint32(cut.last), np.uint32(cut.chunk),
        weighted, plain,
    )  # fmt: skip
    launch(unit, "chunk_sums", blocks(chunks, 128), 128, arguments)
    index_bits = (max(of_window, of_last) - 1).bit_length()
    terms = module.empty((cut.windows * (1 + index_bits), 2 * limbs), np.uint64)
    arguments = (weighted, plain, np.uint32(of_window), np.uint32(of_last), terms)
    launch(unit, "bit_sums", (1 + index_bits, cut.windows), 256, arguments)
    chunk_bits = cut.chunk.bit_length() - 1
    inside = np.array([0, *(chunk_bits + j for j in range(index_bits))], np.uint32)
    shifts = (np.arange(cut.windows, dtype=np.uint32)[:, None] * np.uint32(cut.bits) + inside).reshape(-1)
    return terms, shifts, first_bad


def _msm(group: str, points: Any, scalars: Any, bits: int | None) -> np.ndarray:
    n = len(points)
    if n <= _STREAMED_POINTS:
        points = device_array("points", points, np.uint64, None, _LIMBS[group])
        scalars = device_array("scalars", scalars, np.uint64, n, 4)
    else:
        checked_array("points", points, np.uint64, None, _LIMBS[group])
        checked_array("scalars", scalars, np.uint64, n, 4)
    if n == 0:
        return np.zeros(_LIMBS[group], np.uint64)
    if n >= 1 << 32:
        raise ValueError(f"points: {n} are more than 32-bit indices reach")
    with nvtx.annotate(f"msm_{group}", domain=DOMAIN):
        terms, shifts, first_bad = msm_terms(group, points, scalars, bits)
        terms, bad = cupy().asnumpy(terms), int(first_bad[0])
    if bad != 0xFFFFFFFF:
        raise ValueError(f"scalars: element {bad} is not below the modulus")
    return _host_sum(group, terms, shifts)


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
    """
    return _msm("g1", points, scalars, bits)


def msm_g2(points: Any, scalars: Any, *, bits: int | None = None) -> np.ndarray:
    """Σ scalar_i · point_i in G2: points (n, 24), result (24,); otherwise as `msm_g1`."""
    return _msm("g2", points, scalars, bits)


def masked_sum_term(group: str, points: Any, bitmap: Any) -> Any:
    """The sum over the set bits as one XYZZ sum (1, 2 · limbs) on the device; nothing waits."""
    module, limbs = cupy(), _LIMBS[group]
    n, sms = len(points), multiprocessors()
    indices, total = module.empty(n, np.uint32), module.zeros(1, np.uint32)
    launch(_SORT, "mask_indices", blocks(-(-n // 64), 256, 16 * sms), 256, (bitmap, np.uint64(n), indices, total))
    block, per_sm = _block_shape(group)
    grid = blocks(n, 8 * block, per_sm * sms)
    sums = module.empty((grid * block, 2 * limbs), np.uint64)
    launch(_ACCUMULATE[group], "sum_listed", grid, block, (points, indices, total, sums))
    while len(sums) > 1:
        out = module.empty((blocks(len(sums), 1024), 2 * limbs), np.uint64)
        launch(_REDUCE[group], "block_sums", len(out), 256, (sums, np.uint32(len(sums)), out))
        sums = out
    return sums


def _masked_sum(group: str, points: Any, bitmap: Any) -> np.ndarray:
    points = device_array("points", points, np.uint64, None, _LIMBS[group])
    n = len(points)
    bitmap = device_array("bitmap", bitmap, np.uint64, -(-n // 64))
    if n == 0:
        return np.zeros(_LIMBS[group], np.uint64)
    if n >= 1 << 32:
        raise ValueError(f"points: {n} are more than 32-bit indices reach")
    with nvtx.annotate(f"masked_sum_{group}", domain=DOMAIN):
        term = cupy().asnumpy(masked_sum_term(group, points, bitmap))
    return _host_sum(group, term, np.zeros(1, np.uint32))


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

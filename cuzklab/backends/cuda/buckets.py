"""Pippenger's method on the GPU: how a sum is cut up, the sort into buckets, their sums, and what is left for the host.

Windows may have buckets of their own (`msm`), or share them in sets where multiples of the points are stored
(`multiples`). The device brings each set down to one sum a bit; a few hundred additions and the doublings that join
them are done by the CPU code, in a fraction of the time of a GPU's single thread.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzklab.backends.cuda import observe
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import blocks, cupy, in_force, launch, multiprocessors
from cuzklab.backends.native import load

SCALAR_BITS = 255
LIMBS = {"g1": 12, "g2": 24}
NONE_BAD = 0xFFFFFFFF
"""What `first_bad` holds where all scalars are below r."""

SORT = Unit("msm_sort.cu")
# Products are called: inlined, the additions' code outgrows the instruction cache and is a tenth slower in G1.
ACCUMULATE = {
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
REDUCE = {"g1": Unit("reduce.cu", (("GROUP", 1),)), "g2": Unit("reduce.cu", (("GROUP", 2),))}

_TOP_WORD = 0x73EDA753299D7D48  # of r
# Entries of a list that stay in the L2 cache beside what streams through it.
_SCATTER_ENTRIES = 1 << 22


# Tasks that keep a large GPU busy to the end.
_FULL_DEVICE = 1 << 17


@dataclass(frozen=True)
class Shape:
    """How a sum is cut up.

    Attributes
    ----------
    bits, windows : int
    sets : int
        Sets of buckets; windows w, w + sets, w + 2 · sets … share one.
    half, last : int
        Buckets of a set, and of the last one, which holds a window whose digit has no sign.
    segment : int
        Most points that one thread adds up.
    chunk : int
        Buckets that one thread brings down to two sums.
    """

    bits: int
    windows: int
    sets: int
    half: int
    last: int
    segment: int
    chunk: int

    @property
    def buckets(self) -> int:
        return (self.sets - 1) * self.half + self.last


def shape(points: int, bits: int, batch: int | None = None, multiples: int = 1) -> Shape:
    """The cut for so many points in batches of `batch`, with `multiples` of each of them stored."""
    windows = -(-SCALAR_BITS // bits)
    sets = -(-windows // multiples)
    half = 1 << (bits - 1)
    position = bits * (windows - 1) - 192
    last = ((_TOP_WORD >> position) if position >= 0 else _TOP_WORD << -position) + 1
    if sets < windows:  # the last window's buckets are among others' of its set
        half = last = max(half, last)
    buckets = (sets - 1) * half + last
    entries = min(points, batch or points) * windows
    segment = min(max(32, -(-4 * -(-entries // buckets) // 32) * 32), 512)
    if sets < windows:  # buckets are few: shorter tasks, so that the device has enough of them
        segment = min(segment, max(16, -(-entries // _FULL_DEVICE // 16) * 16))
    chunk = min(max(4, 1 << (max(1, buckets // 16384).bit_length() - 1)), 64)
    return Shape(bits, windows, sets, half, last, segment, chunk)


def block_shape(group: str) -> tuple[int, int]:
    """Threads of a block of the accumulation, and blocks that fit a multiprocessor."""
    defines = dict(in_force(ACCUMULATE[group]).defines)
    return defines["THREADS"], defines["BLOCKS_PER_SM"]


def host_sum(group: str, terms: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Σ 2^shift · term of XYZZ sums (n, 2·limbs), affine."""
    order = np.argsort(shifts, kind="stable")
    terms, shifts = np.ascontiguousarray(terms[order]), np.ascontiguousarray(shifts[order], np.uint32)
    out = np.empty(LIMBS[group], np.uint64)
    function = getattr(load().library, f"{group}_sum_of_shifted")
    function(terms.ctypes.data, shifts.ctypes.data, len(terms), out.ctypes.data)
    return out


def batches(size: int, *sources: Any) -> Iterator[tuple[Any, ...]]:
    """Parts of arrays on the device, each with its first index: slices, or copies made while the last part is used.

    Copies overlap with kernels where the host's memory is page-locked (`cupyx.empty_pinned`).
    """
    module, n = cupy(), len(sources[0])
    edges = [(begin, min(begin + size, n)) for begin in range(0, n, size)]
    if not any(isinstance(source, np.ndarray) for source in sources):
        for begin, end in edges:
            yield begin, *(source[begin:end] for source in sources)
        return
    main, copies = module.cuda.get_current_stream(), module.cuda.Stream(non_blocking=True)
    # Two of each that is copied; what lies on the device already is used there.
    buffers = [
        [module.empty((size, *source.shape[1:]), source.dtype) for source in sources if isinstance(source, np.ndarray)]
        for _ in edges[:2]
    ]
    consumed = [main.record(), main.record()]

    def upload(batch: int) -> Any:
        begin, end = edges[batch]
        copies.wait_event(consumed[batch % 2])
        for buffer, source in zip(buffers[batch % 2], (it for it in sources if isinstance(it, np.ndarray))):
            part = buffer[: end - begin]
            with observe.copy(part.nbytes, module.cuda, copies):
                part.set(source[begin:end], stream=copies)
        return copies.record()

    ready = upload(0)
    for batch, (begin, end) in enumerate(edges):
        main.wait_event(ready)
        if batch + 1 < len(edges):
            ready = upload(batch + 1)
        copied = iter(buffers[batch % 2])
        yield (
            begin,
            *(
                next(copied)[: end - begin] if isinstance(source, np.ndarray) else source[begin:end]
                for source in sources
            ),
        )
        consumed[batch % 2] = main.record()
    copies.synchronize()


def _sort(cut: Shape, scalars: Any, base: int, stride: int, first_bad: Any) -> tuple[Any, Any, Any, Any]:
    """Sorted entries, tasks, long buckets and the totals {entries, tasks, slots, long buckets} of one batch."""
    module = cupy()
    points = len(scalars)
    n, sms = np.uint32(points), multiprocessors()
    entries, buckets = points * cut.windows, np.uint32(cut.buckets)
    count = module.zeros(cut.buckets, np.uint32)
    start = module.empty(cut.buckets, np.uint32)
    keys, ranks, entry_list = (module.empty(entries, np.uint32) for _ in range(3))
    bins, totals = module.zeros(1024, np.uint32), module.zeros(4, np.uint32)
    sets, of_set, segment = np.uint32(cut.sets), np.uint32(cut.half), np.uint32(cut.segment)
    long_most = entries // cut.segment + 1
    tasks = module.empty((min(cut.buckets, entries) + long_most, 4), np.uint32)
    long_buckets = module.empty((min(long_most, cut.buckets), 4), np.uint32)
    arguments = (scalars, n, np.uint32(base), np.uint32(cut.bits), sets, of_set, count, keys, ranks, first_bad)
    launch(SORT, "msm_digits", blocks(points, 256, 16 * sms), 256, arguments)
    grid = blocks(cut.buckets, 256, 16 * sms)
    launch(SORT, "msm_ranges", grid, 256, (count, buckets, segment, start, bins, totals))
    together = points if cut.sets == cut.windows else entries
    parts = min(1 << max(0, (together // _SCATTER_ENTRIES).bit_length() - 1), cut.half)
    part_bits = (cut.half // parts).bit_length() - 1
    arguments = (
        keys, ranks, n, np.uint32(cut.windows), sets, of_set, np.uint32(stride), np.uint32(parts),
        np.uint32(part_bits), start, entry_list,
    )  # fmt: skip
    launch(SORT, "msm_scatter", (blocks(points, 1024, 16 * sms), cut.windows * parts), 256, arguments)
    launch(SORT, "msm_task_bins", 1, 1024, (bins, segment, totals))
    launch(SORT, "msm_tasks", grid, 256, (count, start, buckets, segment, bins, totals, tasks, long_buckets))
    return entry_list, tasks, long_buckets, totals


def _partial_sums(cut: Shape, size: int) -> int:
    """Most parts of long buckets in a batch of `size` points."""
    return size * cut.windows // cut.segment + 1


def scratch_bytes(group: str, cut: Shape, size: int, streamed_bytes: int = 0) -> int:
    """Most device memory of a sum in batches of `size` points, of each of which `streamed_bytes` are copied there."""
    sum_bytes, entries = 16 * LIMBS[group], size * cut.windows
    long_most = entries // cut.segment + 1
    chunks = -(-cut.half // cut.chunk) * (cut.sets - 1) + -(-cut.last // cut.chunk)
    lists = 12 * entries + 16 * (min(cut.buckets, entries) + long_most + min(long_most, cut.buckets))
    sums = sum_bytes * (cut.buckets + _partial_sums(cut, size) + 2 * chunks + (1 << 14))
    return sums + 8 * cut.buckets + lists + 2 * size * streamed_bytes


def _accumulate(
    group: str,
    cut: Shape,
    points: Any,
    scalars: Any,
    base: int,
    stride: int,
    first_bad: Any,
    buckets: Any,
    partial: Any,
) -> None:
    """Add one batch to the buckets; what it needs beside them is given back before the next."""
    block, _ = block_shape(group)
    entry_list, tasks, long_buckets, totals = _sort(cut, scalars, base, stride, first_bad)
    arguments = (points, entry_list, tasks, totals, np.uint32(base > 0), buckets, partial)
    launch(ACCUMULATE[group], "accumulate", blocks(len(tasks), block), block, arguments)
    launch(REDUCE[group], "merge_long", min(len(long_buckets), 1024), 128, (long_buckets, totals, partial, buckets))


def terms_of(
    group: str, cut: Shape, size: int, parts: Iterable[tuple[int, Any, Any]], stride: int = 0
) -> tuple[Any, np.ndarray, Any]:
    """The device's part of a sum, put into the current stream.

    Parameters
    ----------
    size : int
        Most points of a part.
    parts : iterable of (int, array, array)
        First index, points and scalars of each part, on the device; a part's points are followed by their multiples,
        the next of each `stride` points further.

    Returns
    -------
    terms : (m, 2 · limbs) uint64, on the device
        XYZZ sums.
    shifts : (m,) uint32
        Their powers of two.
    first_bad : (1,) uint32, on the device
        Index of the first scalar not below r, or `NONE_BAD`.
    """
    module, unit, limbs = cupy(), REDUCE[group], LIMBS[group]
    first_bad = module.full(1, NONE_BAD, np.uint32)
    buckets = module.zeros((cut.buckets, 2 * limbs), np.uint64)
    partial = module.empty((_partial_sums(cut, size), 2 * limbs), np.uint64)
    for begin, points, scalars in parts:
        _accumulate(group, cut, points, scalars, begin, stride, first_bad, buckets, partial)
    of_set, of_last = -(-cut.half // cut.chunk), -(-cut.last // cut.chunk)
    chunks = of_set * (cut.sets - 1) + of_last
    weighted, plain = (module.empty((chunks, 2 * limbs), np.uint64) for _ in range(2))
    arguments = (
        buckets, np.uint32(cut.sets), np.uint32(cut.half), np.uint32(cut.last), np.uint32(cut.chunk), weighted, plain,
    )  # fmt: skip
    launch(unit, "chunk_sums", blocks(chunks, 128), 128, arguments)
    index_bits = (max(of_set, of_last) - 1).bit_length()
    # Few sets would leave most of the device idle: then each sum is made in parts, and the host joins these, too.
    terms_of_set = 1 + index_bits
    in_parts = max(1, min(multiprocessors() // (cut.sets * terms_of_set), -(-of_set // 1024)))
    terms = module.empty((cut.sets * terms_of_set * in_parts, 2 * limbs), np.uint64)
    arguments = (weighted, plain, np.uint32(of_set), np.uint32(of_last), terms)
    launch(unit, "bit_sums", (terms_of_set, cut.sets, in_parts), 256, arguments)
    chunk_bits = cut.chunk.bit_length() - 1
    inside = np.array([0, *(chunk_bits + j for j in range(index_bits))], np.uint32)
    shifts = (np.arange(cut.sets, dtype=np.uint32)[:, None] * np.uint32(cut.bits) + inside).reshape(-1)
    return terms, np.repeat(shifts, in_parts), first_bad


def joined(group: str, terms: Any, shifts: np.ndarray, first_bad: Any) -> np.ndarray:
    """The affine sum on the host, once the device is done.

    Raises
    ------
    ValueError
        A scalar not below r.
    """
    on_host, bad = cupy().asnumpy(terms), int(first_bad[0])
    if bad != NONE_BAD:
        raise ValueError(f"scalars: element {bad} is not below the modulus")
    return host_sum(group, on_host, shifts)

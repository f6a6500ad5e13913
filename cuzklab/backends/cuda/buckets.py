"""Pippenger's method on the GPU: how a sum is cut up, the sort into buckets, their sums, and what is left for the host.

Windows may have buckets of their own (`msm`), or share them in sets where multiples of the points are stored
(`multiples`). The device brings each set down to one sum a bit; a few hundred additions and the doublings that join
them are done by the CPU code, in a fraction of the time of a GPU's single thread.
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzklab.backends.cuda import arrivals, observe
from cuzklab.backends.cuda.arena import Wanted, carved, carved_bytes, clear
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
# Room for what `batches` rounds up to the pool's alignment.
_COPIED_APART = 1 << 10
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

    @property
    def of_set(self) -> int:
        """Chunks of a set, but for the last."""
        return -(-self.half // self.chunk)

    @property
    def of_last(self) -> int:
        """Chunks of the last set."""
        return -(-self.last // self.chunk)

    @property
    def chunks(self) -> int:
        return self.of_set * (self.sets - 1) + self.of_last

    @property
    def index_bits(self) -> int:
        """Bits of a chunk's index in its set."""
        return (max(self.of_set, self.of_last) - 1).bit_length()

    def in_parts(self, sms: int) -> int:
        """Parts of each of the last sums: few sets would leave most of the device idle. The host joins these, too."""
        return max(1, min(sms // (self.sets * (1 + self.index_bits)), -(-self.of_set // 1024)))

    def terms(self, sms: int) -> int:
        """Sums that are left for the host."""
        return self.sets * (1 + self.index_bits) * self.in_parts(sms)

    def shifts(self, sms: int) -> np.ndarray:
        """Their powers of two, (terms,) uint32."""
        chunk_bits = self.chunk.bit_length() - 1
        inside = np.array([0, *(chunk_bits + j for j in range(self.index_bits))], np.uint32)
        shifts = (np.arange(self.sets, dtype=np.uint32)[:, None] * np.uint32(self.bits) + inside).reshape(-1)
        return np.repeat(shifts, self.in_parts(sms))


@functools.lru_cache(maxsize=256)
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
    # The longest task is not to outlast the rest: four times the mean where there are many, shorter where few.
    segment = min(max(32, -(-4 * -(-entries // buckets) // 32) * 32), 512)
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


@dataclass(frozen=True)
class _Room:
    """Device memory of a sum: all of it in one allocation, made before the first kernel and used by every batch.

    Attributes
    ----------
    count, bins, totals : arrays
        Zero at the start of a batch. Totals: {entries, tasks, slots, long buckets}.
    terms : (m + 1, 2 · limbs) uint64
        The result's sums, and after them a row that begins with the index of the first scalar not below r.
    """

    count: Any
    bins: Any
    totals: Any
    start: Any
    keys: Any
    ranks: Any
    entries: Any
    tasks: Any
    long_buckets: Any
    buckets: Any
    partial: Any
    weighted: Any
    plain: Any
    terms: Any


@functools.lru_cache(maxsize=64)
def _wanted(group: str, cut: Shape, size: int, sms: int) -> tuple[Wanted, ...]:
    """The arrays of `_Room` for batches of `size` points."""
    entries, width = size * cut.windows, 2 * LIMBS[group]
    long_most = entries // cut.segment + 1
    return (
        ((cut.buckets,), np.uint32),
        ((1024,), np.uint32),
        ((4,), np.uint32),
        ((cut.buckets,), np.uint32),
        *[((entries,), np.uint32)] * 3,
        ((min(cut.buckets, entries) + long_most, 4), np.uint32),
        ((min(long_most, cut.buckets), 4), np.uint32),
        ((cut.buckets, width), np.uint64),
        ((long_most, width), np.uint64),
        *[((cut.chunks, width), np.uint64)] * 2,
        ((cut.terms(sms) + 1, width), np.uint64),
    )


def scratch_bytes(group: str, cut: Shape, size: int, streamed_bytes: int = 0, sms: int = 132) -> int:
    """Device memory of a sum in batches of `size` points, of each of which `streamed_bytes` are copied there."""
    return carved_bytes(_wanted(group, cut, size, sms)) + 2 * (size * streamed_bytes + _COPIED_APART)


def _sort(cut: Shape, room: _Room, scalars: Any, base: int, stride: int) -> None:
    """Sort one batch's digits into lists of the buckets, and these into tasks."""
    points = len(scalars)
    n, sms = np.uint32(points), multiprocessors()
    buckets, sets, of_set, segment = (np.uint32(x) for x in (cut.buckets, cut.sets, cut.half, cut.segment))
    grid = blocks(cut.buckets, 256, 16 * sms)
    together = points if cut.sets == cut.windows else points * cut.windows
    parts = min(1 << max(0, (together // _SCATTER_ENTRIES).bit_length() - 1), cut.half)
    part_bits = (cut.half // parts).bit_length() - 1
    digits = (
        scalars, n, np.uint32(base), np.uint32(cut.bits), sets, of_set, room.count, room.keys, room.ranks,
        room.terms[-1],
    )  # fmt: skip
    scatter = (
        room.keys, room.ranks, n, np.uint32(cut.windows), sets, of_set, np.uint32(stride), np.uint32(parts),
        np.uint32(part_bits), room.start, room.entries,
    )  # fmt: skip
    ranges = (room.count, buckets, segment, room.start, room.bins, room.totals)
    tasks = (room.count, room.start, buckets, segment, room.bins, room.totals, room.tasks, room.long_buckets)
    clear(room.count, room.totals)
    launch(SORT, "msm_digits", blocks(points, 256, 16 * sms), 256, digits)
    launch(SORT, "msm_ranges", grid, 256, ranges)
    launch(SORT, "msm_scatter", (blocks(points, 1024, 16 * sms), cut.windows * parts), 256, scatter)
    launch(SORT, "msm_task_bins", 1, 1024, (room.bins, segment, room.totals))
    launch(SORT, "msm_tasks", grid, 256, tasks)


def _accumulate(group: str, cut: Shape, room: _Room, points: Any, scalars: Any, base: int, stride: int) -> None:
    """Add one batch to the buckets. Points are not needed before their order is known."""
    block, _ = block_shape(group)
    arrivals.needed(scalars)
    _sort(cut, room, scalars, base, stride)
    arrivals.needed(points)
    entries = len(scalars) * cut.windows
    long_most = entries // cut.segment + 1
    most_tasks, most_long = min(cut.buckets, entries) + long_most, min(long_most, cut.buckets)
    accumulate = (points, room.entries, room.tasks, room.totals, np.uint32(base > 0), room.buckets, room.partial)
    merge = (room.long_buckets, room.totals, room.partial, room.buckets)
    launch(ACCUMULATE[group], "accumulate", blocks(most_tasks, block), block, accumulate)
    launch(REDUCE[group], "merge_long", min(most_long, 1024), 128, merge)


def terms_of(
    group: str, cut: Shape, size: int, parts: Iterable[tuple[int, Any, Any]], stride: int = 0
) -> tuple[Any, np.ndarray]:
    """The device's part of a sum, put into the current stream.

    Parameters
    ----------
    size : int
        Most points of a part.
    parts : iterable of (int, array, array)
        First index, points and scalars of each part, on the device or announced to be (`arrivals`); a part's points
        are followed by their multiples, the next of each `stride` points further.

    Returns
    -------
    terms : (m + 1, 2 · limbs) uint64, on the device
        XYZZ sums, and a row that begins with the index of the first scalar not below r, 32 bits, or `NONE_BAD`.
    shifts : (m,) uint32
        The sums' powers of two.
    """
    unit, sms = REDUCE[group], multiprocessors()
    room = _Room(*carved(_wanted(group, cut, size, sms)))
    clear(room.buckets, room.buckets)
    room.terms[-1].data.memset_async(0xFF, 4)
    chunks = (
        room.buckets, np.uint32(cut.sets), np.uint32(cut.half), np.uint32(cut.last), np.uint32(cut.chunk),
        room.weighted, room.plain,
    )  # fmt: skip
    bits = (room.weighted, room.plain, np.uint32(cut.of_set), np.uint32(cut.of_last), room.terms)
    with observe.consecutive():
        for begin, points, scalars in parts:
            _accumulate(group, cut, room, points, scalars, begin, stride)
        launch(unit, "chunk_sums", blocks(cut.chunks, 128), 128, chunks)
        launch(unit, "bit_sums", (1 + cut.index_bits, cut.sets, cut.in_parts(sms)), 256, bits)
    return room.terms, cut.shifts(sms)


def to_join(group: str, terms: Any, shifts: np.ndarray) -> Callable[[], np.ndarray]:
    """What makes the affine sum on the host: the device is done when this returns.

    Raises
    ------
    ValueError
        A scalar not below r.
    """
    on_host = cupy().asnumpy(terms)
    bad = int(on_host[-1].view(np.uint32)[0])
    if bad != NONE_BAD:
        raise ValueError(f"scalars: element {bad} is not below the modulus")
    return functools.partial(host_sum, group, on_host[:-1], shifts)

"""Sums over points that stay in a mapped file: a piece is decoded, added up and forgotten, so memory stays small.

Points that are an array already go to the kernels as they are. The pieces of a masked sum are small, one a thread, so
that they never leave the cache; those of an MSM are large, because each has to add up its buckets, and those of a
device larger.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.backend import HOST, Backend, Sum
from cuzklab.backends.host.parallel import ranges, run, run_ranges, thread_count
from cuzklab.prover.model import Group, Points

_WIDTH = {"g1": 12, "g2": 24}
_SUM_POINTS = 1 << 12
_MSM_BYTES = 24 << 20
_DEVICE_BYTES = 1 << 30

AnyPoints = np.ndarray | Points


@dataclass(frozen=True)
class Chosen:
    """Some of the points of a mapped file, by their indices, (n,) uint32: points themselves."""

    points: Points
    indices: np.ndarray

    @property
    def group(self) -> Group:
        return self.points.group

    def __len__(self) -> int:
        return len(self.indices)

    def take(self, indices: np.ndarray, out: np.ndarray) -> None:
        self.points.take(self.indices[indices], out)

    def bad(self, index: int, what: str) -> Exception:
        return self.points.bad(int(self.indices[index]), what)


def group_of(points: AnyPoints) -> Group:
    if isinstance(points, np.ndarray):
        return "g1" if points.shape[1] == 12 else "g2"
    return points.group


def point_bytes(points: AnyPoints) -> int:
    """Bytes of the points in the form that kernels take."""
    return len(points) * 8 * _WIDTH[group_of(points)]


def chosen(points: AnyPoints, indices: np.ndarray) -> AnyPoints:
    """Points by their indices: copied from an array, remembered of a mapped file."""
    if isinstance(points, np.ndarray):
        return host.gather(points, indices)
    if len(indices) == len(points):
        return points
    indices = indices.astype(np.uint32, copy=False)
    return Chosen(points.points, points.indices[indices]) if isinstance(points, Chosen) else Chosen(points, indices)


def read(points: AnyPoints, begin: int, end: int, *, threads: int | None = None) -> np.ndarray:
    """Points begin … end − 1 as the kernels take them."""
    if isinstance(points, np.ndarray):
        return points[begin:end]
    out = np.empty((end - begin, _WIDTH[points.group]), np.uint64)
    threads = thread_count(threads)

    def work(first: int, last: int) -> None:
        points.take(np.arange(begin + first, begin + last, dtype=np.uint32), out[first:last])

    run_ranges(work, ranges(len(out), 4 * threads if len(out) > _SUM_POINTS else 1), threads)
    return out


def msm(points: AnyPoints, scalars: Any, *, threads: int | None = None, on: Backend = HOST, later: bool = False) -> Sum:
    """Σ scalar·point; scalars (n, 4) uint64, plain, an array of the backend. G2 is the CPU's on every backend.

    `later` as `Backend` has it; of points in a mapped file, nothing is left for later.
    """
    group = group_of(points)
    if later and group == "g1" and isinstance(points, np.ndarray):
        return on.msm_g1(points, scalars, threads=threads, later=True)
    kernel, add = (on.msm_g1, host.add_g1) if group == "g1" else (host.msm_g2, host.add_g2)
    if isinstance(points, np.ndarray):
        return kernel(points, scalars, threads=threads)
    total = np.zeros(_WIDTH[group], np.uint64)
    piece_bytes = _MSM_BYTES if on is HOST else _DEVICE_BYTES
    for begin, end in ranges(len(points), -(-point_bytes(points) // piece_bytes)):
        total = add(total, kernel(read(points, begin, end, threads=threads), scalars[begin:end], threads=threads))
    return total


def masked_sum(
    points: AnyPoints, ones: np.ndarray, *, threads: int | None = None, on: Backend = HOST, later: bool = False
) -> Sum:
    """Σ of the points whose bit is set; bit i of word i // 64. `later` as in `msm`."""
    group = group_of(points)
    kernel, add = (on.masked_sum_g1, host.add_g1) if group == "g1" else (on.masked_sum_g2, host.add_g2)
    if isinstance(points, np.ndarray):
        return kernel(points, ones, threads=threads, later=later)
    if on is not HOST:
        total = np.zeros(_WIDTH[group], np.uint64)
        size = _DEVICE_BYTES // (8 * _WIDTH[group]) // 64 * 64
        for begin in range(0, len(points), size):
            some = read(points, begin, min(begin + size, len(points)), threads=threads)
            total = add(total, kernel(some, ones[begin // 64 :][: -(-len(some) // 64)], threads=threads))
        return total
    indices = np.flatnonzero(np.unpackbits(ones.view(np.uint8), count=len(points), bitorder="little")).astype(np.uint32)
    every = np.full(-(-_SUM_POINTS // 64), ~np.uint64(0))
    pieces = ranges(len(indices), -(-len(indices) // _SUM_POINTS))
    sums = np.zeros((len(pieces), _WIDTH[group]), np.uint64)

    def work(number: int, scratch: np.ndarray) -> None:
        begin, end = pieces[number]
        some = scratch[: end - begin]
        points.take(indices[begin:end], some)
        sums[number] = kernel(some, every[: -(-len(some) // 64)], threads=1)

    threads = thread_count(threads)
    run(work, [(i,) for i in range(len(pieces))], threads, lambda: np.empty((_SUM_POINTS, _WIDTH[group]), np.uint64))
    total = np.zeros(_WIDTH[group], np.uint64)
    for part in sums:
        total = add(total, part)
    return total

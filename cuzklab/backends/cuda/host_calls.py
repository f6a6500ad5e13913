"""Calls of the host that may stop the kernels of other streams, each with the one that undoes it."""

import mmap
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzklab.backends.cuda.launch import cupy
from cuzklab.backends.cuda.memory import pinned_array
from cuzklab.units import GiB


@dataclass(frozen=True)
class Pair:
    """A call and the one that undoes it, each measured."""

    name: str
    undo_name: str
    size_bytes: int
    do: Callable[[], None]
    undo: Callable[[], None]


def pages(size_bytes: int, huge: bool) -> mmap.mmap:
    """Memory whose pages exist."""
    memory = mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE] = 1
    return memory


def _address(memory: mmap.mmap) -> int:
    return np.frombuffer(memory, np.uint8).ctypes.data


def pinning(runtime: Any, size_bytes: int, huge: bool, threads: int = 1) -> Pair:
    part_bytes = size_bytes // threads // mmap.PAGESIZE * mmap.PAGESIZE
    parts = [pages(part_bytes, huge) for _ in range(threads)]

    def each(function: Callable[[mmap.mmap], None]) -> Callable[[], None]:
        def run() -> None:
            others = [threading.Thread(target=function, args=(part,)) for part in parts[1:]]
            for thread in others:
                thread.start()
            function(parts[0])
            for thread in others:
                thread.join()

        return run

    kind = ("" if huge else ", small pages") + (f", {threads} threads" if threads > 1 else "")
    return Pair(
        f"cudaHostRegister{kind}", f"cudaHostUnregister{kind}", part_bytes * threads,
        each(lambda part: runtime.hostRegister(_address(part), len(part), 1)),
        each(lambda part: runtime.hostUnregister(_address(part))),
    )  # fmt: skip


def allocating(runtime: Any, size_bytes: int) -> Pair:
    held: list[int] = []
    return Pair(
        "cudaMalloc", "cudaFree", size_bytes,
        lambda: held.append(runtime.malloc(size_bytes)), lambda: runtime.free(held.pop()),
    )  # fmt: skip


def pooling(module: Any, size_bytes: int) -> Pair:
    """An allocation of the pool is freed to it before the trim, so that the trim gives it back to the card."""
    runtime, stream, index = module.cuda.runtime, module.cuda.Stream(non_blocking=True), module.cuda.Device().id
    pool = runtime.deviceGetDefaultMemPool(index)
    runtime.memPoolSetAttribute(pool, runtime.cudaMemPoolAttrReleaseThreshold, 1 << 62)

    def allocate() -> None:
        pointer = runtime.mallocAsync(size_bytes, stream.ptr)
        stream.synchronize()
        runtime.freeAsync(pointer, stream.ptr)
        stream.synchronize()

    return Pair(
        "cudaMallocAsync and cudaFreeAsync", "cudaMemPoolTrimTo", size_bytes, allocate,
        lambda: runtime.memPoolTrimTo(pool, 0),
    )  # fmt: skip


def copying(module: Any, size_bytes: int) -> Pair:
    runtime, stream = module.cuda.runtime, module.cuda.Stream(non_blocking=True)
    target, pageable = module.empty(size_bytes, np.uint8), np.frombuffer(pages(size_bytes, True), np.uint8)
    pinned = pinned_array((size_bytes // 8,), runtime)  # unlocked with its last use: its addresses may come again

    def copy(source: np.ndarray) -> None:
        runtime.memcpyAsync(target.data.ptr, source.ctypes.data, pinned.nbytes, runtime.memcpyHostToDevice, stream.ptr)
        stream.synchronize()

    return Pair("pageable copy", "page-locked copy", pinned.nbytes, lambda: copy(pageable), lambda: copy(pinned))


def pairs(sizes_gib: Sequence[float]) -> Iterator[Pair]:
    """What is measured, made one after the other since it takes memory."""
    module = cupy()
    runtime = module.cuda.runtime
    for size in sizes_gib:
        yield pinning(runtime, round(size * GiB) // mmap.PAGESIZE * mmap.PAGESIZE, huge=True)
    small = round(sorted(sizes_gib)[len(sizes_gib) // 2] * GiB)
    yield pinning(runtime, small, huge=True, threads=2)
    yield pinning(runtime, small, huge=False)
    for size in sizes_gib[:2]:
        yield allocating(runtime, round(2 * size * GiB))
    yield pooling(module, small)
    yield copying(module, round(min(sizes_gib) * GiB))

"""Host memory that can be page-locked, and device memory from `cudaMalloc` and from the stream-ordered pool.

Host arrays lie in pages of their own, since only whole pages can be locked and none twice. They are used again: an
array that is no longer referred to gives its pages back, page-locked or not as they were.
"""

import mmap
import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzklab.backends.device import DeviceMemoryExhausted

_TOUCHED_BYTES = 256 << 20
_PORTABLE = 1  # cudaHostRegisterPortable: locked for every device


@dataclass(eq=False)
class Pages:
    """A mapping of whole pages: for arrays that were asked for page-locked, or for others.

    `kept` are page-locked until the pool is closed.
    """

    memory: mmap.mmap
    address: int
    for_pinned: bool
    locked: bool = False
    kept: bool = False


class HostPool:
    """Host arrays in pages of their own, and the page-locking of them.

    Parameters
    ----------
    runtime : module
        CuPy's `cuda.runtime`.
    """

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._mutex = threading.Lock()
        self._pages: dict[int, Pages] = {}
        self._free: list[Pages] = []
        self._returned: deque[Pages] = deque()  # by the garbage collector, which may run anywhere
        self._foreign: set[int] = set()

    def array(self, *shape: int, pinned: bool = False) -> np.ndarray:
        """An array of uint64, undefined; `pinned`: page-locked, now or from an earlier use."""
        size_bytes = 8 * int(np.prod(shape, dtype=np.int64))
        pages = self._take(size_bytes, pinned) or self._map(size_bytes, pinned)
        if pinned and not pages.locked:
            self._lock(pages.address, len(pages.memory))
            pages.locked = pages.kept = True
        words = np.frombuffer(pages.memory, np.uint64, size_bytes // 8)
        weakref.finalize(words, self._returned.append, pages).atexit = False
        return words.reshape(shape)

    def _take(self, size_bytes: int, pinned: bool) -> Pages | None:
        """The smallest pages that are free, large enough and of the kind, but not wastefully large."""
        with self._mutex:
            while self._returned:
                self._free.append(self._returned.popleft())
            fitting = [
                pages
                for pages in self._free
                if pages.for_pinned == pinned and size_bytes <= len(pages.memory) <= 2 * size_bytes + mmap.PAGESIZE
            ]
            best = min(fitting, key=lambda pages: len(pages.memory), default=None)
            if best is not None:
                self._free.remove(best)
            return best

    def _map(self, size_bytes: int, for_pinned: bool) -> Pages:
        size_bytes = max(1, -(-size_bytes // mmap.PAGESIZE)) * mmap.PAGESIZE
        memory = mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
        if for_pinned:
            _touch(np.frombuffer(memory, np.uint8))
        pages = Pages(memory, np.frombuffer(memory, np.uint8).ctypes.data, for_pinned)
        with self._mutex:
            self._pages[pages.address] = pages
        return pages

    def pin(self, memory: Sequence[np.ndarray], *, keep: bool = False) -> None:
        """Page-lock arrays, unless they are kept so already.

        Raises
        ------
        RuntimeError
            The system does not lock them; whatever was locked by this call is unlocked again.
        """
        done: list[np.ndarray] = []
        try:
            for array in memory:
                pages = self._pages.get(array.ctypes.data)
                if pages is None or not pages.locked:
                    self._lock(array.ctypes.data, array.nbytes)
                    done.append(array)
                if pages is not None:
                    pages.locked, pages.kept = True, pages.kept or keep
        except BaseException:
            self.unpin(done)
            raise

    def unpin(self, memory: Sequence[np.ndarray], *, keep: bool = False) -> None:
        """Undo `pin` for arrays that are not kept; what a closed pool has unlocked stays so."""
        for array in memory:
            pages = self._pages.get(array.ctypes.data)
            locked = array.ctypes.data in self._foreign if pages is None else pages.locked and not pages.kept
            if keep or not locked:
                continue
            self._runtime.hostUnregister(array.ctypes.data)
            self._foreign.discard(array.ctypes.data)
            if pages is not None:
                pages.locked = False

    def keeps(self, memory: Sequence[np.ndarray]) -> bool:
        """Whether all of these arrays are page-locked for good."""
        found = [self._pages.get(array.ctypes.data) for array in memory]
        return all(pages is not None and pages.kept for pages in found)

    def _lock(self, address: int, size_bytes: int) -> None:
        if size_bytes:
            self._runtime.hostRegister(address, size_bytes, _PORTABLE)
            if address not in self._pages:
                self._foreign.add(address)

    def close(self) -> None:
        """Unlock everything, and keep no pages for later; arrays stay valid."""
        with self._mutex:
            for pages in self._pages.values():
                if pages.locked:
                    self._runtime.hostUnregister(pages.address)
                    pages.locked = pages.kept = False
            for address in self._foreign:
                self._runtime.hostUnregister(address)
            for kept in (self._foreign, self._pages, self._free, self._returned):
                kept.clear()


def _touch(memory: np.ndarray) -> None:
    """Let all pages exist, by many threads: page-locking would fetch them one by one."""
    pieces = [memory[begin : begin + _TOUCHED_BYTES] for begin in range(0, len(memory), _TOUCHED_BYTES)]
    with ThreadPoolExecutor(min(len(pieces), len(os.sched_getaffinity(0)))) as pool:
        for _ in pool.map(lambda piece: piece[:: mmap.PAGESIZE].fill(0), pieces):
            pass


_copies: dict[int, np.ndarray] = {}
_copies_mutex = threading.Lock()
_locked: set[int] = set()  # arrays that were made in page-locked memory, by their identity


def pinned_array(shape: tuple[int, ...], runtime: Any) -> np.ndarray:
    """An array of uint64, undefined, in memory that is page-locked as long as the array exists."""
    pool = HostPool(runtime)
    array = pool.array(*shape, pinned=True).view()  # an array of its own, whatever else the pool may refer to
    _locked.add(id(array))
    weakref.finalize(array, _forget_locked, id(array), pool).atexit = False
    return array


def _forget_locked(key: int, pool: HostPool) -> None:
    _locked.discard(key)
    pool.close()


def pinned_copy(source: np.ndarray, runtime: Any) -> np.ndarray:
    """A page-locked, read-only copy of an array of uint64; the same as long as the array exists.

    An array that was made in page-locked memory is its own.
    """
    key = id(source)
    if key in _locked:
        return source
    with _copies_mutex:
        if (copy := _copies.get(key)) is None:
            pool = HostPool(runtime)
            copy = pool.array(*source.shape)
            copy[...] = source
            copy.flags.writeable = False
            pool.pin([copy], keep=True)
            _copies[key] = copy
            weakref.finalize(source, _forget_copy, key, pool).atexit = False
    return copy


def _forget_copy(key: int, pool: HostPool) -> None:
    _copies.pop(key)
    pool.close()


class DeviceAllocator:
    """Real device memory: `cudaMalloc`, or the device's stream-ordered pool, which keeps what is freed.

    An allocation is freed when nothing refers to it any more, so never under a kernel that was given it.

    Parameters
    ----------
    cupy : module
    index : int
        The device, which must be current wherever this is used.
    """

    def __init__(self, cupy: Any, index: int) -> None:
        self._cupy, runtime = cupy, cupy.cuda.runtime
        self._runtime = runtime
        self._stream = cupy.cuda.Stream(non_blocking=True)
        supported = runtime.deviceGetAttribute(runtime.cudaDevAttrMemoryPoolsSupported, index)
        self._pool = runtime.deviceGetDefaultMemPool(index) if supported else None
        self._keep(1 << 62)

    def _keep(self, most_bytes: int) -> None:
        if self._pool is not None:
            self._runtime.memPoolSetAttribute(self._pool, self._runtime.cudaMemPoolAttrReleaseThreshold, most_bytes)

    def words(self, size_bytes: int, *, pooled: bool) -> Any:
        """An array of uint64 of CuPy's, undefined.

        Raises
        ------
        DeviceMemoryExhausted
            The card itself has no more.
        """
        cuda, words = self._cupy.cuda, -(-size_bytes // 8)
        try:
            if pooled and self._pool is not None:
                memory = cuda.MemoryAsync(8 * words, self._stream)
                self._stream.synchronize()  # any stream may use it from now on
            else:
                memory = cuda.Memory(8 * words)
        except (MemoryError, self._runtime.CUDARuntimeError) as error:
            if getattr(error, "status", 2) != 2:  # cudaErrorMemoryAllocation
                raise
            free, total = self._runtime.memGetInfo()
            raise DeviceMemoryExhausted(size_bytes, total - free, total) from None
        return self._cupy.ndarray((words,), np.uint64, cuda.MemoryPointer(memory, 0))

    def trim(self) -> None:
        """Give what the stream-ordered pool keeps back to the card."""
        if self._pool is not None:
            self._stream.synchronize()
            self._runtime.memPoolTrimTo(self._pool, 0)

    def free_bytes(self) -> int:
        """What the card has left, whatever is allocated here."""
        return self._runtime.memGetInfo()[0]

    def close(self) -> None:
        self._keep(0)
        self.trim()

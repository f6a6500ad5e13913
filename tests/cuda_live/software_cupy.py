"""As much of CuPy as `CudaDevice` uses, in software: what is queued happens at once, memory is the host's.

With it the device's own logic (accounting, queues, events, clocks, page-locking) is tested where there is no GPU. It
refuses what CUDA refuses: page-locking twice, unlocking what is not locked, times of events that were not recorded.
"""

import contextlib
import ctypes
import threading
import time

import numpy as np

__version__ = "software"


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class _Memory:
    total_bytes = 1 << 30
    used_bytes = 0
    live = 0

    def __init__(self, size: int) -> None:
        if _Memory.used_bytes + size > _Memory.total_bytes:
            raise CUDARuntimeError(2)
        self.size = size
        self.words = np.full(-(-size // 8), 0xDEADBEEF, np.uint64)
        _Memory.used_bytes += size
        _Memory.live += 1

    def __del__(self) -> None:
        if hasattr(self, "words"):
            _Memory.used_bytes -= self.size
            _Memory.live -= 1


class _Pointer:
    def __init__(self, memory: _Memory, offset: int) -> None:
        self.memory, self.ptr = memory, memory.words.ctypes.data + offset

    def __add__(self, offset: int) -> "_Pointer":
        return _Pointer(self.memory, self.ptr + offset - self.memory.words.ctypes.data)

    def memset_async(self, value: int, size: int) -> None:
        ctypes.memset(self.ptr, value, size)


class ndarray(np.ndarray):
    """An array in device memory, which it keeps alive."""

    def __new__(cls, shape, dtype, memptr) -> "ndarray":
        offset, size = memptr.ptr - memptr.memory.words.ctypes.data, int(np.prod(shape)) * np.dtype(dtype).itemsize
        there = memptr.memory.words.view(np.uint8)[offset : offset + size]
        assert there.nbytes == size
        array = there.view(dtype).reshape(shape).view(cls)
        array.memory = memptr.memory
        return array

    def __array_finalize__(self, source) -> None:
        self.memory = getattr(source, "memory", None)

    @property
    def data(self) -> _Pointer:
        pointer = _Pointer.__new__(_Pointer)
        pointer.memory, pointer.ptr = self.memory, self.ctypes.data
        return pointer


def empty(shape, dtype) -> ndarray:
    shape = shape if isinstance(shape, tuple) else (shape,)
    return ndarray(shape, dtype, _Pointer(_Memory(int(np.prod(shape)) * np.dtype(dtype).itemsize), 0))


def asnumpy(array) -> np.ndarray:
    return np.array(array)


class runtime:
    CUDARuntimeError = CUDARuntimeError
    cudaDevAttrMemoryPoolsSupported = 115
    cudaMemPoolAttrReleaseThreshold = 4
    memcpyHostToDevice = 1
    locked: dict = {}  # noqa: RUF012
    trims = 0

    @staticmethod
    def deviceGetAttribute(attribute, device):
        assert attribute == runtime.cudaDevAttrMemoryPoolsSupported
        return 1

    @staticmethod
    def getDevice():
        return 0

    @staticmethod
    def deviceGetDefaultMemPool(device):
        return 77 + device

    @staticmethod
    def memPoolSetAttribute(pool, attribute, value):
        assert attribute == runtime.cudaMemPoolAttrReleaseThreshold and value >= 0

    @staticmethod
    def memPoolTrimTo(pool, size):
        runtime.trims += 1

    @staticmethod
    def memGetInfo():
        return _Memory.total_bytes - _Memory.used_bytes, _Memory.total_bytes

    @staticmethod
    def memcpyAsync(target, source, size, kind, stream):
        assert kind == runtime.memcpyHostToDevice
        ctypes.memmove(target, source, size)

    @staticmethod
    def memsetAsync(target, value, size, stream):
        ctypes.memset(target, value, size)

    @staticmethod
    def hostRegister(address, size, flags):
        page = 4096
        pages = set(range(address // page, -(-(address + size) // page)))
        if any(pages & others for others in list(runtime.locked.values())):
            raise CUDARuntimeError(712)
        runtime.locked[address] = pages

    @staticmethod
    def hostUnregister(address):
        if address not in runtime.locked:
            raise CUDARuntimeError(713)
        del runtime.locked[address]


class Event:
    def __init__(self, block=False, disable_timing=False) -> None:
        self.moment_ns = None if disable_timing else 0
        self.recorded = False

    def synchronize(self) -> None:
        assert self.recorded

    @property
    def done(self) -> bool:
        return self.recorded


class Stream:
    current = threading.local()
    made = 0

    def __init__(self, non_blocking=False) -> None:
        Stream.made += 1
        self.ptr = 1000 + Stream.made

    def record(self, event=None) -> Event:
        event = event or Event()
        event.recorded = True
        if event.moment_ns is not None:
            event.moment_ns = time.monotonic_ns()
        return event

    def wait_event(self, event) -> None:
        assert event.recorded

    def synchronize(self) -> None:
        pass

    @property
    def done(self) -> bool:
        return True

    def __enter__(self):
        self.before, Stream.current.stream = getattr(Stream.current, "stream", None), self
        return self

    def __exit__(self, *what) -> None:
        Stream.current.stream = self.before


class OutOfMemoryError(MemoryError):
    pass


class MemoryPool:
    """One that keeps what is freed, as CuPy's does, and refuses what goes beyond its limit."""

    def __init__(self) -> None:
        self.limit, self.used, self.free = 0, {}, []

    def malloc(self, size):
        if size in self.free:
            self.free.remove(size)
        elif self.limit and self.total_bytes() + size > self.limit:
            raise OutOfMemoryError(f"{size} B beyond {self.limit} B")
        block = object()
        self.used[block] = size
        return block

    def give_back(self, block) -> None:
        self.free.append(self.used.pop(block))

    def total_bytes(self) -> int:
        return self.used_bytes() + sum(self.free)

    def used_bytes(self) -> int:
        return sum(self.used.values())

    def set_limit(self, size) -> None:
        self.limit = size

    def get_limit(self) -> int:
        return self.limit

    def free_all_blocks(self) -> None:
        self.free.clear()


class Device:
    def __init__(self, index) -> None:
        self.id = index

    def __enter__(self):
        return self

    def __exit__(self, *what) -> None:
        pass


class cuda:
    @staticmethod
    def alloc(size) -> _Pointer:
        return _Pointer(_Memory(size), 0)

    Device, Event, MemoryPool, MemoryPointer, Stream, runtime = Device, Event, MemoryPool, _Pointer, Stream, runtime
    Memory = _Memory

    class memory:
        OutOfMemoryError = OutOfMemoryError

    @staticmethod
    def MemoryAsync(size, stream):
        return _Memory(size)

    @staticmethod
    def get_current_stream():
        return Stream.current.stream

    @staticmethod
    def get_elapsed_time(start, end) -> float:
        assert start.recorded and end.recorded
        return (end.moment_ns - start.moment_ns) / 1e6

    @staticmethod
    @contextlib.contextmanager
    def using_allocator(allocator):
        yield

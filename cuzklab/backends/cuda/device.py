"""A real device under a memory limit: a large card plays a small one.

What a policy allocates is counted against the limit and really allocated. What is only set aside (a stage's scratch
memory, by the formulas of the modelled engine) is counted; the temporaries of the kernels come from a pool of their own
(`workspace`), which has what the policy's buffers really leave of the limit, or a floor where cards are scaled down.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from cuzklab.backends.cuda.clock import Anchor, DeviceClock
from cuzklab.backends.cuda.launch import cupy as usable_cupy
from cuzklab.backends.cuda.memory import DeviceAllocator, HostPool, pinned_copy
from cuzklab.backends.cuda.observe import Events
from cuzklab.backends.cuda.quotient import release_tables
from cuzklab.backends.cuda.streams import CudaStream, CudaWork
from cuzklab.backends.cuda.workspace import FLOOR_BYTES, Workspace
from cuzklab.backends.device import DeviceMemoryExhausted, Memory
from cuzklab.errors import BadInput

_MOST_THREADS = 256
_EVENTS = 1 << 12
"""Made beforehand, for a few thousand kernels whose times nobody has asked for yet."""


class CudaDevice:
    """See `device.Device`.

    Parameters
    ----------
    index : int
        CUDA's number of the device.
    limit_bytes : int
        Memory that allocations can use.
    cupy : module, optional
        CuPy, unless another of the same surface.

    Attributes
    ----------
    workspace_bytes : int
        Most that the kernels' own pool has held.
    physical_bytes : int
        Most that was really allocated at a time: a policy's buffers and the workspace. At most the limit, unless
        buffers leave less of it than the workspace's floor.
    takes_arrivals : bool
        Kernels begin on what has arrived of an upload.
    observing : bool
        Each kernel and copy is put between a pair of events.
    events : Events
    launch_ns : int
        From the call that launches a kernel to its start on the idle device: `latency` measures it; 0 until then.

    Raises
    ------
    BadInput
        There is no usable GPU.
    """

    takes_arrivals = True
    observing = True

    def __init__(self, index: int, limit_bytes: int, cupy: Any = None) -> None:
        self._cupy = cupy or usable_cupy()
        self.cuda = self._cupy.cuda
        self.index, self.limit_bytes = index, limit_bytes
        self.name = f"gpu{index}"
        self.physical_bytes = self.launch_ns = 0
        self._mutex = threading.Lock()  # of memory
        self._works_mutex = threading.Lock()
        self._live: set[Memory] = set()
        self._live_bytes = self._backed_bytes = self._pool_bytes = 0
        self._pending: set[CudaWork] = set()
        self._queues: dict[str, list[tuple[Any, Any]]] = {"kernels": [], "copies": []}
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix=self.name)
        self._host = HostPool(self.cuda.runtime)
        with self.cuda.Device(index):
            self._allocator = DeviceAllocator(self._cupy, index)
            self._workspace = Workspace(self.cuda, self._note_physical)
            self._workspace.allow(self._room(0))
            self._clock = DeviceClock(self.cuda)
            self.events = Events(self.cuda, _EVENTS)

    # --- memory ------------------------------------------------------------------------------------------------------

    def alloc(self, size_bytes: int, *, pooled: bool = False, backed: bool = True) -> Memory:
        with self._mutex, self.cuda.Device(self.index):
            in_use_bytes = self._live_bytes + (0 if pooled else self._pool_bytes)
            if in_use_bytes + size_bytes > self.limit_bytes:
                raise DeviceMemoryExhausted(size_bytes, in_use_bytes, self.limit_bytes)
            if backed:
                self._make_room(size_bytes, pooled)
            memory = Memory(size_bytes, pooled, self._allocator.words(size_bytes, pooled=pooled) if backed else None)
            if pooled:
                self._pool_bytes = max(0, self._pool_bytes - size_bytes)
            self._live.add(memory)
            self._live_bytes += size_bytes
            self._backed_bytes += size_bytes if backed else 0
            self._note_physical()
        return memory

    def free(self, memory: Memory) -> None:
        with self._mutex, self.cuda.Device(self.index):
            if memory not in self._live:
                raise ValueError(f"{memory.size_bytes} B of {self.name} were freed that are not allocated")
            self._live.remove(memory)
            self._live_bytes -= memory.size_bytes
            if memory.array is not None:
                self._backed_bytes -= memory.size_bytes
            memory.array = None  # the last reference to it, unless work that was given it is under way
            if memory.pooled:
                self._pool_bytes += memory.size_bytes
            self._workspace.allow(self._room(self._backed_bytes + self._pool_bytes))

    def free_bytes(self) -> int:
        with self._mutex, self.cuda.Device(self.index):
            return min(self.limit_bytes - self._live_bytes - self._pool_bytes, self._allocator.free_bytes())

    def trim(self) -> None:
        with self._mutex, self.cuda.Device(self.index):
            self._pool_bytes = 0
            self._allocator.trim()
            self._workspace.allow(self._room(self._backed_bytes))

    def _room(self, buffers_bytes: int) -> int:
        """What the workspace may take beside so many bytes of buffers."""
        return max(FLOOR_BYTES, self.limit_bytes - buffers_bytes)

    def _make_room(self, size_bytes: int, pooled: bool) -> None:
        """Take room for a buffer from the workspace; the mutex is held."""
        pool_bytes = max(0, self._pool_bytes - size_bytes) if pooled else self._pool_bytes
        room = self._room(self._backed_bytes + size_bytes + pool_bytes)
        self._workspace.allow(room)
        if (held := self._workspace.held_bytes) > room:
            in_use_bytes = self._backed_bytes + self._pool_bytes + held
            self._workspace.allow(self._room(self._backed_bytes + self._pool_bytes))
            raise DeviceMemoryExhausted(size_bytes, in_use_bytes, self.limit_bytes)

    @property
    def workspace_bytes(self) -> int:
        return self._workspace.peak_bytes

    def forget_peaks(self) -> None:
        """Give what the workspace does not use back to the card, and count peaks and events anew from here."""
        with self._mutex, self.cuda.Device(self.index):
            self._workspace.trim()
            self._workspace.peak_bytes = self._workspace.held_bytes
            self.physical_bytes = 0
            self.events.watching = 0
            self._note_physical()

    @property
    def live(self) -> frozenset[Memory]:
        """What is allocated at this moment."""
        with self._mutex:
            return frozenset(self._live)

    def _note_physical(self) -> None:
        in_use_bytes = self._backed_bytes + self._pool_bytes + self._workspace.held_bytes
        self.physical_bytes = max(self.physical_bytes, in_use_bytes)

    # --- host memory -------------------------------------------------------------------------------------------------

    def host_array(self, *shape: int, pinned: bool = False) -> np.ndarray:
        return self._host.array(*shape, pinned=pinned)

    def pinned_copy(self, source: np.ndarray) -> np.ndarray:
        """A page-locked copy of an array of uint64, shared by all devices as long as the array exists."""
        return pinned_copy(source, self.cuda.runtime)

    def pin(self, memory: Sequence[np.ndarray], *, keep: bool = False) -> None:
        self._host.pin(memory, keep=keep)

    def unpin(self, memory: Sequence[np.ndarray], *, keep: bool = False) -> None:
        self._host.unpin(memory, keep=keep)

    def keeps(self, memory: Sequence[np.ndarray]) -> bool:
        return self._host.keeps(memory)

    # --- streams -----------------------------------------------------------------------------------------------------

    def stream(self, name: str) -> CudaStream:
        return CudaStream(self, name)

    @contextmanager
    def queue(self, kind: str) -> Iterator[Any]:
        """See `streams.Backing`. Few queues serve all streams, since each that kernels use has workspace of its own."""
        with self.cuda.Device(self.index), self._workspace.current():
            stream = self._idle_queue(kind)
            try:
                with stream:
                    yield stream
            finally:
                last = stream.record(self.cuda.Event(disable_timing=True))
                with self._works_mutex:
                    self._queues[kind].append((stream, last))

    def _idle_queue(self, kind: str) -> Any:
        with self._works_mutex:
            for place, (stream, last) in enumerate(self._queues[kind]):
                if last.done:
                    del self._queues[kind][place]
                    return stream
        return self.cuda.Stream(non_blocking=True)

    def anchor(self) -> Anchor:
        """See `streams.Backing`."""
        with self.cuda.Device(self.index):
            return self._clock.anchor()

    def moment_ns(self, event: Any, anchor: Anchor) -> int:
        """See `streams.Backing`."""
        with self.cuda.Device(self.index):
            return self._clock.moment_ns(event, anchor)

    @property
    def clock_uncertainty_ns(self) -> int:
        """By how much the times of device work may be off, either way."""
        return self._clock.worst_uncertainty_ns

    def began(self, work: CudaWork) -> None:
        """See `streams.Backing`."""
        self._under_way()
        with self._works_mutex:
            self._pending.add(work)

    def later(self, function: Callable[[], None]) -> None:
        """See `streams.Backing`."""
        self._threads.submit(function)

    def _under_way(self) -> list[CudaWork]:
        """Work that is not done; what is done meanwhile gives up what it used."""
        with self._works_mutex:
            works = list(self._pending)
        for work in [work for work in works if work.done]:
            work.finish()
            with self._works_mutex:
                self._pending.discard(work)
            works.remove(work)
        return works

    @property
    def idle(self) -> bool:
        return not self._under_way()

    def sync(self) -> None:
        while works := self._under_way():
            for work in works:
                work.finish()

    def close(self) -> None:
        """See `device.Device`.

        Raises
        ------
        BadInput
            A kernel's fault has ended this process's use of the device.
        """
        try:
            self._close()
        except self.cuda.runtime.CUDARuntimeError as error:
            raise BadInput(
                f"CUDA: {' '.join(str(error).split())}; this ended the process's use of {self.name}: start it anew"
            ) from None
        finally:
            self._threads.shutdown()

    def _close(self) -> None:
        try:
            self.sync()
            with self._mutex, self.cuda.Device(self.index):
                for memory in self._live:
                    memory.array = None
                self._live.clear()
                self._live_bytes = self._backed_bytes = self._pool_bytes = 0
                self._queues = {kind: [] for kind in self._queues}
                release_tables()  # they lie in this workspace
                self._workspace.trim()
                self._allocator.close()
        finally:
            self._host.close()

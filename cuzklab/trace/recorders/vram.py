"""The life of device memory: who allocated what and under which lock, what failed to fit, and what was live then.

The tracer is told of allocations by whoever makes them: `cupy_memory.hook` for CuPy, `traced_malloc` and `traced_free`
for calls in the manner of cudaMalloc, or your own code.
"""

import functools
import json
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from cuzklab.trace.recorders.log import NOBODY
from cuzklab.trace.recorders.names import BUFFERS, OWNERS, STACKS, THIS_THREAD, THREADS
from cuzklab.trace.recorders.recording import DEFAULT, Recording

ALLOC, FREE, RESERVE, UNRESERVE, FAIL = range(5)
SNAPSHOTS_FILE = "vram_snapshots.json"
_STACK_FRAMES = 12


class Block(NamedTuple):
    """A live allocation; buffer, owner and thread are numbers."""

    size_bytes: int
    buffer: int
    owner: int
    thread: int
    time: int


@dataclass(frozen=True)
class Holding:
    """A live allocation in words."""

    buffer: str
    worker: str
    partition: str
    size_bytes: int
    allocated_ns: int


@dataclass(frozen=True)
class Snapshot:
    """What a device held when a request failed.

    Attributes
    ----------
    limit_bytes : int or None
        What the device may hold; None where nobody said.
    pool_bytes : int or None
        What a memory pool has taken from the device; None where there is no pool.
    largest_free_block_bytes : int or None
        The largest gap in the pool; None where no addresses are known.
    locks_held : tuple of str
        By the thread that asked.
    holdings : tuple of Holding
        The largest first.
    """

    time_ns: int
    device: int
    requested_bytes: int
    buffer: str
    worker: str
    partition: str
    locks_held: tuple[str, ...]
    live_bytes: int
    limit_bytes: int | None
    pool_bytes: int | None
    largest_free_block_bytes: int | None
    holdings: tuple[Holding, ...]


class _Device:
    """What one device holds."""

    __slots__ = ("blocks", "limit_bytes", "live_bytes", "segments")

    def __init__(self, limit_bytes: int | None) -> None:
        self.limit_bytes = limit_bytes
        self.live_bytes = 0
        self.blocks: dict[Hashable, Block] = {}
        self.segments: dict[int, int] = {}  # address → bytes of what the pool took from the device


class VramTracer:
    """Records allocations of devices, and keeps what is live.

    Parameters
    ----------
    limits_bytes : mapping of int to int, optional
        What each device may hold, by its index.
    stacks : bool
        Whether to record where each allocation was made. Costs several microseconds each.
    max_snapshots : int
        Failures beyond it are recorded without what was live.
    recording : Recording

    Attributes
    ----------
    snapshots : list of Snapshot
    unknown_frees : int
        Frees of what was allocated before the tracer was told of anything.
    """

    def __init__(
        self,
        limits_bytes: Mapping[int, int] | None = None,
        *,
        stacks: bool = False,
        max_snapshots: int = 16,
        recording: Recording = DEFAULT,
    ) -> None:
        self.snapshots: list[Snapshot] = []
        self.unknown_frees = 0
        self._limits = dict(limits_bytes or {})
        self._stacks = stacks
        self._max_snapshots = max_snapshots
        self._recording = recording
        self._now = recording.clock
        self._devices: dict[int, _Device] = {}
        self._mutex = threading.RLock()  # freeing may be the garbage collector's doing, in the middle of anything

    def limit(self, device: int, limit_bytes: int) -> None:
        """Say what a device may hold."""
        with self._mutex:
            self._limits[device] = limit_bytes
            self._device(device).limit_bytes = limit_bytes

    # --- what happened -----------------------------------------------------------------------------------------------

    def allocated(
        self, address: Hashable, size_bytes: int, *, device: int = 0, buffer: str = "", owner: int = NOBODY
    ) -> None:
        """Memory was allocated.

        Parameters
        ----------
        address : hashable
            What names it when it is freed; integers count as addresses when gaps are looked for.
        buffer : str
            What it is; the name that `named` gave it if empty.
        owner : int
            The number of an `Owner`; the calling thread's if not given.
        """
        number = BUFFERS.number(buffer or self._name())
        stack = self._stack() if self._stacks else NOBODY
        sink = self._recording.local.sink
        with self._mutex:
            it = self._devices.get(device) or self._device(device)
            now = self._now()
            it.blocks[address] = Block(size_bytes, number, sink.owner if owner == NOBODY else owner, sink.number, now)
            it.live_bytes += size_bytes
            if (events := self._recording.vram_events) is not None:
                events.extend((now, sink.number, ALLOC, number, size_bytes, device, it.live_bytes,
                               it.limit_bytes or 0, owner, stack))  # fmt: skip

    def freed(self, address: Hashable, *, device: int = 0, owner: int = NOBODY) -> None:
        """Memory was given back."""
        thread = THIS_THREAD.number
        with self._mutex:
            it = self._devices.get(device) or self._device(device)
            block = it.blocks.pop(address, None)
            if block is None:
                self.unknown_frees += 1
                return
            it.live_bytes -= block.size_bytes
            if (events := self._recording.vram_events) is not None:
                events.extend((self._now(), thread, FREE, block.buffer, block.size_bytes, device, it.live_bytes,
                               it.limit_bytes or 0, owner, NOBODY))  # fmt: skip

    def failed(
        self,
        size_bytes: int,
        *,
        device: int = 0,
        buffer: str = "",
        owner: int = NOBODY,
        locks_held: tuple[str, ...] | None = None,
    ) -> None:
        """A request did not fit: record it, and what was live.

        Parameters
        ----------
        locks_held : tuple of str, optional
            The locks of the calling thread; the recorded ones that it holds if not given.
        """
        name = buffer or self._name()
        sink = self._recording.local.sink
        held = self._recording.locks_held() if locks_held is None else locks_held
        stack = self._stack() if self._stacks else NOBODY
        with self._mutex:
            it = self._devices.get(device) or self._device(device)
            now = self._now()
            if (events := self._recording.vram_events) is not None:
                events.extend((now, sink.number, FAIL, BUFFERS.number(name), size_bytes, device, it.live_bytes,
                               it.limit_bytes or 0, owner, stack))  # fmt: skip
            if len(self.snapshots) < self._max_snapshots:
                worker, partition = _whose(sink.owner if owner == NOBODY else owner, sink.number)
                self.snapshots.append(
                    Snapshot(
                        now, device, size_bytes, name, worker, partition, held, it.live_bytes, it.limit_bytes,
                        sum(it.segments.values()) if it.segments else None, _largest_gap(it), _holdings(it),
                    )
                )  # fmt: skip
                self._recording.attachments[SNAPSHOTS_FILE] = json.dumps([asdict(one) for one in self.snapshots])

    def promised(self, op: int, size_bytes: int, *, device: int = 0, owner: int = NOBODY) -> None:
        """Bytes were promised (`RESERVE`) or a promise was given back (`UNRESERVE`), without an allocation."""
        thread = THIS_THREAD.number
        with self._mutex:
            it = self._devices.get(device) or self._device(device)
            if (events := self._recording.vram_events) is not None:
                events.extend((self._now(), thread, op, BUFFERS.number("reservation"), size_bytes, device,
                               it.live_bytes, it.limit_bytes or 0, owner, NOBODY))  # fmt: skip

    def pool_took(self, address: int, size_bytes: int, *, device: int = 0) -> None:
        """A memory pool took a segment from the device, out of which it serves allocations."""
        with self._mutex:
            (self._devices.get(device) or self._device(device)).segments[address] = size_bytes

    def pool_trimmed(self, *, device: int = 0) -> None:
        """The pool gave the segments back in which nothing is live."""
        with self._mutex:
            it = self._devices.get(device) or self._device(device)
            used = [address for address in it.blocks if isinstance(address, int)]
            it.segments = {
                start: size for start, size in it.segments.items() if any(start <= at < start + size for at in used)
            }

    # --- what is so --------------------------------------------------------------------------------------------------

    def live_bytes(self, device: int = 0) -> int:
        """Bytes allocated at this moment."""
        with self._mutex:
            return self._device(device).live_bytes

    def holdings(self, device: int = 0) -> tuple[Holding, ...]:
        """What is live, the largest first; at the end of a program, what has leaked."""
        with self._mutex:
            return _holdings(self._device(device))

    def largest_free_block_bytes(self, device: int = 0) -> int | None:
        """The largest gap in the pool; None where no segments with addresses are known, as with bare cudaMalloc."""
        with self._mutex:
            return _largest_gap(self._device(device))

    def pool_bytes(self, device: int = 0) -> int:
        """What the pool has taken from the device."""
        with self._mutex:
            return sum(self._device(device).segments.values())

    @contextmanager
    def named(self, buffer: str) -> Iterator[None]:
        """Have what the calling thread allocates inside be called so."""
        THIS_THREAD.buffer_names.append(buffer)
        try:
            yield
        finally:
            THIS_THREAD.buffer_names.pop()

    def _name(self) -> str:
        names = THIS_THREAD.buffer_names
        return names[-1] if names else "unnamed"

    def _device(self, device: int) -> _Device:
        return self._devices.setdefault(device, _Device(self._limits.get(device)))

    @staticmethod
    def _stack() -> int:
        """Number of the text that says where the caller of the tracer's caller is, innermost first."""
        frame, lines = sys._getframe(2), []
        while frame is not None and len(lines) < _STACK_FRAMES:
            lines.append(f"{frame.f_code.co_name} ({frame.f_code.co_filename}:{frame.f_lineno})")
            frame = frame.f_back
        return STACKS.number("\n".join(lines))


def traced_malloc(tracer: VramTracer, malloc: Callable[..., Any], *, device: int = 0) -> Callable[..., Any]:
    """A call in the manner of cudaMalloc, traced.

    Parameters
    ----------
    malloc : callable (size_bytes, …) -> address, or (error, address) as cuda.bindings has it
        What it raises, and an error that is not 0, is a failed request.
    """

    @functools.wraps(malloc)
    def traced(size_bytes: int, *args: Any, **kwargs: Any) -> Any:
        try:
            result = malloc(size_bytes, *args, **kwargs)
        except Exception:
            tracer.failed(size_bytes, device=device)
            raise
        error, address = result if isinstance(result, tuple) else (0, result)
        if int(error):
            tracer.failed(size_bytes, device=device)
        else:
            tracer.allocated(int(address), size_bytes, device=device)
        return result

    return traced


def traced_free(tracer: VramTracer, free: Callable[..., Any], *, device: int = 0) -> Callable[..., Any]:
    """A call in the manner of cudaFree, traced; the event stands before the call, after which others may have it."""

    @functools.wraps(free)
    def traced(address: Any, *args: Any, **kwargs: Any) -> Any:
        tracer.freed(int(address), device=device)
        return free(address, *args, **kwargs)

    return traced


def _whose(owner: int, thread: int) -> tuple[str, str]:
    if owner == NOBODY:
        return THREADS.values[thread], ""
    worker, partition, _ = OWNERS.values[owner]
    return worker, partition


def _holdings(it: _Device) -> tuple[Holding, ...]:
    found = [
        Holding(BUFFERS.values[block.buffer], *_whose(block.owner, block.thread), block.size_bytes, block.time)
        for block in list(it.blocks.values())
    ]
    return tuple(sorted(found, key=lambda holding: -holding.size_bytes))


def _largest_gap(it: _Device) -> int | None:
    """The longest run of bytes in a segment that no block covers."""
    if not it.segments:
        return None
    blocks = sorted(
        (address, block.size_bytes) for address, block in list(it.blocks.items()) if isinstance(address, int)
    )
    largest = 0
    for start, size in it.segments.items():
        at = start
        for address, size_bytes in blocks:
            if start <= address < start + size:
                largest = max(largest, address - at)
                at = max(at, address + size_bytes)
        largest = max(largest, start + size - at)
    return largest

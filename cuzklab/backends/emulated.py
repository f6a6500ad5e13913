"""A device that is played by the CPU: real results, a real memory limit, real waiting, rates of a slower card.

Kernels are the host backend's functions. What makes a device of them: allocations are counted against a limit and
fail beyond it; copies are made and then last as long as the card's link takes; streams are in-order threads beside the
policy's; device-wide calls wait for all of them. Stages of several streams take turns, since each fills the device.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cuzklab.backends.device import DeviceMemoryExhausted, KernelTime, Memory, Piece, target_words


class Clock(Protocol):
    """The time, and a way to let it pass."""

    def now_ns(self) -> int: ...

    def wait_until_ns(self, moment_ns: int) -> None: ...


class SystemClock:
    """The machine's monotonic clock."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def wait_until_ns(self, moment_ns: int) -> None:
        remaining_ns = moment_ns - time.monotonic_ns()
        if remaining_ns > 0:
            time.sleep(remaining_ns / 1e9)


class TransferRates(Protocol):
    """What a hardware profile says about copies and about page-locking."""

    pinned_bytes_per_s: float
    pageable_bytes_per_s: float
    pin_s_per_byte: float
    unpin_s_per_byte: float


class Link:
    """The way to the device: one copy engine, which takes transfers one after the other.

    A copy from pageable memory is held up by the host, which moves the data through pinned buffers: it lasts as long
    as its own rate says, but occupies the link only for the time that its bytes need there.
    """

    def __init__(self, rates: TransferRates) -> None:
        self._rates = rates
        self._mutex = threading.Lock()
        self._free_at_ns = 0

    def reserve(self, now_ns: int, size_bytes: int, *, pinned: bool) -> tuple[int, int]:
        """The next free time for a transfer: its start and its end."""
        occupied_ns = round(size_bytes / self._rates.pinned_bytes_per_s * 1e9)
        lasts_ns = occupied_ns if pinned else round(size_bytes / self._rates.pageable_bytes_per_s * 1e9)
        with self._mutex:
            start_ns = max(now_ns, self._free_at_ns)
            self._free_at_ns = start_ns + occupied_ns
        return start_ns, start_ns + lasts_ns


class EmulatedWork:
    """See `device.Work`."""

    def __init__(self) -> None:
        self.start_ns = self.end_ns = 0
        self.transfer_ns: tuple[int, int] | None = None
        self.transfer_bytes = 0
        self.kernels: tuple[KernelTime, ...] = ()
        self._result: Any = None
        self._error: BaseException | None = None
        self._finished = threading.Event()

    @property
    def done(self) -> bool:
        return self._finished.is_set()

    def wait(self) -> Any:
        self._finished.wait()
        if self._error is not None:
            raise self._error
        return self._result


@dataclass(frozen=True)
class EmulatedEvent:
    """See `device.Event`; `last` is the work before it, None if there was none."""

    last: EmulatedWork | None

    @property
    def fired(self) -> bool:
        return self.last is None or self.last.done

    def wait(self) -> None:
        if self.last is not None:
            self.last._finished.wait()


_Body = Callable[[EmulatedWork], Any]


class EmulatedStream:
    """See `device.Stream`. A thread exists only while the stream has work."""

    def __init__(self, device: "EmulatedDevice", name: str) -> None:
        self.name = name
        self._device = device
        self._queue: deque[tuple[EmulatedWork, _Body]] = deque()
        self._last: EmulatedWork | None = None
        self._draining = False

    def upload(self, pieces: Sequence[Piece], *, pinned: bool) -> EmulatedWork:
        size_bytes = sum(piece.source.nbytes for piece in pieces)
        copies = [(piece.source.reshape(-1), target_words(piece)) for piece in pieces]

        def body(work: EmulatedWork) -> None:
            work.start_ns, end_ns = self._device.link.reserve(self._device.clock.now_ns(), size_bytes, pinned=pinned)
            for words, target in copies:
                _copy(words, target)
            self._device.clock.wait_until_ns(end_ns)
            work.transfer_ns = work.start_ns, self._device.clock.now_ns()
            work.transfer_bytes = size_bytes

        return self._put(body)

    def run(
        self,
        function: Callable[[], Any],
        *,
        streamed_bytes: int = 0,
        arriving: Sequence[EmulatedWork] = (),
        awaited: bool = False,
    ) -> EmulatedWork:
        def body(work: EmulatedWork) -> Any:
            clock = self._device.clock
            for upload in arriving:
                upload._finished.wait()
            with self._device.processor:
                work.start_ns = clock.now_ns()
                if streamed_bytes:
                    work.transfer_ns = self._device.link.reserve(work.start_ns, streamed_bytes, pinned=True)
                    work.transfer_bytes = streamed_bytes
                result = function()
                if work.transfer_ns:
                    clock.wait_until_ns(work.transfer_ns[1])
                return result

        return self._put(body)

    def record(self) -> EmulatedEvent:
        with self._device.mutex:
            return EmulatedEvent(self._last)

    def wait(self, event: EmulatedEvent) -> None:
        if not event.fired:
            self._put(lambda work: event.wait())

    def _put(self, body: _Body) -> EmulatedWork:
        work = EmulatedWork()
        with self._device.mutex:
            self._device.pending += 1
            self._queue.append((work, body))
            self._last = work
            if not self._draining:
                self._draining = True
                threading.Thread(target=self._drain, name=f"{self._device.name} {self.name}", daemon=True).start()
        return work

    def _drain(self) -> None:
        while True:
            with self._device.mutex:
                if not self._queue:
                    self._draining = False
                    return
                work, body = self._queue.popleft()
            try:
                work._result = body(work)
            except BaseException as error:
                work._error = error  # raised in whoever waits for it
            work.end_ns = self._device.clock.now_ns()
            with self._device.mutex:
                work._finished.set()
                self._device.pending -= 1
                self._device.became_idle.notify_all()


def _copy(words: np.ndarray, target: np.ndarray) -> None:
    target[: len(words)] = words
    target[len(words) :] = 0


class EmulatedDevice:
    """See `device.Device`.

    Parameters
    ----------
    index : int
    limit_bytes : int
        Memory that allocations can use.
    rates : TransferRates
    clock : Clock
    """

    takes_arrivals = False
    observing = True

    def __init__(self, index: int, limit_bytes: int, rates: TransferRates, clock: Clock | None = None) -> None:
        self.index, self.limit_bytes = index, limit_bytes
        self.name = f"gpu{index}"
        self.clock: Clock = clock or SystemClock()
        self.link = Link(rates)
        self.processor = threading.Lock()
        self.mutex = threading.Lock()
        self.became_idle = threading.Condition(self.mutex)
        self.pending = 0
        self._rates = rates
        self._live: set[Memory] = set()
        self._live_bytes = 0
        self._pool_bytes = 0

    def alloc(self, size_bytes: int, *, pooled: bool = False, backed: bool = True) -> Memory:
        with self.mutex:
            in_use_bytes = self._live_bytes + (0 if pooled else self._pool_bytes)
            if in_use_bytes + size_bytes > self.limit_bytes:
                raise DeviceMemoryExhausted(size_bytes, in_use_bytes, self.limit_bytes)
            memory = Memory(size_bytes, pooled, np.empty(-(-size_bytes // 8), np.uint64) if backed else None)
            if pooled:
                self._pool_bytes = max(0, self._pool_bytes - size_bytes)
            self._live.add(memory)
            self._live_bytes += size_bytes
        return memory

    def free(self, memory: Memory) -> None:
        with self.mutex:
            if memory not in self._live:
                raise ValueError(f"{memory.size_bytes} B of {self.name} were freed that are not allocated")
            self._live.remove(memory)
            self._live_bytes -= memory.size_bytes
            memory.array = None
            if memory.pooled:
                self._pool_bytes += memory.size_bytes

    def free_bytes(self) -> int:
        with self.mutex:
            return self.limit_bytes - self._live_bytes - self._pool_bytes

    def trim(self) -> None:
        with self.mutex:
            self._pool_bytes = 0

    def host_array(self, *shape: int, pinned: bool = False) -> np.ndarray:
        return np.empty(shape, np.uint64)

    def pin(self, memory: Sequence[np.ndarray], *, keep: bool = False) -> None:
        if not keep:
            self._let_pass(sum(array.nbytes for array in memory) * self._rates.pin_s_per_byte)

    def unpin(self, memory: Sequence[np.ndarray], *, keep: bool = False) -> None:
        if not keep:
            self._let_pass(sum(array.nbytes for array in memory) * self._rates.unpin_s_per_byte)

    def keeps(self, memory: Sequence[np.ndarray]) -> bool:
        return True

    def _let_pass(self, seconds: float) -> None:
        self.clock.wait_until_ns(self.clock.now_ns() + round(seconds * 1e9))

    def stream(self, name: str) -> EmulatedStream:
        return EmulatedStream(self, name)

    @property
    def idle(self) -> bool:
        with self.mutex:
            return self.pending == 0

    def sync(self) -> None:
        with self.mutex:
            self.became_idle.wait_for(lambda: self.pending == 0)

    @property
    def live(self) -> frozenset[Memory]:
        """What is allocated at this moment."""
        with self.mutex:
            return frozenset(self._live)

    def close(self) -> None:
        self.sync()
        with self.mutex:
            for memory in self._live:
                memory.array = None
            self._live.clear()
            self._live_bytes = self._pool_bytes = 0

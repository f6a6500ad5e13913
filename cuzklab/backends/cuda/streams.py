"""Streams of a real device: copies are put into CUDA's queues at once, stages run in a thread that waits for them.

A stage is a function of the host that launches many kernels and brings a few numbers back, so something must drive it.
A stream's queue is worked off by whoever waits for it, or else by a thread of the device's own: mostly the waiter,
which saves a change of threads. What precedes in the same stream is waited for on the device.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from cuzklab.backends.cuda import observe
from cuzklab.backends.device import KernelTime, Piece, target_words


class Backing(Protocol):
    """What a stream needs of its device.

    Attributes
    ----------
    cuda : module
        CuPy's `cuda`.
    """

    cuda: Any

    def queue(self, kind: str) -> AbstractContextManager[Any]:
        """A CUDA stream with nothing in it, made current; `kind` is ``kernels`` or ``copies``."""

    def moment_ns(self, event: Any) -> int:
        """When a CUDA event happened."""

    def began(self, work: "CudaWork") -> None:
        """Work was put into a stream."""

    def later(self, function: Callable[[], None]) -> None:
        """Call it in another thread."""


class CudaWork:
    """See `device.Work`.

    It is executed once (`executed`): a stage has then ended, a copy is in CUDA's queue between two events.
    """

    def __init__(self, stream: "CudaStream") -> None:
        self.start_ns = self.end_ns = 0
        self.transfer_ns: tuple[int, int] | None = None
        self.transfer_bytes = 0
        self.kernels: tuple[KernelTime, ...] = ()
        self.executed = threading.Event()
        self.begin: Any = None
        self.end: Any = None
        self.seen = observe.Observed()
        self.uses: Any = None  # kept until the device is done with it
        self.result: Any = None
        self.error: BaseException | None = None
        self._stream = stream
        self._settled = False
        self._mutex = threading.Lock()

    @property
    def done(self) -> bool:
        return self.executed.is_set() and (self._settled or self.end is None or self.end.done)

    def wait(self) -> Any:
        self.finish()
        if self.error is not None:
            raise self.error
        return self.result

    def finish(self) -> None:
        """Block until it is done, whatever came of it; its figures are known then."""
        if not self.executed.is_set():
            self._stream.work_off(self)
            self.executed.wait()
        with self._mutex:
            if not self._settled:
                self._settle()
                self._settled = True
                self.uses = self.seen = self.begin = None

    def _settle(self) -> None:
        if self.end is None:
            return
        self.end.synchronize()
        moment_ns = self._stream.device.moment_ns
        self.start_ns, self.end_ns = moment_ns(self.begin), moment_ns(self.end)
        self.kernels = tuple(
            KernelTime(name, moment_ns(start), moment_ns(end)) for name, start, end in self.seen.kernels
        )
        if self.seen.copies:
            moments = [(moment_ns(start), moment_ns(end)) for _, start, end in self.seen.copies]
            self.transfer_ns = min(start for start, _ in moments), max(end for _, end in moments)
            self.transfer_bytes = sum(size for size, _, _ in self.seen.copies)


@dataclass(frozen=True)
class CudaEvent:
    """See `device.Event`; `last` is the work before it, None if there was none."""

    last: CudaWork | None

    @property
    def fired(self) -> bool:
        return self.last is None or self.last.done

    def wait(self) -> None:
        if self.last is not None:
            self.last.finish()


_Body = Callable[[CudaWork], None]


class CudaStream:
    """See `device.Stream`."""

    def __init__(self, device: Backing, name: str) -> None:
        self.name = name
        self.device = device
        self._mutex = threading.Lock()
        self._queue: deque[tuple[CudaWork, _Body]] = deque()
        self._busy = False
        self._last: CudaWork | None = None
        self._in_queue: Any = None  # the last event of this stream that the device may not have reached yet

    def upload(self, pieces: Sequence[Piece], *, pinned: bool) -> CudaWork:
        copies = [(piece.source.reshape(-1), target_words(piece)) for piece in pieces]

        def body(work: CudaWork) -> None:
            runtime = self.device.cuda.runtime
            with self.device.queue("copies") as stream, observe.observed() as work.seen:
                self._follow(stream)
                work.begin = stream.record(self.device.cuda.Event())
                for words, target in copies:
                    with observe.copy(words.nbytes, self.device.cuda, stream):
                        runtime.memcpyAsync(
                            target.data.ptr, words.ctypes.data, words.nbytes, runtime.memcpyHostToDevice, stream.ptr
                        )
                    if target.nbytes > words.nbytes:
                        rest = target.nbytes - words.nbytes
                        runtime.memsetAsync(target.data.ptr + words.nbytes, 0, rest, stream.ptr)
                self._in_queue = work.end = stream.record(self.device.cuda.Event(block=True))

        work = CudaWork(self)
        work.uses = copies
        # A copy from pageable memory keeps its thread until it is done: that is the one which waits for it.
        return self._put(work, body, at_once=pinned)

    def run(self, function: Callable[[], Any], *, streamed_bytes: int = 0) -> CudaWork:
        def body(work: CudaWork) -> None:
            with self.device.queue("kernels") as stream, observe.observed() as work.seen:
                self._follow(stream)
                work.begin = stream.record(self.device.cuda.Event())
                work.result = function()
                work.end = stream.record(self.device.cuda.Event(block=True))
                work.end.synchronize()
                self._in_queue = None

        return self._put(CudaWork(self), body)

    def record(self) -> CudaEvent:
        with self._mutex:
            return CudaEvent(self._last)

    def wait(self, event: CudaEvent) -> None:
        if not event.fired:
            self._put(CudaWork(self), lambda work: event.wait())

    def _follow(self, stream: Any) -> None:
        """Let the device wait for what precedes in this stream, which was in another of CUDA's queues."""
        if self._in_queue is not None:
            stream.wait_event(self._in_queue)

    def _put(self, work: CudaWork, body: _Body, *, at_once: bool = False) -> CudaWork:
        self.device.began(work)
        with self._mutex:
            first = not self._busy and not self._queue
            self._queue.append((work, body))
            self._last = work
        if at_once and first:
            self.work_off(work)
        else:
            self.device.later(self.work_off)
        return work

    def work_off(self, until: CudaWork | None = None) -> None:
        """Execute what is queued, in order, up to a piece of work or all; returns at once where another does it."""
        while until is None or not until.executed.is_set():
            with self._mutex:
                if self._busy or not self._queue:
                    return
                self._busy = True
                work, body = self._queue.popleft()
            try:
                body(work)
            except BaseException as error:
                work.error = error  # raised in whoever waits for it
                work.end = None
            finally:
                with self._mutex:
                    self._busy = False
                work.executed.set()
        if self._queue:
            self.device.later(self.work_off)

"""Streams of a real device: copies are put into CUDA's queues at once, stages run in a thread that waits for them.

A stage is a function of the host that launches many kernels and brings a few numbers back, so something must drive it.
A stream's queue is worked off by whoever waits for it, or else by a thread of the device's own: mostly the waiter,
which saves a change of threads. What precedes in the same stream is waited for on the device.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from cuzklab.backends.cuda import arrivals, observe
from cuzklab.backends.device import KernelTime, Piece, target_words


class Backing(Protocol):
    """What a stream needs of its device.

    Attributes
    ----------
    cuda : module
        CuPy's `cuda`.
    observing : bool
        Whether kernels of stages are to be observed.
    events : Events
        Those that kernels and copies are put between.
    launch_ns : int
        From the call that launches a kernel to its start where nothing precedes it; 0 where it is not known.
    """

    cuda: Any
    observing: bool
    events: observe.Events
    launch_ns: int

    def queue(self, kind: str) -> AbstractContextManager[Any]:
        """A CUDA stream with nothing in it, made current; `kind` is ``kernels`` or ``copies``."""

    def anchor(self) -> Any:
        """What moments of about now can be told by, at any later time."""

    def moment_ns(self, event: Any, anchor: Any) -> int:
        """When a CUDA event happened, by an anchor of about that time."""

    def began(self, work: "CudaWork") -> None:
        """Work was put into a stream."""

    def later(self, function: Callable[[], None]) -> None:
        """Call it in another thread."""


@dataclass(frozen=True)
class Figures:
    """What is known of a piece of work once it is done: see `device.Work`."""

    start_ns: int = 0
    end_ns: int = 0
    transfer_ns: tuple[int, int] | None = None
    transfer_bytes: int = 0
    kernels: tuple[KernelTime, ...] = ()


class CudaWork:
    """See `device.Work`.

    It is executed once (`executed`): a stage has then ended, a copy is in CUDA's queue between two events. Its figures
    are worked out when they are asked for, which takes a call of the driver an event and so must not be under a lock.

    Attributes
    ----------
    arrivals : dict of int to event
        Of an upload: where each array begins on the device, and when it is there.
    """

    def __init__(self, stream: "CudaStream") -> None:
        self.executed = threading.Event()
        self.begin: Any = None
        self.end: Any = None
        self.anchor: Any = None
        self.arrivals: dict[int, Any] = {}
        self.seen = observe.Observed()
        self.uses: Any = None  # kept until the device is done with it
        self.result: Any = None
        self.error: BaseException | None = None
        self._stream = stream
        self._settled = False
        self._figures: Figures | None = None
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
        """Block until it is done, whatever came of it."""
        self.begun()
        with self._mutex:
            if not self._settled:
                if self.end is not None:
                    self.end.synchronize()
                self._settled = True
                self.uses = None

    def begun(self) -> None:
        """Block until it is executed: whatever it puts into CUDA's queues is there."""
        if not self.executed.is_set():
            self._stream.work_off(self)
            self.executed.wait()

    @property
    def start_ns(self) -> int:
        return self._known().start_ns

    @property
    def end_ns(self) -> int:
        return self._known().end_ns

    @property
    def transfer_ns(self) -> tuple[int, int] | None:
        return self._known().transfer_ns

    @property
    def transfer_bytes(self) -> int:
        return self._known().transfer_bytes

    @property
    def kernels(self) -> tuple[KernelTime, ...]:
        return self._known().kernels

    def _known(self) -> Figures:
        if not (self.executed.is_set() and self._settled):
            return Figures()
        with self._mutex:
            if self._figures is None:
                self._figures = self._measured()
                self.seen.forget()
                self.begin, self.anchor, self.arrivals = None, None, {}
            return self._figures

    def _measured(self) -> Figures:
        if self.end is None or self.anchor is None:
            return Figures()
        device, anchor = self._stream.device, self.anchor

        def moment_ns(event: Any) -> int:
            return device.moment_ns(event, anchor)

        # The events before a kernel can happen long before it where the stream has nothing to do: it begins when its
        # launch has reached the device.
        kernels = []
        for name, before, end, launched_ns in self.seen.kernels:
            end_ns = moment_ns(end)
            start_ns = max(*map(moment_ns, before), min(launched_ns + device.launch_ns, end_ns))
            kernels.append(KernelTime(name, start_ns, max(start_ns, end_ns)))
        moments = [(moment_ns(start), moment_ns(end)) for _, start, end in self.seen.copies]
        return Figures(
            moment_ns(self.begin),
            moment_ns(self.end),
            (min(start for start, _ in moments), max(end for _, end in moments)) if moments else None,
            sum(size for size, _, _ in self.seen.copies),
            tuple(kernels),
        )


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
            with self.device.queue("copies") as stream, observe.observed(self.device.events, stream) as work.seen:
                self._follow(stream)
                work.anchor = self.device.anchor()
                work.begin = stream.record(self.device.cuda.Event())
                for words, target in copies:
                    begin = observe.begin_copy(stream)
                    runtime.memcpyAsync(
                        target.data.ptr, words.ctypes.data, words.nbytes, runtime.memcpyHostToDevice, stream.ptr
                    )
                    observe.end_copy(words.nbytes, stream, begin)
                    if target.nbytes > words.nbytes:
                        rest = target.nbytes - words.nbytes
                        runtime.memsetAsync(target.data.ptr + words.nbytes, 0, rest, stream.ptr)
                    work.arrivals[target.data.ptr] = stream.record(self.device.cuda.Event(disable_timing=True))
                self._in_queue = work.end = stream.record(self.device.cuda.Event(block=True))

        work = CudaWork(self)
        work.uses = copies
        # A copy from pageable memory keeps its thread until it is done: that is the one which waits for it.
        return self._put(work, body, at_once=pinned)

    def run(
        self,
        function: Callable[[], Any],
        *,
        streamed_bytes: int = 0,
        arriving: Sequence[CudaWork] = (),
        awaited: bool = False,
    ) -> CudaWork:
        def body(work: CudaWork) -> None:
            for upload in arriving:
                upload.begun()
            coming = {place: event for upload in arriving for place, event in upload.arrivals.items()}
            with (
                self.device.queue("kernels") as stream,
                self._observed(stream) as work.seen,
                arrivals.expected(coming, stream),
            ):
                self._follow(stream)
                work.anchor = self.device.anchor()
                work.begin = stream.record(self.device.cuda.Event())
                work.result = function()
                # Waited for by a thread that spins, without the interpreter's lock: to be woken takes a tenth of the
                # shorter stages.
                work.end = stream.record(self.device.cuda.Event())
                work.end.synchronize()
                self._in_queue = None

        return self._put(CudaWork(self), body, left=awaited)

    def record(self) -> CudaEvent:
        with self._mutex:
            return CudaEvent(self._last)

    def wait(self, event: CudaEvent) -> None:
        if not event.fired:
            self._put(CudaWork(self), lambda work: event.wait())

    def _observed(self, stream: Any) -> AbstractContextManager[observe.Observed]:
        if self.device.observing:
            return observe.observed(self.device.events, stream)
        return nullcontext(observe.Observed())

    def _follow(self, stream: Any) -> None:
        """Let the device wait for what precedes in this stream, which was in another of CUDA's queues."""
        if self._in_queue is not None:
            stream.wait_event(self._in_queue)

    def _put(self, work: CudaWork, body: _Body, *, at_once: bool = False, left: bool = False) -> CudaWork:
        """Queue a piece of work; it is begun here, or `left` to whoever waits for it, or else by another thread."""
        self.device.began(work)
        with self._mutex:
            first = not self._busy and not self._queue
            self._queue.append((work, body))
            self._last = work
        if at_once and first:
            self.work_off(work)
        elif not (left and first):
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

"""Watches what a thread puts on the device: each kernel and each copy between a pair of CUDA events.

Whoever launches says so here (`before_kernel`, `after_kernel`, `begin_copy`, `end_copy`); it costs nothing unless
somebody in the same thread is watching (`observed`). Kernels that follow each other with nothing between them
(`consecutive`) share the event between them. Event pairs are turned into times by whoever watches, once the device is
done; the events are then used again.
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


class Events:
    """Events of one device that are used again: making one takes the driver longer than recording it.

    Parameters
    ----------
    cuda : module
        CuPy's `cuda`; the device must be current where events are taken.
    ready : int
        How many are made at once.

    Attributes
    ----------
    recorded : int
        How often one was recorded that has been given back.
    """

    def __init__(self, cuda: Any, ready: int = 0) -> None:
        self._make, self.current_stream = cuda.Event, cuda.get_current_stream
        self._spare = [self._make() for _ in range(ready)]
        self._mutex = threading.Lock()
        self.recorded = 0

    def take(self) -> Any:
        try:
            return self._spare.pop()
        except IndexError:
            return self._make()

    def give_back(self, events: Sequence[Any]) -> None:
        """Of these nobody will ask again when they happened; each of them once."""
        with self._mutex:
            self.recorded += len(events)
        self._spare.extend(events)


@dataclass
class Observed:
    """What was seen: names of kernels and sizes of copies, each with the events before and after it.

    Of a kernel also when its launch began, in nanoseconds of the monotonic clock. Kernels are put into `stream`, or
    into CuPy's current one.
    """

    events: Events | None = None
    stream: Any = None
    kernels: list[tuple[str, Any, Any, int]] = field(default_factory=list)
    copies: list[tuple[int, Any, Any]] = field(default_factory=list)
    taken: list[Any] = field(default_factory=list)
    chained: bool = False
    last: Any = None  # the event after the kernel before, where nothing can lie between it and the next

    def record(self, stream: Any) -> Any:
        event = self.events.take()
        self.taken.append(event)
        (stream or self.events.current_stream()).record(event)
        return event

    def forget(self) -> None:
        """Give the events back, once their times are known."""
        if self.events is not None:
            self.events.give_back(self.taken)
        self.kernels, self.copies, self.taken, self.last = [], [], [], None


class _Watch(threading.local):
    seen: Observed | None = None


_watch = _Watch()


@contextlib.contextmanager
def observed(events: Events, stream: Any = None) -> Iterator[Observed]:
    """Watch what this thread does inside; an outer watch sees nothing of it.

    `stream` is the one that all its kernels are put into; asking CuPy for the current one each time costs more.
    """
    before, seen = _watch.seen, Observed(events, stream)
    _watch.seen = seen
    try:
        yield seen
    finally:
        _watch.seen = before


@contextlib.contextmanager
def consecutive() -> Iterator[None]:
    """Inside, this thread puts nothing but kernels into one stream: no wait, no copy, no memset."""
    if (seen := _watch.seen) is None:
        yield
        return
    seen.chained, seen.last = True, None
    try:
        yield
    finally:
        seen.chained, seen.last = False, None


def watching() -> Observed | None:
    """What is to be told of this thread's kernels, if anybody watches."""
    return _watch.seen


def before_kernel(seen: Observed) -> Any:
    """The event before a kernel that is about to be launched."""
    return seen.last or seen.record(seen.stream)


def after_kernel(seen: Observed, name: str, start: Any, launched_ns: int) -> None:
    """The kernel was launched, by a call that began at a moment of the monotonic clock."""
    end = seen.record(seen.stream)
    if seen.chained:
        seen.last = end
    seen.kernels.append((name, start, end, launched_ns))


def begin_copy(stream: Any) -> Any:
    """A copy from the host is about to be queued: to be handed to `end_copy`."""
    seen = _watch.seen
    return None if seen is None else seen.record(stream)


def end_copy(size_bytes: int, stream: Any, begin: Any) -> Any:
    """It was queued; the event after it, if anybody watches."""
    if begin is None:
        return None
    seen = _watch.seen
    end = seen.record(stream)
    seen.copies.append((size_bytes, begin, end))
    return end

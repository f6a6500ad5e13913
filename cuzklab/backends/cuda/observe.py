"""Watches what a thread puts on the device: each kernel and each copy between a pair of CUDA events.

Whoever launches says so here (`before_kernel`, `after_kernel`, `begin_copy`, `end_copy`); it costs nothing unless
somebody in the same thread is watching (`observed`). Kernels that follow each other with nothing between them but waits
for copies (`consecutive`) share the event between them: such a kernel can begin when the one before it has ended and
the copies are there. Events are turned into times by whoever watches, once the device is done, and then used again.
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
    watching : int
        How often one was recorded that would not have been if nobody had watched; of those that were given back.
    """

    def __init__(self, cuda: Any, ready: int = 0) -> None:
        self._make, self.current_stream = cuda.Event, cuda.get_current_stream
        self._spare = [self._make() for _ in range(ready)]
        self._mutex = threading.Lock()
        self.watching = 0

    def take(self) -> Any:
        try:
            return self._spare.pop()
        except IndexError:
            return self._make()

    def give_back(self, events: Sequence[Any], needed: int = 0) -> None:
        """Of these nobody will ask again when they happened; each of them once. `needed` would be there unwatched."""
        with self._mutex:
            self.watching += len(events) - needed
        self._spare.extend(events)


@dataclass
class Observed:
    """What was seen: names of kernels and sizes of copies, with the events before and the one after it.

    A kernel has begun when the last of those before it has happened, and not before its launch: of that also when it
    began, in nanoseconds of the monotonic clock. Kernels are put into `stream`, or into CuPy's current one. The event
    before a copy is that before the first copy of its stream: what is told of copies is when the first began and the
    last ended.
    """

    events: Events | None = None
    stream: Any = None
    kernels: list[tuple[str, tuple[Any, ...], Any, int]] = field(default_factory=list)
    copies: list[tuple[int, Any, Any]] = field(default_factory=list)
    taken: list[Any] = field(default_factory=list)
    needed: int = 0  # of those taken, how many somebody waits for, watched or not
    copying: dict[int, Any] = field(default_factory=dict)  # by stream: the event before its first copy
    chained: bool = False
    before: tuple[Any, ...] = ()  # after which the next kernel can begin, where nothing else can lie before it

    def record(self, stream: Any) -> Any:
        event = self.events.take()
        self.taken.append(event)
        (stream or self.events.current_stream()).record(event)
        return event

    def forget(self) -> None:
        """Give the events back, once their times are known."""
        if self.events is not None:
            self.events.give_back(self.taken, self.needed)
        self.kernels, self.copies, self.taken, self.before = [], [], [], ()
        self.needed, self.copying = 0, {}


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
    """Inside, this thread puts kernels into one stream, and says what else it puts there: `interrupted`, `waits`.

    No other watch begins inside: what it sees would lie between this one's kernels.
    """
    if (seen := _watch.seen) is None:
        yield
        return
    seen.chained, seen.before = True, ()
    try:
        yield
    finally:
        seen.chained, seen.before = False, ()


def interrupted() -> None:
    """Something that is no kernel was put where this thread's kernels are: the next gets an event before it."""
    if (seen := _watch.seen) is not None:
        seen.before = ()


def waits(event: Any) -> None:
    """The stream of this thread's kernels was made to wait for an event; of this watch and with a time, or None."""
    if (seen := _watch.seen) is not None and seen.before:
        seen.before = (*seen.before, event) if event is not None else ()


def watching() -> Observed | None:
    """What is to be told of this thread's kernels, if anybody watches."""
    return _watch.seen


def before_kernel(seen: Observed) -> tuple[Any, ...]:
    """The events before a kernel that is about to be launched."""
    return seen.before or (seen.record(seen.stream),)


def after_kernel(seen: Observed, name: str, before: tuple[Any, ...], launched_ns: int) -> None:
    """The kernel was launched, by a call that began at a moment of the monotonic clock."""
    end = seen.record(seen.stream)
    if seen.chained:
        seen.before = (end,)
    seen.kernels.append((name, before, end, launched_ns))


def begin_copy(stream: Any) -> Any:
    """A copy from the host is about to be queued: to be handed to `end_copy`."""
    if (seen := _watch.seen) is None:
        return None
    if (begin := seen.copying.get(stream.ptr)) is None:
        begin = seen.copying[stream.ptr] = seen.record(stream)
    return begin


def end_copy(size_bytes: int, stream: Any, begin: Any, *, needed: bool = False) -> Any:
    """It was queued; the event after it, if anybody watches. `needed`: the caller waits for it, watched or not."""
    if begin is None:
        return None
    seen = _watch.seen
    end = seen.record(stream)
    seen.needed += needed
    seen.copies.append((size_bytes, begin, end))
    return end

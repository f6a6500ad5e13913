"""Spans: what a thread does between two moments, for the trace and as NVTX ranges for whatever profiler is attached."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import nvtx

from cuzklab.trace.recorders.log import BEGIN, END, OP_BITS, OWNER
from cuzklab.trace.recorders.names import OWNERS, SPANS, THIS_THREAD, Owner, SpanName
from cuzklab.trace.recorders.recording import DEFAULT, Recording

DOMAIN = "cuzk"
_KEPT_SPANS = 1 << 14
Parameters, Result = ParamSpec("Parameters"), TypeVar("Result")


@functools.cache
def domain() -> Any:
    """The NVTX domain of the package; one that does nothing where no tool is attached."""
    return nvtx.get_domain(DOMAIN)


def tool_attached() -> bool:
    """Whether a profiler takes NVTX ranges, which it decides when the process starts."""
    return type(domain()).__name__ != "DummyDomain"


@functools.cache
def attributes(name: str, category: str) -> Any:
    """NVTX's form of a name and a category, made once."""
    return domain().get_event_attributes(message=name, category=category)


class Span:
    """A named stretch of work: a context manager and a decorator.

    It holds no state of its own, so that one object serves all threads, nested in itself too. It begins and ends on
    one thread.
    """

    __slots__ = ("_attributes", "_begin", "_end", "_local", "_now", "name")

    def __init__(
        self,
        recording: Recording,
        name: str,
        category: str,
        device: int = -1,
        parent: str = "",
        payload: float | None = None,
    ) -> None:
        self.name = name
        self._local = recording.local
        self._now = recording.clock
        number = SPANS.number(SpanName(name, category, device, parent)) << OP_BITS
        self._begin, self._end = number | BEGIN, number | END
        self._attributes = None
        if tool_attached():
            if payload is None:
                self._attributes = attributes(name, category)
            else:
                self._attributes = domain().get_event_attributes(message=name, category=category, payload=payload)

    def __enter__(self) -> None:
        if self._attributes is not None:
            domain().push_range(self._attributes)
        events = self._local.sink.events
        if events is not None:
            events.extend((self._now(), self._begin))

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        events = self._local.sink.events
        if events is not None:
            events.extend((self._now(), self._end))
        if self._attributes is not None:
            domain().pop_range()

    def __call__(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        """Have every call of a function be such a span.

        Raises
        ------
        TypeError
            A generator or coroutine function: its body runs in pieces, between which other code of the thread runs.
        """
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise TypeError(f"{function.__qualname__}: a span cannot follow a generator or coroutine; put it inside")

        local, now, begin, end, attributes = self._local, self._now, self._begin, self._end, self._attributes

        # As `__enter__` and `__exit__` do, in one frame.
        @functools.wraps(function)
        def inside(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            if attributes is not None:
                domain().push_range(attributes)
            sink = local.sink
            events = sink.events
            if events is not None:
                events.extend((now(), begin))
            try:
                return function(*args, **kwargs)
            finally:
                events = sink.events
                if events is not None:
                    events.extend((now(), end))
                if attributes is not None:
                    domain().pop_range()

        return inside


def span_of(recording: Recording) -> Callable[..., Span]:
    """`span` for a recording of your own."""

    @functools.lru_cache(maxsize=_KEPT_SPANS)
    def span(name: str, category: str = "cpu", device: int = -1, parent: str = "") -> Span:
        return Span(recording, name, category, device, parent)

    return span


@functools.lru_cache(maxsize=_KEPT_SPANS)
def span(name: str, category: str = "cpu", device: int = -1) -> Span:
    """A span of the process-wide recording; asking for it again gives the same object.

    Parameters
    ----------
    name : str
    category : str
        cpu, gpu, transfer, memory or call, or one of your own.
    device : int
        The GPU that it concerns; −1 for none.

    Examples
    --------
    >>> with span("ntt_h", "gpu"):
    ...     pass
    >>> @span("synthesis")
    ... def synthesise(): ...
    """
    return Span(DEFAULT, name, category, device)


def span_with_payload(name: str, payload: float, category: str = "cpu", device: int = -1) -> Span:
    """A span whose NVTX range carries a number, bytes for example, for who reads it from a capture.

    The tables of a run have columns of their own for such numbers, so the payload goes to the profiler only; without
    one attached it costs nothing.
    """
    return Span(DEFAULT, name, category, device, payload=payload) if tool_attached() else span(name, category, device)


class owner:
    """For whom the calling thread works inside: whatever it records carries it.

    Parameters
    ----------
    worker : str
        The thread's name if empty.
    partition : str
    proof : int
    recording : Recording
    """

    __slots__ = ("_before", "_number", "_recording")

    def __init__(
        self, worker: str = "", partition: str = "", proof: int = -1, *, recording: Recording = DEFAULT
    ) -> None:
        self._recording = recording
        self._number = OWNERS.number(Owner(worker or THIS_THREAD.name, partition, proof))

    def __enter__(self) -> None:
        self._before = self._recording.local.sink.owner
        set_owner(self._recording, self._number)

    def __exit__(self, *exception: object) -> None:
        set_owner(self._recording, self._before)


def set_owner(recording: Recording, number: int) -> None:
    """Say from now on for whom the calling thread works: the number of an `Owner`, −1 for nobody in particular."""
    sink = recording.local.sink
    sink.owner = number
    if sink.events is not None:
        sink.events.extend((recording.clock(), number << OP_BITS | OWNER))

"""Watches what a thread puts on the device: each kernel and each copy between a pair of CUDA events.

Whoever launches says so here (`kernel`, `copy`); it costs nothing unless somebody in the same thread is watching
(`observed`). Event pairs are turned into times by whoever watches, once the device is done.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Observed:
    """What was seen: names of kernels and sizes of copies, each with the events before and after it.

    Of a kernel also when its launch began, in nanoseconds of the monotonic clock.
    """

    kernels: list[tuple[str, Any, Any, int]] = field(default_factory=list)
    copies: list[tuple[int, Any, Any]] = field(default_factory=list)


class _Watch(threading.local):
    seen: Observed | None = None


_watch = _Watch()


@contextlib.contextmanager
def observed() -> Iterator[Observed]:
    """Watch what this thread does inside; an outer watch sees nothing of it."""
    before, seen = _watch.seen, Observed()
    _watch.seen = seen
    try:
        yield seen
    finally:
        _watch.seen = before


@contextlib.contextmanager
def kernel(name: str, cuda: Any, stream: Any = None) -> Iterator[None]:
    """A kernel that is launched inside, in a stream or in CuPy's current one; `cuda` is CuPy's module of that name."""
    if (seen := _watch.seen) is None:
        yield
        return
    start = _record(cuda, stream)
    launched_ns = time.monotonic_ns()
    yield
    seen.kernels.append((name, start, _record(cuda, stream), launched_ns))


@contextlib.contextmanager
def copy(size_bytes: int, cuda: Any, stream: Any = None) -> Iterator[None]:
    """A copy from the host that is queued inside."""
    if (seen := _watch.seen) is None:
        yield
        return
    start = _record(cuda, stream)
    yield
    seen.copies.append((size_bytes, start, _record(cuda, stream)))


def _record(cuda: Any, stream: Any) -> Any:
    return (stream or cuda.get_current_stream()).record(cuda.Event())

"""Arrays on their way to the device: whoever needs one says so, and its stream waits for that copy alone.

A stage that begins while its data are copied calls `needed` before it puts the first kernel that reads an array into
its stream. It costs nothing where nothing is on its way.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any


class _Coming(threading.local):
    events: dict[int, Any] | None = None
    stream: Any = None


_coming = _Coming()


@contextlib.contextmanager
def expected(events: Mapping[int, Any], stream: Any) -> Iterator[None]:
    """Inside, this thread's arrays that begin at some addresses of the device are there once their events happen.

    What was not asked for by the end is waited for then, so that whatever follows in the stream finds all of it.
    """
    before = _coming.events, _coming.stream
    _coming.events, _coming.stream = dict(events), stream
    try:
        yield
        for event in _coming.events.values():
            stream.wait_event(event)
    finally:
        _coming.events, _coming.stream = before


def needed(array: Any) -> None:
    """Let the stream wait until an array is there; kernels that come later find it."""
    if _coming.events and (event := _coming.events.pop(array.data.ptr, None)) is not None:
        _coming.stream.wait_event(event)

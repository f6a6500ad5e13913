"""Arrays on their way to the device: whoever needs one says so, and its stream waits for that copy alone.

Whoever begins while data are copied calls `needed` before it puts the first kernel that reads an array into its
stream. It costs nothing where nothing is on its way.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any


class _Coming(threading.local):
    events: dict[int, tuple[Any, Any]] | None = None  # by address: when it is there, and the stream that will read it


_coming = _Coming()


@contextlib.contextmanager
def expected(events: Mapping[int, Any], stream: Any) -> Iterator[None]:
    """Inside, this thread's arrays that begin at some addresses of the device are there once their events happen.

    What was not asked for by the end is waited for then, so that whatever follows in the stream finds all of it.
    """
    before = _coming.events
    _coming.events = {place: (event, stream) for place, event in events.items()}
    try:
        yield
        for event, waiting in _coming.events.values():
            waiting.wait_event(event)
    finally:
        _coming.events = before


def announce(array: Any, event: Any, stream: Any) -> None:
    """From now on this thread's `stream` must wait for an event before it reads an array."""
    if _coming.events is None:
        _coming.events = {}
    _coming.events[array.data.ptr] = event, stream


def needed(array: Any) -> None:
    """Let the stream wait until an array is there; kernels that come later find it."""
    if _coming.events and (found := _coming.events.pop(array.data.ptr, None)) is not None:
        event, stream = found
        stream.wait_event(event)

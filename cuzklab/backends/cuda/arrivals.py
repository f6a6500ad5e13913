"""Arrays on their way to the device: whoever needs one says so, and its stream waits for that copy alone.

Whoever begins while data are copied calls `needed` before it puts the first kernel that reads an array into its
stream. It costs nothing where nothing is on its way.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from cuzklab.backends.cuda import observe


class _Coming(threading.local):
    # By address: when it is there, the stream that will read it, and whether the event's time is known to who watches.
    events: dict[int, tuple[Any, Any, bool]] | None = None


_coming = _Coming()


@contextlib.contextmanager
def expected(events: Mapping[int, Any], stream: Any) -> Iterator[None]:
    """Inside, this thread's arrays that begin at some addresses of the device are there once their events happen.

    What was not asked for by the end is waited for then, so that whatever follows in the stream finds all of it.
    """
    before = _coming.events
    _coming.events = {place: (event, stream, False) for place, event in events.items()}
    try:
        yield
        for event, waiting, _ in _coming.events.values():
            waiting.wait_event(event)
    finally:
        _coming.events = before


def announce(array: Any, event: Any, stream: Any, *, observed: bool = False) -> None:
    """From now on this thread's `stream` must wait for an event before it reads an array.

    `observed`: it is an event of whoever watches this thread (`observe.end_copy`).
    """
    if _coming.events is None:
        _coming.events = {}
    _coming.events[array.data.ptr] = event, stream, observed


def needed(array: Any) -> None:
    """Let the stream wait until an array is there; kernels that come later find it."""
    if _coming.events and (found := _coming.events.pop(array.data.ptr, None)) is not None:
        event, stream, observed = found
        stream.wait_event(event)
        observe.waits(event if observed else None)

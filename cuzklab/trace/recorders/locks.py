"""Locks that write down who asked, who had it, who got it and when it was given back.

`Lock` and `RLock` stand in for those of `threading` and can be given to whatever takes one, `threading.Condition`
included. A request that finds the lock free is one event; only one that has to wait is written down before.
"""

import sys
import threading
from typing import Any

from cuzklab.trace.recorders.log import ACQUIRED, GIVEN_UP, HOLDER, NOBODY, OP_BITS, RELEASED, REQUESTED, Sink
from cuzklab.trace.recorders.names import LOCKS, LockName
from cuzklab.trace.recorders.recording import DEFAULT, Recording
from cuzklab.trace.recorders.spans import attributes, domain, tool_attached


def where_made(depth: int) -> str:
    """File and line of a caller, for a lock without a name."""
    frame = sys._getframe(depth)
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"


def number_of(holder: Sink | None) -> int:
    """The number of the thread that has a lock."""
    return NOBODY if holder is None else holder.number


class LockEvents:
    """How the events of one lock are written down; for primitives of your own as well.

    Parameters
    ----------
    recording : Recording
    name : str
    matching : {"exclusive", "permits"}
        Whether one holds it at a time, or several.
    wait_kind : str
        The kind that its waits have in the waits table: lock, barrier; empty if they are recorded elsewhere.
    """

    __slots__ = ("_code", "_local", "_now", "name")

    def __init__(self, recording: Recording, name: str, matching: str = "exclusive", wait_kind: str = "lock") -> None:
        self.name = name
        self._code = LOCKS.number(LockName(name, matching, wait_kind)) << OP_BITS
        self._local = recording.local
        self._now = recording.clock

    def write(self, op: int, time: int | None = None) -> None:
        """Write down what the calling thread does, or did at a time."""
        events = self._local.sink.events
        if events is not None:
            events.extend((self._now() if time is None else time, self._code | op))

    def requested(self, holder: int, op: int = REQUESTED, time: int | None = None) -> None:
        """The calling thread asks, and will wait; `holder` is the number of a thread, or `NOBODY`."""
        events = self._local.sink.events
        if events is not None:
            asked = self._now() if time is None else time
            events.extend((asked, self._code | op, holder, self._code | HOLDER))

    def acquired(self, time: int | None = None) -> None:
        """The calling thread has it."""
        self.write(ACQUIRED, time)

    def released(self, time: int | None = None) -> None:
        """The calling thread is about to give it back."""
        self.write(RELEASED, time)

    def given_up(self) -> None:
        """The calling thread waits for it no more, and did not get it."""
        self.write(GIVEN_UP)

    def refused(self, holder: int) -> None:
        """The calling thread would have taken it, but did not want to wait."""
        self.requested(holder, GIVEN_UP)

    def code(self, op: int) -> int:
        """An op of this lock as events have it."""
        return self._code | op


class _Ranges:
    """A lock's ranges for the profiler that is attached: ``lock:NAME wait`` and ``lock:NAME hold``."""

    __slots__ = ("_held", "_hold", "_wait")

    def __init__(self, name: str) -> None:
        self._wait, self._hold = (attributes(f"lock:{name} {what}", "lock") for what in ("wait", "hold"))
        self._held: Any = None

    def wait_begun(self) -> None:
        domain().push_range(self._wait)

    def wait_ended(self) -> None:
        domain().pop_range()

    def hold_begun(self) -> None:
        self._held = domain().start_range(self._hold)  # another thread may end it

    def hold_ended(self) -> None:
        domain().end_range(self._held)


class Lock:
    """`threading.Lock`, recorded; NVTX ranges where a profiler is attached.

    Parameters
    ----------
    name : str
        Uses of locks of one name count as uses of one lock; file and line where it was made if empty.
    recording : Recording
        The process-wide one unless given.
    """

    __slots__ = (
        "__weakref__",
        "_acquired",
        "_events",
        "_inner",
        "_inner_acquire",
        "_inner_release",
        "_local",
        "_now",
        "_ranges",
        "_released",
        "holder",
        "name",
    )  # fmt: skip

    def __init__(self, name: str = "", *, recording: Recording = DEFAULT) -> None:
        self.name = name or where_made(2)
        self._local = recording.local
        self._now = recording.clock
        self._events = LockEvents(recording, self.name)
        self._acquired, self._released = self._events.code(ACQUIRED), self._events.code(RELEASED)
        self.holder: Sink | None = None
        self._ranges = _Ranges(self.name) if tool_attached() else None
        recording.locks.add(self)
        self._inner = threading.Lock()
        self._inner_acquire, self._inner_release = self._inner.acquire, self._inner.release

    # `with` on a free lock is written out, here and in `RLock`: it is what a program pays for.

    def __enter__(self) -> bool:
        if not self._inner_acquire(False):
            return self._wait(-1)
        self.holder = sink = self._local.sink
        events = sink.events
        if events is not None:
            events.extend((self._now(), self._acquired))
        if self._ranges is not None:
            self._ranges.hold_begun()
        return True

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.holder = None
        events = self._local.sink.events
        if events is not None:
            events.extend((self._now(), self._released))
        if self._ranges is not None:
            self._ranges.hold_ended()
        self._inner_release()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As `threading.Lock.acquire`; an attempt that fails is recorded as well."""
        if timeout != -1 and (timeout < 0 or not blocking):
            raise ValueError("a timeout must not be negative, and an attempt that does not block has none")
        if self._inner_acquire(False):
            self.holder = sink = self._local.sink
            events = sink.events
            if events is not None:
                events.extend((self._now(), self._acquired))
            if self._ranges is not None:
                self._ranges.hold_begun()
            return True
        if blocking:
            return self._wait(timeout)
        self._events.refused(number_of(self.holder))
        return False

    def _wait(self, timeout: float) -> bool:
        """Wait for a lock that is taken."""
        events, ranges = self._events, self._ranges
        events.requested(number_of(self.holder))
        if ranges is not None:
            ranges.wait_begun()
        got = False
        try:
            got = self._inner_acquire(True, timeout)
        finally:
            if ranges is not None:
                ranges.wait_ended()
            if not got:
                events.given_up()
        if got:
            self.holder = self._local.sink
            events.acquired()
            if ranges is not None:
                ranges.hold_begun()
        return got

    def release(self) -> None:
        """As `threading.Lock.release`."""
        if self.holder is not None:  # giving back what nobody has is refused below, and no event
            self.holder = None
            events = self._local.sink.events
            if events is not None:
                events.extend((self._now(), self._released))
        if self._ranges is not None:
            self._ranges.hold_ended()
        self._inner_release()

    def locked(self) -> bool:
        return self._inner.locked()

    def _at_fork_reinit(self) -> None:
        self._inner._at_fork_reinit()
        self.holder = None

    def _is_owned(self) -> bool:
        """What `threading.Condition` asks; without it, it would try to take the lock."""
        return self._inner.locked()

    def __repr__(self) -> str:
        return f"<recorded lock {self.name!r}, {'locked' if self.locked() else 'unlocked'}>"


class RLock(Lock):
    """`threading.RLock`, recorded; a thread's outermost acquisition and its last release make a use.

    Parameters
    ----------
    name : str
    recording : Recording
    """

    __slots__ = ("_depth",)

    def __init__(self, name: str = "", *, recording: Recording = DEFAULT) -> None:
        super().__init__(name or where_made(2), recording=recording)
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As `threading.RLock.acquire`."""
        sink = self._local.sink
        if self.holder is sink:
            self._depth += 1
            return True
        got = super().acquire(blocking, timeout)
        if got:
            self._depth = 1
        return got

    def __enter__(self) -> bool:
        sink = self._local.sink
        if self.holder is sink or not self._inner_acquire(False):
            return self.acquire()
        self.holder = sink
        self._depth = 1
        events = sink.events
        if events is not None:
            events.extend((self._now(), self._acquired))
        if self._ranges is not None:
            self._ranges.hold_begun()
        return True

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        sink = self._local.sink
        if self._depth != 1 or self.holder is not sink:
            self.release()
            return
        self._depth = 0
        self.holder = None
        events = sink.events
        if events is not None:
            events.extend((self._now(), self._released))
        if self._ranges is not None:
            self._ranges.hold_ended()
        self._inner_release()

    def release(self) -> None:
        """As `threading.RLock.release`."""
        if self.holder is not self._local.sink:
            raise RuntimeError(f"{self.name} is released by a thread that does not have it")
        self._depth -= 1
        if not self._depth:
            super().release()

    # What `threading.Condition` asks of its lock: a wait gives it up, however often it was taken.

    def _is_owned(self) -> bool:
        return self.holder is self._local.sink

    def _release_save(self) -> int:
        depth, self._depth = self._depth, 0
        super().release()
        return depth

    def _acquire_restore(self, depth: int) -> None:
        super().acquire()
        self._depth = depth

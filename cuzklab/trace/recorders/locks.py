"""Locks that write down who asked, who had it, who got it and when it was given back.

`Lock` and `RLock` stand in for those of `threading` and can be given to whatever takes one, `threading.Condition`
included. A request that finds the lock free is one event; only one that has to wait is written down before.
"""

import sys
import threading

from cuzklab.trace.recorders.names import LOCKS, THIS_THREAD, LockName
from cuzklab.trace.recorders.pairing import ACQUIRED, GIVEN_UP, NOBODY, OP_BITS, RELEASED, REQUESTED
from cuzklab.trace.recorders.recording import DEFAULT, Recording


def where_made(depth: int) -> str:
    """File and line of a caller, for a lock without a name."""
    frame = sys._getframe(depth)
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"


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

    __slots__ = ("_code", "_now", "_recording", "name")

    def __init__(self, recording: Recording, name: str, matching: str = "exclusive", wait_kind: str = "lock") -> None:
        self.name = name
        self._code = LOCKS.number(LockName(name, matching, wait_kind)) << OP_BITS
        self._recording = recording
        self._now = recording.clock

    def write(self, op: int, holder: int = NOBODY) -> None:
        """Write down what the calling thread does: an op of `pairing`, and who has the lock where it asks."""
        events = self._recording.lock_events
        if events is not None:
            events.extend((self._now(), THIS_THREAD.number, self._code | op, holder))

    def requested(self, holder: int) -> None:
        """The calling thread asks, and will wait; `holder` is the number of a thread, or `NOBODY`."""
        self.write(REQUESTED, holder)

    def acquired(self) -> None:
        """The calling thread has it."""
        self.write(ACQUIRED)

    def released(self) -> None:
        """The calling thread is about to give it back."""
        self.write(RELEASED)

    def given_up(self, holder: int = NOBODY) -> None:
        """The calling thread did not get it and waits no more."""
        self.write(GIVEN_UP, holder)

    def code(self, op: int) -> int:
        """An op of this lock as events have it."""
        return self._code | op


class Lock:
    """`threading.Lock`, recorded.

    Parameters
    ----------
    name : str
        Uses of locks of one name count as uses of one lock; file and line where it was made if empty.
    recording : Recording
        The process-wide one unless given.
    """

    __slots__ = (
        "_acquired", "_events", "_holder", "_inner", "_inner_acquire", "_inner_release", "_now", "_recording",
        "_released", "name",
    )  # fmt: skip

    def __init__(self, name: str = "", *, recording: Recording = DEFAULT) -> None:
        self.name = name or where_made(2)
        self._recording = recording
        self._now = recording.clock
        self._events = LockEvents(recording, self.name)
        self._acquired, self._released = self._events.code(ACQUIRED), self._events.code(RELEASED)
        self._holder = NOBODY
        self._inner = threading.Lock()
        self._inner_acquire, self._inner_release = self._inner.acquire, self._inner.release

    def __enter__(self) -> bool:
        if not self._inner_acquire(False):
            return self._wait(-1)
        self._holder = thread = THIS_THREAD.number
        events = self._recording.lock_events
        if events is not None:
            events.extend((self._now(), thread, self._acquired, -1))
        return True

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As `threading.Lock.acquire`; an attempt that fails is recorded as well."""
        if timeout != -1 and (timeout < 0 or not blocking):
            raise ValueError("a timeout must not be negative, and an attempt that does not block has none")
        if self._inner_acquire(False):
            self._holder = thread = THIS_THREAD.number
            events = self._recording.lock_events
            if events is not None:
                events.extend((self._now(), thread, self._acquired, -1))
            return True
        if blocking:
            return self._wait(timeout)
        self._events.given_up(self._holder)
        return False

    def _wait(self, timeout: float) -> bool:
        """Wait for a lock that is taken."""
        events = self._events
        events.requested(self._holder)
        try:
            got = self._inner_acquire(True, timeout)
        except BaseException:
            events.given_up()
            raise
        if got:
            self._holder = THIS_THREAD.number
            events.acquired()
        else:
            events.given_up()
        return got

    def release(self) -> None:
        """As `threading.Lock.release`."""
        if self._holder != -1:
            self._holder = -1
            events = self._recording.lock_events
            if events is not None:
                events.extend((self._now(), THIS_THREAD.number, self._released, -1))
        self._inner_release()

    def locked(self) -> bool:
        return self._inner.locked()

    def _at_fork_reinit(self) -> None:
        self._inner._at_fork_reinit()
        self._holder = NOBODY

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
        if self._holder == THIS_THREAD.number:
            self._depth += 1
            return True
        got = super().acquire(blocking, timeout)
        if got:
            self._depth = 1
        return got

    __enter__ = acquire

    def release(self) -> None:
        """As `threading.RLock.release`."""
        if self._holder != THIS_THREAD.number:
            raise RuntimeError(f"{self.name} is released by a thread that does not have it")
        self._depth -= 1
        if not self._depth:
            super().release()

    # What `threading.Condition` asks of its lock: a wait gives it up, however often it was taken.

    def _is_owned(self) -> bool:
        return self._holder == THIS_THREAD.number

    def _release_save(self) -> int:
        depth, self._depth = self._depth, 0
        super().release()
        return depth

    def _acquire_restore(self, depth: int) -> None:
        super().acquire()
        self._depth = depth

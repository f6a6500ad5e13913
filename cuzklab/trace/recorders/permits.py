"""Conditions and semaphores that are recorded, in the place of those of `threading`."""

import threading
from typing import Any

from cuzklab.trace.recorders.locks import Lock, LockEvents, RLock, where_made
from cuzklab.trace.recorders.log import ACQUIRED, NOBODY, RELEASED, WAIT_BEGUN, WAIT_ENDED
from cuzklab.trace.recorders.names import THIS_THREAD
from cuzklab.trace.recorders.recording import DEFAULT, Recording


class Condition(threading.Condition):
    """`threading.Condition`, recorded: uses of its lock, and each wait with whether it was notified in time.

    Parameters
    ----------
    lock : Lock or RLock, optional
        A recorded `RLock` unless given; a lock of `threading` works too, unrecorded.
    name : str
    recording : Recording
    """

    def __init__(self, lock: Lock | RLock | Any = None, *, name: str = "", recording: Recording = DEFAULT) -> None:
        self.name = name or where_made(2)
        super().__init__(RLock(f"{self.name} lock", recording=recording) if lock is None else lock)
        self._waits = LockEvents(recording, self.name, wait_kind="barrier")

    def wait(self, timeout: float | None = None) -> bool:
        """As `threading.Condition.wait`."""
        self._waits.write(WAIT_BEGUN)
        try:
            return super().wait(timeout)
        finally:
            self._waits.write(WAIT_ENDED)


class Semaphore:
    """`threading.Semaphore`, recorded: a use begins with a permit and ends with a release.

    A release ends the oldest use of the thread that releases, or, where it has none, the oldest of all; so permits
    that one thread takes and another gives back are matched too.

    Parameters
    ----------
    value : int
        Permits at first.
    name : str
    recording : Recording
    """

    def __init__(self, value: int = 1, *, name: str = "", recording: Recording = DEFAULT) -> None:
        if value < 0:
            raise ValueError("a semaphore has no fewer than 0 permits")
        self.name = name or where_made(2)
        self._events = LockEvents(recording, self.name, "permits", "barrier")
        self._mutex = threading.Lock()
        self._changed = threading.Condition(self._mutex)
        self._value = value
        self._waiting = 0
        self._holders: list[int] = []

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """As `threading.Semaphore.acquire`; an attempt that fails is recorded as well."""
        if not blocking and timeout is not None:
            raise ValueError("an attempt that does not block has no timeout")
        with self._mutex:
            if not self._value and not self._wait(blocking, timeout):
                return False
            self._value -= 1
            self._holders.append(THIS_THREAD.number)
            self._events.write(ACQUIRED)
            return True

    __enter__ = acquire

    def _wait(self, blocking: bool, timeout: float | None) -> bool:
        """Wait for a permit; the mutex is held."""
        holder = self._holders[0] if self._holders else NOBODY
        if not blocking:
            self._events.refused(holder)
            return False
        self._events.requested(holder)
        self._waiting += 1
        got = False
        try:
            got = self._changed.wait_for(lambda: self._value > 0, timeout)
        finally:
            self._waiting -= 1
            if not got:
                self._events.given_up()
        return got

    def release(self, n: int = 1) -> None:
        """As `threading.Semaphore.release`."""
        if n < 1:
            raise ValueError("a release gives back at least one permit")
        with self._mutex:
            self._check(n)
            thread = THIS_THREAD.number
            for _ in range(n):
                if self._holders:
                    self._holders.remove(thread if thread in self._holders else self._holders[0])
                self._events.write(RELEASED)
            self._value += n
            if self._waiting:
                self._changed.notify(n)

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.release()

    def _check(self, released: int) -> None:
        """Refuse a release; there is nothing to refuse."""


class BoundedSemaphore(Semaphore):
    """`threading.BoundedSemaphore`, recorded.

    Parameters
    ----------
    value : int
        Permits at first, and at most.
    name : str
    recording : Recording
    """

    def __init__(self, value: int = 1, *, name: str = "", recording: Recording = DEFAULT) -> None:
        super().__init__(value, name=name or where_made(2), recording=recording)
        self._most = value

    def _check(self, released: int) -> None:
        if self._value + released > self._most:
            raise ValueError(f"{self.name} is released more often than it was acquired")

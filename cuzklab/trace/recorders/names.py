"""Small numbers for what events mention: threads, spans, owners, locks, buffers.

An event is a handful of integers. What they stand for is written down once for the whole process, so that a span or a
lock outlives a recording and a thread's number is never given to another thread, as the system's thread ids are.
"""

import threading
from collections.abc import Hashable
from typing import NamedTuple


class SpanName(NamedTuple):
    """What a span is called; `device` is −1 where it concerns none.

    `parent` is what it is part of, where no enclosing span of its thread tells.
    """

    name: str
    category: str
    device: int
    parent: str


class Owner(NamedTuple):
    """For whom a thread works."""

    worker: str
    partition: str
    proof: int


class LockName(NamedTuple):
    """A lock, how its uses are matched and what its waits are called.

    `matching` is ``exclusive`` (one holder) or ``permits``. `wait_kind` is the kind of its rows in the waits table;
    empty where somebody else records them.
    """

    name: str
    matching: str
    wait_kind: str


class Names:
    """A table of values, each with a number, in the order of their first mention."""

    def __init__(self) -> None:
        self.values: list[tuple | str] = []
        self._numbers: dict[Hashable, int] = {}
        self._mutex = threading.RLock()  # the garbage collector may ask in the middle

    def number(self, value: tuple | str) -> int:
        """The number of a value; the same value always has the same."""
        found = self._numbers.get(value)
        if found is None:
            with self._mutex:
                found = self._numbers.get(value)
                if found is None:
                    self.values.append(value)
                    found = self._numbers[value] = len(self.values) - 1
        return found

    def add(self, value: tuple | str) -> int:
        """A number of its own for a value, though others may be equal to it."""
        with self._mutex:
            self.values.append(value)
            return len(self.values) - 1


SPANS, OWNERS, LOCKS, BUFFERS, STACKS, THREADS = Names(), Names(), Names(), Names(), Names(), Names()
TABLES = {"spans": SPANS, "owners": OWNERS, "locks": LOCKS, "buffers": BUFFERS, "stacks": STACKS, "threads": THREADS}


class _ThisThread(threading.local):
    """The calling thread: its number and the name it had when it was first asked for, and names for its buffers."""

    def __init__(self) -> None:
        self.name = threading.current_thread().name
        self.number = THREADS.add(self.name)
        self.buffer_names: list[str] = []


THIS_THREAD = _ThisThread()

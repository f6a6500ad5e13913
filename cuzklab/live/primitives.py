"""Locks, semaphores, flags, queues and reservations: real ones, which tell the board when an actor waits."""

import threading
from collections.abc import Callable
from typing import Any

from cuzklab.live.board import Blocked, Board, Waiter
from cuzklab.policies.effects import ReleaseByNonOwner, has_room, place_of
from cuzklab.policies.model import Queue


class Mutex:
    """A lock: a `threading.Lock`, and its holder's name."""

    def __init__(self, board: Board, name: str) -> None:
        self.name = name
        self.holder = ""
        self._board = board
        self._lock = threading.Lock()
        board.on_stop(self._wake)

    def acquire(self, actor: Waiter) -> str:
        """Take it; blocks while somebody has it, the actor itself included. Who had it at first, or nothing."""
        if self._lock.acquire(blocking=False):
            with self._board.mutex:
                self._take(actor)
            return ""
        with self._board.mutex:
            self._board.check()
            found_with = self.holder
            # A holder is forgotten before its lock is released, so a lock without a holder is about to be free.
            self._board.block(actor, Blocked("lock", self.name, lambda: not self.holder, lambda: (self.holder,)))
        self._lock.acquire()
        with self._board.mutex:
            self._board.unblock(actor)
            self._take(actor)
        return found_with

    def _take(self, actor: Waiter) -> None:
        """Note the holder, unless the run is being stopped: then nobody keeps a lock, so that nobody waits for it."""
        if self._board.verdict is not None:
            self._wake()
        self._board.check()
        self.holder = actor.name

    def release(self, actor: Waiter) -> None:
        """Give it back.

        Raises
        ------
        ReleaseByNonOwner
        """
        with self._board.mutex:
            self._board.check()
            if self.holder != actor.name:
                raise ReleaseByNonOwner(f"{actor.name} releases {self.name}, held by {self.holder or 'nobody'}")
            self.holder = ""
            self._lock.release()

    def _wake(self) -> None:
        """Let whoever waits find out that the run is being stopped: each wakes the next. The board's mutex is held."""
        if self._lock.locked():
            self._lock.release()


class Permits:
    """A counting semaphore; a notification before the wait is kept."""

    def __init__(self, board: Board, name: str, initial: int) -> None:
        self.name = name
        self.count = initial
        self._board = board
        self._changed = board.condition()

    def notify(self) -> None:
        with self._board.mutex:
            self.count += 1
            self._changed.notify_all()

    def wait(self, actor: Waiter) -> None:
        with self._board.mutex:
            self._board.wait(actor, Blocked("barrier", self.name, lambda: self.count > 0, condition=self._changed))
            self.count -= 1


class Switch:
    """A flag that can be waited for."""

    def __init__(self, board: Board, name: str) -> None:
        self.name = name
        self.value = False
        self._board = board
        self._changed = board.condition()

    def set(self, value: bool) -> None:
        with self._board.mutex:
            self.value = value
            self._changed.notify_all()

    def wait_clear(self, actor: Waiter) -> None:
        """Block while it is set."""
        with self._board.mutex:
            self._board.wait(actor, Blocked("barrier", self.name, lambda: not self.value, condition=self._changed))


class Channel:
    """A queue, bounded or not, the urgent first. Both operations tell its length after them."""

    def __init__(self, board: Board, queue: Queue) -> None:
        self.name = queue.name
        self._board = board
        self._queue = queue
        self._items: list[Any] = []
        self._changed = board.condition()

    @property
    def length(self) -> int:
        """How many items it holds; the board's mutex is held."""
        return len(self._items)

    def put(self, actor: Waiter, item: Any) -> int:
        """Put it behind those of its own and of higher priority; blocks while the queue is full for it."""
        with self._board.mutex:
            self._wait(actor, lambda: has_room(self._queue, self._items, item))
            self._items.insert(place_of(self._items, item), item)
            self._changed.notify_all()
            return len(self._items)

    def get(self, actor: Waiter) -> tuple[Any, int]:
        """Take the first item; blocks while there is none."""
        with self._board.mutex:
            self._wait(actor, lambda: len(self._items) > 0)
            item = self._items.pop(0)
            self._changed.notify_all()
            return item, len(self._items)

    def _wait(self, actor: Waiter, ready: Callable[[], bool]) -> None:
        self._board.wait(actor, Blocked("queue", self.name, ready, condition=self._changed))


class Reservations:
    """Promises of a device's bytes, without allocations."""

    def __init__(self, board: Board, name: str, limit_bytes: int) -> None:
        self.name = name
        self.promises: list[tuple[str, int]] = []
        self._board = board
        self._limit_bytes = limit_bytes
        self._changed = board.condition()

    @property
    def total_bytes(self) -> int:
        return sum(size_bytes for _, size_bytes in self.promises)

    def reserve(self, actor: Waiter, size_bytes: int) -> None:
        """Promise; blocks until so many bytes are unpromised."""
        blocked = Blocked(
            "memory",
            f"{self.name} reservation of {size_bytes} B",
            lambda: self.total_bytes + size_bytes <= self._limit_bytes,
            lambda: tuple(dict.fromkeys(owner for owner, _ in self.promises)),
            self._changed,
        )
        with self._board.mutex:
            self._board.wait(actor, blocked)
            self.promises.append((actor.name, size_bytes))

    def unreserve(self, actor: Waiter, size_bytes: int) -> None:
        """Take a promise back.

        Raises
        ------
        ReleaseByNonOwner
            The actor holds no promise of that size.
        """
        with self._board.mutex:
            if (actor.name, size_bytes) not in self.promises:
                raise ReleaseByNonOwner(
                    f"{actor.name} gives back a reservation of {size_bytes} B that it does not hold"
                )
            self.promises.remove((actor.name, size_bytes))
            self._changed.notify_all()

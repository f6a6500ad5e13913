"""Who runs, who waits for what, and when nobody can go on any more.

Every actor that blocks says so here first, with a predicate that tells whether it could go on. All predicates and all
changes to what they read are guarded by one mutex. So a deadlock is recognised exactly and at once, without timeouts:
every actor is blocked, and no predicate holds. An actor that waits for a device counts as running, because device
work ends by itself.
"""

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from cuzklab.policies.effects import PolicyFault
from cuzklab.policies.model import WaitFor
from cuzklab.policies.schedule import SCHEDULE


class Stopped(BaseException):
    """Raised in an actor to unwind it because the run is being stopped; no policy should catch it."""


class Waiter(Protocol):
    """What the board needs of an actor: a name, and a fault of a forked program that it has yet to be told of."""

    name: str
    pending_fault: PolicyFault | None


@dataclass(frozen=True)
class Blocked:
    """That an actor waits, and for what.

    Attributes
    ----------
    kind, on : str
        As in the waits table.
    ready : callable returning bool
        Whether the actor could go on; called with the board's mutex held.
    holders : callable returning tuple of str
        The actors that could make it ready, where that is known.
    condition : Condition or None
        What wakes it; None if it waits on a bare lock.
    """

    kind: str
    on: str
    ready: Callable[[], bool]
    holders: Callable[[], tuple[str, ...]] = tuple
    condition: threading.Condition | None = None


@dataclass(frozen=True)
class Verdict:
    """Why a run was stopped before its programs ended."""

    outcome: str
    explanation: str
    waits_for: tuple[WaitFor, ...] = ()


@dataclass(frozen=True)
class Waited:
    """A wait that is over, or was when the run was stopped: from `start` to `end`, in nanoseconds.

    `holders` had at the start what was waited for.
    """

    kind: str
    on: str
    start: int
    end: int
    holders: tuple[str, ...]


@dataclass
class Board:
    """The state that all actors of a run share.

    Attributes
    ----------
    clock : callable returning int
        Nanoseconds.
    record : callable
        Given each actor and each of its waits, with the mutex held.
    mutex : Lock
        Guards every attribute, and whatever predicates read.
    verdict : Verdict or None
        Set once the run is being stopped.
    """

    clock: Callable[[], int]
    record: Callable[["Waiter", Waited], None]
    mutex: threading.Lock = field(default_factory=threading.Lock)
    verdict: Verdict | None = None
    _active: int = 0
    _blocked: dict[Waiter, tuple[Blocked, int, tuple[str, ...]]] = field(default_factory=dict)
    _conditions: list[threading.Condition] = field(default_factory=list)
    _wake_lock_waiters: list[Callable[[], None]] = field(default_factory=list)
    _block_watchers: list[Callable[[], None]] = field(default_factory=list)

    def condition(self) -> threading.Condition:
        """A condition on the board's mutex, woken when the run is stopped."""
        condition = threading.Condition(self.mutex)
        self._conditions.append(condition)
        return condition

    def on_stop(self, wake: Callable[[], None]) -> None:
        """Have `wake` called when the run is stopped; the mutex is held."""
        self._wake_lock_waiters.append(wake)

    def on_block(self, look: Callable[[], None]) -> None:
        """Have `look` called whenever an actor has blocked; the mutex is held."""
        self._block_watchers.append(look)

    def enter(self) -> None:
        """An actor begins; the mutex is held."""
        self._active += 1

    def leave(self) -> None:
        """An actor has ended; the mutex is held."""
        self._active -= 1
        if self._active:
            self._look_for_deadlock()

    @property
    def active(self) -> int:
        return self._active

    def check(self) -> None:
        """Unwind the calling actor if the run is being stopped; the mutex may be held or not."""
        if self.verdict is not None:
            raise Stopped

    def block(self, actor: Waiter, blocked: Blocked) -> None:
        """Say that an actor is about to block; the mutex is held."""
        self._blocked[actor] = blocked, self.clock(), _known(blocked.holders())
        for look in self._block_watchers:
            look()
        self._look_for_deadlock()

    def unblock(self, actor: Waiter) -> None:
        """Say that an actor goes on; the mutex is held."""
        blocked, start, holders = self._blocked.pop(actor)
        self.record(actor, Waited(blocked.kind, blocked.on, start, self.clock(), holders))

    def wait(self, actor: Waiter, blocked: Blocked) -> None:
        """Block an actor on a condition until it is ready, unless it is; the mutex is held.

        Raises
        ------
        PolicyFault
            A program that the actor forked has failed meanwhile.
        """
        self.check()
        raise_pending(actor)  # a task that has failed just now also has ended, so a join would be ready
        if blocked.ready():
            return
        self.block(actor, blocked)
        while not (blocked.ready() or actor.pending_fault or self.verdict):
            blocked.condition.wait()
        self.unblock(actor)
        self.check()
        raise_pending(actor)

    def deliver(self, actor: Waiter, fault: PolicyFault) -> None:
        """Have a fault raised in an actor at its next effect, or where it waits; the mutex is held."""
        actor.pending_fault = actor.pending_fault or fault
        if actor in self._blocked and (condition := self._blocked[actor][0].condition) is not None:
            condition.notify_all()

    def stop(self, verdict: Verdict) -> None:
        """Have every actor unwound; the mutex is held. The first reason is the one that counts."""
        if self.verdict is not None:
            return
        self.verdict = verdict
        for condition in self._conditions:
            condition.notify_all()
        for wake in self._wake_lock_waiters:
            wake()

    def waits_for(self) -> tuple[WaitFor, ...]:
        """Who waits for what at this moment; the mutex is held."""
        return tuple(
            WaitFor(actor.name, blocked.kind, blocked.on, _known(blocked.holders()))
            for actor, (blocked, _, _) in sorted(self._blocked.items(), key=lambda item: item[0].name)
        )

    def waits_of(self, names: Collection[str]) -> tuple[WaitFor, ...]:
        """What those of the named actors wait for that cannot go on, but for those that wait for their turn."""
        return tuple(
            WaitFor(actor.name, blocked.kind, blocked.on, _known(blocked.holders()))
            for actor, (blocked, _, _) in sorted(self._blocked.items(), key=lambda item: item[0].name)
            if actor.name in names and blocked.kind != SCHEDULE and not blocked.ready()
        )

    def _look_for_deadlock(self) -> None:
        if len(self._blocked) < self._active or self.verdict is not None:
            return
        for actor, (blocked, _, _) in self._blocked.items():
            if blocked.ready() or (actor.pending_fault and blocked.condition is not None):
                return
        edges = self.waits_for()
        # Those who have what another wants are the heart of it; the rest queue behind them.
        core = [edge for edge in edges if edge.holders] or edges
        others = len(edges) - len(core)
        behind = f"; {others} {'others wait' if others > 1 else 'other waits'} behind them" if others else ""
        self.stop(Verdict("deadlock", "nobody can go on: " + "; ".join(map(str, core)) + behind, edges))


def _known(holders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(holder for holder in holders if holder)


def raise_pending(actor: Waiter) -> None:
    """Raise the fault of a forked program that an actor has yet to be told of."""
    fault, actor.pending_fault = actor.pending_fault, None
    if fault is not None:
        raise fault

"""Shared state of a simulation: a map from keys to values that knows who waits for which key.

An effect that is not ready has told, by what it read, which keys it depends on. Its actor waits on exactly those, and
is looked at again when one of them changes, in the order of arrival. What belongs to one partition alone is dropped
when the partition is done, so the map does not grow with the number of proofs.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import simpy

from cuzklab.policies.effects import Effect
from cuzklab.policies.model import Datum, HostBuffer, Semaphore, Stream
from cuzklab.policies.schedule import Order
from cuzklab.simulate.actor import Actor

Observer = Callable[[Any, Any, Any], None]


@dataclass(slots=True, eq=False)
class Waiting:
    """An actor that cannot go on: with which effect, since when, and who had what it wants at that time."""

    actor: Actor
    effect: Effect
    since_ns: int
    kind: str
    holder: str
    granted: simpy.Event
    number: int
    ends: bool = False  # the effect has begun, and waits for the turn at which it may end
    keys: set[Hashable] = field(default_factory=set)


TURN = ("schedule", "turn")  # a key that is written whenever the next step of a schedule comes up


class World:
    """The map that effects read and write.

    Parameters
    ----------
    order : Order, optional
        A schedule that says who may go on.

    Attributes
    ----------
    observers : dict
        Called with key, old and new value when a key of that kind is written: the kind is the first part of a tuple,
        and the class of any other key.
    may_wake : callable (Waiting) -> bool
        Asked of a waiting actor that can go on: False if it takes notice of that later, with `wakes`.
    """

    def __init__(self, order: Order | None = None) -> None:
        self.order = order
        self.observers: dict[Hashable, Observer] = {}
        self.may_wake: Callable[[Waiting], bool] = lambda waiting: True
        self._values: dict[Hashable, Any] = {}
        self._reads: set[Hashable] | None = None
        self._waiting: dict[Hashable, dict[Waiting, None]] = {}
        self._by_actor: dict[Actor, Waiting] = {}
        self._changed: set[Hashable] = set()
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> list[tuple[Hashable, Any]]:
        """All keys that have a value."""
        return list(self._values.items())

    def read(self, key: Hashable) -> Any:
        if self._reads is not None:
            self._reads.add(key)
        return self._values.get(key)

    def write(self, key: Hashable, value: Any) -> None:
        old = self._values.get(key)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        if key in self._waiting:
            self._changed.add(key)
        observer = self.observers.get(key[0] if type(key) is tuple else type(key))
        if observer is not None:
            observer(key, old, value)

    def may_go(self, actor: str, effect: Effect, ends: bool = False) -> bool:
        """Whether an effect can take place now: it is ready and, where a schedule is followed, its actor's turn."""
        if self.order is not None:
            self.read(TURN)
            if not self.order.may(actor, ends):
                return False
        return ends or effect.ready(self, actor)

    def wait(
        self, actor: Actor, effect: Effect, since_ns: int, kind: str, holder: str, granted: simpy.Event,
        ends: bool = False,
    ) -> Waiting:  # fmt: skip
        """Keep an actor whose effect is not ready until what the effect reads has changed."""
        waiting = Waiting(actor, effect, since_ns, kind, holder, granted, next(self._numbers), ends)
        self._by_actor[actor] = waiting
        self._is_ready(waiting)
        return waiting

    def waiting_of(self, actor: Actor) -> Waiting | None:
        """What an actor waits for, if it waits."""
        return self._by_actor.get(actor)

    def next_ready(self) -> Waiting | None:
        """Of those who wait for something that has changed, the one that came first and can go on; it waits no more."""
        while self._changed:
            candidates = {waiting for key in self._changed for waiting in self._waiting.get(key, ())}
            self._changed.clear()
            for waiting in sorted(candidates, key=lambda waiting: waiting.number):
                if self._is_ready(waiting) and self.may_wake(waiting):
                    # The others are looked at again once this one has taken what it waited for.
                    self._changed.update(key for other in candidates for key in other.keys)
                    self.dismiss(waiting)
                    return waiting
        return None

    def wakes(self, waiting: Waiting) -> bool:
        """Whether an actor that takes notice late still waits and can still go on; then it waits no more."""
        if self._by_actor.get(waiting.actor) is not waiting or not self._is_ready(waiting):
            return False
        self.dismiss(waiting)
        return True

    def dismiss(self, waiting: Waiting) -> None:
        """Forget that somebody waits."""
        self._unregister(waiting)
        del self._by_actor[waiting.actor]

    def _unregister(self, waiting: Waiting) -> None:
        for key in waiting.keys:
            others = self._waiting[key]
            del others[waiting]
            if not others:
                del self._waiting[key]
        waiting.keys = set()

    def blocked(self) -> list[Waiting]:
        """Everybody who waits, in the order of arrival."""
        return list(self._by_actor.values())

    def forget_partition(self, name: str) -> None:
        """Drop the keys of a partition that is done: its semaphores, streams, host buffers and data."""
        for key in [key for key in self._values if _owner(key) == name]:
            del self._values[key]

    def _is_ready(self, waiting: Waiting) -> bool:
        """Whether an effect is ready; if not, its actor waits for the keys that it has just read."""
        self._reads = set()
        try:
            ready = self.may_go(waiting.actor.name, waiting.effect, waiting.ends)
        finally:
            reads, self._reads = self._reads, None
        if not ready and reads != waiting.keys:
            self._unregister(waiting)
            waiting.keys = reads
            for key in reads:
                self._waiting.setdefault(key, {})[waiting] = None
        return ready


def _owner(key: Hashable) -> str:
    """Name of the partition that a key belongs to: what a partition makes is named after it."""
    thing = key[1] if type(key) is tuple else key
    if isinstance(thing, Datum | Semaphore | Stream | HostBuffer):
        return thing.name.rpartition(".")[0]
    return ""

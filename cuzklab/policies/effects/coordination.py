"""Semaphores, flags, slots, queues, and programs beside programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cuzklab.policies.effect import Effect, World
from cuzklab.policies.model import Buffer, Flag, Program, Queue, Semaphore, Slot, Task, priority_of


def permits_of(world: World, semaphore: Semaphore) -> int:
    permits = world.read(semaphore)
    return semaphore.initial if permits is None else permits


@dataclass(frozen=True)
class Notify(Effect):
    """Add a permit to a semaphore."""

    semaphore: Semaphore
    gives: ClassVar[bool] = True

    def start(self, world, actor):
        world.write(self.semaphore, permits_of(world, self.semaphore) + 1)

    def perform(self, live):
        live.notify(self.semaphore)

    @property
    def on(self):
        return self.semaphore.name


@dataclass(frozen=True)
class Wait(Effect):
    """Take a permit from a semaphore. Blocks while there is none."""

    semaphore: Semaphore
    wait_kind: ClassVar[str] = "barrier"

    def ready(self, world, actor):
        return permits_of(world, self.semaphore) > 0

    def start(self, world, actor):
        world.write(self.semaphore, permits_of(world, self.semaphore) - 1)

    def perform(self, live):
        live.wait(self.semaphore)

    @property
    def on(self):
        return self.semaphore.name


@dataclass(frozen=True)
class SetFlag(Effect):
    """Set a flag, whatever it was."""

    flag: Flag

    def start(self, world, actor):
        world.write(self.flag, True)

    def undo(self, result):
        return ClearFlag(self.flag)

    def perform(self, live):
        live.set_flag(self.flag, True)

    @property
    def on(self):
        return self.flag.name


@dataclass(frozen=True)
class ClearFlag(Effect):
    """Clear a flag, whatever it was and whoever set it."""

    flag: Flag

    def start(self, world, actor):
        world.write(self.flag, None)

    @property
    def settles(self):
        return ("flag", self.flag)

    def perform(self, live):
        live.set_flag(self.flag, False)

    @property
    def on(self):
        return self.flag.name


@dataclass(frozen=True)
class ReadFlag(Effect):
    """Whether a flag is set at this moment."""

    flag: Flag
    tells: ClassVar[bool] = True

    def start(self, world, actor):
        return bool(world.read(self.flag))

    def perform(self, live):
        return live.read_flag(self.flag)

    @property
    def on(self):
        return self.flag.name


@dataclass(frozen=True)
class WaitClear(Effect):
    """Block while a flag is set: what a loop that polls it comes to."""

    flag: Flag
    wait_kind: ClassVar[str] = "barrier"

    def ready(self, world, actor):
        return not world.read(self.flag)

    def perform(self, live):
        live.wait_clear(self.flag)

    @property
    def on(self):
        return self.flag.name


@dataclass(frozen=True)
class Exchange(Effect):
    """Put a value into a slot and get what was there, None at first, in one indivisible step.

    A buffer that is put into a slot belongs to whoever takes it out: it outlives the partition that allocated it, and
    one that lies in a slot at the end is kept, not leaked. If a partition fails that has taken one out, it goes back.
    """

    slot: Slot
    value: Any = None
    tells: ClassVar[bool] = True

    def start(self, world, actor):
        before = world.read(self.slot)
        world.write(self.slot, self.value)
        return before

    def undo(self, result):
        return Exchange(self.slot, result) if isinstance(result, Buffer) else None

    @property
    def settles(self):
        return ("buffer", self.value) if isinstance(self.value, Buffer) else None

    def perform(self, live):
        return live.exchange(self.slot, self.value)

    @property
    def on(self):
        return self.slot.name


def place_of(items: Sequence[Any], item: Any) -> int:
    """Where an item goes in a queue: how many of those that wait go before it."""
    own = priority_of(item)
    return sum(priority_of(other) >= own for other in items)


def has_room(queue: Queue, items: Sequence[Any], item: Any) -> bool:
    """Whether a queue with those items takes another one now."""
    return queue.capacity is None or place_of(items, item) < queue.capacity


@dataclass(frozen=True)
class Put(Effect):
    """Put an item into a queue, behind those of its own and of higher priority. Blocks while it is full for it."""

    queue: Queue
    item: Any
    wait_kind: ClassVar[str] = "queue"

    def ready(self, world, actor):
        return has_room(self.queue, world.read(self.queue) or (), self.item)

    def start(self, world, actor):
        items = world.read(self.queue) or ()
        place = place_of(items, self.item)
        world.write(self.queue, (*items[:place], self.item, *items[place:]))

    def perform(self, live):
        live.put(self.queue, self.item)

    @property
    def on(self):
        return self.queue.name


@dataclass(frozen=True)
class Get(Effect):
    """Take the first item of a queue: the oldest of the highest priority. Blocks while it is empty."""

    queue: Queue
    tells: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "queue"

    def ready(self, world, actor):
        return bool(world.read(self.queue))

    def start(self, world, actor):
        item, *rest = world.read(self.queue)
        world.write(self.queue, tuple(rest))
        return item

    def perform(self, live):
        return live.get(self.queue)

    @property
    def on(self):
        return self.queue.name


@dataclass(frozen=True)
class Fork(Effect):
    """Start a program beside this one, in a thread of its own; the result is a `Task`.

    The interpreter starts an actor named ``parent/name``; `name` defaults to the program's. Until an earlier one of
    that name has been joined, the new one is ``parent/name#2`` and so on. A fault that ends a forked program is raised
    in the one that forked it; the new program takes that over for the tasks that it `adopts`.
    """

    program: Program
    name: str = ""
    adopts: tuple[Task, ...] = ()

    def start(self, world, actor):
        name = child = f"{actor}/{self.name or self.program.name}"
        number = 1
        while world.read(("task", child)) not in (None, "joined"):
            number += 1
            child = f"{name}#{number}"
        world.write(("task", child), "running")
        return Task(child)

    def undo(self, result):
        return Join(result)

    def perform(self, live):
        return live.fork(self)

    @property
    def on(self):
        return self.name or self.program.name


@dataclass(frozen=True)
class Join(Effect):
    """Wait until a forked program has ended."""

    task: Task
    wait_kind: ClassVar[str] = "join"

    def ready(self, world, actor):
        return world.read(("task", self.task.actor)) in ("ended", "joined")

    def start(self, world, actor):
        world.write(("task", self.task.actor), "joined")

    def blockers(self, world):
        return (self.task.actor,)

    @property
    def settles(self):
        return ("task", self.task)

    def perform(self, live):
        live.join(self.task)

    @property
    def on(self):
        return self.task.actor

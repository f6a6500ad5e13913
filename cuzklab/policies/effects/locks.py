"""Locks: one holder at a time."""

from dataclasses import dataclass
from typing import ClassVar

from cuzklab.policies.effect import Effect, ReleaseByNonOwner
from cuzklab.policies.model import Lock


@dataclass(frozen=True)
class Acquire(Effect):
    """Take a lock. Blocks while somebody holds it, its holder included: locks are not re-entrant."""

    lock: Lock
    wait_kind: ClassVar[str] = "lock"

    def ready(self, world, actor):
        return world.read(self.lock) is None

    def start(self, world, actor):
        world.write(self.lock, actor)

    def undo(self, result):
        return Release(self.lock)

    def blockers(self, world):
        return (world.read(self.lock),)

    def perform(self, live):
        live.acquire(self.lock)

    @property
    def on(self):
        return self.lock.name


@dataclass(frozen=True)
class Release(Effect):
    """Give a lock back. Fails if another actor, or nobody, holds it."""

    lock: Lock
    gives: ClassVar[bool] = True

    def start(self, world, actor):
        holder = world.read(self.lock)
        if holder != actor:
            raise ReleaseByNonOwner(f"{actor} releases {self.lock.name}, held by {holder or 'nobody'}")
        world.write(self.lock, None)

    @property
    def settles(self):
        return ("lock", self.lock)

    def perform(self, live):
        live.release(self.lock)

    @property
    def on(self):
        return self.lock.name

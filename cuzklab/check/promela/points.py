"""Programs as points: what a translation to another tool's language is made of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cuzklab.policies.effects import Effect, Fork

END = 0  # the target of a branch after which the actor has ended


class _OutOfMemory:
    def __repr__(self) -> str:
        return "OUT_OF_MEMORY"


OUT_OF_MEMORY = _OutOfMemory()  # received by a program into which `OutOfDeviceMemory` is thrown


@dataclass(frozen=True)
class Failure:
    """A fault that leaves a program: its kind, and the effect with its place, as in a finding's sites."""

    kind: str
    site: str


@dataclass(frozen=True)
class Branch:
    """What follows one result.

    Attributes
    ----------
    received : hashable
        The result, or `OUT_OF_MEMORY`.
    target : int or Failure
        The point that follows, `END`, or the fault that leaves the program.
    starts : int or None
        Of a fork: the first point of the program that it starts.
    """

    received: Any
    target: int | Failure
    starts: int | None = None


@dataclass(frozen=True)
class Point:
    """A point of an actor's programs: the effect that comes next (with its line), and what may follow."""

    number: int
    actor: str
    effect: Effect
    where: str
    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class ClosedSystem:
    """Actors with all points that they might come to.

    Attributes
    ----------
    roots : dict of str to int
        The first point (or `END`) of each actor that is there from the start.
    points : tuple of Point
        Numbered from 1.
    unit_bytes : int
        The greatest common divisor of all requests for memory.
    """

    roots: dict[str, int]
    points: tuple[Point, ...]
    unit_bytes: int

    def actors(self) -> list[str]:
        """All actors: those there from the start first, then those that are forked."""
        return list(dict.fromkeys([*self.roots, *(point.actor for point in self.points), *self._children()]))

    def _children(self) -> Iterator[str]:
        for point in self.points:
            if isinstance(point.effect, Fork):
                yield from (branch.received.actor for branch in point.branches)

    def longest(self, weight: Callable[[Point], int]) -> int:
        """The largest sum of the weights of points that all actors together can pass."""
        found = [0]
        for point in self.points:  # whatever follows a point has a smaller number
            found.append(
                weight(point)
                + max(
                    (
                        (found[branch.target] if isinstance(branch.target, int) else 0) + found[branch.starts or 0]
                        for branch in point.branches
                    ),
                    default=0,
                )
            )
        return sum(found[root] for root in self.roots.values())

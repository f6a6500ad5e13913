"""What an actor can do next: a move, and the table of a node's moves by what its effect reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from cuzklab.policies.effects import Effect, PolicyFault

State = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a move is the end of a schedule: the fault, and the effect (with its line) that it came from."""

    fault: PolicyFault
    effect: Effect
    where: str


@dataclass(frozen=True, slots=True)
class Move:
    """What an actor does next: nothing while it is blocked, a fault, or changes of slots, its own first."""

    updates: tuple[tuple[int, int], ...] = ()
    fault: Fault | None = None
    blocked: bool = False

    @property
    def following(self) -> int:
        """The node at which the actor stands afterwards."""
        return self.updates[0][1]

    def apply(self, state: State) -> State:
        changed = list(state)
        for slot, value in self.updates:
            changed[slot] = value
        return tuple(changed)


BLOCKED = Move(blocked=True)


class Table:
    """The moves of one node, by the values of the slots that its effect reads."""

    __slots__ = ("moves", "reads", "select", "touched", "writes")

    def __init__(self) -> None:
        self.reads: tuple[int, ...] = ()
        self.select: Any = lambda state: ()
        self.writes: set[int] = set()
        self.touched: frozenset[int] = frozenset()  # all slots that it reads or writes
        self.moves: dict[Any, Move] = {}

    def widen(self, slots: set[int]) -> None:
        self.reads = tuple(sorted({*self.reads, *slots}))
        self.select = itemgetter(*self.reads)
        self.moves.clear()

    def add(self, reads: set[int], written: Iterable[int]) -> None:
        """Take note of what an evaluation read and wrote."""
        self.writes.update(written)
        if not reads <= set(self.reads):
            self.widen(reads)
        self.touched = frozenset((*self.reads, *self.writes))

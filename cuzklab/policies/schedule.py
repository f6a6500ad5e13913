"""A schedule as something that an interpreter follows: who makes the next step, and whether they do what it says.

The checker finds schedules; `simulate` and `live` can be made to follow one. What they share is here: the position in
the schedule, and the judgement of each step. An interpreter asks `may` before an effect takes place, `check` when it is
about to, and tells `passed` when it has.
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cuzklab.policies.effects import Effect, PolicyFault
from cuzklab.policies.model import Gpu, Program, WaitFor, program

SCHEDULE = "schedule"  # kind of a wait for one's turn; no wait of the policy, so it is in no trace


class Turn(Protocol):
    """One step of a schedule: the actor, its effect in words, and start or end where that takes two steps."""

    step: int
    actor: str
    effect: str
    phase: str


class Diverged(Exception):
    """The programs do not do what the schedule says; the message names the step."""


def alike(one: str, other: str) -> bool:
    """Whether two effects in words are the same but for amounts of memory, which a scaled system has smaller."""
    return re.sub(r"\b\d+ B\b", "B", one) == re.sub(r"\b\d+ B\b", "B", other)


@program
def one_after_another(programs: Sequence[Program], gpu: Gpu | None) -> Generator[Effect, Any, None]:
    """What one actor of a check does; `gpu` tells for which device it works."""
    for one in programs:
        yield from one


def in_sequence(programs: Mapping[str, Sequence[Program]]) -> dict[str, Program]:
    """The actors of a check as interpreters take them: one program each."""
    actors = {}
    for name, sequence in programs.items():
        arguments = [argument for one in sequence for argument in one.arguments]
        gpu = next((argument for argument in arguments if isinstance(argument, Gpu)), None)
        actors[name] = one_after_another(tuple(sequence), gpu)
    return actors


@dataclass
class Order:
    """A schedule under way.

    Parameters
    ----------
    turns : sequence of Turn
    concerned : frozenset of str
        The actors that it is about. When it is over they go on first: they fail, or block for ever.
    made : callable
        Told the number of each step as it is made.

    Attributes
    ----------
    position : int
        Steps made so far.
    free : bool
        Everybody may go as they like: the schedule is over and what it was to show has been seen.
    fault : PolicyFault or None
        What the last step met.
    reached : tuple of WaitFor
        Where the schedule ends in a deadlock: who of those concerned waited for what when all of them did.
    went_on : list of str
        Steps that those concerned have made since it was over; none in a deadlock.
    diverged : str
        Why the programs could not follow.
    """

    turns: Sequence[Turn]
    concerned: frozenset[str] = frozenset()
    made: Callable[[int], None] = lambda number: None
    position: int = 0
    free: bool = False
    fault: PolicyFault | None = None
    reached: tuple[WaitFor, ...] = ()
    went_on: list[str] = field(default_factory=list)
    diverged: str = ""

    def __post_init__(self) -> None:
        self._copies: set[str] = set()

    @property
    def over(self) -> bool:
        return self.position >= len(self.turns)

    def may(self, actor: str, ends: bool = False) -> bool:
        """Whether an actor may begin its next effect now, or end the one that it has begun."""
        if self.over:
            return self.free or ends or actor in self.concerned
        turn = self.turns[self.position]
        return turn.actor == actor and (turn.phase == "end") == ends

    def check(self, actor: str, effect: Effect) -> None:
        """
        Raises
        ------
        Diverged
            The actor whose turn it is does something else.
        """
        if not self.over and not alike(self.turns[self.position].effect, str(effect)):
            turn = self.turns[self.position]
            self.diverged = f"step {turn.step}: {actor} does {effect}, not {turn.effect}"
            raise Diverged(self.diverged)

    def passed(self, actor: str, effect: Effect, fault: PolicyFault | None = None) -> None:
        """A step was made; `fault` is what it met."""
        if self.over:
            if actor in self.concerned:
                self.went_on.append(f"{actor}: {effect}")
            return
        self.advance()
        if self.over:  # a fault before that is one that the program deals with
            self.fault = fault

    def advance(self) -> None:
        """The next step is made."""
        self.made(self.turns[self.position].step)
        self.position += 1

    def ended(self, actor: str, fault: PolicyFault | None) -> None:
        """A program has ended, perhaps by a fault that nobody caught."""
        if self.over and actor in self.concerned:
            self.fault = fault or self.fault
            self.free = True

    def name_of_copy(self, issuer: str) -> str:
        """The name under which the schedule knows the copy that an actor has just put into a stream."""
        name, number = f"{issuer}/copy", 1
        while name in self._copies:
            number += 1
            name = f"{issuer}/copy#{number}"
        self._copies.add(name)
        return name

    def copied(self, name: str) -> None:
        """A copy has ended, so its name is free again."""
        self._copies.discard(name)

    def stopped_at(self) -> str:
        """Where the programs stand in the schedule, for messages."""
        if self.over:
            return f"after step {len(self.turns)}, the last"
        turn = self.turns[self.position]
        return f"at step {turn.step}: {turn.actor} {turn.effect}"

"""The survey of a model: every state that the reduction leaves, and the ends that it finds.

Depth first, with all states kept. A state that is met again while its own successors are still being explored means
that the programs can go round for ever, which is refused: a policy's program must end.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cuzklab.check.automaton import ENDED
from cuzklab.check.model import Model, Move, State, StateTooNarrow
from cuzklab.check.reduction import AssumptionBroken, PartialOrder
from cuzklab.check.symmetry import Renaming, Symmetry, SymmetryBroken
from cuzklab.errors import BadInput

Step = tuple[State, int, Renaming | None]
Progress = Callable[[int, float], None]
_TICK = 1024  # states between two looks at the clock


def real_schedule(path: Iterable[tuple[tuple[int, ...], Renaming | None]]) -> list[int]:
    """Slots of the actors that move, under their own names, from moves among representatives."""
    schedule: list[int] = []
    renamed: list[Renaming] = []
    for slots, renaming in path:
        for slot in slots:
            for earlier in reversed(renamed):
                slot = earlier.inverse.slot(slot)
            schedule.append(slot)
        if renaming is not None:
            renamed.append(renaming)
    return schedule


class LimitReached(Exception):
    """The time or the number of states is used up, or the user stopped the search."""


class Budget:
    """States and seconds that may still be used, over all searches of one check.

    Parameters
    ----------
    max_states : int
        States of any one search.
    seconds : float
        Wall time of all together.
    progress : callable, optional
        Called with the states seen by the search in hand and the seconds since the start.
    clock : callable
        Seconds; replaced in tests.
    """

    def __init__(
        self, max_states: int, seconds: float, progress: Progress | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.max_states, self.seconds, self._progress, self._clock = max_states, seconds, progress, clock
        self._began = clock()

    @property
    def used_s(self) -> float:
        return self._clock() - self._began

    def check(self, states: int) -> None:
        """Raise `LimitReached` where the search must stop; to be called every so many states."""
        if self._progress is not None:
            self._progress(states, self.used_s)
        if states >= self.max_states:
            raise LimitReached(f"{self.max_states} states were not enough")
        if self.used_s >= self.seconds:
            raise LimitReached(f"{self.seconds:g} s were not enough")


@dataclass
class Survey:
    """What a search saw.

    Attributes
    ----------
    parents : dict
        For each state seen, the state and the actor's slot through which it was first reached, and the renaming that
        made a representative of it.
    faults : dict
        For each faulting move, with its actor's slot and node, one state.
    blocked : list
        States in which everybody who has not ended is blocked, or fails at the next move.
    ended : list
        States in which every program has ended.
    stopped : str
        Why the search ended before its time; empty when it is complete.
    reduction : PartialOrder or None
        What was learned about who shares what, where the survey was reduced.
    symmetry : Symmetry or None
        Which actors are alike, where only representatives were visited.
    """

    parents: dict[State, Step | None] = field(default_factory=dict)
    faults: dict[tuple[int, int, Move], State] = field(default_factory=dict)
    blocked: list[State] = field(default_factory=list)
    ended: list[State] = field(default_factory=list)
    stopped: str = ""
    reduction: PartialOrder | None = None
    symmetry: Symmetry | None = None

    @property
    def states(self) -> int:
        """How many there are."""
        return len(self.parents)

    def path(self, state: State) -> list[tuple[tuple[int, ...], Renaming | None]]:
        """The moves from the start to the state: slots of actors, and renamings."""
        path = []
        while (step := self.parents[state]) is not None:
            state, slot, renaming = step
            path.append(((slot,), renaming))
        return path[::-1]


def survey(model: Model, budget: Budget, partial_order: bool = True, symmetric: bool = True) -> Survey:
    """Explore a model from its start.

    Parameters
    ----------
    model : Model
    budget : Budget
    partial_order : bool
        Leave out interleavings that `PartialOrder` shows to be superfluous.
    symmetric : bool
        Visit one state of those that differ only in who is who.

    Raises
    ------
    BadInput
        The programs can go on for ever, or yield something that is no effect.
    """
    symmetry = Symmetry(model) if symmetric else None
    if symmetry is not None and not symmetry.groups:
        symmetry = None
    reduction = PartialOrder(model, symmetry) if partial_order else None
    while True:
        found = Survey(reduction=reduction, symmetry=symmetry)
        try:
            _explore(model, budget, found)
            if symmetry is not None:
                symmetry.close()
        except (StateTooNarrow, AssumptionBroken):
            if reduction is not None:
                reduction.restart()
            continue
        except SymmetryBroken:
            return survey(model, budget, partial_order, symmetric=False)
        except LimitReached as limit:
            found.stopped = str(limit)
        except KeyboardInterrupt:
            found.stopped = "interrupted"
        return found


def _explore(model: Model, budget: Budget, found: Survey) -> None:
    initial, symmetry = model.initial(), found.symmetry
    parents = found.parents
    stack: list[tuple[State, Step | None]] = [(initial, None)]
    above: set[State] = set()  # states whose successors are being explored
    while stack:
        state, step = stack.pop()
        if state in above:  # all that follows it has been explored
            above.remove(state)
            continue
        if state in parents:
            continue
        parents[state] = step
        if len(parents) % _TICK == 0:
            budget.check(len(parents))
        moves = _moves(model, state, found.reduction)
        if all(move.fault is not None for _, move in moves):
            _note_end(model, state, found)
        above.add(state)
        stack.append((state, None))
        for slot, move in moves:
            if move.fault is not None:
                found.faults.setdefault((slot, state[slot], move), state)
                continue
            following, renaming = move.apply(state), None
            if symmetry is not None:
                following, renaming = symmetry.representative(following)
            if following in above:
                node = model.node(state, slot)
                raise BadInput(f"{node.where}: the program of {node.actor} can go on for ever ({node.effect})")
            if following not in parents:
                stack.append((following, (state, slot, renaming)))


def _moves(model: Model, state: State, reduction: PartialOrder | None) -> list[tuple[int, Move]]:
    """The moves to explore from a state; none if nobody can move."""
    living = model.living(state)
    moves = [(slot, move) for slot in living if not (move := model.move(state, slot)).blocked]
    if reduction is not None:
        for slot in living:
            reduction.note(state, slot)
        for slot, move in moves if len(moves) > 1 else ():
            if move.fault is None and reduction.alone(state, slot, move):
                return [(slot, move)]
    return moves


def _note_end(model: Model, state: State, found: Survey) -> None:
    if any(state[slot] > ENDED for slot in model.actor_slots):
        found.blocked.append(state)
    else:
        found.ended.append(state)

"""The survey of a model: every state that the reduction leaves, and the ends that it finds.

Depth first, with all states kept. A state that is met again while its own successors are still being explored means
that the programs can go round; then everything is explored without reductions, and `starvation` judges that. A search
that becomes large goes on in compiled code (`compiled`), unless there are claims to be judged in each state.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from cuzklab.check.automaton import ENDED
from cuzklab.check.claims import Watched, watched
from cuzklab.check.model import Model, StateTooNarrow
from cuzklab.check.moves import Move, State
from cuzklab.check.reduction import AssumptionBroken, PartialOrder
from cuzklab.check.symmetry import Renaming, Symmetry, SymmetryBroken
from cuzklab.policies.claims import Claim

Step = tuple[State, int, Renaming | None]
Progress = Callable[[int, float], None]
_TICK = 1024  # states between two looks at the clock
LARGE = 30_000  # states from which on it pays to load compiled code


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


class _GoesRound(Exception):
    """A state follows from itself."""


class _NotCompiled(Exception):
    """The compiled search has no room for these programs, or they can go round."""


class _Large(Exception):
    """There are so many states that it pays to go on in compiled code."""


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
    edges : dict
        From each state, who moves (a slot) and what follows; only where programs can go round.
    broken : dict
        For each claim that does not hold everywhere, by its place, one state.
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
    edges: dict[State, list[tuple[int, State]]] = field(default_factory=dict)
    broken: dict[int, State] = field(default_factory=dict)
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

    @property
    def depth(self) -> int:
        """Steps to the state that was reached by the most of them."""
        depths: dict[State, int] = {}
        for state, step in self.parents.items():  # in the order in which they were reached
            depths[state] = 0 if step is None else depths[step[0]] + 1
        return max(depths.values(), default=0)

    def path(self, state: State) -> list[tuple[tuple[int, ...], Renaming | None]]:
        """The moves from the start to the state: slots of actors, and renamings."""
        path = []
        while (step := self.parents[state]) is not None:
            state, slot, renaming = step
            path.append(((slot,), renaming))
        return path[::-1]


def survey(
    model: Model, budget: Budget, partial_order: bool = True, symmetric: bool = True, claims: Sequence[Claim] = (),
    large: int = LARGE,
) -> Survey:  # fmt: skip
    """Explore a model from its start.

    Parameters
    ----------
    model : Model
    budget : Budget
    partial_order : bool
        Leave out interleavings that `PartialOrder` shows to be superfluous.
    symmetric : bool
        Visit one state of those that differ only in who is who.
    claims : sequence of Claim
        To be judged in each state.
    large : int
        States from which on the search goes on in compiled code; 0: from the start.

    Raises
    ------
    BadInput
        The programs can go on for ever, or yield something that is no effect.
    """
    symmetry = Symmetry(model) if symmetric else None
    if symmetry is not None and not symmetry.groups:
        symmetry = None
    reduction = PartialOrder(model, symmetry) if partial_order else None
    judged = watched(model, claims)
    compiled = large == 0 and not judged
    while True:
        found = Survey(reduction=reduction, symmetry=symmetry)
        try:
            if compiled:
                found = _compiled(model, budget, reduction, symmetry)
            else:
                _explore(model, budget, found, judged, large if not judged else None)
            if symmetry is not None and not found.stopped:
                symmetry.close()
        except _Large:
            compiled = True
        except _NotCompiled:
            compiled, large = False, None
        except (StateTooNarrow, AssumptionBroken):
            pass
        except SymmetryBroken:
            return survey(model, budget, partial_order, False, claims, large)
        except _GoesRound:
            return _survey_rounds(model, budget, claims)
        except LimitReached as limit:
            found.stopped = str(limit)
            return found
        except KeyboardInterrupt:
            found.stopped = "interrupted"
            return found
        else:
            return found
        if reduction is not None:
            reduction.restart()


def _compiled(model: Model, budget: Budget, reduction: PartialOrder | None, symmetry: Symmetry | None) -> Survey:
    from cuzklab.check import compiled, tables  # numba takes a while to import

    try:
        if not compiled.can_go_round(model):
            found = compiled.survey(model, budget, reduction, symmetry)
            if not compiled.can_go_round(model):
                return found
    except tables.DoesNotFit:
        pass
    raise _NotCompiled


def _survey_rounds(model: Model, budget: Budget, claims: Sequence[Claim]) -> Survey:
    """A survey of programs that can go round: every interleaving, with what follows from what."""
    judged = watched(model, claims)
    while True:
        found = Survey()
        try:
            _explore(model, budget, found, judged, None, rounds=True)
        except StateTooNarrow:
            continue
        except LimitReached as limit:
            found.stopped = str(limit)
        except KeyboardInterrupt:
            found.stopped = "interrupted"
        if found.stopped:
            found.edges.clear()
        return found


def _explore(
    model: Model, budget: Budget, found: Survey, judged: Sequence[Watched] = (), large: int | None = None,
    rounds: bool = False,
) -> None:  # fmt: skip
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
            if large is not None and len(parents) >= large:
                raise _Large
        for place, claim in enumerate(judged):
            if claim.broken(state, symmetry):
                found.broken.setdefault(place, state)
            if found.reduction is not None:
                found.reduction.watch(claim.reads)
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
            if rounds:
                found.edges.setdefault(state, []).append((slot, following))
            elif following in above:
                raise _GoesRound
            if following not in parents:
                stack.append((following, (state, slot, renaming)))
        if rounds:
            found.edges.setdefault(state, [])


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

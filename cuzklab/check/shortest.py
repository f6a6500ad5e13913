"""The shortest schedule to a finding: A* over the interleavings, but for those that no schedule is shorter by.

The estimate is the number of steps that the actors concerned must still make in their own programs, whatever the
others do. It never exceeds the truth, so the first schedule that A* completes is a shortest one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cuzklab.check.automaton import ENDED
from cuzklab.check.model import Model
from cuzklab.check.moves import Fault, State
from cuzklab.check.reduction import PartialOrder
from cuzklab.check.search import Budget, real_schedule
from cuzklab.check.symmetry import Renaming, Symmetry

_TICK = 1024
_FAR = 1 << 30
Parents = dict[State, tuple[State, tuple[int, ...], Renaming | None]]


# Some actors (slots), each at one of some nodes.
Place = tuple[tuple[int, frozenset[int]], ...]


@dataclass(frozen=True)
class Goal:
    """Where a finding shows: in a move that faults, or in a state.

    Attributes
    ----------
    places : tuple of tuple of (int, frozenset of int)
        Alternatives. Each says for some actors (slots) at which of their nodes they stand when the finding shows.
    fault : callable, optional
        Whether the fault of a move by the actor of that name is the finding.
    state : callable, optional
        Whether a state in which an alternative holds shows the finding.
    """

    places: tuple[Place, ...]
    fault: Callable[[Fault, str], bool] | None = None
    state: Callable[[State], bool] | None = None


def distances(model: Model, targets: Iterable[int]) -> dict[int, int]:
    """Steps of an actor from each of its nodes to the nearest target; nodes that lead to none are left out."""
    before: dict[int, list[int]] = {}
    for number, following in model.successors.items():
        for later in following:
            before.setdefault(later, []).append(number)
    found = dict.fromkeys(targets, 0)
    waiting = list(found)
    for number in waiting:
        for earlier in before.get(number, ()):
            if earlier not in found:
                found[earlier] = found[number] + 1
                waiting.append(earlier)
    return found


def _everybodys(place: Place, symmetry: Symmetry | None) -> list[Place]:
    """A place under all names."""
    renamings = symmetry.all_renamings() if symmetry else ()
    return [place] + [
        tuple((renaming.slot(slot), frozenset(map(renaming.node, targets))) for slot, targets in place)
        for renaming in renamings
    ]


def _estimate(model: Model, goals: Iterable[Goal], symmetry: Symmetry | None) -> Callable[[State], int]:
    """A number of steps that any schedule from a state to any of the goals still needs."""
    goals = list(goals)
    alone: dict[int, set[int]] = {}
    together = []
    every = (place for goal in goals for known in goal.places for place in _everybodys(known, symmetry))
    for place in every:
        if len(place) == 1:
            alone.setdefault(place[0][0], set()).update(place[0][1])
        else:
            together.append(place)
    tables: dict[frozenset[int], dict[int, int]] = {}
    alternatives = []
    for place in [*(((slot, frozenset(targets)),) for slot, targets in alone.items()), *together]:
        terms = []
        for slot, targets in place:
            if targets not in tables:
                tables[targets] = distances(model, targets)
            # A forked actor may be started again, so no place of its own is out of reach.
            terms.append((slot, tables[targets], 0 if slot in model.parents else _FAR))
        alternatives.append(terms)
    last_step = min(goal.fault is not None for goal in goals)

    def estimate(state: State) -> int:
        least = _FAR
        for terms in alternatives:
            steps = 0
            for slot, table, otherwise in terms:
                steps += table.get(state[slot], otherwise)
                if steps >= least:
                    break
            else:
                least = steps
        return least + last_step

    return estimate


@dataclass
class Quest:
    """A goal, the shortest schedule to it known so far (slots of the actors that move), and whether none is shorter."""

    goal: Goal
    schedule: list[int]
    proved: bool = False


def shorten(
    model: Model,
    quests: Sequence[Quest],
    budget: Budget,
    reduction: PartialOrder | None = None,
    symmetry: Symmetry | None = None,
) -> None:
    """Make the schedules of some quests the shortest.

    Parameters
    ----------
    model : Model
        Completely surveyed, so that all nodes are known.
    quests : sequence of Quest
        Changed in place.
    budget : Budget
    reduction : PartialOrder, optional
        Of the survey: lets moves that nobody notices be put off (`_rush`).
    symmetry : Symmetry, optional
        Of the survey: lets representatives stand for states that differ in names.

    Raises
    ------
    LimitReached
        Some are not proved.
    """
    in_moves = [quest for quest in quests if quest.goal.fault is not None]
    if in_moves:
        _shorten(model, in_moves, budget, reduction, symmetry)
    for quest in quests:
        if quest.goal.fault is None:  # who stands where matters at the end, so no move can be put off
            _shorten(model, [quest], budget, None, symmetry)


def _shorten(
    model: Model, quests: list[Quest], budget: Budget, reduction: PartialOrder | None, symmetry: Symmetry | None
) -> None:
    pending = list(quests)
    estimate = _estimate(model, [quest.goal for quest in pending], symmetry)
    initial = model.initial()
    steps: dict[State, int] = {initial: 0}
    parents: Parents = {}
    longest = max(len(quest.schedule) for quest in pending)
    least = min(estimate(initial), longest)
    # By the steps made and to be made: a state, the steps made, and the last moves of a quest that ends there.
    buckets: list[list[tuple[State, int, tuple[Quest, tuple[int, ...]] | None]]] = [[] for _ in range(longest + 1)]
    buckets[least].append((initial, 0, None))
    taken = 0
    while True:
        for quest in pending:
            quest.proved |= len(quest.schedule) <= least
        if any(quest.proved for quest in pending):
            pending = [quest for quest in pending if not quest.proved]
            if not pending:
                return
            estimate = _estimate(model, [quest.goal for quest in pending], symmetry)
            longest = max(len(quest.schedule) for quest in pending)
        if not buckets[least]:
            least += 1
            continue
        state, made, end = buckets[least].pop()
        if end is not None:
            quest, moves = end
            if not quest.proved:
                quest.schedule = _schedule(parents, initial, state, moves)
            continue
        if steps[state] < made:
            continue
        taken += 1
        if taken % _TICK == 0:
            budget.check(taken)
        for quest in pending:
            if quest.goal.state is not None and estimate(state) == 0 and quest.goal.state(state):
                quest.schedule = _schedule(parents, initial, state)
        for slot in model.living(state):
            moves, following, fault = _rush(model, reduction, state, slot)
            total, renaming = made + len(moves), None
            if symmetry is not None and moves and fault is None:
                following, renaming = symmetry.representative(following)
            if fault is not None:
                for quest in pending:
                    shows = quest.goal.fault is not None and quest.goal.fault(fault, model.names[slot])
                    if shows and total < len(quest.schedule):
                        buckets[max(total, least)].append((state, made, (quest, moves)))
            elif moves and total < steps.get(following, _FAR):
                left = estimate(following)
                if total + left < longest:
                    steps[following] = total
                    parents[following] = (state, moves, renaming)
                    # An estimate may fall by more than the steps made; the order of buckets must not go back.
                    buckets[max(total + left, least)].append((following, total, None))


def _rush(
    model: Model, reduction: PartialOrder | None, state: State, slot: int
) -> tuple[tuple[int, ...], State, Fault | None]:
    """The moves of an actor up to and with its next one that others notice, and the state after them; or the fault.

    A move that nobody notices may be put off until just before its actor's next, or for ever, so schedules in which
    all such moves stand there are enough to find a shortest one that ends in a fault. None where the actor is blocked
    at the move that others would notice, or ends before one.
    """
    moves: list[int] = []
    while True:
        move = model.move(state, slot)
        if move.blocked:
            return (), state, None
        moves.append(slot)
        if move.fault is not None:
            return tuple(moves), state, move.fault
        unseen = reduction is not None and reduction.unseen(state, slot)
        state = move.apply(state)
        if not unseen:
            return tuple(moves), state, None
        if state[slot] <= ENDED:
            return (), state, None


def _schedule(parents: Parents, initial: State, state: State, last: tuple[int, ...] = ()) -> list[int]:
    path: list[tuple[tuple[int, ...], Renaming | None]] = [(last, None)]
    while state != initial:
        state, moves, renaming = parents[state]
        path.append((moves, renaming))
    return real_schedule(reversed(path))


def tidy(model: Model, goal: Goal, schedule: list[int]) -> list[int]:
    """The same steps with fewer changes of actor, where that order shows the goal too."""
    schedule = list(schedule)
    for place in range(len(schedule) - 2):
        actor = schedule[place]
        if schedule[place + 1] == actor:
            continue
        later = next((index for index in range(place + 2, len(schedule)) if schedule[index] == actor), None)
        if later is not None:
            moved = [*schedule[: place + 1], actor, *schedule[place + 1 : later], *schedule[later + 1 :]]
            if shows(model, goal, moved):
                schedule = moved
    return schedule


def shows(model: Model, goal: Goal, schedule: Sequence[int]) -> bool:
    """Whether a schedule can take place and shows the goal at its end."""
    state = model.initial()
    for number, slot in enumerate(schedule, 1):
        if state[slot] <= ENDED:
            return False
        move = model.move(state, slot)
        if move.fault is not None:
            at_end = number == len(schedule) and goal.fault is not None
            return at_end and goal.fault(move.fault, model.names[slot])
        if move.blocked:
            return False
        state = move.apply(state)
    return goal.state is not None and goal.state(state)


def all_ended(model: Model) -> tuple[tuple[int, frozenset[int]], ...]:
    """The place at which every actor has ended."""
    return tuple((slot, frozenset((ENDED,))) for slot in model.actor_slots)

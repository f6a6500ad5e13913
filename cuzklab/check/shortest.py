"""The shortest schedule to a finding: A* over all interleavings, without any reduction of them.

The estimate is the number of steps that the actors concerned must still make in their own programs, whatever the
others do. It never exceeds the truth, so the first schedule that A* completes is a shortest one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cuzklab.check.automaton import ENDED
from cuzklab.check.model import Model, State
from cuzklab.check.search import Budget

_TICK = 1024
_FAR = 1 << 30


@dataclass(frozen=True)
class Goal:
    """Where a finding shows.

    Attributes
    ----------
    places : tuple of tuple of (int, frozenset of int)
        Alternatives. Each says for some actors (slots) at which of their nodes they stand when the finding shows.
    reached : callable
        Asked about a state in which an alternative holds: None if the finding does not show there.
    last_step : int
        1 where it shows in the move of an actor, whose slot `reached` gives; 0 where the state itself shows it.
    """

    places: tuple[tuple[tuple[int, frozenset[int]], ...], ...]
    reached: Callable[[State], int | None]
    last_step: int = 0


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


def _estimate(model: Model, goal: Goal) -> Callable[[State], int]:
    tables: dict[frozenset[int], dict[int, int]] = {}
    alternatives = []
    for place in goal.places:
        terms = []
        for slot, targets in place:
            if targets not in tables:
                tables[targets] = distances(model, targets)
            # A forked actor may be started again, so no place of its own is out of reach.
            terms.append((slot, tables[targets], 0 if slot in model.parents else _FAR))
        alternatives.append(terms)

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
        return least + goal.last_step

    return estimate


def shorten(model: Model, goal: Goal, schedule: list[int], budget: Budget) -> list[int]:
    """A shortest schedule to the goal.

    Parameters
    ----------
    model : Model
        Completely surveyed, so that all nodes are known.
    goal : Goal
    schedule : list of int
        One that reaches it: slots of the actors that move.
    budget : Budget

    Raises
    ------
    LimitReached
    """
    estimate = _estimate(model, goal)
    initial = model.initial()
    least = estimate(initial)
    steps: dict[State, int] = {initial: 0}
    parents: dict[State, tuple[State, int]] = {}
    buckets: list[list[tuple[State, int, int]]] = [[] for _ in range(len(schedule))]  # by steps made and to be made
    if least < len(schedule):
        buckets[least].append((initial, 0, least))
    taken = 0
    while least < len(schedule):
        if not buckets[least]:
            least += 1
            continue
        state, made, left = buckets[least].pop()
        if steps[state] < made:
            continue
        taken += 1
        if taken % _TICK == 0:
            budget.check(taken)
        mover = goal.reached(state) if left == goal.last_step else None
        if mover is not None:
            path = [mover] if goal.last_step else []
            while state != initial:
                state, slot = parents[state]
                path.append(slot)
            return path[::-1]
        for slot in model.living(state):
            move = model.move(state, slot)
            if move.blocked or move.fault is not None:
                continue
            following = move.apply(state)
            if steps.get(following, _FAR) <= made + 1:
                continue
            left = estimate(following)
            if made + 1 + left < len(schedule):
                steps[following] = made + 1
                parents[following] = (state, slot)
                # An estimate may fall by more than the one step made; the order of buckets must not go back.
                buckets[max(made + 1 + left, least)].append((following, made + 1, left))
    return schedule


def all_ended(model: Model) -> tuple[tuple[int, frozenset[int]], ...]:
    """The place at which every actor has ended."""
    return tuple((slot, frozenset((ENDED,))) for slot in model.actor_slots)

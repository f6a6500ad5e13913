"""Waiting for ever under fair scheduling.

A schedule that never ends is *fair* if nobody who could move at every moment from some time on is left out for ever:
what the scheduler of an operating system promises to threads. Nothing is promised about the order in which those who
wait for a lock, a permit, room or an item are served. So an actor that is sometimes able to move may be passed for ever
by others who come back for the same thing, and one that looks again and again for what never comes goes on for ever.

There are finitely many states, so an endless schedule stays at last within a strongly connected set of them. It can be
fair exactly if every actor moves within the set, or cannot move in one of its states, or has ended. These conditions
hold the sooner, the larger the set, so strongly connected components are enough. An actor is *starved* if it has not
ended and the component without its own moves has such a set left: the others pass it for ever. Where nobody is passed,
those who move go round for ever.

Programs that end after a bounded number of effects allow no endless schedule at all: workers that prove a finite number
of partitions, one after another, can delay each other only so often, and a check of them finds starvation only where
somebody polls (a loop around `ReadFlag`, say). The check is exact for the number of partitions that it is given. Who
wants to know whether a worker can be passed for as long as work keeps coming writes the loop with its condition to
stop, as the tests' named programs do. A loop in which nothing is asked of the others (none of its effects has
`Effect.tells`) is no policy at all and refused.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cuzklab.check.automaton import ENDED
from cuzklab.check.model import Model
from cuzklab.check.moves import State
from cuzklab.errors import BadInput

Edges = Mapping[State, list[tuple[int, State]]]  # from each state: the actor's slot that moves, and what follows


@dataclass(frozen=True)
class Starved:
    """Somebody who may wait, or go round, for ever.

    Attributes
    ----------
    slots : tuple of int
        The actors concerned: one that is passed, or those that go round.
    passed : bool
    states : frozenset of State
        The states among which this can last.
    prefix, loop : tuple of int
        Slots of the actors that move: up to the first of these states, and once around, back to it.
    """

    slots: tuple[int, ...]
    passed: bool
    states: frozenset[State]
    prefix: tuple[int, ...]
    loop: tuple[int, ...]


def starved(model: Model, initial: State, edges: Edges) -> list[Starved]:
    """All actors that can be made to wait, or go round, for ever.

    Raises
    ------
    BadInput
        A program goes round and asks nothing of the others: it does not end.
    """
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], Starved] = {}
    for component in _components(edges, edges):
        if not _fair(model, component, _within(edges, component)):
            continue
        passed = []
        for slot in model.actor_slots:
            if any(state[slot] > ENDED for state in component):
                inner = _without(edges, component, slot)
                passed += [(slot, part) for part in _components(inner, component) if _fair(model, part, inner)]
        movers = tuple(sorted({slot for state in component for slot, _ in _within(edges, component)[state]}))
        _refuse_endless(model, component, movers)
        for slot, part in passed:
            nodes = tuple(sorted({state[slot] for state in part}))
            if ((slot,), nodes) not in found:
                found[(slot,), nodes] = _shown(model, initial, edges, part, _without(edges, part, slot), (slot,), True)
        if not passed:
            nodes = tuple(sorted({state[slot] for state in component for slot in movers}))
            inner = _within(edges, component)
            found[movers, nodes] = _shown(model, initial, edges, component, inner, movers, False)
    return list(found.values())


def _within(edges: Edges, states: frozenset[State]) -> Edges:
    return {state: [(slot, later) for slot, later in edges[state] if later in states] for state in states}


def _without(edges: Edges, states: frozenset[State], actor: int) -> Edges:
    inner = _within(edges, states)
    return {state: [(slot, later) for slot, later in moves if slot != actor] for state, moves in inner.items()}


def _components(edges: Edges, states: Iterable[State]) -> Iterator[frozenset[State]]:
    """Strongly connected components in which somebody can move for ever."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    order = list(states)
    numbers = {state: number for number, state in enumerate(order)}
    pairs = [(number, numbers[later]) for state, number in numbers.items() for _, later in edges[state]]
    if not pairs:
        return
    rows, columns = np.array(pairs).T
    graph = csr_matrix((np.ones(len(pairs), np.int8), (rows, columns)), shape=(len(order), len(order)))
    _, labels = connected_components(graph, directed=True, connection="strong")
    inside = sorted({int(labels[row]) for row, column in pairs if labels[row] == labels[column]})
    members: dict[int, list[State]] = {label: [] for label in inside}
    for number, label in enumerate(labels.tolist()):
        if label in members:
            members[label].append(order[number])
    for label in inside:
        yield frozenset(members[label])


def _fair(model: Model, states: frozenset[State], edges: Edges) -> bool:
    """Whether every actor moves, or is blocked in some state, or has ended."""
    moving = {slot for state in states for slot, _ in edges[state]}
    return all(
        slot in moving or any(state[slot] <= ENDED or model.move(state, slot).blocked for state in states)
        for slot in model.actor_slots
    )


def _refuse_endless(model: Model, component: frozenset[State], movers: Iterable[int]) -> None:
    for slot in movers:
        numbers = sorted({state[slot] for state in component})
        nodes = [model.nodes[number] for number in numbers if number > ENDED]
        if len(nodes) == len(numbers) and not any(node.effect.tells for node in nodes):
            node = nodes[0]
            raise BadInput(
                f"{node.where}: the program of {node.actor} can go on for ever ({node.effect}); does it end?"
            )


def _shown(
    model: Model, initial: State, edges: Edges, states: frozenset[State], inner: Edges, slots: tuple[int, ...],
    passed: bool,
) -> Starved:  # fmt: skip
    """With a schedule: to the nearest of the states, and around through what makes it fair."""
    prefix, start = _path(edges, initial, lambda state: state in states)
    loop: list[int] = []
    at = start
    fair = {slot for slot in model.actor_slots if _at_rest(model, at, slot)}
    for slot in model.actor_slots:
        if slot in fair:
            continue
        steps, at, seen = _to_fairness(model, inner, at, slot)
        loop += steps
        fair |= seen
    if not loop:
        (mover, at), *_ = inner[at]
        loop.append(mover)
    back, _ = _path(inner, at, lambda state: state == start)
    return Starved(slots, passed, states, tuple(prefix), (*loop, *back))


def _at_rest(model: Model, state: State, slot: int) -> bool:
    return state[slot] <= ENDED or model.move(state, slot).blocked


def _to_fairness(model: Model, edges: Edges, start: State, actor: int) -> tuple[list[int], State, set[int]]:
    """The shortest way to a state in which an actor rests, or over a move of its own, and whom that did justice."""
    for goal in (lambda state: _at_rest(model, state, actor), lambda state: any(s == actor for s, _ in edges[state])):
        try:
            steps, at = _path(edges, start, goal)
        except LookupError:
            continue
        if not _at_rest(model, at, actor):
            at = next(later for slot, later in edges[at] if slot == actor)
            steps = [*steps, actor]
        return steps, at, {actor, *steps}
    raise AssertionError("a fair component does justice to everybody")


def _path(edges: Edges, start: State, goal: Callable[[State], bool]) -> tuple[list[int], State]:
    """The shortest way: slots that move, and where it ends."""
    before: dict[State, tuple[State, int] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        if goal(state):
            path, at = [], state
            while (step := before[at]) is not None:
                at, slot = step
                path.append(slot)
            return path[::-1], state
        for slot, later in edges[state]:
            if later not in before:
                before[later] = (state, slot)
                waiting.append(later)
    raise LookupError("no way")

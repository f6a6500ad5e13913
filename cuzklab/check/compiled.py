"""The survey with its inner loop compiled: the same states, moves and reductions as in `search`, as arrays of integers.

Python keeps the say on what anything means. `kernel.search` explores states by the `tables` made of it, and comes back
whenever a state needs a row that is not there: the model then evaluates the effect, `PartialOrder` takes note, or a
`Renaming` tells what a value is called under other names; the row is added, and the state is taken up again. So each
rule is consulted once for each row of a table, as in the plain search, and nothing of any rule is written twice.

Breadth first, and only for programs whose nodes never lead back to themselves: others may go round for ever, which
`search` looks into.
"""

from typing import Any

import numpy as np

from cuzklab.check import kernel
from cuzklab.check.automaton import ENDED
from cuzklab.check.model import Model
from cuzklab.check.moves import State
from cuzklab.check.reduction import PartialOrder
from cuzklab.check.search import Budget, LimitReached, Survey
from cuzklab.check.symmetry import Renaming, Symmetry
from cuzklab.check.tables import Growing, Tables

_PAUSE = 100_000  # states between two looks at the clock
_WAITING = 10  # states that may wait for something missing before Python looks after them


def can_go_round(model: Model) -> bool:
    """Whether the nodes of some actor, as far as they are known, lead back to themselves."""
    state: dict[int, int] = {}
    for start in model.successors:
        stack = [(start, iter(model.successors.get(start, ())))] if start not in state else []
        state.setdefault(start, 1)
        while stack:
            node, following = stack[-1]
            for later in following:
                if state.get(later) == 1:
                    return True
                if later not in state:
                    state[later] = 1
                    stack.append((later, iter(model.successors.get(later, ()))))
                    break
            else:
                state[node] = 2
                stack.pop()
    return False


class States:
    """States that were met, in the order in which they were, and how each was reached first."""

    def __init__(self, width: int, room: int = 1 << 15) -> None:
        self.rows = np.zeros((room, width), np.uint16)
        self.hashes = np.zeros(room, np.uint64)
        self.parents = np.full(room, -1, np.int32)
        self.vias = np.zeros(room, np.int16)
        self.names = np.zeros(room, np.int16)
        self.places = np.full(4 * room, -1, np.int32)
        self.count = 0

    def grow(self) -> None:
        room = len(self.rows)
        for name in ("rows", "hashes", "parents", "vias", "names"):
            old = getattr(self, name)
            new = np.empty((2 * room, *old.shape[1:]), old.dtype)
            new[:room] = old
            setattr(self, name, new)
        self.places = np.full(8 * room, -1, np.int32)
        kernel.rehash(self.places, self.hashes, self.count)


class CompiledSurvey(Survey):
    """A `Survey` whose states lie in arrays."""

    def __init__(self, states: States, model_width: int, symmetry: Symmetry | None, **found: Any) -> None:
        super().__init__(symmetry=symmetry, **found)
        self._states, self._width = states, model_width

    @property
    def states(self) -> int:
        return self._states.count

    @property
    def depth(self) -> int:
        return len(self.path(self.state(self.states - 1)))  # breadth first: the last is as far away as any

    def state(self, number: int) -> State:
        row = self._states.rows[number].tolist()
        return tuple(row + [0] * (self._width - len(row)))

    def path(self, state: State) -> list[tuple[tuple[int, ...], Renaming | None]]:
        states = self._states
        row = np.array(state[: states.rows.shape[1]], np.uint16)
        mask = len(states.places) - 1
        place = int(kernel.hash_of(row)) & mask
        while not (states.rows[states.places[place]] == row).all():
            place = (place + 1) & mask
        number, path = int(states.places[place]), []
        while (earlier := int(states.parents[number])) >= 0:
            via = int(states.names[number])
            path.append(((int(states.vias[number]),), self.symmetry.numbered(via) if via else None))
            number = earlier
        return path[::-1]


def survey(model: Model, budget: Budget, reduction: PartialOrder | None, symmetry: Symmetry | None) -> Survey:
    """As `search.survey`, once, for programs that do not go round.

    Raises
    ------
    DoesNotFit
    StateTooNarrow, AssumptionBroken, SymmetryBroken
        As there: what the search relied on does not hold, so that it starts again.
    """
    initial = model.initial()
    tables = Tables(model, reduction, symmetry)
    states = States(tables.width)
    found = CompiledSurvey(states, model.width, symmetry, reduction=reduction)
    states.rows[0] = initial[: tables.width]
    states.hashes[0] = kernel.hash_of(states.rows[0])
    states.places[int(states.hashes[0]) & (len(states.places) - 1)] = 0
    states.count = 1
    waiting, redo = np.zeros((_WAITING, 2), np.int64), np.zeros(_WAITING + 4, np.int64)
    ends = Growing(0, np.int64)
    counts = np.array([1, 0, 0, 0, 0, 0], np.int64)
    try:
        while True:
            pause = max(1, min(_PAUSE, budget.max_states - states.count))
            why = _run(tables, states, counts, pause, waiting, redo, ends.array)
            if reduction is not None:
                reduction.relied.update(np.flatnonzero(tables.relied).tolist())
            if why == kernel.DONE:
                break
            if why == kernel.FULL:
                states.grow()
                ends.reserve(int(counts[4]) + 1)
                ends.count = int(counts[4])
                if counts[4] + 1 >= len(ends.array):
                    ends.reserve(2 * len(ends.array))
            elif why == kernel.MISSING:
                _supply(tables, found, counts, waiting, redo)
            budget.check(states.count)
    except LimitReached as limit:
        found.stopped = str(limit)
    except KeyboardInterrupt:
        found.stopped = "interrupted"
    _gather(tables, found, ends.array[: counts[4]].tolist())
    return found


def _run(tables: Tables, states: States, counts: Any, pause: int, waiting: Any, redo: Any, ends: Any) -> int:
    reduced = tables.reduction is not None
    why = kernel.search(
        states.rows, states.hashes, states.parents, states.vias, states.names, states.places, counts, pause,
        waiting, redo,
        tables.actors, tables.parents, tables.nodes.array, tables.reads.array, tables.rows.array, tables.values.array,
        tables.row_places, tables.changes.array, tables.keys.array, tables.faults.array,
        ends, reduced, tables.users, tables.guards, tables.relied, tables.noted.array, tables.locks,
        tables.lock_holders, tables.groups, tables.families, tables.classes.array, tables.slot_maps,
        tables.value_maps, tables.value_firsts, tables.node_maps, tables.is_actor,
    )  # fmt: skip
    states.count = int(counts[0])
    return why


def _supply(tables: Tables, found: CompiledSurvey, counts: Any, waiting: Any, redo: Any) -> None:
    """Make what states wait for, and have them taken up again."""
    count = int(counts[2])
    nodes = len(tables.model.nodes)
    for number, mover in waiting[:count].tolist():
        if mover < 0:
            tables.supply(found.state(number))
        else:
            state = found.state(number)
            tables.rename(tables.model.move(state, mover).apply(state))
    if len(tables.model.nodes) > nodes:
        tables.more_nodes()
    if tables.reduction is not None:
        tables.share()
    redo[:count] = waiting[:count, 0]
    counts[2], counts[3] = 0, count


def _gather(tables: Tables, found: CompiledSurvey, ends: list[int]) -> None:
    """Faults and ends, as states."""
    for number, fault in zip(tables.faults.array[: len(tables.moves)].tolist(), tables.moves, strict=True):
        if number >= 0:
            found.faults[fault] = found.state(number)
    living = tables.model.actor_slots
    for number in ends:
        state = found.state(number)
        where = found.blocked if any(state[slot] > ENDED for slot in living) else found.ended
        where.append(state)

"""The tables that the compiled search reads: what is known of a model so far, as arrays of integers.

A row says what an actor does at a node under some values of the keys that its effect reads. `Tables` makes the rows
that a state needs by asking the model, the reduction and the symmetry, which are consulted once for each.
"""

from math import factorial, prod
from typing import Any

import numpy as np

from cuzklab.check import kernel
from cuzklab.check.automaton import ENDED
from cuzklab.check.model import Model, StateTooNarrow
from cuzklab.check.moves import Move, State
from cuzklab.check.reduction import PartialOrder
from cuzklab.check.symmetry import Symmetry

_MOST = 65_000  # values of a slot, and nodes
_MAX_ORDERS = 1000  # of actors that are alike


class DoesNotFit(Exception):
    """More of something than the compiled search has room for; the plain one has no such limits."""


class Growing:
    """An array that is doubled when it is full."""

    def __init__(self, width: int, dtype: Any, fill: int = 0, room: int = 1024) -> None:
        self.fill, self.count = fill, 0
        self.array = np.full((room, width) if width else room, fill, dtype)

    def reserve(self, count: int) -> None:
        while count > len(self.array):
            more = np.full_like(self.array, self.fill)
            self.array = np.concatenate([self.array, more])

    def append(self, rows: Any) -> int:
        """Add rows; the number of the first."""
        rows, first = list(rows), self.count
        self.reserve(first + len(rows) + 1)
        if rows:
            self.array[first : first + len(rows)] = rows
        self.count += len(rows)
        return first


class Tables:
    """Everything that `kernel.search` reads, for a model as it is known so far."""

    def __init__(self, model: Model, reduction: PartialOrder | None, symmetry: Symmetry | None) -> None:
        self.model, self.reduction, self.symmetry = model, reduction, symmetry
        self.width = len(model.names)
        self.actors = np.array(model.actor_slots, np.int64)
        self.parents = np.array([model.parents.get(slot, -1) for slot in range(self.width)], np.int64)
        self.is_actor = np.array([slot in model.is_actor for slot in range(self.width)])
        self.nodes = Growing(3, np.int32)  # where its reads begin, how many there are, the version of its rows
        self.reads = Growing(0, np.int32)
        self.rows = Growing(8, np.int32)  # node, version, values, kind, changes (first, count), keys (first, count)
        self.values = Growing(0, np.uint16)
        self.row_places = np.full(4096, -1, np.int32)
        self.row_hashes = Growing(0, np.uint64)
        self.changes = Growing(2, np.int32)
        self.keys = Growing(0, np.int32)
        self.faults = Growing(0, np.int32, fill=-1)
        self.moves: list[tuple[int, int, Move] | None] = []  # of each row that faults: slot, node, move
        self.noted = Growing(0, np.uint64)
        self.users = np.zeros(self.width, np.uint64)
        self.guards = np.zeros(self.width, np.uint64)
        self.relied = np.zeros(self.width, np.bool_)
        self.locks = np.array(model.lock_slots, np.int64)
        self.lock_holders = np.full((max(1, len(self.locks)), 64), -1, np.int32)
        self._fits = (0, 0)
        self._known: set[tuple[int, tuple[int, ...], Any]] = set()
        self._layouts: dict[int, tuple[int, ...]] = {}
        self._noted_with: dict[int, int] = {}
        if len(self.locks) > kernel.MAX_LOCKS or len(self.actors) > 64 or self.width > 1000:
            raise DoesNotFit
        self._groups()
        self.more_nodes()

    def _groups(self) -> None:
        symmetry = self.symmetry
        self.groups = np.zeros((0, 4), np.int64)
        self.families = np.full((1, 1), 0, np.int64)
        orders = 1
        if symmetry is not None:
            symmetry.representative(self.model.initial())  # finds the families
            orders = prod(factorial(len(members)) for members in symmetry.groups)
            if orders > _MAX_ORDERS or max(map(len, symmetry.groups)) > 64:
                raise DoesNotFit
            rows, first = [], 0
            for members, families in zip(symmetry.groups, symmetry.families, strict=True):
                rows.append((first, len(members), len(families[0]), factorial(len(members))))
                first += len(members)
            self.groups = np.array(rows, np.int64)
            self.families = np.zeros((first, max(row[2] for row in rows)), np.int64)
            for (start, *_), families in zip(rows, symmetry.families, strict=True):
                for place, family in enumerate(families):
                    self.families[start + place, : len(family)] = family
        self.classes = Growing(0, np.int32, fill=-1)
        self.slot_maps = np.full((orders, self.width), -1, np.int32)
        self.slot_maps[0] = np.arange(self.width)
        self.node_maps = np.full((orders, 1024), -1, np.int32)
        self.value_firsts = np.zeros(self.width + 1, np.int64)
        self.value_maps = np.full((orders, 1), -1, np.int32)

    def more_nodes(self) -> None:
        """Make room for nodes and values that have turned up."""
        count = len(self.model.nodes)
        values = sum(map(len, self.model.values))
        if (count, values) == self._fits:
            return
        self._fits = (count, values)
        if count > _MOST or max(map(len, self.model.values)) > _MOST:
            raise DoesNotFit
        for table in (self.nodes, self.noted, self.classes):
            table.reserve(count)
        if self.symmetry is not None:
            self.classes.array[:2] = (0, ENDED)
            if count > self.node_maps.shape[1]:
                more = np.full((len(self.node_maps), 2 * count), -1, np.int32)
                more[:, : self.node_maps.shape[1]] = self.node_maps
                self.node_maps = more
            room = np.diff(self.value_firsts)
            needed = np.array([0 if actor else len(v) for actor, v in zip(self.is_actor, self.model.values)])
            if (needed > room).any():
                firsts = np.concatenate([[0], np.cumsum(np.maximum(2 * needed, 4))])
                maps = np.full((len(self.value_maps), firsts[-1]), -1, np.int32)
                for slot in range(self.width):
                    old, new = self.value_firsts[slot], firsts[slot]
                    maps[:, new : new + room[slot]] = self.value_maps[:, old : old + room[slot]]
                self.value_firsts, self.value_maps = firsts, maps
        most = max((len(self.model.values[lock]) for lock in self.locks), default=1)
        if most > self.lock_holders.shape[1]:
            self.lock_holders = np.full((len(self.locks), 2 * most), -1, np.int32)
        by_name = {self.model.names[slot]: slot for slot in self.model.actor_slots}
        for place, lock in enumerate(self.locks):
            for value, holder in enumerate(self.model.values[lock]):
                self.lock_holders[place, value] = by_name.get(holder, -1)

    # --- what states wait for ---

    def supply(self, state: State) -> None:
        """Make the rows that a state needs."""
        model = self.model
        living = model.living(state)
        for slot in living:
            move = model.move(state, slot)
            if len(model.names) > self.width:
                raise StateTooNarrow
            self._row(state, slot, move)
        if self.reduction is not None:
            for slot in living:
                self.reduction.note(state, slot)
                self._note(state, slot)
        if len(model.names) > self.width:
            raise StateTooNarrow

    def _row(self, state: State, slot: int, move: Move) -> None:
        node, table = state[slot], self.model.table(state[slot])
        if self._layouts.get(node) != table.reads or self.nodes.array[node, 2] == 0:
            self._layouts[node] = table.reads
            version = int(self.nodes.array[node, 2]) + 1
            self.nodes.reserve(node + 1)
            self.nodes.array[node] = (self.reads.append(table.reads), len(table.reads), version)
        version = int(self.nodes.array[node, 2])
        values = tuple(state[read] for read in table.reads)
        if (node, version, values) in self._known:
            return
        self._known.add((node, version, values))
        kind = kernel.BLOCKED if move.blocked else kernel.FAULT if move.fault else kernel.MOVE
        keys: tuple[int, ...] = ()
        if self.reduction is not None and kind == kernel.MOVE:
            keys = tuple(self.reduction.shared(state, slot, move))
        row = self.rows.append(
            [
                (
                    node, version, self.values.append(values), kind, self.changes.append(move.updates),
                    len(move.updates), self.keys.append(keys), len(keys),
                )
            ]
        )  # fmt: skip
        self.faults.append([-1])
        self.moves.append((slot, node, move) if move.fault else None)
        code = kernel.row_hash(node, version, np.array(values, np.uint16), len(values))
        self.row_hashes.append([code])
        if 2 * (row + 1) > len(self.row_places):
            self.row_places = np.full(2 * len(self.row_places), -1, np.int32)
            kernel.rehash(self.row_places, self.row_hashes.array, row + 1)
        else:
            mask = len(self.row_places) - 1
            place = int(code) & mask
            while self.row_places[place] >= 0:
                place = (place + 1) & mask
            self.row_places[place] = row

    def _note(self, state: State, slot: int) -> None:
        node, touched = state[slot], len(self.model.table(state[slot]).touched)
        if self._noted_with.get(node) != touched:  # what it touches is more than was noted
            self._noted_with[node] = touched
            self.noted.array[node] = 0
        actor = self.model.names[slot]
        held = sum(1 << place for place, lock in enumerate(self.locks) if self.model.values[lock][state[lock]] == actor)
        self.noted.array[node] |= np.uint64(1 << held)

    def share(self) -> None:
        """Who touches which key under which locks, as far as `PartialOrder` knows."""
        places = {slot: place for place, slot in enumerate(self.model.actor_slots)}
        bits = {lock: place for place, lock in enumerate(self.model.lock_slots)}
        for key, users in self.reduction.users.items():
            self.users[key] = sum(1 << places[user] for user in users)
            self.guards[key] = sum(1 << bits[lock] for lock in self.reduction.guards[key] if lock in bits)

    def rename(self, state: State) -> None:
        """Make what turns a state into its representative."""
        symmetry, model = self.symmetry, self.model
        standing = {state[slot] for slot in model.actor_slots if state[slot] > ENDED}
        numbers = {node: symmetry.class_of(node) for node in standing}
        if len(model.names) > self.width:
            raise StateTooNarrow
        self.more_nodes()
        for node, number in numbers.items():
            self.classes.array[node] = number
        _, renaming = symmetry.representative(state)
        if len(model.names) > self.width:
            raise StateTooNarrow
        if renaming is None:
            return
        order = symmetry.number_of(renaming)
        if self.slot_maps[order, 0] < 0:
            images = [renaming.slot(slot) for slot in range(self.width)]
            if len(model.names) > self.width:
                raise StateTooNarrow
            self.slot_maps[order] = images
            self.node_maps[order, ENDED] = ENDED
        for slot, value in enumerate(state[: self.width]):
            if value > 1 or (value and slot not in model.is_actor):
                image = renaming.value(slot, value)
                if slot in model.is_actor:
                    self.node_maps[order, value] = image
                else:
                    self.value_maps[order, self.value_firsts[slot] + value] = image
        if len(model.names) > self.width:
            raise StateTooNarrow

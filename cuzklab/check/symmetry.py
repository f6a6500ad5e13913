"""Workers that are alike: states that differ only in who is who are one.

Actors are alike when they run the same programs on partitions of their own. Exchanging their names (and those of their
partitions and forked actors) turns a state into another from which the same can happen under other names, so one
representative of the two is enough: the one in which the members of a group stand in the order of their nodes.

That the programs themselves do not look at the names is not taken on trust: `Symmetry.close` compares, for every node
that was reached, the effects of all members, and reports the first difference.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import permutations
from math import factorial
from typing import Any

from cuzklab.check.automaton import ENDED, Escape
from cuzklab.check.model import Model, StateTooNarrow
from cuzklab.check.moves import State
from cuzklab.policies.effects import PolicyFault, in_order, in_stream_order
from cuzklab.policies.model import Partition, Program

# Whatever is learnt of one member is noted for every exchange: 6 actors that are alike have 720, 7 have 5040.
_MOST_RENAMINGS = 720


class SymmetryBroken(Exception):
    """Programs that look alike do different things; the search starts again without symmetry."""


class Renaming:
    """An exchange of names, carried through slots, values and nodes of a model."""

    def __init__(self, model: Model, actors: Mapping[str, str], partitions: Mapping[Partition, Partition]) -> None:
        self._model = model
        self._partitions = dict(partitions)
        self._names = dict(actors) | {old.name: new.name for old, new in partitions.items()}
        choices = "|".join(re.escape(name) for name in sorted(self._names, key=len, reverse=True))
        self._pattern = re.compile(rf"(?<![\w.])(?:{choices})(?!\w)")
        self._slots: dict[int, int] = {}
        self._values: dict[tuple[int, int], int] = {}
        self._nodes: dict[int, int] = {0: 0, ENDED: ENDED}
        self.inverse: Renaming = self

    def state(self, state: State) -> State:
        renamed = [0] * len(state)
        for slot, value in enumerate(state):
            if value:
                place = self.slot(slot)
                if place >= len(renamed):
                    raise StateTooNarrow
                renamed[place] = self.value(slot, value)
        return tuple(renamed)

    def slot(self, slot: int) -> int:
        found = self._slots.get(slot)
        if found is None:
            model, name = self._model, self._model.names[slot]
            if slot in model.is_actor:
                found = model.actor_slot(self.of(name))
                if slot in model.parents:
                    model.parents[found] = self.slot(model.parents[slot])
            else:
                found = model.key_slot(self.of(name))
            self._slots[slot] = found
        return found

    def value(self, slot: int, value: int) -> int:
        """The number of a slot's value under the other names."""
        key = (slot, value)
        found = self._values.get(key)
        if found is None:
            model = self._model
            if slot in model.is_actor:
                found = self.node(value)
            else:
                renamed, name = self.of(model.values[slot][value]), model.names[slot]
                if isinstance(name, tuple) and name[0] == "live":
                    renamed = in_order(renamed)
                elif isinstance(name, tuple) and name[0] == "busy":
                    renamed = in_stream_order(renamed)
                elif isinstance(name, tuple) and name[0] == "reserved":
                    renamed = tuple(sorted(renamed))
                found = model.number(self.slot(slot), renamed)
            self._values[key] = found
        return found

    def node(self, number: int) -> int:
        """The same point in the renamed program.

        Raises
        ------
        SymmetryBroken
        """
        found = self._nodes.get(number)
        if found is None:
            unfolding, node = self._model.unfolding, self._model.nodes[number]
            if node.begun is not None:
                found = unfolding.started(self._model.nodes[self.node(node.begun.index)])
            elif node.parent is None:
                programs = self._model.programs.get(self.of(node.actor)) or self.of(node.programs)
                found = unfolding.root(self.of(node.actor), programs, node.position, self.of(node.origin))
            else:
                parent = self._model.nodes[self.node(node.parent.index)]
                if isinstance(node.received, PolicyFault):
                    found = unfolding.thrown(parent, node.received)
                else:
                    found = unfolding.received(parent, self.of(node.received))
            if isinstance(found, Escape) or self._model.nodes[found].effect != self.of(node.effect):
                raise SymmetryBroken
            self._nodes[number] = found
        return found

    def of(self, value: Any) -> Any:
        """A value with the names in it exchanged."""
        if isinstance(value, str):
            return self._pattern.sub(lambda match: self._names[match[0]], value)
        if isinstance(value, Partition):
            return self._partitions.get(value, value)
        if type(value) is tuple:
            return tuple(self.of(item) for item in value)
        if is_dataclass(value) and not isinstance(value, type) and value.__dataclass_params__.frozen:
            old = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
            new = {name: self.of(item) for name, item in old.items()}
            return (
                value if all(new[name] is old[name] or new[name] == old[name] for name in old) else type(value)(**new)
            )
        return value


class Symmetry:
    """The groups of actors that are alike, and the representative of each state."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.groups = _groups(model.programs)
        self._renamings: dict[tuple[tuple[int, ...], ...], Renaming] = {}
        self.families: list[list[list[int]]] = []
        self._known_actors = 0
        self._numbers: dict[Renaming, int] = {}
        self._by_number: dict[int, Renaming] = {}
        self._classes: dict[int, int] = {}
        self._identity = tuple(tuple(range(len(group))) for group in self.groups)

    def representative(self, state: State) -> tuple[State, Renaming | None]:
        """The representative of a state and the renaming that leads to it; None where it is the state itself."""
        if self._known_actors != len(self._model.actor_slots):
            self._find_families()
        if len(self._model.names) > len(state):
            raise StateTooNarrow
        orders = []
        for members, families in zip(self.groups, self.families, strict=True):
            standing = [tuple([self.class_of(state[slot]) for slot in family]) for family in families]
            orders.append(tuple(sorted(range(len(members)), key=standing.__getitem__)))
        if (key := tuple(orders)) == self._identity:
            return state, None
        renaming = self.renaming(key)
        return renaming.state(state), renaming

    def renaming(self, orders: tuple[tuple[int, ...], ...]) -> Renaming:
        """The renaming that puts member `order[k]` of each group in place k."""
        if orders not in self._renamings:
            there, back = (self._make(orders, inverse) for inverse in (False, True))
            there.inverse, back.inverse = back, there
            self._renamings[orders] = there
            number = self._number(orders)
            self._numbers[there], self._by_number[number] = number, there
        return self._renamings[orders]

    def number_of(self, renaming: Renaming) -> int:
        """The number of a renaming among all: 0 changes nothing."""
        return self._numbers[renaming]

    def numbered(self, number: int) -> Renaming:
        return self._by_number[number]

    def _number(self, orders: tuple[tuple[int, ...], ...]) -> int:
        """By the Lehmer code of each group's permutation."""
        number = 0
        for order in orders:
            rank = 0
            for place, one in enumerate(order):
                rank = rank * (len(order) - place) + sum(other < one for other in order[place + 1 :])
            number = number * factorial(len(order)) + rank
        return number

    def _make(self, orders: tuple[tuple[int, ...], ...], inverse: bool) -> Renaming:
        actors: dict[str, str] = {}
        partitions: dict[Partition, Partition] = {}
        for members, order in zip(self.groups, orders, strict=True):
            for place, member in enumerate(order):
                old, new = (members[place], members[member]) if inverse else (members[member], members[place])
                actors[old] = new
                partitions.update(zip(_partitions(self._model.programs[old]), _partitions(self._model.programs[new])))
        return Renaming(self._model, actors, partitions)

    def all_renamings(self) -> list[Renaming]:
        """Every exchange within the groups but the one that changes nothing."""
        orders: list[tuple[tuple[int, ...], ...]] = [()]
        for members in self.groups:
            orders = [(*before, order) for before in orders for order in permutations(range(len(members)))]
        return [self.renaming(order) for order in orders if order != self._identity]

    def close(self) -> None:
        """Give every node reached to all members of its group, with all that is known of it.

        Raises
        ------
        SymmetryBroken
            The members do not do the same.
        StateTooNarrow
        """
        model = self._model
        for renaming in self.all_renamings():
            for number, following in list(model.successors.items()):
                image = renaming.node(number)
                model.successors.setdefault(image, set()).update([renaming.node(later) for later in following])
                table = model.table(number)
                model.table(image).add(
                    {renaming.slot(slot) for slot in table.reads}, {renaming.slot(slot) for slot in table.writes}
                )
                model.watch_flags(model.table(image).reads)
            for number, started in list(model.forks.items()):
                images = {(renaming.slot(slot), renaming.node(root)) for slot, root in started}
                model.forks.setdefault(renaming.node(number), set()).update(images)
        if len(model.names) > model.width:
            raise StateTooNarrow

    def class_of(self, number: int) -> int:
        """The number of the node of the group's first member that a node corresponds to."""
        found = self._classes.get(number)
        if found is None:
            found, name = number, self._model.nodes[number].actor.partition("/")[0]
            for which, members in enumerate(self.groups):
                if name in members and name != members[0]:
                    place = members.index(name)
                    swapped = list(self._identity)
                    order = list(swapped[which])
                    order[0], order[place] = place, 0
                    swapped[which] = tuple(order)
                    found = self.renaming(tuple(swapped)).node(number)
            self._classes[number] = found
        return found

    def _find_families(self) -> None:
        """The slots of each member: its own and those of the actors that it forked, the same for all of a group."""
        model = self._model
        self.families = []
        for members in self.groups:
            suffixes = sorted(
                {model.names[slot][len(name):] for slot in model.actor_slots for name in members
                 if model.names[slot] == name or model.names[slot].startswith(f"{name}/")}
            )  # fmt: skip
            self.families.append([[self._slot_of(name, suffix) for suffix in suffixes] for name in members])
        self._known_actors = len(model.actor_slots)

    def _slot_of(self, name: str, suffix: str) -> int:
        slot = self._model.actor_slot(name + suffix)
        if suffix:
            parent = suffix.rpartition("/")[0]
            self._model.parents[slot] = self._model.actor_slot(name + parent)
        return slot


def _partitions(programs: Sequence[Program]) -> list[Partition]:
    return [argument for program in programs for argument in program.arguments if isinstance(argument, Partition)]


def _groups(programs: Mapping[str, Sequence[Program]]) -> list[tuple[str, ...]]:
    """Names of actors whose programs are the same but for the partitions that they are about.

    Not all of them where that would be too many renamings: the others are then told apart, which is as exact.
    """
    alike: dict[Hashable, list[str]] = {}
    for name, sequence in programs.items():
        shape = tuple(
            (
                program.function,
                tuple(None if isinstance(argument, Partition) else argument for argument in program.arguments),
                program.options,
            )
            for program in sequence
        )
        own = _partitions(sequence)
        pattern = tuple(own.index(partition) for partition in own)
        try:
            alike.setdefault((shape, pattern), []).append(name)
        except TypeError:  # an argument that cannot be compared
            continue
    groups, renamings = [], 1
    for names in alike.values():
        sets = [frozenset(_partitions(programs[name])) for name in names]
        shared = len(set(sets)) == 1 and all(
            _partitions(programs[name]) == _partitions(programs[names[0]]) for name in names
        )
        disjoint = len(frozenset().union(*sets)) == sum(map(len, sets))
        if not (shared or disjoint):
            continue
        taken = max(count for count in range(1, len(names) + 1) if renamings * factorial(count) <= _MOST_RENAMINGS)
        if taken > 1:
            groups.append(tuple(names[:taken]))
            renamings *= factorial(taken)
    return groups

"""States and moves: what can happen next, and what it changes.

A state is a tuple of small integers, one slot for each actor (the number of its node) and one for each key of the
world (the number of its value among the values seen there; 0 is "never written"). What an actor can do in a state
depends on its node and on the values of the keys that its effect reads, and on nothing else. So each node has a table
from those values to a `Move`, filled as states come by: the rules of `cuzklab.policies.effects` are consulted once for
each row of a table, not once for each state.

The abstraction: there is no time, and any actor that can move may be the next to do so. An effect takes place in one
indivisible step, except those that declare ``two_steps`` (a launch, a copy from pageable memory), whose start and end
are steps of their own, so that others see the busy device and the scratch memory. A copy from pinned memory is an actor
of its own, ``w0/copy``, whose one step is the end of the copy; it may come at any time after the upload was queued.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from cuzklab.check.automaton import ENDED, Escape, Node, Unfolding, fork_origin
from cuzklab.check.moves import BLOCKED, Fault, Move, State, Table
from cuzklab.errors import BadInput
from cuzklab.policies.effects import Copy, Fork, Join, Launch, OutOfDeviceMemory, PolicyFault
from cuzklab.policies.model import Datum, Flag, Lock, Program, Queue


class StateTooNarrow(Exception):
    """States must hold more than they do: more slots, or a flag that is read; the search starts again."""


class RequestAboveCapacity(PolicyFault):
    """A request that waits for more than there is at all."""

    kind = "request_above_capacity"


class UnboundedQueue(PolicyFault):
    """A queue that nothing bounds grew past the bound of the check."""

    kind = "unbounded_queue"


class StateView:
    """A `World` over a state: reads its keys, notes which ones, and keeps what is written to itself."""

    def __init__(self, model: "Model", state: State) -> None:
        self._model, self._state = model, state
        self.reads: set[int] = set()
        self.written: dict[int, Any] = {}

    def read(self, key: Hashable) -> Any:
        if type(key) is Datum and key not in self._model.minded:
            return True
        slot = self._model.key_slot(key)
        if slot in self.written:
            return self.written[slot]
        self.reads.add(slot)
        return self.before(slot)

    def before(self, slot: int) -> Any:
        """The value of a slot in the state itself."""
        return self._model.values[slot][self._state[slot]] if slot < len(self._state) else None

    def write(self, key: Hashable, value: Any) -> None:
        if type(key) is Datum and key not in self._model.minded:
            return
        self.written[self._model.key_slot(key)] = value


class Model:
    """Programs as a transition system.

    Parameters
    ----------
    programs : mapping of str to sequence of Program
        The actors, and the programs that each runs one after another.
    queue_bound : int
        Length at which a queue without a capacity counts as growing without bound.
    merge : bool
        Let histories that leave a program in the same state share a node.
    minded : collection of Datum
        Data that count as there only once they are written. All others count as there, and no state tells of them:
        `dataflow` says which need not be minded because no schedule reads them too early.
    """

    def __init__(
        self, programs: Mapping[str, Sequence[Program]], queue_bound: int, merge: bool = True,
        minded: Collection[Datum] = (),
    ) -> None:  # fmt: skip
        if not programs:
            raise BadInput("nothing to check: there are no programs")
        self.programs = {actor: tuple(sequence) for actor, sequence in programs.items()}
        self.queue_bound = queue_bound
        self.minded = frozenset(minded)
        self.unfolding = Unfolding(merge)
        self.nodes: list[Node] = self.unfolding.nodes
        self.tables: list[Table] = []
        self.width = 32
        self.names: list[Hashable] = []  # of each slot: the actor's name, or the key
        self.values: list[list[Any]] = []  # of each slot: the values seen, by their number; unused for actors
        self.actor_slots: list[int] = []
        self.is_actor: set[int] = set()
        self.lock_slots: list[int] = []
        self.parents: dict[int, int] = {}  # of a forked actor's slot: the slot of the actor that forked it
        self.successors: dict[int, set[int]] = {}  # of a node, whatever the state: nodes of the same actor
        self.forks: dict[int, set[tuple[int, int]]] = {}  # of a node: (slot, first node) of the actors it starts
        self.caught: dict[tuple[str, str], None] = {}  # effects (with their lines) whose failure a program dealt with
        self._flags_read: set[int] = set()  # slots of flags that some program looks at; what the others are is all one
        self._numbers: list[dict[Any, int]] = []
        self._slots: dict[Hashable, int] = {}
        self.roots: dict[int, int] = {}  # of the slot of each actor that is there from the start: its first node
        for actor, sequence in self.programs.items():
            self.roots[self.actor_slot(actor)] = self.unfolding.root(actor, sequence)
        if all(root == ENDED for root in self.roots.values()):
            raise BadInput("nothing to check: no program yields an effect")
        for datum in sorted(self.minded, key=str):
            self.key_slot(datum)

    def initial(self) -> State:
        """The state in which every actor stands at its start and nothing was written."""
        while len(self.names) > self.width:
            self.width *= 2
        return tuple(self.roots.get(slot, 0) for slot in range(self.width))

    def actor_slot(self, actor: str) -> int:
        slot = self._slot(("actor", actor), actor)
        if slot not in self.is_actor:
            self.is_actor.add(slot)
            self.actor_slots.append(slot)
        return slot

    def key_slot(self, key: Hashable) -> int:
        slot = self._slots.get(("key", key))
        if slot is None:
            slot = self._slot(("key", key), key)
            if isinstance(key, Lock):
                self.lock_slots.append(slot)
        return slot

    def _slot(self, key: Hashable, name: Hashable) -> int:
        if key not in self._slots:
            self._slots[key] = len(self.names)
            self.names.append(name)
            self.values.append([None])
            self._numbers.append({None: 0})
        return self._slots[key]

    def number(self, slot: int, value: Any) -> int:
        """The number of a value among those seen in a slot."""
        try:
            number = self._numbers[slot].get(value)
        except TypeError:
            raise BadInput(f"{self.names[slot]}: {value!r} is not hashable, so states cannot be told apart") from None
        if number is None:
            number = self._numbers[slot][value] = len(self.values[slot])
            self.values[slot].append(value)
        return number

    def view(self, state: State) -> StateView:
        """The state as a world that effects can be asked about."""
        return StateView(self, state)

    def node(self, state: State, slot: int) -> Node:
        return self.nodes[state[slot]]

    def begins(self, node: Node, move: Move) -> bool:
        """Whether a move is the first of two steps of an effect, or fails where it would be."""
        if move.fault is not None or move.blocked:
            return isinstance(node.effect, Launch)
        return self.nodes[move.following].begun is node

    def living(self, state: State) -> list[int]:
        """Slots of the actors that were started and have not ended."""
        return [slot for slot in self.actor_slots if state[slot] > ENDED]

    def table(self, number: int) -> Table:
        try:
            return self.tables[number]
        except IndexError:
            self.tables.extend(Table() for _ in range(len(self.nodes) - len(self.tables)))
            return self.tables[number]

    def move(self, state: State, slot: int) -> Move:
        """What the actor in the slot does next."""
        number = state[slot]
        table = self.table(number)
        move = table.moves.get(table.select(state))
        if move is None:
            move, view = self._evaluate(state, slot, self.nodes[number])
            self.watch_flags(view.reads)
            if len(self.names) > self.width:
                raise StateTooNarrow
            table.add(view.reads, view.written)
            table.moves[table.select(state)] = move
        return move

    def watch_flags(self, reads: Iterable[int]) -> None:
        """Start again, minding them, when flags are read that were not known to be."""
        new = {slot for slot in reads if isinstance(self.names[slot], Flag)} - self._flags_read
        if new:
            self._flags_read |= new
            for table in self.tables:
                table.moves.clear()
            raise StateTooNarrow

    def _evaluate(self, state: State, slot: int, node: Node) -> tuple[Move, StateView]:
        view, effect, actor = self.view(state), node.effect, node.actor
        try:
            if effect.above_capacity:
                raise RequestAboveCapacity(f"{effect} asks for more than there is at all")
            if node.begun:
                effect.finish(view, actor)
                following = self.unfolding.received(node.begun, None)
            elif not effect.ready(view, actor):
                return BLOCKED, view
            else:
                following = self._start(view, node)
        except PolicyFault as fault:
            view.written.clear()
            return Move(fault=Fault(fault, effect, node.where)), view
        if isinstance(following, Escape):
            return Move(fault=Fault(following.fault, following.effect, following.where)), view
        self.successors.setdefault(node.index, set()).add(following)
        updates = {slot: following}
        for written in [written for written in view.written if isinstance(self.names[written], Flag)]:
            if written not in self._flags_read:
                del view.written[written]
        if isinstance(effect, Join):
            view.written.clear()  # a name is used once only, so that it does not depend on when its bearer was joined
        if isinstance(effect, Fork):
            (task,) = map(self.names.__getitem__, view.written)
            self._start_child(view, node, task, effect.program, fork_origin(node, effect), updates)
        elif not node.begun and (copy := effect.beside(view)) is not None:
            self._start_child(view, node, self._name_of_copy(view, actor), copy, copy, updates)
        if following == ENDED and slot in self.parents:
            # Nobody joins a copy, so its name is free again.
            view.write(("task", actor), None if isinstance(effect, Copy) else "ended")
        for written, value in view.written.items():
            updates[written] = self.number(written, value)
            key = self.names[written]
            if isinstance(key, Queue) and key.capacity is None and len(value) > self.queue_bound:
                fault = UnboundedQueue(f"queue {key.name} holds {len(value)} items and nothing bounds it")
                return Move(fault=Fault(fault, effect, node.where)), view
        return Move(tuple(updates.items())), view

    def _start(self, view: StateView, node: Node) -> int | Escape:
        """The effect takes place; the number of the node that follows."""
        effect, actor = node.effect, node.actor
        try:
            result = effect.start(view, actor)
        except OutOfDeviceMemory as fault:
            view.written.clear()
            following = self.unfolding.thrown(node, fault)
            if not isinstance(following, Escape):
                self.caught[str(effect), node.where] = None
            return following
        if effect.asynchronous(view):
            return self.unfolding.received(node, result)
        if effect.two_steps:
            return self.unfolding.started(node)
        effect.finish(view, actor)
        return self.unfolding.received(node, result)

    def _name_of_copy(self, view: StateView, actor: str) -> tuple[str, str]:
        """The key of the task that a copy is; numbered while earlier copies of the actor are under way."""
        name, number = f"{actor}/copy", 1
        task = ("task", name)
        while view.read(task) is not None:
            number += 1
            task = ("task", f"{name}#{number}")
        view.write(task, "running")
        return task

    def _start_child(
        self, view: StateView, node: Node, task: tuple[str, str], program: Program, origin: Hashable,
        updates: dict[int, int],
    ) -> None:  # fmt: skip
        child = task[1]
        root = self.unfolding.root(child, (program,), origin=origin)
        slot = self.actor_slot(child)
        self.parents[slot] = self._slots["actor", node.actor]
        updates[slot] = root
        if root == ENDED:
            view.write(task, "ended")
        self.forks.setdefault(node.index, set()).add((slot, root))

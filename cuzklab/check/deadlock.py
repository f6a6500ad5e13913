"""Who waits for whom, and which of them will wait for ever.

A blocked actor waits for those whom its effect names (`Effect.blockers`: the holder of a lock, the owners of memory,
the task to be joined). An effect that names nobody (a semaphore, a queue) waits for whoever may still write what it
reads by another kind of effect: effects of one kind do not enable one another, but for those that take two steps.

The *core* of a deadlock is a cycle of such waits, or an actor that waits for nobody who is left.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cuzklab.check.model import Model, StateView
from cuzklab.check.moves import State
from cuzklab.policies.effects import Effect, Reserve, live_buffers


@dataclass(frozen=True)
class Holder:
    """What somebody has that another waits for: a lock, bytes of a device (`held` names them), or the next move."""

    actor: str
    held: str
    held_bytes: int | None = None


@dataclass(frozen=True)
class Waiting:
    """One actor's edges in the wait-for graph.

    Attributes
    ----------
    kind : str
        lock, memory, barrier, queue, event, device_sync or join, as in the trace's waits.
    on : str
        The resource.
    wanted_bytes, free_bytes : int or None
        Of a wait for memory.
    holders : tuple of Holder
        Those who could end the wait; nobody if it can only last for ever.
    """

    actor: str
    effect: str
    where: str
    kind: str
    on: str
    holders: tuple[Holder, ...]
    wanted_bytes: int | None = None
    free_bytes: int | None = None


@dataclass(frozen=True)
class Core:
    """Actors (their slots) that wait for one another, or one that waits for nobody who is left; and the kind of it."""

    slots: tuple[int, ...]
    kind: str


class Futures:
    """For each node, what its actor and those whom it starts may still write, and by which kinds of effect.

    Known from a complete survey, whose nodes are all that can be reached.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        bits: dict[tuple[int, type], int] = {}
        self._kinds: dict[int, dict[type, int]] = {}
        self._reach: dict[int, int] = {}
        before: dict[int, list[int]] = {}
        for number in range(2, len(model.nodes)):
            kind, mask = type(model.nodes[number].effect), 0
            for slot in model.table(number).writes:
                bit = bits.setdefault((slot, kind), 1 << len(bits))
                self._kinds.setdefault(slot, {})[kind] = bit
                mask |= bit
            self._reach[number] = mask
            for following in (*model.successors.get(number, ()), *(root for _, root in model.forks.get(number, ()))):
                before.setdefault(following, []).append(number)
        waiting = list(self._reach)
        while waiting:
            number = waiting.pop()
            for earlier in before.get(number, ()):
                if self._reach[number] & ~self._reach[earlier]:
                    self._reach[earlier] |= self._reach[number]
                    waiting.append(earlier)

    def may_supply(self, number: int, slots: Iterable[int], effect: Effect) -> bool:
        """Whether an actor at the node may yet write one of the slots in a way that could enable the effect."""
        mask = 0
        kind = None if effect.two_steps else type(effect)
        for slot in slots:
            for other, bit in self._kinds.get(slot, {}).items():
                if other is not kind:
                    mask |= bit
        return bool(self._reach.get(number, 0) & mask)


def blocked_slots(model: Model, state: State) -> list[int]:
    return [slot for slot in model.living(state) if model.move(state, slot).blocked]


def waits_for_ever(model: Model, futures: Futures, state: State) -> list[int]:
    """Slots of the blocked actors that nobody outside this very set can ever set free; empty if there are none.

    What the others can do is judged by what their programs may still do from where they stand, whatever they receive.
    So some may have to come further before a deadlock is certain; none is reported that is not one.
    """
    stuck = blocked_slots(model, state)
    living = model.living(state)
    while True:
        free = [slot for slot in living if slot not in stuck]
        kept = []
        for slot in stuck:
            effect = model.node(state, slot).effect
            if effect.wait_kind in ("lock", "join"):  # only the holder, only the task itself, ends these
                names = effect.blockers(model.view(state))
                saved = any(model.names[other] in names for other in free)
            else:
                reads = model.table(state[slot]).reads
                saved = any(futures.may_supply(state[other], reads, effect) for other in free)
            if not saved:
                kept.append(slot)
        if kept == stuck:
            return stuck
        stuck = kept


def _suppliers(model: Model, futures: Futures, state: State, slot: int) -> list[int]:
    """Slots of the living actors that could end the wait."""
    effect, living = model.node(state, slot).effect, model.living(state)
    names = effect.blockers(model.view(state))
    if names:
        return [other for other in living if model.names[other] in names]
    reads = model.table(state[slot]).reads
    return [other for other in living if other != slot and futures.may_supply(state[other], reads, effect)]


def cores(model: Model, futures: Futures, state: State, stuck: Iterable[int]) -> list[Core]:
    """The cores of a deadlock among actors that wait for ever."""
    stuck = list(stuck)
    edges = {slot: _suppliers(model, futures, state, slot) for slot in stuck}
    reach = {slot: _reachable(edges, slot) for slot in stuck}
    found: dict[tuple[int, ...], str] = {}
    for slot in stuck:
        if slot in reach[slot]:
            cycle = tuple(sorted(other for other in reach[slot] if slot in reach.get(other, ())))
            kinds = {model.node(state, member).effect.wait_kind for member in cycle}
            found[cycle] = "capacity_deadlock" if "memory" in kinds else "lock_order_deadlock"
        elif not edges[slot]:
            found[(slot,)] = _kind_of_root(model, state, slot)
    return [Core(slots, kind) for slots, kind in found.items()]


def _reachable(edges: Mapping[int, list[int]], start: int) -> set[int]:
    seen: set[int] = set()
    waiting = list(edges[start])
    while waiting:
        slot = waiting.pop()
        if slot not in seen:
            seen.add(slot)
            waiting.extend(edges.get(slot, ()))  # who is not stuck waits for nobody
    return seen


def _kind_of_root(model: Model, state: State, slot: int) -> str:
    """The defect where an actor waits for nobody who is left."""
    effect = model.node(state, slot).effect
    if effect.blockers(model.view(state)) and effect.wait_kind in ("lock", "memory"):
        return "leak"  # held by one that has ended
    return "capacity_deadlock" if effect.wait_kind == "memory" else "lost_wakeup"


def waiting_of(model: Model, futures: Futures, state: State, slot: int) -> Waiting:
    """An actor's edges in the wait-for graph, with what the others hold."""
    node, view = model.node(state, slot), model.view(state)
    effect = node.effect
    holders = _holders(effect, view)
    if not effect.blockers(view):
        holders = tuple(
            Holder(model.names[other], "the next move") for other in _suppliers(model, futures, state, slot)
        )
    wanted = free = None
    if effect.wait_kind == "memory":
        wanted = effect.size_bytes
        free = effect.free_bytes(view)
    return Waiting(node.actor, str(effect), node.where, effect.wait_kind, effect.on, holders, wanted, free)


def _holders(effect: Effect, view: StateView) -> tuple[Holder, ...]:
    names = effect.blockers(view)
    if effect.wait_kind == "lock":
        return tuple(Holder(name, effect.on) for name in names)
    if effect.wait_kind != "memory":
        return tuple(Holder(name, "its end") for name in names)
    if isinstance(effect, Reserve):
        promises = view.read(("reserved", effect.gpu)) or ()
        shares = {name: [("reservation", size) for owner, size in promises if owner == name] for name in names}
    else:
        buffers = live_buffers(view, effect.gpu)
        shares = {name: [(b.name, b.size_bytes) for b in buffers if b.owner == name] for name in names}
    return tuple(
        Holder(name, ", ".join(dict.fromkeys(what for what, _ in share)), sum(size for _, size in share))
        for name, share in shares.items()
    )

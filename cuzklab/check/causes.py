"""What a survey found, by cause: two schedules on which the same goes wrong at the same places show one defect."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cuzklab.check.claims import Watched
from cuzklab.check.deadlock import Core, Futures, blocked_slots, cores, waits_for_ever
from cuzklab.check.endings import Due, leaks, overdue
from cuzklab.check.model import Model
from cuzklab.check.moves import Fault, State
from cuzklab.check.search import Survey
from cuzklab.policies.effects import Effect, ReadBeforeWrite
from cuzklab.policies.effects.data import in_words


@dataclass(frozen=True)
class Cause:
    """What makes two findings the same: the kind, and the effects and places in the policy, whoever was there."""

    kind: str
    sites: tuple[str, ...]


@dataclass
class Found:
    """A cause with the states that show it (for a fault also who moves), and the nodes at which actors stand."""

    cause: Cause
    states: list[tuple[State, int | None]] = field(default_factory=list)
    places: dict[tuple[tuple[int, str], ...], list[set[int]]] = field(default_factory=dict)
    everyone: bool = False

    @property
    def is_fault(self) -> bool:
        return self.states[0][1] is not None

    def add_place(self, standing: Iterable[tuple[int, str, int]]) -> None:
        """Actors (slot), each at a site and there at a node."""
        standing = sorted(standing)
        key = tuple((slot, site) for slot, site, _ in standing)
        nodes = self.places.setdefault(key, [set() for _ in key])
        for targets, (_, _, node) in zip(nodes, standing, strict=True):
            targets.add(node)


def site(effect: Effect, where: str, actor: str) -> str:
    """An effect and its place, without the names of the actor and of the partition at hand."""
    on = re.sub(r"\bp\d+\.\d+\b", "p", re.sub(r"#\d+$", "", effect.on.replace(f"{actor}/", "")))
    return f"{type(effect).__name__} {on} @ {where}"


def fault_cause(fault: Fault, actor: str) -> Cause:
    return Cause(fault.fault.kind, (site(fault.effect, fault.where, actor),))


def _core_cause(model: Model, state: State, core: Core) -> Cause:
    return Cause(core.kind, tuple(sorted({_site_of(model, state, slot) for slot in core.slots})))


def _site_of(model: Model, state: State, slot: int) -> str:
    node = model.node(state, slot)
    return site(node.effect, node.where, node.actor)


def leak_cause(leak: tuple[str, str, str]) -> Cause:
    return Cause("leak", (f"{leak[0]} {leak[1]}",))


def overdue_cause(promise: Due) -> Cause:
    return Cause(ReadBeforeWrite.kind, (in_words([datum.what for datum in promise.data]),))


def causes_of(
    model: Model, futures: Futures, seen: Survey, judged: Sequence[Watched], due: Sequence[Due]
) -> list[Found]:
    found: dict[Cause, Found] = {}
    for (slot, node, move), state in seen.faults.items():
        cause = fault_cause(move.fault, model.nodes[node].actor)
        item = found.setdefault(cause, Found(cause))
        item.states.append((state, slot))
        item.add_place([(slot, "", node)])
    for state in seen.blocked:
        if seen.stopped and len(blocked_slots(model, state)) < len(model.living(state)):
            continue  # somebody fails next, and what it may do then for the others is known after a whole search only
        for core in cores(model, futures, state, waits_for_ever(model, futures, state)):
            cause = _core_cause(model, state, core)
            item = found.setdefault(cause, Found(cause))
            item.states.append((state, None))
            item.add_place([(slot, _site_of(model, state, slot), state[slot]) for slot in core.slots])
    for state in seen.ended:
        causes = [*map(leak_cause, leaks(model, state)), *map(overdue_cause, overdue(model, state, due))]
        for cause in dict.fromkeys(causes):
            item = found.setdefault(cause, Found(cause, everyone=True))
            item.states.append((state, None))
    for place, state in seen.broken.items():
        cause = Cause("claim", (judged[place].claim.text,))
        found[cause] = Found(cause, [(state, None)], everyone=True)
    return list(found.values())


def claim_of(cause: Cause, judged: Sequence[Watched]) -> Watched:
    return next(claim for claim in judged if claim.claim.text == cause.sites[0])


def core_at(model: Model, futures: Futures, state: State, cause: Cause) -> Core | None:
    """The core of a deadlock with that cause among those who wait for ever in a state."""
    stuck = waits_for_ever(model, futures, state)
    return next(
        (core for core in cores(model, futures, state, stuck) if _core_cause(model, state, core) == cause), None
    )

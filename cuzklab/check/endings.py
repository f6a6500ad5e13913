"""What is wrong where programs are over: something is still held, or something that they were to make is not there."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cuzklab.check.automaton import ENDED
from cuzklab.check.model import Model
from cuzklab.check.moves import State
from cuzklab.check.shortest import Place
from cuzklab.policies.model import Datum, HostBuffer, Lock, Slot


def leaks(model: Model, state: State) -> list[tuple[str, str, str]]:
    """What is left when every program has ended: kind of thing, its name, and who took it."""
    found = []
    kept = [model.values[slot][state[slot]] for slot, key in enumerate(model.names[: len(state)]) if type(key) is Slot]
    for slot, key in enumerate(model.names):
        value = model.values[slot][state[slot]] if slot < len(state) and slot not in model.actor_slots else None
        if not value:
            continue
        if isinstance(key, Lock):
            found.append(("lock", key.name, value))
        elif isinstance(key, tuple) and key[0] == "live":
            found.extend(("device memory", buffer.name, buffer.owner) for buffer in value if buffer not in kept)
        elif isinstance(key, tuple) and key[0] == "reserved":
            found.extend(("reservation", f"gpu{key[1].index}", owner) for owner, _ in value)
        elif isinstance(key, tuple) and key[0] == "pinned" and isinstance(key[1], HostBuffer):
            found.append(("pinned memory", re.sub(r"\bp\d+\.\d+\.", "", key[1].name), ""))
    return found


@dataclass(frozen=True)
class Due:
    """What must be there once a program is over, with all that it forked.

    Attributes
    ----------
    data : tuple of Datum
        Of one partition.
    actor, program : str, int
        Who runs the program, and its place among those that the actor runs one after another.
    """

    data: tuple[Datum, ...]
    actor: str
    program: int


def overdue(model: Model, state: State, due: Iterable[Due]) -> list[Due]:
    """What is not there although the program that should have made it is over: of each program what is missing."""
    view = model.view(state)
    missing = [
        replace(one, data=tuple(datum for datum in one.data if not view.read(datum)))
        for one in due
        if _is_over(model, state, one)
    ]
    return [one for one in missing if one.data]


def place_over(model: Model, one: Due) -> Place:
    """Where an actor stands once it has passed a program."""
    nodes = (node.index for node in model.nodes if node.actor == one.actor and node.position > one.program)
    return ((model.actor_slot(one.actor), frozenset((ENDED, *nodes))),)


def _is_over(model: Model, state: State, one: Due) -> bool:
    number = state[model.actor_slot(one.actor)]
    if number != ENDED and model.nodes[number].position <= one.program:
        return False
    return not any(model.names[slot].startswith(f"{one.actor}/") for slot in model.living(state))

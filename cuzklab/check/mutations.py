"""Every single mutation of a safe policy: one effect dropped, moved, or swapped with the next. Would a check notice?

A mutant differs from its policy in one place of one of its programs (`prove_partition`, what it forks, a finaliser's, a
synthesis's). The place is the line of the yield and how often it was passed, so that it is the same on every branch.
Effects whose result the program goes on with (an allocation's buffer, a forked task) cannot be dropped, nor put after
what uses the result; everything else that can be done to one effect is done. A move puts an effect before or after each
other one of its program; one past the next alone is called a swap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from cuzklab.check.mutants import Mutation, Place, walk
from cuzklab.policies import Policy
from cuzklab.policies.effects import Alloc, Effect, Exchange, Fork, Get, QueryFree, ReadFlag, RecordEvent
from cuzklab.policies.model import Buffer, Event, Gpu, Partition, Program, Sizes, Task

_GIVES_A_RESULT = (Alloc, Exchange, Fork, Get, QueryFree, ReadFlag, RecordEvent)


def programs_of(policy: Policy, partition: Partition, gpu: Gpu) -> list[Program]:
    """Every program that a policy's author wrote, but for what these fork."""
    found = [policy.prove_partition(partition, gpu)]
    if policy.has("finish_partition"):
        found.append(policy.call("finish_partition", partition, Task("alone")))
    if policy.has("synthesise"):
        found.append(policy.call("synthesise", partition))
    return found


def mutations(policy: Policy, gpu: Gpu, sizes: Sizes, moves: bool = True) -> list[Mutation]:
    """All single mutations of a policy; without `moves` only drops and swaps."""
    found: list[Mutation] = []
    for one in programs_of(policy, Partition(0, 0, sizes), gpu):
        by_program: dict[str, list[tuple[Place, Effect]]] = {}
        for place, effect in walk(one):
            by_program.setdefault(place[0], []).append((place, effect))
        for sequence in by_program.values():
            found += _of_sequence(sequence, moves)
    return found


def _of_sequence(sequence: Sequence[tuple[Place, Effect]], moves: bool) -> Iterator[Mutation]:
    for number, (place, effect) in enumerate(sequence):
        if isinstance(effect, _GIVES_A_RESULT):
            following = sequence[number + 1 : number + 2]
            # It cannot be put off, but the next may come first, if it does not need the result.
            yield from (Mutation("swap", p, str(e), place, str(effect)) for p, e in following if _static(e))
            continue
        yield Mutation("drop", place, str(effect))
        for other, (target, beside) in enumerate(sequence):
            if other == number + 1:
                yield Mutation("swap", place, str(effect), target, str(beside), later=True)
            elif moves and other > number:
                yield Mutation("move", place, str(effect), target, str(beside), later=True)
            elif moves and other < number - 1 and _static(effect):
                yield Mutation("move", place, str(effect), target, str(beside))


def _static(effect: Effect) -> bool:
    """Whether an effect is made of nothing that the program received."""
    return not isinstance(effect, _GIVES_A_RESULT) and not _holds_result(effect)


def _holds_result(value: Any) -> bool:
    if isinstance(value, Buffer | Event | Task):
        return True
    if isinstance(value, tuple):
        return any(map(_holds_result, value))
    if isinstance(value, Partition | Gpu):
        return False
    return is_dataclass(value) and any(_holds_result(getattr(value, field.name)) for field in fields(value))

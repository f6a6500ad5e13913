"""Policies with one effect changed: what they are made of, and how they run.

A `Mutation` names a place in a program and what happens to the effect there; `mutant` runs a program with that change.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cuzklab.check.automaton import location
from cuzklab.policies import Policy
from cuzklab.policies.effects import (
    Alloc,
    Effect,
    Fork,
    PolicyFault,
    QueryFree,
    ReadFlag,
    RecordEvent,
)
from cuzklab.policies.model import Buffer, Event, Gpu, Partition, Program, Task, program

Place = tuple[str, str, int]  # the program's name, the line, how often it was passed before


@dataclass(frozen=True)
class Mutation:
    """One change of one effect.

    Attributes
    ----------
    kind : {"drop", "swap", "move"}
    place : tuple
        Of the effect that is dropped or moved.
    effect : str
    target : tuple or None
        Of the effect that it comes to stand beside.
    beside : str
    later : bool
        It comes to stand after that one, not before.
    """

    kind: str
    place: Place
    effect: str
    target: Place | None = None
    beside: str = ""
    later: bool = False

    def __str__(self) -> str:
        words = f"{self.kind} {self.effect} ({self.place[1]})"
        return words if self.target is None else f"{words} {'after' if self.later else 'before'} {self.beside}"


@program
def mutant(
    inner: Program, name: str, mutation: Mutation | None, early: Effect | None = None
) -> Generator[Effect, Any, Any]:
    """A program with one effect dropped or moved, and so what it forks.

    Parameters
    ----------
    early : Effect, optional
        The effect itself, where it comes before its place in the program.
    """
    passed: dict[str, int] = {}
    held: Effect | None = None
    running = inner.start()
    try:
        effect = next(running)
        while True:
            line = location(running)
            place = (name, line, passed.get(line, 0))
            passed[line] = place[2] + 1
            here = mutation is not None and mutation.place == place
            beside = mutation is not None and mutation.target == place
            if beside and not mutation.later and early is not None:
                yield _wrapped(early, mutation)
            if here:
                held = effect if mutation.target is not None and mutation.later else None
                effect = running.send(None)
                continue
            try:
                result = yield _wrapped(effect, mutation)
            except PolicyFault as fault:
                effect = running.throw(fault)
                continue
            if beside and held is not None:
                yield _wrapped(held, mutation)
                held = None
            effect = running.send(result)
    except StopIteration as end:
        if held is not None:  # the branch does not pass what it was to come after
            yield _wrapped(held, mutation)
        return end.value


def _wrapped(effect: Effect, mutation: Mutation | None) -> Effect:
    if isinstance(effect, Fork):
        return replace(
            effect,
            program=mutant(effect.program, effect.program.name, mutation, _early(effect.program, mutation)),
            name=effect.on,
        )
    return effect


def _early(inner: Program, mutation: Mutation | None) -> Effect | None:
    """The effect that a mutation brings forward, in the names of this very program."""
    if mutation is None or mutation.target is None or mutation.later or mutation.place[0] != inner.name:
        return None
    return next((effect for place, effect in walk(inner) if place == mutation.place), None)


def walk(inner: Program) -> Iterator[tuple[Place, Effect]]:
    """The effects of a program that runs alone on an empty device, with their places; forked programs' after it."""
    passed: dict[str, int] = {}
    forked: list[Program] = []
    running, serial = inner.start(), 0
    try:
        effect = next(running)
        while True:
            line = location(running)
            yield (inner.name, line, passed.get(line, 0)), effect
            passed[line] = passed.get(line, 0) + 1
            result: Any = None
            match effect:
                case Alloc():
                    serial += 1
                    result = Buffer(effect.name, effect.size_bytes, effect.gpu, "alone", serial, "", effect.pooled)
                case QueryFree():
                    result = effect.gpu.vram_bytes
                case Fork():
                    result = Task(effect.on)
                    forked.append(effect.program)
                case RecordEvent():
                    result = Event(effect.stream, 1)
                case ReadFlag():
                    result = False
            effect = running.send(result)
    except StopIteration:
        pass
    for program_ in forked:
        yield from walk(program_)


@dataclass(frozen=True)
class MutantPolicy:
    """What the engine and the checker ask of a policy, with one of its programs changed."""

    policy: Policy
    mutation: Mutation | None

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def options(self) -> Mapping[str, Any]:
        return self.policy.options

    def has(self, hook: str) -> bool:
        return self.policy.has(hook)

    def prove_partition(self, partition: Partition, gpu: Gpu) -> Program:
        inner = self.policy.prove_partition(partition, gpu)
        return mutant(inner, inner.name, self.mutation, _early(inner, self.mutation))

    def call(self, hook: str, *arguments: Any) -> Any:
        made = self.policy.call(hook, *arguments)
        if not isinstance(made, Program):
            return made
        return mutant(made, made.name, self.mutation, _early(made, self.mutation))

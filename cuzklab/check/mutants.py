"""Policies with one effect changed: what they are made of, and how they run.

A `Mutation` names a place in a program and what happens to the effect there; `mutant` runs a program with that change.
A mutant's stages mind their data: one that begins before what it reads was made, or a partition that ends without its
proof, is a fault of kind `missing_data` (the table of stages says what each reads and writes).
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from cuzklab.check.automaton import location
from cuzklab.policies import Policy
from cuzklab.policies.effects import (
    Alloc,
    Compute,
    Effect,
    Fork,
    Launch,
    PolicyFault,
    QueryFree,
    ReadFlag,
    RecordEvent,
    Upload,
)
from cuzklab.policies.model import Buffer, Event, Gpu, Partition, Program, Task, program
from cuzklab.stages import STAGES

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


class DataMissing(PolicyFault):
    """A stage began before what it reads was made, or a partition ended without a proof."""

    kind = "missing_data"


def _needs(stage: str) -> tuple[str, ...]:
    """What must be done before a stage begins: the stages of a call that make what it reads, and the upload."""
    if stage == "epilogue":  # assembles the proof from every sum
        return tuple(
            f"{one.name}.{part}" for one in STAGES.values() for part in one.parts if one.name.endswith(("msm", "add"))
        )
    made = ("upload",) if stage == "ntt_h" else ()
    reads = set(STAGES[stage].reads) if stage in STAGES else set()
    others = (one for one in STAGES.values() if one.name not in (stage, "synthesis") and reads & set(one.writes))
    return (*made, *(f"{one.name}.{part}" for one in others for part in one.parts))


def _require(world: Any, partition: Partition, stage: str) -> None:
    for need in _needs(stage):
        if not world.read(("made", partition, need)):
            raise DataMissing(f"{stage} of {partition.name} begins before {need.rstrip('.')} is done")


class _Minded:
    def start(self, world, actor):
        _require(world, self.partition, self.stage)
        return super().start(world, actor)

    def finish(self, world, actor):
        super().finish(world, actor)
        world.write(("made", self.partition, f"{self.stage}.{self.part}"), True)


class _MindedLaunch(_Minded, Launch):
    def __str__(self):
        return f"Launch {self.on}"


class _MindedCompute(_Minded, Compute):
    def __str__(self):
        return f"Compute {self.on}"


class _MindedUpload(Upload):
    def finish(self, world, actor):
        super().finish(world, actor)
        world.write(("made", self.partition, "upload"), True)

    def __str__(self):
        return f"Upload {self.on}"


@dataclass(frozen=True)
class _Proved(Effect):
    """The end of a partition's call, split or not: there must be a proof."""

    partition: Partition

    def start(self, world, actor):
        if not world.read(("made", self.partition, "epilogue.")):
            raise DataMissing(f"{self.partition.name} ends without a proof")


_MINDED = {Launch: _MindedLaunch, Compute: _MindedCompute, Upload: _MindedUpload}


def _minded(effect: Effect) -> Effect:
    kind = _MINDED.get(type(effect))
    return kind(**{field.name: getattr(effect, field.name) for field in fields(effect)}) if kind else effect


# --- programs that are run with one change ----------------------------------------------------------------------------


@program
def mutant(
    inner: Program, name: str, mutation: Mutation | None, early: Effect | None = None, ends: Partition | None = None
) -> Generator[Effect, Any, Any]:
    """A program with one effect dropped or moved, and so what it forks; stages mind their data.

    Parameters
    ----------
    early : Effect, optional
        The effect itself, where it comes before its place in the program.
    ends : Partition, optional
        What must have a proof at the end.
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
        if ends is not None:
            yield _Proved(ends)
        return end.value


def _wrapped(effect: Effect, mutation: Mutation | None) -> Effect:
    if isinstance(effect, Fork):
        return replace(
            effect,
            program=mutant(effect.program, effect.program.name, mutation, _early(effect.program, mutation)),
            name=effect.on,
        )
    return _minded(effect)


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
        ends = None if self.has("finish_partition") else partition
        return mutant(inner, inner.name, self.mutation, _early(inner, self.mutation), ends)

    def call(self, hook: str, *arguments: Any) -> Any:
        made = self.policy.call(hook, *arguments)
        if not isinstance(made, Program):
            return made
        ends = arguments[0] if hook == "finish_partition" else None
        return mutant(made, made.name, self.mutation, _early(made, self.mutation), ends)

"""Every single mutation of a safe policy: one effect dropped, moved, or swapped with the next. Would a check notice?

A mutant differs from its policy in one place of one of its programs (`prove_partition`, what it forks, a finaliser's, a
synthesis's). The place is the line of the yield and how often it was passed, so that it is the same on every branch.
Effects whose result the program goes on with (an allocation's buffer, a forked task) cannot be dropped, nor put after
what uses the result; everything else that can be done to one effect is done. A move puts an effect before or after each
other one of its program; one past the next alone is called a swap.

Mutants are checked with two workers of two partitions each; where the policy has a synthesis of its own, as a whole
engine too. Since a design can also be wrong in what it computes, stages mind their data here: a stage that begins
before what it reads was made, or a partition that ends without its proof, is refused as well (`missing_data`; the table
of stages says what each reads and writes).

A mutant that passes is a *survivor*. Then nothing that the checker knows of has become wrong on any schedule, and
`reason_of` says what is different instead, from the effect, and from what a call alone shows of its locks
and its memory.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from cuzklab.check.automaton import location
from cuzklab.check.explore import explore
from cuzklab.check.findings import Exploration
from cuzklab.check.policy import MARGIN_BYTES, worker_programs
from cuzklab.policies import Policy
from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    Compute,
    Effect,
    Exchange,
    Fork,
    Free,
    Get,
    Launch,
    PolicyFault,
    QueryFree,
    ReadFlag,
    RecordEvent,
    Release,
    Upload,
)
from cuzklab.policies.engine import EngineConfig, engine_programs
from cuzklab.policies.model import Buffer, Event, Gpu, Partition, Program, Sizes, Task, program
from cuzklab.stages import POREP_32G, STAGES, partition_sizes

WORKERS, PARTITIONS = 2, 2
_SECONDS = 60.0
_MAX_STATES = 300_000
_GIVES_A_RESULT = (Alloc, Exchange, Fork, Get, QueryFree, ReadFlag, RecordEvent)
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


@dataclass(frozen=True)
class Judged:
    """What the checker says of a mutant: kinds of finding, or the reason why it is harmless."""

    mutation: Mutation
    kinds: tuple[str, ...]
    reason: str = ""

    @property
    def refused(self) -> bool:
        return bool(self.kinds)


class DataMissing(PolicyFault):
    """A stage began before what it reads was made, or a partition ended without a proof."""

    kind = "missing_data"


# --- stages that mind their data --------------------------------------------------------------------------------------


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


# --- mutants ----------------------------------------------------------------------------------------------------------


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


# --- judging ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """What can be read off one call that runs alone.

    Attributes
    ----------
    peak_bytes : int
        The most device memory that is allocated at a time, scratch memory of kernels included.
    under_locks : frozenset of (str, str)
        Locks, and effects that take place while the call holds them.
    """

    peak_bytes: int
    under_locks: frozenset[tuple[str, str]]


def facts_of(policy: MutantPolicy, gpu: Gpu, sizes: Sizes) -> Facts:
    found: set[tuple[str, str]] = set()
    live: dict[Buffer, None] = {}
    peak_bytes = 0
    for one in programs_of(policy, Partition(0, 0, sizes), gpu):
        held: dict[str, None] = {}
        for _, effect in walk(one):
            scratch_bytes = 0
            match effect:
                case Release():
                    held.pop(effect.lock.name, None)
                case Free():
                    live = {buffer: None for buffer in live if buffer.name != effect.buffer.name}
                case Alloc():
                    live[Buffer(effect.name, effect.size_bytes, effect.gpu, "alone", 0)] = None
                case Launch():
                    scratch_bytes = effect.scratch_bytes
            peak_bytes = max(peak_bytes, sum(buffer.size_bytes for buffer in live) + scratch_bytes)
            found |= {(lock, str(effect)) for lock in held}
            if isinstance(effect, Acquire):
                held[effect.lock.name] = None
    return Facts(peak_bytes, frozenset(found))


def judge(policy: Policy, mutation: Mutation | None, vram_bytes: int, sizes: Sizes) -> tuple[tuple[str, ...], Facts]:
    """Kinds of finding of a mutant (none of the policy itself, if it is safe), and what one call alone shows."""
    gpu, changed = Gpu(0, vram_bytes, MARGIN_BYTES), MutantPolicy(policy, mutation)
    limits: dict[str, Any] = {"shortest": False, "max_states": _MAX_STATES, "seconds": _SECONDS}
    kinds: set[str] = set()
    for partitions in (1, PARTITIONS):  # most of what is wrong shows with one already, and much sooner
        if not kinds:
            programs = worker_programs(changed, workers=WORKERS, partitions=partitions, gpus=(gpu,), sizes=sizes)
            kinds = _kinds(explore(programs, **limits))
    if not kinds and policy.has("synthesise"):
        config = EngineConfig(1, PARTITIONS, (gpu,), 1, 1, 2, 2)
        engine = engine_programs(changed, config, sizes)
        found = explore({name: (one,) for name, one in engine.items()}, **limits)
        kinds = _kinds(found)
        if any("made" in line for line in found.caught) or "fault" in found.outcomes:
            kinds.add("missing_data")
    return tuple(sorted(kinds)), facts_of(changed, gpu, sizes)


def _kinds(found: Exploration) -> set[str]:
    return {finding.kind for finding in found.findings} | (set() if found.complete else {"unknown"})


def judge_all(
    policy: Policy, vram_bytes: int, moves: bool = True, progress: Callable[[int, int], None] | None = None
) -> list[Judged]:
    """Every mutant of a safe policy.

    Raises
    ------
    BadInput
        The policy itself is not safe under these conditions.
    """
    from cuzklab.check.survivors import reason_of
    from cuzklab.errors import BadInput

    sizes = partition_sizes(POREP_32G)
    kinds, original = judge(policy, None, vram_bytes, sizes)
    if kinds:
        raise BadInput(f"policy {policy.name} is not safe itself ({', '.join(kinds)}); mutations are of safe policies")
    found, all_mutations = [], mutations(policy, Gpu(0, vram_bytes, MARGIN_BYTES), sizes, moves)
    for number, mutation in enumerate(all_mutations):
        kinds, facts = judge(policy, mutation, vram_bytes, sizes)
        found.append(Judged(mutation, kinds, "" if kinds else reason_of(mutation, original, facts, vram_bytes)))
        if progress is not None:
            progress(number + 1, len(all_mutations))
    return found

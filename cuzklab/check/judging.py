"""What the checker says of a mutant: refused, or a survivor with the reason why it is harmless.

Most of what is wrong shows with one worker and one partition already, in a few hundred states; so mutants are checked
with more and more of both (`LEVELS`), and, where the policy has a synthesis of its own, as a whole engine too, until
something is found. A mutant that passes all of them is a *survivor*: nothing that the checker knows of has become wrong
on any schedule, and `survivors` says what is different instead. One that has too many states is *undecided*, and
counts as neither. States are limited, not seconds, so that a verdict is the same on every machine.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cuzklab.check.explore import explore
from cuzklab.check.findings import Exploration, Finding
from cuzklab.check.mutants import MutantPolicy, Mutation, walk
from cuzklab.check.mutations import mutations, programs_of
from cuzklab.check.policy import MARGIN_BYTES, proofs_due, worker_programs
from cuzklab.errors import BadInput
from cuzklab.policies import Policy
from cuzklab.policies.effects import Acquire, Alloc, Free, Launch, Pin, ReadBeforeWrite, Release, Unpin, Upload
from cuzklab.policies.engine import EngineConfig, engine_programs
from cuzklab.policies.model import Buffer, Gpu, HostBuffer, Partition, Sizes
from cuzklab.stages import POREP_32G, partition_sizes

WORKERS, PARTITIONS = 2, 2
LEVELS = ((1, 1), (2, 1), (WORKERS, PARTITIONS))  # workers and partitions
MAX_STATES = 2_000_000
_COMPILED_FROM = 2_000  # states; many mutants share what it costs to load compiled code


@dataclass(frozen=True)
class Verdict:
    """Kinds of finding of a mutant; or, without any, why it could not be checked to the end."""

    kinds: tuple[str, ...] = ()
    undecided: str = ""


@dataclass(frozen=True)
class Judged:
    """What the checker says of a mutant.

    Attributes
    ----------
    kinds : tuple of str
        Of findings; some where it is refused.
    reason : str
        Why a survivor is harmless; empty where no reason is on record, which is for a person to look into.
    undecided : str
        Why it could not be checked to the end.
    """

    mutation: Mutation
    kinds: tuple[str, ...]
    reason: str = ""
    undecided: str = ""

    @property
    def refused(self) -> bool:
        return bool(self.kinds)

    @property
    def survived(self) -> bool:
        return not self.kinds and not self.undecided


@dataclass(frozen=True)
class Facts:
    """What can be read off one call that runs alone.

    Attributes
    ----------
    peak_bytes : int
        The most device memory that is allocated at a time, scratch memory of kernels included.
    under_locks : frozenset of (str, str)
        Locks, and effects that take place while the call holds them.
    from_pageable : bool
        An upload begins whose host memory is not pinned.
    """

    peak_bytes: int
    under_locks: frozenset[tuple[str, str]]
    from_pageable: bool = False


def facts_of(policy: MutantPolicy, gpu: Gpu, sizes: Sizes) -> Facts:
    found: set[tuple[str, str]] = set()
    live: dict[Buffer, None] = {}
    pinned: set[HostBuffer] = set()
    peak_bytes, from_pageable = 0, False
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
                case Pin():
                    pinned.add(effect.buffer)
                case Unpin():
                    pinned.discard(effect.buffer)
                case Upload():
                    from_pageable |= effect.source not in pinned
            peak_bytes = max(peak_bytes, sum(buffer.size_bytes for buffer in live) + scratch_bytes)
            found |= {(lock, str(effect)) for lock in held}
            if isinstance(effect, Acquire):
                held[effect.lock.name] = None
    return Facts(peak_bytes, frozenset(found), from_pageable)


def judge(
    policy: Policy, mutation: Mutation | None, vram_bytes: int, sizes: Sizes, max_states: int = MAX_STATES
) -> Verdict:
    """Check a mutant, or with None the policy itself."""
    gpu, changed = Gpu(0, vram_bytes, MARGIN_BYTES), MutantPolicy(policy, mutation)
    limits: dict[str, Any] = {
        "shortest": False, "max_states": max_states, "seconds": float("inf"), "large": _COMPILED_FROM,
    }  # fmt: skip
    undecided = ""
    for workers, partitions in LEVELS:
        of: dict[str, Any] = {"workers": workers, "partitions": partitions, "gpus": (gpu,), "sizes": sizes}
        found = explore(worker_programs(changed, **of), **limits, due=proofs_due(**of))
        if kinds := _kinds(found.findings):
            return Verdict(kinds)
        undecided = undecided or _undecided(found, f"{workers} × {partitions}")
    if policy.has("synthesise"):
        engine = engine_programs(changed, EngineConfig(1, PARTITIONS, (gpu,), 1, 1, 2, 2), sizes)
        found = explore({name: (one,) for name, one in engine.items()}, **limits)
        if kinds := _kinds(_first_causes(found.findings)):
            return Verdict(kinds)
        undecided = undecided or _undecided(found, "the whole engine")
    return Verdict((), undecided)


def _first_causes(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Findings of a whole engine, without those that only follow from others.

    Where data are read too early nobody goes on, so everybody else waits for ever: that is no defect of its own.
    """
    return [finding for finding in findings if finding.kind == ReadBeforeWrite.kind] or findings


def _kinds(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(sorted({finding.kind for finding in findings}))


def _undecided(found: Exploration, what: str) -> str:
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    return f"{what}: {found.stopped}" if found.stopped else ""


def require_safe(policy: Policy, vram_bytes: int) -> None:
    """Refuse a policy that is not safe itself.

    Raises
    ------
    BadInput
    """
    verdict = judge(policy, None, vram_bytes, partition_sizes(POREP_32G))
    if verdict.kinds or verdict.undecided:
        why = ", ".join(verdict.kinds) or verdict.undecided
        raise BadInput(f"policy {policy.name} is not safe itself ({why}); mutations are of safe policies")


def judged(policy: Policy, mutation: Mutation, vram_bytes: int) -> Judged:
    """The verdict on one mutant, with the reason if it survives."""
    from cuzklab.check.survivors import reason_of

    sizes = partition_sizes(POREP_32G)
    verdict = judge(policy, mutation, vram_bytes, sizes)
    if verdict.kinds or verdict.undecided:
        return Judged(mutation, verdict.kinds, "", verdict.undecided)
    gpu = Gpu(0, vram_bytes, MARGIN_BYTES)
    before, after = (facts_of(MutantPolicy(policy, one), gpu, sizes) for one in (None, mutation))
    return Judged(mutation, (), reason_of(mutation, before, after, vram_bytes))


def judge_all(
    policy: Policy, vram_bytes: int, moves: bool = True, progress: Callable[[int, int], None] | None = None
) -> list[Judged]:
    """Every mutant of a safe policy, one after another; `cuzklab.mutation_sweep` does it in several processes.

    Raises
    ------
    BadInput
        The policy itself is not safe under these conditions.
    """
    require_safe(policy, vram_bytes)
    all_mutations = mutations(policy, Gpu(0, vram_bytes, MARGIN_BYTES), partition_sizes(POREP_32G), moves)
    found = []
    for number, mutation in enumerate(all_mutations):
        found.append(judged(policy, mutation, vram_bytes))
        if progress is not None:
            progress(number + 1, len(all_mutations))
    return found

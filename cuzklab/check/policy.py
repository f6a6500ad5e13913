"""Checking a policy: workers that each prove some partitions on devices of a given size."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cuzklab.check.endings import Due
from cuzklab.check.explore import MAX_STATES, QUEUE_BOUND, SECONDS, explore
from cuzklab.check.findings import CheckResult, Exploration
from cuzklab.check.search import LARGE, Progress
from cuzklab.errors import BadInput
from cuzklab.policies import Policy
from cuzklab.policies.claims import Claim
from cuzklab.policies.effects.data import writes_of
from cuzklab.policies.engine import split_call
from cuzklab.policies.model import Gpu, Partition, Program, Sizes
from cuzklab.stages import POREP_32G, partition_sizes

MARGIN_BYTES = 512 << 20
MOST = {"workers": 64, "partitions": 1000, "devices": 64}


def worker_partitions(
    *, workers: int, partitions: int, gpus: Sequence[Gpu], sizes: Sizes
) -> dict[str, tuple[Gpu, tuple[Partition, ...]]]:
    """Of each worker of a check: its device, and the partitions that it proves. They are synthesised already."""
    found = {}
    for gpu in gpus:
        for number in range(workers):
            name = f"gpu{gpu.index}.w{number}" if len(gpus) > 1 else f"w{number}"
            proof = gpu.index * workers + number
            found[name] = gpu, tuple(Partition(proof, index, sizes) for index in range(partitions))
    return found


def worker_programs(
    policy: Policy, *, workers: int, partitions: int, gpus: Sequence[Gpu], sizes: Sizes
) -> dict[str, tuple[Program, ...]]:
    """The actors of a check: each worker of each device proves its own partitions, one after another.

    The finalisers of a split call are there too; synthesis and queues are not.
    """
    everybodys = worker_partitions(workers=workers, partitions=partitions, gpus=gpus, sizes=sizes)
    return {name: tuple(_program(policy, one, gpu) for one in own) for name, (gpu, own) in everybodys.items()}


def proofs_due(*, workers: int, partitions: int, gpus: Sequence[Gpu], sizes: Sizes) -> tuple[Due, ...]:
    """What the calls of a check's workers must have made when they are over."""
    everybodys = worker_partitions(workers=workers, partitions=partitions, gpus=gpus, sizes=sizes)
    return tuple(
        Due(writes_of(one, "epilogue"), name, place)
        for name, (_, own) in everybodys.items()
        for place, one in enumerate(own)
    )


def synthesis_beside_a_call(
    policy: Policy, gpu: Gpu, sizes: Sizes
) -> tuple[dict[str, tuple[Program, ...]], tuple[Due, ...]]:
    """A synthesis that is the policy's own, beside a worker's call for another partition; and what it must make."""
    proved, made = Partition(0, 0, sizes), Partition(1, 0, sizes, synthesised=False)
    programs = {"w0": (_program(policy, proved, gpu),), "synth0": (policy.call("synthesise", made),)}
    return programs, (Due(writes_of(made, "synthesis"), "synth0", 0),)


def claims_of(policy: Policy) -> tuple[Claim, ...]:
    """What the policy's author claims of every state."""
    return tuple(getattr(policy.module, "claims", ()))


def _program(policy: Policy, partition: Partition, gpu: Gpu) -> Program:
    program = policy.prove_partition(partition, gpu)
    if not isinstance(program, Program):
        raise BadInput(f"policy {policy.name}: prove_partition must be a generator function decorated with @program")
    return split_call(policy, partition, gpu) if policy.has("finish_partition") else program


def refuse_counts(**counts: int) -> None:
    """Refuse numbers of workers, partitions or devices that are none, or more than a search could begin with.

    Raises
    ------
    BadInput
    """
    for name, value in counts.items():
        if value < 1:
            raise BadInput(f"{name} must be at least 1, not {value}")
        if value > MOST[name]:
            raise BadInput(f"{name} must be at most {MOST[name]}, not {value}: every interleaving is explored")


def check(
    policy: Policy,
    *,
    workers: int,
    partitions: int,
    vram_bytes: int,
    sizes: Sizes | None = None,
    workload: str = "",
    devices: int = 1,
    margin_bytes: int = MARGIN_BYTES,
    partial_order: bool = True,
    merge: bool = True,
    symmetric: bool = True,
    shortest: bool = True,
    queue_bound: int = QUEUE_BOUND,
    max_states: int = MAX_STATES,
    seconds: float = SECONDS,
    progress: Progress | None = None,
    large: int = LARGE,
) -> CheckResult:
    """Explore every interleaving of a policy's workers.

    Where they are safe and the policy has a synthesis of its own, that is explored too, beside one worker's call.

    Parameters
    ----------
    policy : Policy
    workers : int
        Workers of each device.
    partitions : int
        Partitions that each worker proves, one after another.
    vram_bytes : int
        Memory of each device.
    sizes : Sizes, optional
        Bytes of a partition's buffers; those of a 32 GiB PoRep partition if left out.
    workload : str
        Name of what has these sizes, for the record.
    devices : int
    margin_bytes : int
        What the engine leaves free when it decides by the amount of free memory.
    partial_order, merge, symmetric, shortest, queue_bound, max_states, seconds, progress, large
        As for `explore`.

    Raises
    ------
    BadInput
        Conditions that make no sense, or a policy that cannot be explored.
    """
    refuse_counts(workers=workers, partitions=partitions, devices=devices)
    if vram_bytes < 1:
        raise BadInput(f"vram must be at least 1 B, not {vram_bytes}")
    if margin_bytes < 0:
        raise BadInput(f"the margin cannot be negative: {margin_bytes}")
    if sizes is None:
        sizes, workload = partition_sizes(POREP_32G), POREP_32G.name
    gpus = tuple(Gpu(index, vram_bytes, margin_bytes) for index in range(devices))
    of: dict[str, Any] = {"workers": workers, "partitions": partitions, "gpus": gpus, "sizes": sizes}
    reductions: dict[str, Any] = {
        "partial_order": partial_order, "merge": merge, "symmetric": symmetric, "shortest": shortest,
        "queue_bound": queue_bound, "max_states": max_states, "progress": progress, "large": large,
    }  # fmt: skip
    exploration = explore(
        worker_programs(policy, **of), **reductions, seconds=seconds, claims=claims_of(policy), due=proofs_due(**of)
    )
    left_s = seconds - exploration.seconds
    if exploration.verdict == "safe" and policy.has("synthesise") and left_s > 0:
        programs, made = synthesis_beside_a_call(policy, gpus[0], sizes)
        exploration = _both(exploration, explore(programs, **reductions, seconds=left_s, due=made))
    conditions: Mapping[str, Any] = {
        "workers": workers, "partitions": partitions, "devices": devices, "vram_bytes": vram_bytes,
        "margin_bytes": margin_bytes, "workload": workload, "d_a_bytes": sizes.d_a, "d_bc_bytes": sizes.d_bc,
        "options": dict(policy.options),
    }  # fmt: skip
    return CheckResult(policy.name, conditions, exploration)


def _both(workers: Exploration, synthesis: Exploration) -> Exploration:
    """What came of two explorations, of which the first found nothing."""
    shown = synthesis if synthesis.findings or not synthesis.complete else workers
    return replace(shown, states=workers.states + synthesis.states, seconds=workers.seconds + synthesis.seconds)

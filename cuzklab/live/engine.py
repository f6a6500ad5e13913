"""A live run from beginning to end: a policy's whole engine on a device, its proofs verified."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from cuzklab import policies
from cuzklab.errors import BadInput
from cuzklab.live.asked import check_memory, check_numbers, size_of, urgent_size
from cuzklab.live.circuit import TestCircuit
from cuzklab.live.footprint import Engine, check_fits, most_under_way
from cuzklab.live.place import Place, batch_at, place, room_at
from cuzklab.live.result import LiveResult
from cuzklab.live.run import Ended, Run
from cuzklab.live.stages import Groth16
from cuzklab.live.status import Tell, snapshot
from cuzklab.policies.engine import EngineConfig, Failure, Outcome, Urgent, engine_programs, failure_of
from cuzklab.policies.model import Gpu, Partition, Priority
from cuzklab.policies.requests import batch_partitions, urgent_partitions
from cuzklab.profiles import Hardware, Workload, load_workload
from cuzklab.prover.model import Proof
from cuzklab.prover.verify import verify
from cuzklab.stages import POREP_32G, PartitionSizes
from cuzklab.trace import stolen
from cuzklab.trace.metrics import figures
from cuzklab.trace.recorders import Recording
from cuzklab.trace.recorders.profile import StackProfile
from cuzklab.trace.store import machine_facts
from cuzklab.units import Metric, percent, sizes_in_words


def run_live(
    policy: policies.Policy | str,
    workload: Workload | str | int,
    *,
    proofs: int,
    partitions: int | None = None,
    gpu_workers: int,
    synthesis_workers: int = 1,
    in_flight: int | None = None,
    lookahead: int | None = None,
    vram_bytes: int | None = None,
    urgent: Sequence[tuple[Workload | str, int]] = (),
    hardware: Hardware | str | None = None,
    backend: str = "host",
    gpus: int = 1,
    threads: int = 1,
    seed: int = 1,
    deadline_s: float | None = None,
    host_memory_bytes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    preparing: Callable[[str, float], None] | None = None,
    status: Tell | None = None,
    record: bool = True,
    sample_stacks: bool = False,
) -> LiveResult:
    """Run a policy's whole engine for real: threads, locks, kernels, proofs, on an emulated device or on a GPU.

    Parameters
    ----------
    policy : Policy or name
    workload : Workload, name, or int
        ``porep-shaped-15`` or 15: a PoRep-shaped circuit with 2^15 rows, which is made together with a TEST KEY.
    proofs, partitions : int
        Proofs of the batch (c); partitions of each, if not the workload's.
    gpu_workers, synthesis_workers : int
        Workers of the device (gw) and partitions synthesised at a time (pw).
    in_flight : int, optional
        Proofs under way at a time (j); all of them unless given.
    lookahead : int, optional
        Synthesised partitions that may wait for a worker; as many as synthesis workers unless given.
    vram_bytes : int, optional
        Device memory for a 32 GiB PoRep partition; what the run gets is in proportion to its circuit's domain. If not
        given, the hardware's.
    urgent : sequence of (workload, after)
        Proofs of other kinds, of their workload's priority, that arrive when `after` partitions have an outcome. Their
        circuits are PoRep-shaped, too, and smaller than the batch's as the workload's is than a PoRep partition.
    hardware : Hardware or name, optional
        Profile of the emulated device, ``emulated`` unless given. A GPU is its own.
    backend : {"host", "cuda"}
        An emulated device, or a real one that plays a card of `vram_bytes`. The proofs are the same.
    gpus : int
        Devices, each with its own lock and `gpu_workers` workers.
    threads : int
        CPU threads of each kernel of an emulated device and of each CPU stage.
    seed : int
        Of circuit, key, witnesses and the proofs' randomness: the same seed gives the same proofs, byte for byte.
    deadline_s : float, optional
        A run that takes longer is stopped, and says who waited for what.
    host_memory_bytes : int, optional
        Host memory that the run may take; a run that needs more is refused before anything large is made. If not
        given, what the machine and this process's control group have left.
    progress : callable (done, total), optional
        Told from time to time how many partitions have an outcome.
    preparing : callable (words, share), optional
        Told what a GPU makes of circuit and key before anything is timed, and the share of that which is done.
    status : callable (mapping), optional
        Told ten times a second what the run is at: see `cuzklab.live.status.snapshot`, with `total` beside `outcomes`.
    record : bool
        False records nothing; then there are no metrics but the wall time.
    sample_stacks : bool
        Sample the stacks of CPU stages, for the flame view of a report. Only of a run that is recorded.

    Raises
    ------
    BadInput
        A condition is impossible, or there is no usable GPU.
    KeyboardInterrupt
        After all threads have been stopped.
    """
    policy = policies.load(policy) if isinstance(policy, str) else policy
    where = place(backend, hardware)
    log2_domain, partitions_per_proof = size_of(workload)
    partitions = partitions_per_proof if partitions is None else partitions
    in_flight = proofs if in_flight is None else in_flight
    lookahead = synthesis_workers if lookahead is None else lookahead
    check_numbers(proofs, partitions, gpu_workers, synthesis_workers, threads, gpus)
    equivalent_bytes = where.vram_bytes if vram_bytes is None else vram_bytes
    kinds = [(load_workload(kind) if isinstance(kind, str) else kind, after) for kind, after in urgent]
    sizes = [(log2_domain, proofs * partitions), *(urgent_size(kind, log2_domain) for kind, _ in kinds)]
    admitted = min(proofs, in_flight) * partitions + sum(count for _, count in sizes[1:])
    emulated_bytes = None if where.card_bytes else gpus * (equivalent_bytes << log2_domain) // POREP_32G.domain
    warning = check_fits(
        [batch_at(where, *size, seed) for size in sizes],
        Engine(
            most_under_way(policy, admitted, gpu_workers * gpus, synthesis_workers, lookahead), gpu_workers * gpus,
            threads, emulated_bytes,
        ),
        room_at(where, log2_domain, seed, host_memory_bytes),
    )  # fmt: skip
    if warning and preparing:
        preparing(warning, 0.0)
    circuit = where.circuit(log2_domain, seed, preparing)
    limit_bytes, margin_bytes = circuit.scaled(equivalent_bytes), circuit.scaled(where.margin_bytes)
    check_memory(where, equivalent_bytes, limit_bytes, margin_bytes)
    cards = tuple(Gpu(index, limit_bytes, margin_bytes) for index in range(gpus))
    circuits = {"": circuit} | {
        kind.name: where.circuit(urgent_size(kind, log2_domain)[0], seed, None) for kind, _ in kinds
    }
    try:
        config = EngineConfig(
            proofs, partitions, cards, in_flight, synthesis_workers, gpu_workers, lookahead,
            tuple(_urgent(kind, after, circuits[kind.name].sizes(where.model)) for kind, after in kinds),
        )  # fmt: skip
    except ValueError as error:
        raise BadInput(str(error)) from error

    recorder = Recording() if record else None
    if recorder and sample_stacks:
        StackProfile(recording=recorder)
    total = config.total_partitions
    devices = where.devices(gpus, limit_bytes)
    try:
        keys = {
            kind: where.prepare(one.key, one.shape, devices, 2 * gpu_workers * gpus) for kind, one in circuits.items()
        }
        groth16 = Groth16(
            keys[""],
            lambda partition: circuits[partition.kind].job(partition, keys[partition.kind]),
            where.means(threads, devices),
            tuple(key for kind, key in keys.items() if kind),
        )
        sizes = circuit.sizes(where.model)
        programs = engine_programs(policy, config, sizes)
        # Witnesses are made under the interpreter's lock, for which threads that drive a device would have to wait.
        groth16.make_jobs(chain(*batch_partitions(config, sizes), *urgent_partitions(config)))
        cpu_before = stolen.cpu_times()
        run = Run(devices, groth16, recorder)

        def tell(done: int) -> None:
            if progress:
                progress(done, total)
            if status:
                status({**snapshot(run), "total": total})

        ended = run.execute(programs, deadline_s, tell)
        share = stolen.stolen_share(cpu_before, stolen.cpu_times())
        notes, facts = where.notes(threads, devices), [where.facts(device) for device in devices]
    finally:
        for device in devices:
            device.close()

    outcomes = ended.results.get("collector") or ()
    partition_proofs, failures = _verified(groth16, outcomes, circuits)
    groth16.forget()  # what the run consists of refers to itself, so it stays until the collector comes
    outcome, explanation = _judge(ended, outcomes, failures, total)
    conditions = {
        "policy": policy.name, **policy.options, "c": proofs, "j": in_flight, "pw": synthesis_workers,
        "gw": gpu_workers, "gt": threads, "partitions": partitions, "lookahead": lookahead, "gpus": gpus,
        "vram_bytes": limit_bytes, "vram_equivalent_bytes": equivalent_bytes, "workload": circuit.shape.name,
        "hardware": where.hardware, "backend": where.backend, "seed": seed,
    }  # fmt: skip
    if kinds:
        conditions["urgent"] = ", ".join(f"{kind.name} after {after}" for kind, after in kinds)
    metrics, reasons = _metrics(recorder, config, ended.took_s, conditions)
    proved = [outcome.partition.proof for outcome in outcomes if outcome.ok]
    valid = [outcome.partition.proof for outcome in outcomes if outcome.partition.name in partition_proofs]
    return LiveResult(
        outcome=outcome,
        explanation=explanation,
        proofs=_whole(config, proved),
        verified=_whole(config, valid),
        partition_proofs=partition_proofs,
        failures=failures,
        metrics=metrics,
        reasons=reasons,
        conditions=conditions,
        devices=tuple(_device(gpu, where, equivalent_bytes, known) for gpu, known in zip(cards, facts, strict=True)),
        inputs={**circuit.digests, **where.inputs, **policy.inputs},
        notes=(
            *_notes(circuit),
            *notes,
            *([warning] if warning else []),
            *([_stolen_in_words(share)] if share is not None and share >= stolen.NOTED_SHARE else []),
            "Witnesses were made before the timed part, proofs verified after it.",
        ),
        machine={**machine_facts(), **({} if share is None else {stolen.FACT: share})},
        wall_s=ended.took_s,
        waits_for=ended.waits_for,
        leaks=ended.leaks,
        recorder=recorder,
        latency_s={proof: run.latencies.seconds(proof) for proof in sorted(run.latencies.done_ns)},
    )


def _whole(config: EngineConfig, partitions: Sequence[int]) -> tuple[int, ...]:
    """The proofs that are complete, from the proof of each partition that is done."""
    numbers = range(config.proofs + len(config.urgent))
    return tuple(proof for proof in numbers if partitions.count(proof) == config.partitions_of(proof))


def _urgent(kind: Workload, after: int, sizes: PartitionSizes) -> Urgent:
    return Urgent(kind.name, sizes, kind.partitions_per_proof, Priority[kind.priority.upper()], after)


def _device(gpu: Gpu, where: Place, equivalent_bytes: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **facts,
        "index": gpu.index,
        "name": where.title,
        "vram_limit_bytes": gpu.vram_bytes,
        "margin_bytes": gpu.margin_bytes,
        "vram_equivalent_bytes": equivalent_bytes,
    }


def _verified(
    groth16: Groth16, outcomes: tuple[Outcome, ...], circuits: Mapping[str, TestCircuit]
) -> tuple[dict[str, Proof], tuple[Failure, ...]]:
    """Verify the proof of every partition that was proved: the valid ones, and all failures."""
    proofs: dict[str, Proof] = {}
    failures = []
    for outcome in sorted(outcomes, key=lambda outcome: (outcome.partition.proof, outcome.partition.index)):
        partition: Partition = outcome.partition
        job = groth16.job(partition)
        if outcome.fault is not None:
            failure = failure_of(outcome)
            failures.append(replace(failure, message=sizes_in_words(failure.message)))
        elif job.proof is None:
            failures.append(_invalid(partition, "the policy ended without an epilogue, so without a proof"))
        elif not (verdict := verify(circuits[partition.kind].key.vk, job.public, job.proof)).valid:
            failures.append(_invalid(partition, f"the proof is not valid: {verdict.detail}"))
        else:
            proofs[partition.name] = job.proof
    return proofs, tuple(failures)


def _invalid(partition: Partition, why: str) -> Failure:
    where = f"proof {partition.proof}, partition {partition.index}"
    return Failure(partition.proof, partition.name, "invalid", f"{where}: {why}")


def _judge(ended: Ended, outcomes: tuple[Outcome, ...], failures: tuple[Failure, ...], total: int) -> tuple[str, str]:
    """Outcome and explanation; the worst counts."""
    if ended.outcome != "ok":
        return ended.outcome, sizes_in_words(ended.explanation)
    for failure in failures:
        if failure.kind != "oom":
            return "fault", failure.message
    if failures:
        return "device_oom", (
            f"{len(failures)} of {total} partitions failed for want of device memory, first {failures[0].message}"
        )
    return "ok", ""


def _metrics(
    recorder: Recording | None, config: EngineConfig, wall_s: float, conditions: Mapping[str, Any]
) -> tuple[dict[str, Metric], dict[str, str]]:
    if recorder is None:
        return {"wall_s": Metric("wall", wall_s, "measured", conditions)}, {}
    found = figures(recorder, config.partitions, config.proofs)
    return {name: Metric(kind, value, "measured", conditions) for name, kind, value in found.known()}, found.reasons


def _stolen_in_words(share: float) -> str:
    return (
        f"The host gave {percent(share)} of the CPU time that this machine wanted during the run to others: CPU stages "
        "and launches took longer than they take on a machine left alone."
    )


def _notes(circuit: TestCircuit) -> tuple[str, ...]:
    return (
        f"TEST KEY: made from seed {circuit.seed}; whoever knows it can forge proofs. They prove nothing to anybody.",
        f"The circuit is PoRep-shaped with 2^{circuit.log2_domain} rows: sizes, sparsity and shares of a 32 GiB PoRep "
        "partition in proportion, not its statement. Every partition has a witness of its own.",
    )

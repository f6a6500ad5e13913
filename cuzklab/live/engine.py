"""A live run from beginning to end: a policy's whole engine on an emulated device, proofs verified, the run stored."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuzklab import policies
from cuzklab.backends.emulated import EmulatedDevice
from cuzklab.errors import BadInput
from cuzklab.live.circuit import TestCircuit, circuit_with_test_key
from cuzklab.live.run import Ended, Run
from cuzklab.live.stages import Groth16
from cuzklab.policies.effects import OutOfDeviceMemory
from cuzklab.policies.engine import EngineConfig, Outcome, engine_programs
from cuzklab.policies.model import Gpu, Partition, WaitFor
from cuzklab.profiles import Hardware, Workload, load_hardware, load_workload, scaled_shape
from cuzklab.prover.model import Proof
from cuzklab.prover.verify import verify
from cuzklab.trace import Run as StoredRun
from cuzklab.trace import RunInfo
from cuzklab.trace.metrics import figures
from cuzklab.trace.recorders import Recording
from cuzklab.trace.recorders.profile import StackProfile
from cuzklab.units import Metric, format_size, sizes_in_words

MAX_PARTITIONS, MAX_WORKERS = 10_000, 64


@dataclass(frozen=True)
class Failure:
    """A partition without a valid proof, and why; `kind` is ``oom``, ``fault`` or ``invalid``."""

    partition: str
    kind: str
    message: str


@dataclass(frozen=True)
class LiveResult:
    """What a live run came to.

    Attributes
    ----------
    outcome : {"ok", "device_oom", "deadlock", "fault"}
    explanation : str
        One sentence where it is not ok.
    proofs : tuple of int
        Proofs all of whose partitions were proved.
    verified : tuple of int
        Those of them whose every partition was verified, after the timed part.
    partition_proofs : mapping
        Partition → its Groth16 proof.
    failures : tuple of Failure
    metrics : mapping
        Name → Metric; a figure that does not exist is in `reasons`.
    wall_s : float
        Start of the first thread to the end of the last; keys, witnesses made beforehand and verification not counted.
    waits_for : tuple of WaitFor
        At a deadlock or the deadline: who waited for what.
    leaks : tuple of str
        What was not given back; empty after a run that is ok or out of memory.
    recorder : Recording or None
        None if nothing was to be recorded.
    """

    outcome: str
    explanation: str
    proofs: tuple[int, ...]
    verified: tuple[int, ...]
    partition_proofs: Mapping[str, Proof] = field(repr=False)
    failures: tuple[Failure, ...]
    metrics: Mapping[str, Metric]
    reasons: Mapping[str, str]
    conditions: Mapping[str, Any]
    devices: tuple[Mapping[str, Any], ...]
    inputs: Mapping[str, str]
    notes: tuple[str, ...]
    wall_s: float
    waits_for: tuple[WaitFor, ...]
    leaks: tuple[str, ...]
    recorder: Recording | None = field(repr=False)

    def write(self, place: Path, inputs: Mapping[str, str] | None = None) -> StoredRun:
        """Store it as a run of origin "live", at `place` or, if that exists, beside it with a number.

        Parameters
        ----------
        place : Path
        inputs : mapping of str to str, optional
            Hashes to be stored beside those of circuit, key and profile.

        Raises
        ------
        ValueError
            Nothing was recorded.
        """
        if self.recorder is None:
            raise ValueError("the run was made without recording, so there is nothing to store")
        info = RunInfo(
            origin="live",
            title=f"live run of {self.conditions['policy']} on {self.conditions['hardware']}",
            outcome=self.outcome,
            explanation=self.explanation,
            policy=self.conditions["policy"],
            conditions=self.conditions,
            devices=self.devices,
            metrics=tuple(metric.to_json() for metric in self.metrics.values()),
            inputs={**self.inputs, **(inputs or {})},
            notes=self.notes,
        )
        return self.recorder.write(place, info)


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
    hardware: Hardware | str = "emulated",
    threads: int = 1,
    seed: int = 1,
    deadline_s: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    record: bool = True,
    sample_stacks: bool = False,
) -> LiveResult:
    """Run a policy's whole engine for real: threads, locks, kernels, proofs, on an emulated device.

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
    threads : int
        CPU threads of each kernel and of each CPU stage.
    seed : int
        Of circuit, key, witnesses and the proofs' randomness: the same seed gives the same proofs, byte for byte.
    deadline_s : float, optional
        A run that takes longer is stopped, and says who waited for what.
    progress : callable (done, total), optional
        Told from time to time how many partitions have an outcome.
    record : bool
        False records nothing; then there are no metrics but the wall time.
    sample_stacks : bool
        Sample the stacks of CPU stages, for the flame view of a report. Only of a run that is recorded.

    Raises
    ------
    BadInput
        A condition is impossible.
    KeyboardInterrupt
        After all threads have been stopped.
    """
    policy = policies.load(policy) if isinstance(policy, str) else policy
    hardware = load_hardware(hardware) if isinstance(hardware, str) else hardware
    log2_domain, partitions_per_proof = _workload(workload)
    partitions = partitions_per_proof if partitions is None else partitions
    in_flight = proofs if in_flight is None else in_flight
    lookahead = synthesis_workers if lookahead is None else lookahead
    _check_numbers(proofs, partitions, gpu_workers, synthesis_workers, threads)
    circuit = circuit_with_test_key(log2_domain, seed)
    equivalent_bytes = hardware.device.vram_bytes if vram_bytes is None else vram_bytes
    gpu = Gpu(0, circuit.scaled(equivalent_bytes), circuit.scaled(hardware.device.margin_bytes))
    if gpu.vram_bytes <= gpu.margin_bytes:
        raise BadInput(
            f"vram {format_size(equivalent_bytes)}: the engine leaves {format_size(hardware.device.margin_bytes)} "
            "free, so nothing remains; give more"
        )
    try:
        config = EngineConfig(proofs, partitions, (gpu,), in_flight, synthesis_workers, gpu_workers, lookahead)
    except ValueError as error:
        raise BadInput(str(error)) from error

    recorder = Recording() if record else None
    if recorder and sample_stacks:
        StackProfile(recording=recorder)
    groth16 = Groth16(circuit.key, circuit.job, threads)
    programs = engine_programs(policy, config, circuit.sizes(hardware.device.model))
    device = EmulatedDevice(0, gpu.vram_bytes, hardware.transfer)
    total = proofs * partitions
    began = time.monotonic()
    try:
        ended = Run((device,), groth16, recorder).execute(
            programs, deadline_s, (lambda done: progress(done, total)) if progress else None
        )
    finally:
        device.close()
    wall_s = time.monotonic() - began

    outcomes = ended.results.get("collector") or ()
    partition_proofs, failures = _verified(groth16, outcomes, circuit)
    outcome, explanation = _judge(ended, outcomes, failures, total)
    conditions = {
        "policy": policy.name, **policy.options, "c": proofs, "j": in_flight, "pw": synthesis_workers,
        "gw": gpu_workers, "gt": threads, "partitions": partitions, "lookahead": lookahead, "gpus": 1,
        "vram_bytes": gpu.vram_bytes, "vram_equivalent_bytes": equivalent_bytes, "workload": circuit.shape.name,
        "hardware": hardware.name, "backend": "host", "seed": seed,
    }  # fmt: skip
    metrics, reasons = _metrics(recorder, partitions, wall_s, conditions)
    proved = [outcome.partition.proof for outcome in outcomes if outcome.ok]
    valid = [outcome.partition.proof for outcome in outcomes if outcome.partition.name in partition_proofs]
    return LiveResult(
        outcome=outcome,
        explanation=explanation,
        proofs=tuple(proof for proof in range(proofs) if proved.count(proof) == partitions),
        verified=tuple(proof for proof in range(proofs) if valid.count(proof) == partitions),
        partition_proofs=partition_proofs,
        failures=failures,
        metrics=metrics,
        reasons=reasons,
        conditions=conditions,
        devices=(_device(gpu, hardware, equivalent_bytes),),
        inputs={**circuit.digests, f"hardware {hardware.name}": hardware.digest},
        notes=_notes(circuit, hardware, threads),
        wall_s=wall_s,
        waits_for=ended.waits_for,
        leaks=ended.leaks,
        recorder=recorder,
    )


def _device(gpu: Gpu, hardware: Hardware, equivalent_bytes: int) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "name": hardware.title,
        "vram_limit_bytes": gpu.vram_bytes,
        "margin_bytes": gpu.margin_bytes,
        "vram_equivalent_bytes": equivalent_bytes,
    }


def _workload(workload: Workload | str | int) -> tuple[int, int]:
    """log2 of the domain, and partitions of a proof."""
    if isinstance(workload, int):
        workload = f"porep-shaped-{workload}"
    if isinstance(workload, str):
        workload = load_workload(workload)
    log2_domain = workload.shape.domain.bit_length() - 1
    if workload.shape != scaled_shape(log2_domain, workload.shape.name):
        raise BadInput(
            f"workload {workload.name}: a live run makes a circuit with the ratios of a 32 GiB PoRep partition and a "
            "key for it; ask for porep-shaped-N"
        )
    return log2_domain, workload.partitions_per_proof


def _check_numbers(proofs: int, partitions: int, gpu_workers: int, synthesis_workers: int, threads: int) -> None:
    if proofs * partitions > MAX_PARTITIONS:
        raise BadInput(f"{proofs} proofs of {partitions} partitions are more than {MAX_PARTITIONS} partitions")
    for name, number in (
        ("gpu_workers", gpu_workers),
        ("synthesis_workers", synthesis_workers),
        ("threads", threads),
    ):
        if not 1 <= number <= MAX_WORKERS:
            raise BadInput(f"{name} is {number}; it must be 1 to {MAX_WORKERS}")


def _verified(
    groth16: Groth16, outcomes: tuple[Outcome, ...], circuit: TestCircuit
) -> tuple[dict[str, Proof], tuple[Failure, ...]]:
    """Verify the proof of every partition that was proved: the valid ones, and all failures."""
    proofs: dict[str, Proof] = {}
    failures = []
    for outcome in sorted(outcomes, key=lambda outcome: (outcome.partition.proof, outcome.partition.index)):
        partition: Partition = outcome.partition
        job = groth16.job(partition)
        if outcome.fault is not None:
            kind = "oom" if isinstance(outcome.fault, OutOfDeviceMemory) else "fault"
            at = f" (at {outcome.effect})" if outcome.effect else ""
            failures.append(Failure(partition.name, kind, sizes_in_words(f"{outcome.fault}{at}")))
        elif job.proof is None:
            failures.append(
                Failure(partition.name, "invalid", "the policy ended without an epilogue, so without a proof")
            )
        elif not (verdict := verify(circuit.key.vk, job.public, job.proof)).valid:
            failures.append(Failure(partition.name, "invalid", f"the proof is not valid: {verdict.detail}"))
        else:
            proofs[partition.name] = job.proof
    return proofs, tuple(failures)


def _judge(ended: Ended, outcomes: tuple[Outcome, ...], failures: tuple[Failure, ...], total: int) -> tuple[str, str]:
    """Outcome and explanation; the worst counts."""
    if ended.outcome != "ok":
        return ended.outcome, sizes_in_words(ended.explanation)
    for failure in failures:
        if failure.kind != "oom":
            return "fault", f"{failure.partition}: {failure.message}"
    if failures:
        return "device_oom", (
            f"{len(failures)} of {total} partitions failed for want of device memory, first {failures[0].partition}: "
            f"{failures[0].message}"
        )
    return "ok", ""


def _metrics(
    recorder: Recording | None, partitions: int, wall_s: float, conditions: Mapping[str, Any]
) -> tuple[dict[str, Metric], dict[str, str]]:
    if recorder is None:
        return {"wall_s": Metric("wall", wall_s, "measured", conditions)}, {}
    found = figures(recorder, partitions)
    return {name: Metric(kind, value, "measured", conditions) for name, kind, value in found.known()}, found.reasons


def _notes(circuit: TestCircuit, hardware: Hardware, threads: int) -> tuple[str, ...]:
    return (
        f"TEST KEY: made from seed {circuit.seed}; whoever knows it can forge proofs. They prove nothing to anybody.",
        f"The circuit is PoRep-shaped with 2^{circuit.log2_domain} rows: sizes, sparsity and shares of a 32 GiB PoRep "
        "partition in proportion, not its statement. Every partition has a witness of its own.",
        f"The device is emulated ({hardware.name}): kernels are the host backend's on {threads} of this machine's CPU "
        "threads, which CPU stages compete for; transfers last as long as the profile's link takes; memory is limited "
        "in proportion to the circuit's domain.",
        "Proofs were verified after the timed part.",
    )

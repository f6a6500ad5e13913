"""One simulation: a policy on a machine with a workload, and what came of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import simpy

import cuzklab.policies as policies
from cuzklab.errors import BadInput
from cuzklab.policies.effects import OutOfDeviceMemory
from cuzklab.policies.engine import EngineConfig, Failure, Urgent, engine_programs, failure_of
from cuzklab.policies.model import Gpu, Priority
from cuzklab.profiles import Hardware, Workload, load_hardware, load_workload
from cuzklab.simulate.costs import Machine
from cuzklab.simulate.host_memory import HostMemory
from cuzklab.simulate.interpreter import Ending, Interpreter
from cuzklab.simulate.tracer import OPTIONAL_TABLES
from cuzklab.stages import partition_sizes
from cuzklab.trace import Recorder, Run, RunInfo, write_run
from cuzklab.trace.metrics import figures
from cuzklab.units import Metric, format_size, sizes_in_words

MAX_PARTITIONS = 1_000_000


@dataclass(frozen=True)
class Simulation:
    """What a simulation came to.

    Attributes
    ----------
    outcome : {"ok", "device_oom", "host_oom", "deadlock", "fault"}
    explanation : str
        One sentence, where the outcome is not ok.
    metrics : mapping of str to Metric
        ``batch_average_s``, ``steady_interval_s``, ``prove_time_s``, ``peak_host_bytes``, ``peak_vram_bytes``,
        ``call_occupancy``, ``kernel_occupancy``, ``wall_s``; those that exist.
    reasons : mapping of str to str
        Why a metric does not exist.
    conditions : mapping
        All that the result depends on.
    proofs_completed : int
        Proofs of the batch.
    partitions_failed : int
    failures : tuple of Failure
        Of the partitions that failed: where and why.
    latency_s : mapping of int to float
        Of each proof, from the queueing of its first partition to its last outcome.
    recorder : Recorder
        Rows of the trace, in virtual nanoseconds.
    notes : tuple of str
        What a reader must know of the model.
    """

    outcome: str
    explanation: str
    metrics: Mapping[str, Metric]
    reasons: Mapping[str, str]
    conditions: Mapping[str, Any]
    proofs_completed: int
    partitions_failed: int
    recorder: Recorder = field(repr=False)
    devices: tuple[Mapping[str, Any], ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    complete_trace: bool = True
    failures: tuple[Failure, ...] = ()
    latency_s: Mapping[int, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As `cuzklab simulate --json` prints it; a metric that does not exist is null, with its reason beside it."""
        names = [*self.metrics, *(name for name in self.reasons if name not in self.metrics)]
        return {
            "outcome": self.outcome,
            "explanation": self.explanation,
            "metrics": {name: self.metrics[name].value if name in self.metrics else None for name in names},
            "reasons": dict(self.reasons),
            "conditions": dict(self.conditions),
            "proofs_completed": self.proofs_completed,
            "partitions_failed": self.partitions_failed,
            "failures": [asdict(failure) for failure in self.failures],
            "latency_s": dict(self.latency_s),
            "notes": list(self.notes),
        }

    def to_run(self, place: Path, inputs: Mapping[str, str] | None = None) -> Run:
        """Store it as a run of origin "simulated", at `place` or, if that exists, beside it with a number.

        Parameters
        ----------
        place : Path
        inputs : mapping of str to str, optional
            Hashes to be stored beside those of the profiles.
        """
        info = RunInfo(
            origin="simulated",
            title=f"simulation of {self.conditions['policy']} on {self.conditions['hardware']}",
            outcome=self.outcome,
            explanation=self.explanation,
            policy=self.conditions["policy"],
            conditions=self.conditions,
            devices=self.devices,
            metrics=tuple(metric.to_json() for metric in self.metrics.values()),
            inputs={**self.inputs, **(inputs or {})},
            notes=self.notes,
        )
        return write_run(place, info, self.recorder, () if self.complete_trace else OPTIONAL_TABLES)


def simulate(
    policy: policies.Policy | str,
    hardware: Hardware | str,
    workload: Workload | str,
    *,
    proofs: int,
    in_flight: int,
    gpu_workers: int,
    synthesis_workers: int,
    lookahead: int | None = None,
    partitions: int | None = None,
    gpus: int = 1,
    vram_bytes: int | None = None,
    urgent: Sequence[tuple[Workload | str, int]] = (),
    seed: int = 0,
    record: bool = True,
    watch: Callable[[Recorder, int], None] | None = None,
) -> Simulation:
    """Run a policy's whole engine in virtual time.

    Parameters
    ----------
    policy, hardware, workload : object or name
    proofs, in_flight : int
        Proofs of the batch (c) and proofs that may be under way at a time (j).
    gpu_workers, synthesis_workers : int
        Workers a device (gw) and partitions synthesised at a time (pw).
    lookahead : int, optional
        Synthesised partitions that may wait for a worker. Unless given: as many as synthesis workers where the policy
        bounds its queue (it has `queue_capacity`); in the others a synthesis permit is given back before the result is
        queued, so all that are in flight may wait.
    partitions : int, optional
        Partitions of a proof, if not the workload's.
    gpus : int
        Devices of the hardware's kind.
    vram_bytes : int, optional
        Device memory, if not the hardware's.
    urgent : sequence of (workload, after)
        Proofs of other kinds, of their workload's priority, that arrive when `after` partitions have an outcome; before
        those that a mixed workload brings with it.
    seed : int
        Of the spread of stage times. The same seed gives the same result.
    record : bool
        False keeps only what the metrics need.
    watch : callable (Recorder, int), optional
        Told now and then, while the simulation goes on, what is recorded so far and the virtual nanosecond it is at.

    Raises
    ------
    BadInput
        A condition is impossible, or the hardware profile has no rates.
    cuzklab.policies.UnknownPolicy
    """
    policy = policies.load(policy) if isinstance(policy, str) else policy
    hardware = load_hardware(hardware) if isinstance(hardware, str) else hardware
    workload = load_workload(workload) if isinstance(workload, str) else workload
    partitions = workload.partitions_per_proof if partitions is None else partitions
    if lookahead is None:
        lookahead = synthesis_workers if policy.has("queue_capacity") else in_flight * partitions
    vram_bytes = hardware.device.vram_bytes if vram_bytes is None else vram_bytes
    if vram_bytes <= hardware.device.margin_bytes:
        raise BadInput(
            f"vram {format_size(vram_bytes)}: the engine leaves {format_size(hardware.device.margin_bytes)} free, "
            f"so nothing remains; give more"
        )
    if not 1 <= gpus <= 64:
        raise BadInput(f"gpus is {gpus}; it must be 1 to 64")
    devices = tuple(Gpu(index, vram_bytes, hardware.device.margin_bytes) for index in range(gpus))
    given = [(load_workload(kind) if isinstance(kind, str) else kind, after) for kind, after in urgent]
    kinds = [*given, *workload.arriving(proofs * partitions)]
    try:
        config = EngineConfig(
            proofs, partitions, devices, in_flight, synthesis_workers, gpu_workers, lookahead,
            tuple(_urgent(kind, after, hardware) for kind, after in kinds),
        )  # fmt: skip
    except ValueError as error:
        raise BadInput(str(error)) from error
    if proofs * partitions > MAX_PARTITIONS:
        raise BadInput(f"{proofs} proofs of {partitions} partitions are more than {MAX_PARTITIONS} partitions")
    hardware.rate("synthesis")  # a profile without rates is refused before anything runs

    shapes = {kind.name: kind.shape for kind, _ in kinds}
    machine = Machine(simpy.Environment(), hardware, workload.shape, seed, shapes)
    early_share = hardware.engine.early_memory_share
    host_memory = HostMemory(hardware.host.available_bytes, workload.shape, early_share, shapes)
    interpreter = Interpreter(machine, host_memory, everything=record, watch=watch)
    sizes = partition_sizes(workload.shape, hardware.device.model)
    try:
        ending = interpreter.run(engine_programs(policy, config, sizes))
        countable = ending.end_ns < 2**63
    except OverflowError:
        countable = False
    if not countable:
        raise BadInput(f"hardware profile {hardware.name}: its rates make the batch last longer than 292 years")
    outcome, explanation = _judge(ending)
    conditions = {
        "policy": policy.name, **policy.options, "c": proofs, "j": in_flight, "pw": synthesis_workers,
        "gw": gpu_workers, "partitions": partitions, "lookahead": lookahead, "gpus": gpus, "vram_bytes": vram_bytes,
        "workload": workload.name, "hardware": hardware.name, "backend": "sim", "seed": seed,
    }  # fmt: skip
    if given:
        conditions["urgent"] = ", ".join(f"{kind.name} after {after}" for kind, after in given)
    recorder = interpreter.tracer.recorder
    found = figures(recorder, partitions, proofs)
    return Simulation(
        outcome=outcome,
        explanation=explanation,
        metrics={name: Metric(kind, value, "simulated", conditions) for name, kind, value in found.known()},
        reasons=found.reasons,
        conditions=conditions,
        proofs_completed=len(found.completed),
        partitions_failed=sum(not outcome.ok for outcome in ending.outcomes),
        recorder=recorder,
        devices=tuple(_device(gpu, hardware) for gpu in devices),
        inputs={
            f"hardware {hardware.name}": hardware.digest,
            f"workload {workload.name}": workload.digest,
            **policy.inputs,
        },
        notes=_notes(hardware),
        complete_trace=record,
        failures=tuple(failure_of(outcome) for outcome in ending.outcomes if not outcome.ok),
        latency_s={proof: ending.latencies.seconds(proof) for proof in sorted(ending.latencies.done_ns)},
    )


def _urgent(kind: Workload, after: int, hardware: Hardware) -> Urgent:
    sizes = partition_sizes(kind.shape, hardware.device.model)
    return Urgent(kind.name, sizes, kind.partitions_per_proof, Priority[kind.priority.upper()], after)


def _device(gpu: Gpu, hardware: Hardware) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "name": hardware.title,
        "vram_limit_bytes": gpu.vram_bytes,
        "margin_bytes": gpu.margin_bytes,
    }


def _notes(hardware: Hardware) -> tuple[str, ...]:
    notes = ["simulated: times are those of a model, not of a machine"]
    if not hardware.calibrated:
        notes.append(f"the profile {hardware.name} is not calibrated: {' '.join(hardware.source.split())}")
    return tuple(notes)


def _judge(ending: Ending) -> tuple[str, str]:
    """Outcome and explanation; the worst counts."""
    if ending.host_memory_exhausted:
        return "host_oom", ending.host_memory_exhausted
    if ending.stuck:
        # Those who have what another wants are the heart of it; the rest queue behind them.
        core = [waiting for waiting in ending.stuck if waiting.holders] or list(ending.stuck)
        others = len(ending.stuck) - len(core)
        behind = f"; {others} others wait behind them" if others else ""
        return "deadlock", "nobody can go on: " + "; ".join(map(str, core)) + behind
    failed = [failure_of(outcome) for outcome in ending.outcomes if not outcome.ok]
    for failure in failed:
        if failure.kind != "oom":
            return "fault", sizes_in_words(failure.message)
    for name, fault in ending.faults.items():
        if not isinstance(fault, OutOfDeviceMemory):
            return "fault", f"{name}: {fault.kind}: {fault}"
    if failed:
        return "device_oom", (
            f"{len(failed)} of {len(ending.outcomes)} partitions failed for want of device memory, "
            + sizes_in_words(f"first {failed[0].message}")
        )
    for name, fault in ending.faults.items():
        return "device_oom", sizes_in_words(f"{name}: {fault}")
    return "ok", ""

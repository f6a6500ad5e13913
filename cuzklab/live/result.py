"""What a live run came to, and how it becomes a stored run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuzklab.policies.engine import Failure
from cuzklab.policies.model import WaitFor
from cuzklab.prover.model import Proof
from cuzklab.trace import Run, RunInfo
from cuzklab.trace.recorders import Recording
from cuzklab.units import Metric


@dataclass(frozen=True)
class LiveResult:
    """What a live run came to.

    Attributes
    ----------
    outcome : {"ok", "device_oom", "deadlock", "fault"}
    explanation : str
        One sentence where it is not ok.
    proofs : tuple of int
        Proofs all of whose partitions were proved; the numbers of urgent ones follow those of the batch.
    verified : tuple of int
        Those of them whose every partition was verified, after the timed part.
    partition_proofs : mapping
        Partition → its Groth16 proof.
    failures : tuple of Failure
        Partitions without a valid proof: where and why.
    latency_s : mapping of int to float
        Of each proof, from the queueing of its first partition to its last outcome.
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
    machine : mapping
        Where it ran, and `cpu_stolen_share` where the system tells: see `trace.stolen`.
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
    latency_s: Mapping[int, float] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)

    def write(self, place: Path, inputs: Mapping[str, str] | None = None) -> Run:
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
            machine=self.machine,
        )
        return self.recorder.write(place, info)

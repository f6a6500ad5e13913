"""A counterexample of the checker carried out elsewhere: in virtual time at full scale, or by real threads on a device.

The checker knows neither times nor threads, so a schedule that it finds is a claim about an abstraction. `replay` makes
the simulator or the live engine follow that very schedule, step by step, and says whether the defect is there.

A live replay takes place on circuits small enough for a machine at hand: the same programs, the same schedule, with
every amount of device memory divided by the ratio of the two domains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from cuzklab.check import CheckResult, Finding, Step, outcome_of
from cuzklab.errors import BadInput
from cuzklab.policies.model import Gpu, Partition, Program, WaitFor
from cuzklab.policies.schedule import alike
from cuzklab.stages import POREP_32G, PartitionSizes
from cuzklab.trace import Recorder, Run, RunInfo, write_run
from cuzklab.trace.recorders import Recording
from cuzklab.units import sizes_in_words

Where = Literal["simulate", "live"]
LOG2_DOMAIN = 10
_NEVER_ENDING = ("starvation", "unbounded_queue", "claim")  # nothing fails and nobody stops where these end


@dataclass(frozen=True)
class Replay:
    """What came of a counterexample elsewhere.

    Attributes
    ----------
    where : {"simulate", "live"}
    happened : bool
        The defect of the finding was there, at the end of its schedule.
    explanation : str
        One sentence: what happened, or why not.
    outcome : str
        Of the run: device_oom, deadlock, fault, ok.
    followed, steps : int
        Steps of the schedule that were made, and all of them.
    waits_for : tuple of WaitFor
        The wait-for graph at the end.
    """

    where: Where
    finding: Finding
    happened: bool
    explanation: str
    outcome: str
    followed: int
    waits_for: tuple[WaitFor, ...]
    conditions: Mapping[str, Any]
    policy: str
    recorder: Recorder | Recording = field(repr=False)
    devices: tuple[Mapping[str, Any], ...] = ()

    @property
    def steps(self) -> int:
        return len(self.finding.schedule)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        device = "a GPU" if self.conditions.get("backend") == "cuda" else "an emulated device"
        how = {"simulate": "in virtual time", "live": f"by real threads on {device}"}[self.where]
        if self.happened:
            return f"It happened {how}, after step {self.steps} of {self.steps}: {self.explanation}"
        return f"It did not happen {how} ({self.followed} of {self.steps} steps): {self.explanation}"

    def to_json(self) -> dict[str, Any]:
        """As `cuzklab check --replay … --json` prints it."""
        return {
            "where": self.where, "kind": self.finding.kind, "happened": self.happened, "outcome": self.outcome,
            "explanation": self.explanation, "followed": self.followed, "steps": self.steps,
            "waits_for": [
                {"actor": edge.actor, "kind": edge.kind, "on": edge.on, "holders": list(edge.holders)}
                for edge in self.waits_for
            ],
            "conditions": dict(self.conditions),
        }  # fmt: skip

    def write(self, place: Path, inputs: Mapping[str, str] | None = None) -> Run:
        """Store it as a run of the origin that it has."""
        origin = {"simulate": "simulated", "live": "live"}[self.where]
        title = f"{self.finding.kind.replace('_', ' ')} of {self.policy}, its schedule followed"
        info = RunInfo(
            origin, title, self.outcome, self.sentence, self.policy, dict(self.conditions), self.devices,
            inputs=dict(inputs or {}),
            notes=("Every step was made to follow the checker's schedule; its times are not those of a free run.",),
        )  # fmt: skip
        if isinstance(self.recorder, Recording):
            return self.recorder.write(place, info)
        return write_run(place, info, self.recorder)


def replay(
    result: CheckResult, finding: Finding, where: Where, *, log2_domain: int = LOG2_DOMAIN, hardware: str = "",
    backend: str = "host", seed: int = 1,
) -> Replay:  # fmt: skip
    """Carry the schedule of a finding out.

    Parameters
    ----------
    result : CheckResult
    finding : Finding
        One of the result's.
    where : {"simulate", "live"}
        In virtual time with the sizes of the check, or by real threads on small circuits.
    log2_domain : int
        Of a live replay: its circuits have 2^log2_domain rows.
    hardware : str
        Profile; by default the published machine for a simulation and the emulated device for a live replay.
    backend : {"host", "cuda"}
        Of a live replay: an emulated device, or a GPU that plays one of so little memory.
    seed : int

    Raises
    ------
    BadInput
        The finding has no end that could be seen, or the check was not of 32 GiB PoRep sizes.
    """
    if finding.kind == "read_before_write" and not finding.effect:
        raise BadInput(
            "where a proof was never written nothing fails: there is no step at which it could be seen to happen"
        )
    if finding.kind in _NEVER_ENDING:
        raise BadInput(f"a finding of kind {finding.kind} has no end at which it could be seen to happen")
    if where == "simulate":
        return _simulated(result, finding, hardware or "rtx5070ti-7995wx", seed)
    return _live(result, finding, hardware or None, backend, log2_domain, seed)


def _turns(finding: Finding) -> Sequence[Step]:
    """The steps that can be made: a request for more than there is only waits, so it is no step elsewhere."""
    return finding.schedule[:-1] if finding.kind == "request_above_capacity" else finding.schedule


def _concerned(finding: Finding) -> tuple[str, ...]:
    """Who goes on when the schedule is over: those who wait for ever, or the one whose last step fails."""
    if finding.wait_for:
        return finding.actors
    return () if finding.kind == "leak" else (finding.schedule[-1].actor,)


def _happened(finding: Finding, kind: str, waits_for: tuple[WaitFor, ...], leaks: bool) -> bool:
    if finding.kind == "request_above_capacity":
        return any(wait.actor == finding.schedule[-1].actor for wait in waits_for)
    if finding.wait_for:
        seen = {wait.actor: wait for wait in waits_for}
        return all(
            wait.actor in seen
            and seen[wait.actor].kind == wait.kind
            and (wait.kind == "memory" or alike(seen[wait.actor].on, wait.on))
            for wait in finding.wait_for
            if wait.actor in finding.actors
        )
    return leaks if finding.kind == "leak" else kind == finding.kind


def _outcome(finding: Finding, happened: bool, outcome: str) -> str:
    return outcome_of(finding) if happened else outcome


def _conditions(result: CheckResult, finding: Finding) -> dict[str, Any]:
    of = result.conditions
    return {
        "policy": result.policy, **of["options"], "gw": of["workers"], "partitions": of["partitions"],
        "gpus": of["devices"], "finding": finding.kind, "steps": len(finding.schedule),
    }  # fmt: skip


def _simulated(result: CheckResult, finding: Finding, hardware_name: str, seed: int) -> Replay:
    from cuzklab.profiles import load_hardware
    from cuzklab.simulate.forced import follow

    hardware = load_hardware(hardware_name)
    forced = follow(
        result.exploration.programs, _turns(finding), _concerned(finding), hardware, POREP_32G, seed=seed
    )  # fmt: skip
    happened = not forced.diverged and _happened(finding, forced.kind, forced.waits_for, forced.leaks)
    conditions = _conditions(result, finding) | {
        "vram_bytes": result.conditions["vram_bytes"], "hardware": hardware.name, "backend": "sim",
        "workload": result.conditions["workload"], "seed": seed,
    }  # fmt: skip
    return Replay(
        "simulate", finding, happened, sizes_in_words(forced.diverged or forced.explanation),
        _outcome(finding, happened, forced.outcome), forced.followed, forced.waits_for, conditions, result.policy,
        forced.recorder, _devices(result, 1, hardware.title),
    )  # fmt: skip


def _live(
    result: CheckResult, finding: Finding, hardware: str | None, backend: str, log2_domain: int, seed: int
) -> Replay:
    from cuzklab.live.circuit import circuit_with_test_key
    from cuzklab.live.forced import force
    from cuzklab.live.place import place
    from cuzklab.live.stages import Groth16

    if result.conditions["d_a_bytes"] != 32 * POREP_32G.domain:
        raise BadInput("a live replay needs a check at the sizes of a 32 GiB PoRep partition")
    there = place(backend, hardware)
    circuit = circuit_with_test_key(log2_domain, seed)
    ratio = POREP_32G.domain // circuit.shape.domain
    programs = {
        name: tuple(_scaled(one, ratio) for one in sequence) for name, sequence in result.exploration.programs.items()
    }
    vram_bytes = result.conditions["vram_bytes"] // ratio
    recorder, partitions = Recording(), _partitions_in(programs)
    devices = there.devices(result.conditions["devices"], vram_bytes)
    try:
        key = there.prepare(circuit.key, circuit.shape, devices, len(partitions))
        groth16 = Groth16(key, lambda partition: circuit.job(partition, key), there.means(1, devices))
        for partition in partitions:
            groth16.compute(partition, "synthesis", "", 0)  # a check begins where partitions are synthesised
        forced = force(programs, _turns(finding), _concerned(finding), devices, groth16, recorder)
    finally:
        for device in devices:
            device.close()
    happened = not forced.diverged and _happened(finding, forced.kind, forced.waits_for, bool(forced.leaks))
    conditions = _conditions(result, finding) | {
        "vram_bytes": vram_bytes, "vram_equivalent_bytes": result.conditions["vram_bytes"],
        "workload": circuit.shape.name, "hardware": there.hardware, "backend": backend, "seed": seed,
    }  # fmt: skip
    return Replay(
        "live", finding, happened, sizes_in_words(forced.diverged or forced.explanation),
        _outcome(finding, happened, forced.outcome), forced.followed, forced.waits_for, conditions, result.policy,
        recorder, _devices(result, ratio, there.title),
    )  # fmt: skip


def _devices(result: CheckResult, ratio: int, name: str) -> tuple[Mapping[str, Any], ...]:
    of = result.conditions
    return tuple(
        {"index": index, "name": name, "vram_limit_bytes": of["vram_bytes"] // ratio,
         "margin_bytes": of["margin_bytes"] // ratio}
        for index in range(of["devices"])
    )  # fmt: skip


# --- the same system, smaller ----------------------------------------------------------------------------------------


def _scaled(value: Any, ratio: int) -> Any:
    """A program whose devices and partitions have that much less memory."""
    match value:
        case Program():
            options = tuple((name, _scaled(option, ratio)) for name, option in value.options)
            return replace(value, arguments=_scaled(value.arguments, ratio), options=options)
        case Partition():
            return replace(value, sizes=_smaller(value.sizes, ratio))
        case Gpu():
            return replace(value, vram_bytes=value.vram_bytes // ratio, margin_bytes=value.margin_bytes // ratio)
        case tuple():
            return tuple(_scaled(item, ratio) for item in value)
    return value


def _smaller(sizes: PartitionSizes, ratio: int) -> PartitionSizes:
    """Bytes divided by the ratio; rounded up, so that what did not fit does not fit."""
    scratch = {stage: -(-size // ratio) for stage, size in sizes.scratch.items()}
    return replace(sizes, abc=-(-sizes.abc // ratio), d_a=sizes.d_a // ratio, d_bc=sizes.d_bc // ratio, scratch=scratch)


def _partitions_in(programs: Mapping[str, tuple[Program, ...]]) -> list[Partition]:
    found: dict[Partition, None] = {}

    def look(value: Any) -> None:
        match value:
            case Program():
                look((*value.arguments, *(option for _, option in value.options)))
            case Partition():
                found[value] = None
            case tuple():
                for item in value:
                    look(item)

    for sequence in programs.values():
        look(sequence)
    return list(found)

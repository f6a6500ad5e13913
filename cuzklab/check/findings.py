"""What a check says: findings with their schedules, and the verdict with what was covered."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cuzklab.check.deadlock import Waiting
from cuzklab.policies.model import Program

KINDS = (
    "oom", "capacity_deadlock", "lock_order_deadlock", "lost_wakeup", "read_before_write", "use_after_free",
    "double_free", "leak", "release_by_non_owner", "unbounded_queue", "request_above_capacity", "starvation",
    "wrong_device", "claim",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One step of a schedule: who did what. `phase` is start or end where an effect takes two steps."""

    step: int
    actor: str
    effect: str
    phase: str = ""
    where: str = ""


@dataclass(frozen=True)
class Finding:
    """A defect and a schedule that shows it.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    message : str
        One sentence.
    schedule : tuple of Step
        The last step is the one that fails, or after which nobody concerned can go on.
    effect, where : str
        The effect at fault and its place in the policy (file and line).
    actors : tuple of str
        Those concerned.
    wait_for : tuple of Waiting
        Of a deadlock: the blocked actors at its end, those concerned first.
    sites : tuple of str
        The effects at fault with their places, without the names of who was there: findings that differ in none of
        these and in the kind are the same.
    shortest : bool
        No schedule with fewer steps shows the same defect at the same place.
    loop_from : int or None
        Of a starvation: the step from which the schedule repeats itself for ever.
    """

    kind: str
    message: str
    schedule: tuple[Step, ...]
    effect: str = ""
    where: str = ""
    actors: tuple[str, ...] = ()
    wait_for: tuple[Waiting, ...] = ()
    sites: tuple[str, ...] = ()
    shortest: bool = False
    loop_from: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Exploration:
    """What the exploration of programs came to.

    Attributes
    ----------
    states : int
        States visited by the survey that found the defects (the searches for shortest schedules come on top).
    complete : bool
        Every interleaving was covered; only then does the absence of findings mean something.
    stopped : str
        Why it is not complete.
    outcomes : frozenset of str
        How the programs can end, in the words of a run's outcome: ok, device_oom, deadlock, fault.
    caught : tuple of str
        Effects that can run out of device memory where a program deals with it.
    programs : mapping
        What was explored, so that a schedule can be replayed.
    depth : int
        Steps of the longest of the ways by which states were first reached.
    """

    findings: tuple[Finding, ...]
    states: int
    seconds: float
    complete: bool
    stopped: str = ""
    outcomes: frozenset[str] = frozenset()
    caught: tuple[str, ...] = ()
    programs: Mapping[str, Sequence[Program]] = field(default_factory=dict, repr=False)
    queue_bound: int = 0
    depth: int = 0

    @property
    def verdict(self) -> str:
        """unsafe with a finding, safe without one after a complete exploration, otherwise unknown."""
        return "unsafe" if self.findings else "safe" if self.complete else "unknown"


@dataclass(frozen=True)
class CheckResult:
    """The exploration of a policy under given conditions.

    Attributes
    ----------
    conditions : mapping
        workers, partitions, devices, vram_bytes, margin_bytes, sizes and the policy's options.
    """

    policy: str
    conditions: Mapping[str, Any]
    exploration: Exploration

    @property
    def verdict(self) -> str:
        return self.exploration.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.exploration.findings

    @property
    def states(self) -> int:
        return self.exploration.states

    @property
    def seconds(self) -> float:
        return self.exploration.seconds

    @property
    def complete(self) -> bool:
        return self.exploration.complete

    def to_json(self) -> dict[str, Any]:
        """The shape that ``cuzklab check --json`` prints."""
        return {
            "verdict": self.verdict,
            "findings": [finding.to_json() for finding in self.findings],
            "states": self.states,
            "depth": self.exploration.depth,
            "seconds": round(self.seconds, 3),
            "complete": self.complete,
            "stopped": self.exploration.stopped,
            "caught": list(self.exploration.caught),
            "policy": self.policy,
            "conditions": dict(self.conditions),
        }

"""All runs of one question: a candidate design against a baseline, on a device with a certain amount of memory."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from cuzklab.trace import Run
from cuzklab.units import Metric

RECORDED = ("live", "imported", "simulated")
CHECKED = ("counterexample", "check")

# The limits of scaled devices are rounded to whole pages, so equal limits are equal only to within this part.
_SAME_LIMIT = 0.01


@dataclass(frozen=True)
class Case:
    """The runs from which findings are made.

    Attributes
    ----------
    candidate, baseline : str
        Names of the policies compared.
    runs : tuple of Run
        Of any origin, of these two policies and of others that give context.
    vram_bytes : int or None
        The device memory that the question is about; by default the smallest limit that the candidate met.
    question : str
    """

    candidate: str
    baseline: str
    runs: tuple[Run, ...]
    vram_bytes: int | None = None
    question: str = ""

    @cached_property
    def here_bytes(self) -> int | None:
        """The limit of device memory that the question is about."""
        if self.vram_bytes is not None:
            return self.vram_bytes
        limits = [self.limit_bytes(run) for run in self.runs if run.info.policy == self.candidate]
        return min((limit for limit in limits if limit is not None), default=None)

    def limit_bytes(self, run: Run) -> int | None:
        """The device memory that a run stands for: smallest over its devices.

        A live run of a smaller circuit on a device scaled down with it says in its condition
        ``vram_equivalent_bytes`` which real device it stands for. Without that condition the limit itself counts.
        """
        equivalent = run.info.conditions.get("vram_equivalent_bytes")
        if equivalent is not None:
            return int(equivalent)
        limits = [int(device["vram_limit_bytes"]) for device in run.info.devices if device.get("vram_limit_bytes")]
        return min(limits, default=None)

    def is_here(self, limit_bytes: int | None) -> bool:
        """Whether a limit is the one that the question is about."""
        return same_limit(limit_bytes, self.here_bytes)

    def select(
        self,
        policy: str | None = None,
        origins: Collection[str] | None = None,
        outcomes: Collection[str] | None = None,
        limit_bytes: int | None = None,
    ) -> tuple[Run, ...]:
        """The runs that meet every condition given, in the order of `runs`."""
        return tuple(
            run
            for run in self.runs
            if (policy is None or run.info.policy == policy)
            and (origins is None or run.info.origin in origins)
            and (outcomes is None or run.info.outcome in outcomes)
            and (limit_bytes is None or same_limit(self.limit_bytes(run), limit_bytes))
        )

    def representatives(self, policy: str) -> tuple[Run, ...]:
        """One completed run of a policy for each recorded origin: at the limit in question, else at the smallest."""
        chosen = []
        for origin in RECORDED:
            runs = self.select(policy, (origin,), ("ok",))
            if runs:
                limits = [self.limit_bytes(run) for run in runs]
                key = [(not self.is_here(limit), limit if limit is not None else 0) for limit in limits]
                chosen.append(runs[min(range(len(runs)), key=key.__getitem__)])
        return tuple(chosen)


def same_limit(left_bytes: int | None, right_bytes: int | None) -> bool:
    """Whether two limits of device memory are the same to within the rounding of scaled devices."""
    if left_bytes is None or right_bytes is None:
        return False
    return abs(left_bytes - right_bytes) <= _SAME_LIMIT * max(left_bytes, right_bytes)


_OBTAINED = {"simulated": "simulated", "counterexample": "computed", "check": "computed"}


def figure(run: Run, kind: str, value: float, label: str = "") -> Metric:
    """A figure computed from a run's tables, under the run's conditions."""
    obtained = _OBTAINED.get(run.info.origin, "measured")
    return Metric(kind, float(value), obtained, {**run.info.conditions, "policy": run.info.policy}, label)


def metrics_of(run: Run) -> tuple[Metric, ...]:
    """The typed figures that a run was stored with."""
    return tuple(
        Metric(
            record["kind"],
            float(record["value"]),
            record["obtained"],
            dict(record.get("conditions") or {}),
            record.get("label", ""),
        )
        for record in run.info.metrics
    )


def metric(run: Run, kind: str) -> Metric | None:
    """A run's figure of a kind; None where it has none."""
    return next((figure for figure in metrics_of(run) if figure.kind == kind), None)

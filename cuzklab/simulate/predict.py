"""Prediction with an interval: several seeds, near-equal fits of the profile, and what the model leaves unexplained.

The value is the mean over the seeds at the profile's constants. Its 90 % interval is for what *one run* would show. On
the logarithm of a figure,

    variance = that over the seeds and over the near-equal fits (each with a seed of its own) + scatter²

where `scatter` is what a calibrated profile says the fit left unexplained, and the interval is ± 1.645 standard
deviations. Without a calibration only the seeds are known, and the prediction says so.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import cuzklab.policies as policies
from cuzklab.errors import BadInput
from cuzklab.profiles import Hardware, Workload, load_hardware, load_workload
from cuzklab.simulate.simulation import Simulation, simulate
from cuzklab.units import Metric, percent

DEFAULT_SEEDS, DEFAULT_MEMBERS = 5, 8
NINETY_PERCENT = 1.645  # standard deviations of a normal distribution on either side
_SHARES = ("call_occupancy", "kernel_occupancy", "share")
_EXACT = ("peak_vram",)  # follows from byte formulas and the order of events, not from fitted constants
_WORST_FIRST = ("fault", "deadlock", "host_oom", "device_oom", "ok")
Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Prediction:
    """What to expect of runs under some conditions.

    Attributes
    ----------
    outcome : str
        The worst over all simulations: one that ends badly is enough to be warned of.
    outcomes : mapping of str to int
        How many simulations ended how.
    explanation : str
    metrics : mapping of str to Metric
        Means over the seeds that gave the figure.
    intervals : mapping of str to (float, float)
        90 % intervals for a single run; for a single seed of a profile that is not calibrated there is none.
    reasons : mapping of str to str
    seeds, members : int
        Simulations at the profile's constants, and at near-equal fits.
    first : Simulation
        That of the first seed.
    notes : tuple of str
    """

    outcome: str
    outcomes: Mapping[str, int]
    explanation: str
    metrics: Mapping[str, Metric]
    intervals: Mapping[str, tuple[float, float]]
    reasons: Mapping[str, str]
    conditions: Mapping[str, Any]
    seeds: int
    members: int
    first: Simulation
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As `cuzklab simulate --json` prints it; a metric that does not exist is null, with its reason beside it."""
        names = [*self.metrics, *(name for name in self.reasons if name not in self.metrics)]
        return {
            "outcome": self.outcome,
            "outcomes": dict(self.outcomes),
            "explanation": self.explanation,
            "metrics": {name: self.metrics[name].value if name in self.metrics else None for name in names},
            "intervals": {name: list(interval) for name, interval in self.intervals.items()},
            "reasons": dict(self.reasons),
            "conditions": dict(self.conditions),
            "seeds": self.seeds,
            "near_equal_fits": self.members,
            "proofs_completed": self.first.proofs_completed,
            "partitions_failed": self.first.partitions_failed,
            "failures": [asdict(failure) for failure in self.first.failures],
            "latency_s": dict(self.first.latency_s),
            "notes": list(self.notes),
        }


def predict(
    policy: policies.Policy | str,
    hardware: Hardware | str,
    workload: Workload | str,
    *,
    seeds: int = DEFAULT_SEEDS,
    members: int = DEFAULT_MEMBERS,
    first_seed: int = 0,
    record: bool = False,
    report: Report = lambda share, words="": None,
    **conditions: Any,
) -> Prediction:
    """Simulate with several seeds and near-equal fits.

    Parameters
    ----------
    policy, hardware, workload : object or name
    seeds : int
        Simulations at the profile's constants, with seeds from `first_seed` on.
    members : int
        Near-equal fits of a calibrated profile to be simulated, at most; with one seed in all, none.
    record : bool
        Whether the first simulation keeps its full trace.
    report : callable (share, words), optional
    **conditions
        As `cuzklab.simulate.simulate`.

    Raises
    ------
    BadInput
        As `simulate`, or no seed.
    """
    if not 1 <= seeds <= 1000:
        raise BadInput(f"seeds is {seeds}; it must be 1 to 1000")
    policy = policies.load(policy) if isinstance(policy, str) else policy
    hardware = load_hardware(hardware) if isinstance(hardware, str) else hardware
    workload = load_workload(workload) if isinstance(workload, str) else workload
    fits = hardware.calibration.members[1 : members + 1] if hardware.calibration and seeds > 1 else ()
    total = seeds + len(fits)
    found: list[Simulation] = []
    for number in range(seeds):
        full = record and number == 0
        found.append(simulate(policy, hardware, workload, seed=first_seed + number, record=full, **conditions))
        report((number + 1) / total, f"{number + 1} of {seeds} seeds")
    others: list[Simulation] = []
    for number in range(len(fits)):
        machine = hardware.with_constants(hardware.calibration.member(number + 1))
        seed = first_seed + seeds + number
        others.append(simulate(policy, machine, workload, seed=seed, record=False, **conditions))
        report((seeds + number + 1) / total, f"{number + 1} of {len(fits)} near-equal fits")
    outcomes = Counter(simulation.outcome for simulation in (*found, *others))
    worst = min(outcomes, key=_WORST_FIRST.index)
    first_worst = next(simulation for simulation in (*found, *others) if simulation.outcome == worst)
    metrics, intervals = {}, {}
    for name in dict.fromkeys(name for simulation in found for name in simulation.metrics):
        having = [simulation.metrics[name] for simulation in found if name in simulation.metrics]
        values = [metric.value for metric in having]
        stated = {key: value for key, value in having[0].conditions.items() if key != "seed"} | {"seeds": seeds}
        metrics[name] = Metric(having[0].kind, fmean(values), "simulated", stated)
        near = [simulation.metrics[name].value for simulation in others if name in simulation.metrics]
        scatter = hardware.calibration.scatter_of(having[0].kind) if hardware.calibration else None
        if (one := interval(values, near, scatter, having[0].kind)) is not None:
            intervals[name] = one
    reasons = {name: why for name, why in first_worst.reasons.items() if name not in metrics}
    explanation = first_worst.explanation
    if len(outcomes) > 1:
        counts = ", ".join(f"{count} {name}" for name, count in outcomes.most_common())
        explanation = f"{explanation} (of {total} simulations: {counts})"
    return Prediction(
        worst, dict(outcomes), explanation, metrics, intervals, reasons,
        {**found[0].conditions, "seeds": seeds}, seeds, len(fits), found[0],
        (*found[0].notes, _how(hardware, seeds, len(fits))),
    )  # fmt: skip


def interval(
    values: Sequence[float], near: Sequence[float], scatter: float | None, kind: str
) -> tuple[float, float] | None:
    """90 % interval of one run's figure.

    Parameters
    ----------
    values : sequence of float
        At the profile's constants, one a seed.
    near : sequence of float
        At near-equal fits.
    scatter : float or None
        Of a calibrated profile.
    kind : str
        Of metric: occupancies and shares are at most 1.

    Returns
    -------
    (low, high), or None if nothing is known of the figure's spread.
    """
    logs = [math.log(value) for value in (*values, *near) if value > 0]
    if not logs or (len(logs) < 2 and not scatter):
        return None
    middle = fmean(math.log(value) for value in values if value > 0) if any(value > 0 for value in values) else logs[0]
    spread = sum((one - middle) ** 2 for one in logs) / max(1, len(logs) - 1)
    if kind in _EXACT:
        scatter = 0.0
    half = NINETY_PERCENT * math.sqrt(spread + (scatter or 0.0) ** 2)
    low, high = math.exp(middle - half), math.exp(middle + half)
    return (low, min(1.0, high)) if kind in _SHARES else (low, high)


def _how(hardware: Hardware, seeds: int, members: int) -> str:
    if hardware.calibration and members:
        return (
            f"90 % intervals for a single run: {seeds} seeds, {members} near-equal fits, and "
            f"what the calibration left unexplained ({percent(hardware.calibration.scatter, 1)} of throughput figures, "
            f"{percent(hardware.calibration.scatter_other, 1)} of others)"
        )
    if seeds > 1:
        return f"90 % intervals are the spread of {seeds} seeds alone; they do not contain the error of the constants"
    return "one seed: a single simulation, without an interval of its constants"

"""Two runs by stage: how a stage's mean duration changed, with an interval; and a prediction against what came."""

from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from cuzklab.analysis.case import metrics_of
from cuzklab.analysis.compare import bootstrap_ratio, differing, unlike
from cuzklab.analysis.frames import table
from cuzklab.analysis.stages import stage_times
from cuzklab.trace import Run
from cuzklab.units import Metric

_BY_PARTITION = {
    "stage": "str", "count": "int64", "baseline_count": "int64", "mean_ns": "float64", "baseline_mean_ns": "float64",
    "ratio": "float64", "low": "float64", "high": "float64", "resolved": "bool",
}  # fmt: skip
# What a prediction and its measurement may differ in: where they come from, and which sample of chance.
_MAY_DIFFER = {"hardware", "backend", "seed"}


class NotComparable(ValueError):
    """Two runs that must not be compared. The message says what makes them unlike."""


def by_stage(candidate: Run, baseline: Run) -> pd.DataFrame:
    """Mean time a partition spends in each stage, in two runs.

    A stage's executions for one partition (``batch_add.l``, ``batch_add.a``) count as one; the bootstrap draws
    partitions, which are what repeats.

    Returns
    -------
    DataFrame
        `stage`, `count` and `baseline_count` (partitions), `mean_ns`, `baseline_mean_ns`, `ratio`, `low`, `high` (95 %
        bootstrap interval of the ratio; missing with too few partitions), `resolved` (the interval excludes 1); in the
        order of the baseline's total.

    Raises
    ------
    NotComparable
        The runs differ in a condition that makes them different experiments.
    """
    if forbidden := unlike(candidate, baseline):
        words = ", ".join(f"{name} ({mine} and {theirs})" for name, (mine, theirs) in forbidden.items())
        raise NotComparable(f"{candidate.name} and {baseline.name} cannot be compared: they differ in {words}")
    mine, theirs = partition_times_ns(candidate), partition_times_ns(baseline)
    order = list(dict.fromkeys([*stage_times(baseline)["stage"], *stage_times(candidate)["stage"]]))
    rows = []
    for stage in order:
        some, others = mine.get(stage, np.zeros(0)), theirs.get(stage, np.zeros(0))
        ratio = some.mean() / others.mean() if len(some) and len(others) and others.mean() else np.nan
        low, high = bootstrap_ratio(some, others) if len(some) and len(others) else (None, None)
        rows.append(
            (stage, len(some), len(others), some.mean() if len(some) else np.nan,
             others.mean() if len(others) else np.nan, ratio, low, high, low is not None and not low <= 1 <= high)
        )  # fmt: skip
    return table(rows, _BY_PARTITION)


def partition_times_ns(run: Run) -> dict[str, np.ndarray]:
    """For each stage the time that each partition spent in it, int64 nanoseconds, in no order."""
    spans = run.table("spans")
    spans = spans[spans["category"].isin(("cpu", "gpu")) & (spans["partition"] != "")]
    stage = spans["name"].str.partition(".")[0] if len(spans) else spans["name"]
    times = (spans["end"] - spans["start"]).groupby([stage, spans["partition"]]).sum()
    return {str(name): part.to_numpy() for name, part in times.groupby(level=0)}


@dataclass(frozen=True)
class Score:
    """A predicted figure and what was measured later.

    Attributes
    ----------
    kind, label : str
    predicted, measured : float
        In the unit of the kind.
    error : float
        Predicted over measured, less one: positive where too much was predicted.
    """

    kind: str
    label: str
    unit: str
    predicted: float
    measured: float
    error: float

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def score(predicted: Run, measured: Run) -> list[Score]:
    """A stored prediction (a simulated run) against a later measurement, figure by figure and stage by stage.

    Raises
    ------
    NotComparable
        The first is no simulation or the second is one, they are of different designs, or they were made under
        different conditions other than the machine itself.
    """
    if predicted.info.origin != "simulated" or measured.info.origin == "simulated":
        raise NotComparable(f"{predicted.name} must be a simulation and {measured.name} a measurement")
    if predicted.info.policy != measured.info.policy:
        raise NotComparable(f"{predicted.info.policy} was predicted, {measured.info.policy} was measured")
    turned = {name: values for name, values in differing(predicted, measured).items() if name not in _MAY_DIFFER}
    if turned:
        words = ", ".join(f"{name} ({mine} and {theirs})" for name, (mine, theirs) in turned.items())
        raise NotComparable(f"{predicted.name} does not predict {measured.name}: they differ in {words}")
    later = {(one.kind, one.label): one for one in metrics_of(measured)}
    found = [
        _score(one, other)
        for one in metrics_of(predicted)
        if (other := later.get((one.kind, one.label))) and other.value
    ]
    mine, theirs = partition_times_ns(predicted), partition_times_ns(measured)
    for stage in (name for name in mine if name in theirs and theirs[name].mean()):
        seconds = [float(times[stage].mean()) * 1e-9 for times in (mine, theirs)]
        found.append(Score("duration", stage, "s", *seconds, seconds[0] / seconds[1] - 1))
    return found


def _score(one: Metric, other: Metric) -> Score:
    return Score(one.kind, one.label, one.unit, one.value, other.value, one.ratio(other) - 1)

"""Published figures beside simulated ones: how far the model is from what others measured.

In the phases that are listed a synthesis permit was given back before the result was queued, so nothing bounded how
many synthesised partitions could wait: the rows are simulated with room for all partitions in flight.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import cuzklab.policies as policies
from cuzklab import resources
from cuzklab.errors import BadInput
from cuzklab.profiles import load_hardware, load_workload, read_toml
from cuzklab.simulate.simulation import Simulation, simulate
from cuzklab.trace.metrics import KINDS
from cuzklab.units import Metric

OUTCOMES = ("device_oom", "host_oom", "deadlock")
_FIGURE_OF_KIND = {kind: figure for figure, kind in KINDS.items()}
_CONDITIONS = ("c", "j", "pw", "gw")


@dataclass(frozen=True)
class PublishedRow:
    """One published result: a figure of a kind, or an outcome, under stated conditions.

    Attributes
    ----------
    metric : Metric or None
        None where the result is an outcome.
    outcome : str
        ``ok`` where the result is a figure.
    assumed : tuple of str
        Conditions that were not published.
    """

    policy: str
    hardware: str
    workload: str
    conditions: Mapping[str, int]
    metric: Metric | None
    outcome: str
    assumed: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """A published result and the simulated one.

    Attributes
    ----------
    simulated : Metric or None
        Mean over the seeds; None where the published result is an outcome or a simulation gave no such figure.
    lowest, highest : float or None
        Extremes over the seeds.
    outcomes : tuple of str
        Outcome for each seed.
    """

    row: PublishedRow
    simulated: Metric | None
    lowest: float | None
    highest: float | None
    outcomes: tuple[str, ...]

    @property
    def error(self) -> float | None:
        """Simulated over published figure, less one."""
        if self.simulated is None or self.row.metric is None:
            return None
        return self.simulated.ratio(self.row.metric) - 1

    @property
    def same_outcome(self) -> bool:
        """Whether every seed ended as published."""
        return set(self.outcomes) == {self.row.outcome}

    def to_json(self) -> dict[str, Any]:
        """One line of a table: published and simulated figure, error, outcomes."""
        return {
            "policy": self.row.policy,
            "conditions": dict(self.row.conditions),
            "assumed": list(self.row.assumed),
            "kind": self.row.metric.kind if self.row.metric else "outcome",
            "published": self.row.metric.value if self.row.metric else self.row.outcome,
            "simulated": self.simulated.value if self.simulated else ", ".join(dict.fromkeys(self.outcomes)),
            "lowest": self.lowest,
            "highest": self.highest,
            "error": self.error,
            "same_outcome": self.same_outcome,
        }


def load_published(path: Path | str | None = None) -> tuple[PublishedRow, ...]:
    """Published rows from a TOML file; the shipped `lab/published/phases.toml` unless another is given.

    Raises
    ------
    BadInput
        Unknown or missing field, unknown kind, impossible value; names file, row and field.
    """
    path = Path(path) if path else resources.folder("lab") / "published" / "phases.toml"
    document, _ = read_toml(path)
    unknown = set(document) - {"title", "source", "hardware", "workload", "row"}
    missing = {"title", "source", "hardware", "workload", "row"} - set(document)
    if unknown or missing:
        what = f"unknown field {min(unknown)}" if unknown else f"field {min(missing)} is missing"
        raise BadInput(f"{path}: {what}")
    if not isinstance(document["row"], list):
        raise BadInput(f"{path}: row must be a list of sections [[row]]")
    for key in ("hardware", "workload"):
        if not isinstance(document[key], str):
            raise BadInput(f"{path}: field {key} must be text")
    return tuple(
        _row(f"{path}: row {number}", row, document["hardware"], document["workload"])
        for number, row in enumerate(document["row"], 1)
    )


def _row(where: str, row: Any, hardware: str, workload: str) -> PublishedRow:
    if not isinstance(row, dict):
        raise BadInput(f"{where}: not a section")
    for key in row:
        if key not in ("policy", "kind", "value", "outcome", "conditions", "assumed"):
            raise BadInput(f"{where}: unknown field {key}")
    if row.get("policy") not in policies.names():
        raise BadInput(f"{where}: field policy must be one of {', '.join(policies.names())}")
    conditions = row.get("conditions")
    if not isinstance(conditions, dict) or sorted(conditions) != sorted(_CONDITIONS):
        raise BadInput(f"{where}: field conditions must state {', '.join(_CONDITIONS)}")
    for key, value in conditions.items():
        if type(value) is not int or not 1 <= value <= 10_000:
            raise BadInput(f"{where}: field conditions.{key} must be a whole number from 1 to 10000")
    assumed = row.get("assumed", [])
    if not isinstance(assumed, list) or not all(key in _CONDITIONS for key in assumed):
        raise BadInput(f"{where}: field assumed must list some of {', '.join(_CONDITIONS)}")
    stated = {"policy": row["policy"], **conditions, "hardware": hardware, "workload": workload}
    if "outcome" in row:
        if row["outcome"] not in OUTCOMES or "kind" in row or "value" in row:
            raise BadInput(f"{where}: field outcome must be one of {', '.join(OUTCOMES)}, without kind and value")
        metric, outcome = None, row["outcome"]
    else:
        if row.get("kind") not in _FIGURE_OF_KIND:
            raise BadInput(f"{where}: field kind must be one of {', '.join(_FIGURE_OF_KIND)}")
        value = row.get("value")
        if type(value) not in (int, float) or not 0 < value < 2**62:
            raise BadInput(f"{where}: field value must be a number above 0")
        metric, outcome = Metric(row["kind"], float(value), "published", stated), "ok"
    return PublishedRow(row["policy"], hardware, workload, dict(conditions), metric, outcome, tuple(assumed))


def compare_with_published(
    rows: tuple[PublishedRow, ...] | None = None, seeds: tuple[int, ...] = (0, 1, 2)
) -> tuple[Comparison, ...]:
    """Simulate the conditions of each published row.

    Parameters
    ----------
    rows : tuple of PublishedRow, optional
        The shipped ones unless given.
    seeds : tuple of int
        Each row is simulated once with each; figures are means over them.
    """
    done: dict[tuple[Any, ...], list[Simulation]] = {}
    comparisons = []
    for row in load_published() if rows is None else rows:
        key = (row.policy, row.hardware, row.workload, *sorted(row.conditions.items()))
        if key not in done:
            done[key] = [_simulate(row, seed) for seed in seeds]
        comparisons.append(_compare(row, done[key]))
    return tuple(comparisons)


def _simulate(row: PublishedRow, seed: int) -> Simulation:
    workload = load_workload(row.workload)
    conditions = row.conditions
    return simulate(
        row.policy,
        load_hardware(row.hardware),
        workload,
        proofs=conditions["c"],
        in_flight=conditions["j"],
        gpu_workers=conditions["gw"],
        synthesis_workers=conditions["pw"],
        lookahead=conditions["j"] * workload.partitions_per_proof,
        seed=seed,
        record=False,
    )


def _compare(row: PublishedRow, simulations: list[Simulation]) -> Comparison:
    outcomes = tuple(simulation.outcome for simulation in simulations)
    name = _FIGURE_OF_KIND[row.metric.kind] if row.metric else ""
    values = [simulation.metrics[name].value for simulation in simulations if name in simulation.metrics]
    if len(values) < len(simulations):
        return Comparison(row, None, None, None, outcomes)
    mean = Metric(row.metric.kind, fmean(values), "simulated", row.metric.conditions)
    return Comparison(row, mean, min(values), max(values), outcomes)

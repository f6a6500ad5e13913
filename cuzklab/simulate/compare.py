"""Published results and simulated ones under the same conditions, kind by kind: how far the model is from a machine."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

import cuzklab.policies as policies
from cuzklab.profiles import Hardware, load_hardware, load_workload
from cuzklab.simulate.published import CALLS, GPU_TOTAL, PublishedRow, load_published
from cuzklab.simulate.simulation import Simulation, simulate
from cuzklab.trace import Span
from cuzklab.trace.metrics import CALL, union_length
from cuzklab.units import Metric

DEFAULT_SEEDS = (0, 1, 2, 3, 4)
Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Comparison:
    """A published result and the simulated one.

    Attributes
    ----------
    simulated : Metric or None
        Mean over the seeds; None where the published result is an outcome or a simulation gave no such figure.
    values : tuple of float
        The figure for each seed.
    outcomes : tuple of str
        Outcome for each seed.
    """

    row: PublishedRow
    simulated: Metric | None
    values: tuple[float, ...]
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
        row = self.row
        return {
            "policy": row.policy,
            "options": dict(row.options),
            "conditions": dict(row.conditions),
            "assumed": list(row.assumed),
            "use": "not simulated" if row.not_simulated else "fit" if row.fit else "prediction",
            "kind": row.metric.kind if row.metric else "outcome",
            "label": row.metric.label if row.metric else "",
            "unit": row.metric.unit if row.metric else "",
            "published": row.metric.value if row.metric else row.outcome,
            "simulated": self.simulated.value if self.simulated else ", ".join(dict.fromkeys(self.outcomes)) or None,
            "lowest": min(self.values, default=None),
            "highest": max(self.values, default=None),
            "error": self.error,
            "same_outcome": self.same_outcome if self.outcomes else None,
        }


def compare_with_published(
    rows: Sequence[PublishedRow] | None = None,
    seeds: Sequence[int] = DEFAULT_SEEDS,
    hardware: Hardware | None = None,
    report: Report = lambda share, words="": None,
) -> tuple[Comparison, ...]:
    """Simulate the conditions of each published row.

    Parameters
    ----------
    rows : sequence of PublishedRow, optional
        The shipped ones unless given.
    seeds : sequence of int
        Each row is simulated once with each; figures are means over them.
    hardware : Hardware, optional
        In place of the rows' own.
    report : callable (share, words), optional
    """
    rows = load_published() if rows is None else rows
    found = simulate_rows(rows, seeds, hardware, report)
    return tuple(_compare(row, found.get(condition_key(row), ())) for row in rows)


def condition_key(row: PublishedRow) -> tuple[Any, ...]:
    """What a row's simulation depends on: rows that share it are simulated once."""
    options, conditions = sorted(row.options.items()), sorted(row.conditions.items())
    return (row.policy, row.hardware, row.workload, *options, *conditions)


def simulate_rows(
    rows: Iterable[PublishedRow],
    seeds: Sequence[int],
    hardware: Hardware | None = None,
    report: Report = lambda share, words="": None,
) -> dict[tuple[Any, ...], tuple[Mapping[str, Any], ...]]:
    """Figures of the rows' conditions: for each `condition_key` one mapping a seed, its outcome under "outcome"."""
    todo = {condition_key(row): row for row in rows if not row.not_simulated}
    found = {}
    for number, (key, row) in enumerate(todo.items()):
        report(number / len(todo), row.words)
        found[key] = tuple(row_figures(row, seed, hardware) for seed in seeds)
    return found


def row_figures(row: PublishedRow, seed: int, hardware: Hardware | None = None) -> Mapping[str, Any]:
    """Outcome and figures of one simulation of a row's conditions."""
    conditions = row.conditions
    simulation = simulate(
        policies.load(row.policy, **row.options),
        hardware or load_hardware(row.hardware),
        load_workload(row.workload),
        proofs=conditions["c"],
        in_flight=conditions["j"],
        gpu_workers=conditions["gw"],
        synthesis_workers=conditions["pw"],
        seed=seed,
        record=False,
    )
    return simulation_figures(simulation)


def simulation_figures(simulation: Simulation) -> dict[str, Any]:
    """All figures that a row can be compared with, by name; shares are of the time from the first to the last call."""
    found: dict[str, Any] = {name: metric.value for name, metric in simulation.metrics.items()}
    found["outcome"] = simulation.outcome
    spans = simulation.recorder.rows["spans"]
    calls = [(span.start, span.end) for span in spans if span.category == CALL]
    total_s = gpu_total_s(spans)
    if calls and total_s:
        starts, ends = np.array(calls).T
        window_s = (ends.max() - starts.min()) * 1e-9
        found[f"{GPU_TOTAL}_s"] = total_s / len(calls)
        found[f"{GPU_TOTAL}_share"] = total_s / window_s
        found[f"{CALLS}_share"] = union_length(starts, ends) * 1e-9 / window_s
    return found


def gpu_total_s(spans: Iterable[Span]) -> float:
    """Seconds of the calls' GPU threads together.

    What the engine logs as ``gpu_total_ms``: from the first allocation under the lock to the end of the last kernel,
    uploads and the wait for prep_msm included.
    """
    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    for span in spans:
        if span.category == "gpu" or span.name.startswith("alloc d_"):
            starts.setdefault(span.partition, span.start)
            ends[span.partition] = span.end
    return sum(ends[name] - start for name, start in starts.items()) * 1e-9


def _compare(row: PublishedRow, simulations: Sequence[Mapping[str, Any]]) -> Comparison:
    outcomes = tuple(simulation["outcome"] for simulation in simulations)
    values = tuple(simulation[row.figure] for simulation in simulations if row.figure in simulation)
    if row.metric is None or not simulations or len(values) < len(simulations):
        return Comparison(row, None, (), outcomes)
    published = row.metric
    mean = Metric(published.kind, fmean(values), "simulated", published.conditions, published.label)
    return Comparison(row, mean, values, outcomes)

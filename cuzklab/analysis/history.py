"""Figures of many runs over time: what was measured when, under which conditions, and whether it got worse.

A series is one figure under one set of conditions on one machine: runs of different conditions are never put into one
series, so a change of a setting cannot look like a regression.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cuzklab.analysis.case import figure, metrics_of
from cuzklab.analysis.regression import FEWEST_BASELINE, Judgement, change_points, judge
from cuzklab.analysis.stages import stage_durations_ns
from cuzklab.trace import Run
from cuzklab.units import Metric

CONFIRMS = "confirms"  # key among a run's inputs: the name of the run that it repeats to confirm it
_LESS_IS_BETTER = ("s/proof", "s", "B")
_NOT_A_CONDITION = {"seed", "repeat"}
COLUMNS = (
    "series", "run", "created", "confirms", "policy", "kind", "label", "unit", "obtained", "level", "samples",
    "conditions",
)  # fmt: skip


@dataclass(frozen=True)
class SeriesJudgement:
    """A series, its newest run judged.

    Attributes
    ----------
    series : str
        Digest of figure, conditions and machine.
    policy, kind, label, unit : str
    runs : int
        Runs in the series, confirming reruns included.
    newest : str
        Name of the run that is judged.
    level, baseline_level : float
        Median of the newest run and its reruns; median of the baseline's runs (nan where there is none).
    judgement : Judgement
    changes : tuple of str
        Names of the runs from which on the level is another (see `regression.change_points`).
    """

    series: str
    policy: str
    kind: str
    label: str
    unit: str
    runs: int
    newest: str
    level: float
    baseline_level: float
    judgement: Judgement
    changes: tuple[str, ...]


def history(runs: Sequence[Run]) -> pd.DataFrame:
    """One row for each run and figure, in the order of time.

    Figures are those that a run was stored with, where less is better, and the duration of each stage (level: median;
    samples: every execution). Runs that did not end well have none.

    Returns
    -------
    DataFrame
        `series`, `run`, `created`, `confirms` (name of the run that it repeats, or empty), `policy`, `kind`, `label`,
        `unit`, `obtained`, `level` (float, in the unit), `samples` (ndarray), `conditions` (text).
    """
    rows = []
    for run in sorted(runs, key=lambda run: (run.info.created, run.name)):
        if run.info.outcome != "ok" or run.info.origin not in ("live", "imported", "simulated"):
            continue
        for metric, samples in _figures(run):
            samples = samples[samples > 0]
            if not len(samples):
                continue
            conditions = _conditions(run)
            text = json.dumps([metric.kind, metric.label, conditions], sort_keys=True, default=str)
            rows.append(
                (
                    hashlib.sha256(text.encode()).hexdigest()[:12], run.name, run.info.created,
                    run.info.inputs.get(CONFIRMS, ""), run.info.policy, metric.kind, metric.label, metric.unit,
                    metric.obtained, float(np.median(samples)), samples, json.dumps(conditions, default=str),
                )
            )  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


def judgements(table: pd.DataFrame) -> list[SeriesJudgement]:
    """Each series of a history judged: its newest run and the reruns of it, against what was before.

    Confirming reruns of earlier runs are left out of the baseline: a suspect run causes them, so they are no sample of
    ordinary nights. Series that are too short to judge come too, as such; the worst come first.
    """
    found = []
    for series, rows in table.groupby("series", sort=False):
        firsts = rows[rows["confirms"] == ""]
        if not len(firsts):
            continue
        newest = firsts.iloc[-1]
        reruns = rows[rows["confirms"] == newest["run"]]
        before = firsts.iloc[:-1]
        judgement = judge([newest["samples"], *reruns["samples"]], list(before["samples"]))
        levels = [newest["level"], *reruns["level"]]
        changes = change_points(list(firsts["level"])) if len(firsts) >= FEWEST_BASELINE else []
        found.append(
            SeriesJudgement(
                series, newest["policy"], newest["kind"], newest["label"], newest["unit"], len(rows), newest["run"],
                float(np.median(levels)), float(before["level"].median()), judgement,
                tuple(firsts["run"].iloc[change] for change in changes),
            )
        )  # fmt: skip
    order = ("slower", "suspect", "too noisy", "faster", "unchanged", "too short")
    return sorted(found, key=lambda one: (order.index(one.judgement.state), -one.judgement.effect, one.series))


def _figures(run: Run) -> list[tuple[Metric, np.ndarray]]:
    stored = [(metric, np.array([metric.value])) for metric in metrics_of(run) if metric.unit in _LESS_IS_BETTER]
    stages = [
        (figure(run, "duration", float(np.median(durations)) * 1e-9, stage), durations * 1e-9)
        for stage, durations in stage_durations_ns(run).items()
    ]
    return stored + stages


def _conditions(run: Run) -> dict[str, object]:
    """What must be equal for two runs to belong to one series: conditions, policy, devices, processor."""
    conditions = {name: value for name, value in run.info.conditions.items() if name not in _NOT_A_CONDITION}
    machine = (
        {} if run.info.origin == "simulated" else {name: run.info.machine.get(name) for name in ("processor", "cores")}
    )
    devices = [(device.get("name"), device.get("vram_limit_bytes")) for device in run.info.devices]
    return {"origin": run.info.origin, "policy": run.info.policy, **conditions, "devices": devices, **machine}

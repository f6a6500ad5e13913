"""Figures of many runs over time: what was measured when, under which conditions, and whether it got worse.

A series is one figure under one set of conditions on one machine: runs of different conditions are never put into one
series, so a change of a setting cannot look like a regression. Runs that were made together (the repetitions of one
report) are one *occasion*; an occasion may confirm an earlier one.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cuzklab.analysis.case import figure, metrics_of
from cuzklab.analysis.regression import Judgement, change_points, judge
from cuzklab.analysis.stages import stage_durations_ns
from cuzklab.trace import Run
from cuzklab.units import Metric

CHANGES_WITHIN = 100  # occasions, the newest, in which changes of level are looked for
_LESS_IS_BETTER = ("s/proof", "s", "B")
_NOT_A_CONDITION = {"seed", "repeat"}
COLUMNS = (
    "series", "run", "occasion", "created", "policy", "kind", "label", "unit", "obtained", "level", "samples",
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
        In the series, confirming reruns included.
    conditions : mapping
        What the runs of the series have in common.
    occasions, levels : tuple
        Occasions but the confirming ones, in the order of time, and the median level of each.
    newest : str
        The occasion that is judged.
    level, baseline_level : float
        Median of the newest runs and their reruns; median of the baseline's runs (nan where there is none).
    judgement : Judgement
    changes : tuple of str
        Occasions from which on the level is another (see `regression.change_points`).
    """

    series: str
    policy: str
    kind: str
    label: str
    unit: str
    runs: int
    conditions: Mapping[str, Any]
    occasions: tuple[str, ...]
    levels: tuple[float, ...]
    newest: str
    level: float
    baseline_level: float
    judgement: Judgement
    changes: tuple[str, ...]


def history(runs: Sequence[Run], progress: Callable[[float, str], None] = lambda share, words="": None) -> pd.DataFrame:
    """One row for each run and figure, in the order of time.

    Figures are those that a run was stored with, where less is better, and the duration of each stage (level: median;
    samples: every execution). Runs that did not end well have none.

    Returns
    -------
    DataFrame
        `series`, `run` (path), `occasion` (see `occasion_of`), `created`, `policy`, `kind`, `label`, `unit`,
        `obtained`, `level` (float, in the unit), `samples` (ndarray), `conditions` (text).
    """
    rows = []
    for number, run in enumerate(sorted(runs, key=lambda run: (run.info.created, run.name))):
        progress(number / len(runs), f"{number // 50 * 50} of {len(runs)} runs")
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
                    hashlib.sha256(text.encode()).hexdigest()[:12], str(run.path), occasion_of(run), run.info.created,
                    run.info.policy, metric.kind, metric.label, metric.unit,
                    metric.obtained, float(np.median(samples)), samples, json.dumps(conditions, default=str),
                )
            )  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


def occasion_of(run: Run) -> str:
    """What a run was made for: the folder of its report, or the run itself."""
    return str(run.path.parent.parent if run.path.parent.name == "runs" else run.path)


def judgements(table: pd.DataFrame, confirms: Mapping[str, str] | None = None) -> list[SeriesJudgement]:
    """Each series of a history judged: its newest occasion and the confirmations of it, against what was before.

    Parameters
    ----------
    table : DataFrame
        From `history`.
    confirms : mapping, optional
        Occasions that were made to confirm an earlier one, and which. They are left out of the baseline: a suspect
        causes them, so they are no sample of ordinary nights.

    Returns
    -------
    list of SeriesJudgement
        Also of series that are too short to judge. The worst come first.
    """
    confirms = confirms or {}
    table = table.assign(confirms=[confirms.get(occasion, "") for occasion in table["occasion"]])
    found = []
    for series, rows in table.groupby("series", sort=False):
        ordinary = rows[rows["confirms"] == ""]
        if not len(ordinary):
            continue
        last = ordinary.iloc[-1]
        newest = ordinary[ordinary["occasion"] == last["occasion"]]
        before = ordinary[ordinary["occasion"] != last["occasion"]]
        reruns = rows[rows["confirms"] == last["occasion"]]
        judgement = judge([*newest["samples"], *reruns["samples"]], list(before["samples"]), first=len(newest))
        occasions = ordinary.groupby("occasion", sort=False)["level"].median()
        recent = occasions[-CHANGES_WITHIN:]
        changes = change_points(list(recent))
        found.append(
            SeriesJudgement(
                series, last["policy"], last["kind"], last["label"], last["unit"], len(rows),
                json.loads(last["conditions"]), tuple(occasions.index), tuple(occasions), last["occasion"],
                float(np.median([*newest["level"], *reruns["level"]])), float(before["level"].median()), judgement,
                tuple(recent.index[change] for change in changes),
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

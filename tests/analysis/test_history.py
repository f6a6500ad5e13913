"""Series of figures over runs: like conditions only, the newest run and its reruns against what was before."""

from pathlib import Path

import numpy as np
import pytest

from cuzklab.analysis.history import history, judgements
from cuzklab.trace import Recorder, RunInfo, Span, write_run
from cuzklab.units import Metric

MS = 1_000_000


def store(folder, name, created, value_s, ntt_ms=(10, 12), outcome="ok", **conditions):
    """A run with one batch average and the executions of one CPU stage."""
    recorder = Recorder(clock=lambda: 0)
    for index, duration in enumerate(ntt_ms):
        start = index * 100 * MS
        recorder.add(Span(start, start + int(duration * MS), "prep_msm", "cpu", worker="gpu0.w0", partition="0.0"))
    conditions = {"c": 1, "workload": "example", "seed": 7} | conditions
    metric = Metric("batch_average", value_s, "measured", conditions)
    info = RunInfo(
        "live", name, outcome, policy="phase9", conditions=conditions, metrics=(metric.to_json(),),
        created=f"2026-11-{created:02d}T02:00:00+00:00", machine={"processor": "example", "cores": 2},
    )  # fmt: skip
    return write_run(folder / name, info, recorder)


def test_a_row_for_each_run_and_figure(tmp_path):
    runs = [store(tmp_path, "b", 2, 40.0, ntt_ms=(10, 30, 20)), store(tmp_path, "a", 1, 41.0)]
    table = history(runs)
    assert list(zip(table["run"].map(lambda run: Path(run).name), table["kind"], table["label"])) == [
        ("a", "batch_average", ""), ("a", "duration", "prep_msm"),
        ("b", "batch_average", ""), ("b", "duration", "prep_msm"),
    ]  # fmt: skip
    assert table["level"].tolist() == [41.0, pytest.approx(0.011), 40.0, pytest.approx(0.020)]
    assert np.allclose(table["samples"].iloc[3], [0.010, 0.030, 0.020])
    assert table["series"].nunique() == 2


def test_other_conditions_are_another_series_but_another_seed_is_not(tmp_path):
    runs = [
        store(tmp_path, "a", 1, 40.0), store(tmp_path, "b", 2, 40.0, seed=8), store(tmp_path, "c", 3, 40.0, c=2),
    ]  # fmt: skip
    table = history(runs)
    series = table[table["kind"] == "batch_average"]["series"].tolist()
    assert series[0] == series[1] != series[2]


def test_runs_that_failed_have_no_figures(tmp_path):
    assert not len(history([store(tmp_path, "a", 1, 40.0, outcome="device_oom")]))


def test_the_newest_occasion_and_its_reruns_are_judged_against_what_was_before(tmp_path):
    runs = [store(tmp_path, f"night{day}", day, 40.0 + 0.01 * day) for day in range(1, 13)]
    # A disturbed night of the past was measured again; those reruns are no ordinary nights.
    runs += [store(tmp_path, f"again{number}", 5, 60.0 + number) for number in range(3)]
    confirms = {str(tmp_path / f"again{number}"): str(tmp_path / "night5") for number in range(3)}
    runs.append(store(tmp_path, "tonight", 13, 44.0))
    average = next(one for one in judgements(history(runs), confirms) if one.kind == "batch_average")
    assert (average.newest, average.judgement.state) == (str(tmp_path / "tonight"), "suspect")
    assert (average.judgement.candidates, average.judgement.baseline) == (1, 12)
    assert average.baseline_level == pytest.approx(40.065)
    runs += [store(tmp_path, f"confirm{number}", 13, 44.1 + 0.1 * number) for number in range(4)]
    confirms |= {str(tmp_path / f"confirm{number}"): str(tmp_path / "tonight") for number in range(4)}
    worst = judgements(history(runs), confirms)[0]
    assert (worst.kind, worst.judgement.state, worst.judgement.candidates) == ("batch_average", "slower", 5)
    assert worst.judgement.effect == pytest.approx(44.2 / 40.065 - 1, abs=2e-3)
    assert len(worst.levels) == 13


def test_repetitions_in_one_report_are_one_occasion(tmp_path):
    runs = [
        store(tmp_path / f"night{day}" / "runs", f"live-{repeat}", day, 40.0 + 0.01 * (3 * day + repeat))
        for day in range(1, 6) for repeat in range(3)
    ]  # fmt: skip
    average = next(one for one in judgements(history(runs)) if one.kind == "batch_average")
    assert average.newest == str(tmp_path / "night5")
    assert (average.judgement.candidates, average.judgement.baseline) == (3, 12)
    assert average.judgement.state == "unchanged" and len(average.levels) == 5


def test_a_history_that_stepped_says_since_when(tmp_path):
    runs = [
        store(tmp_path, f"night{day:02d}", day, (40.0 if day <= 12 else 44.0) + day % 5 / 50) for day in range(1, 25)
    ]  # fmt: skip
    average = next(one for one in judgements(history(runs)) if one.kind == "batch_average")
    assert average.changes == (str(tmp_path / "night13"),)


def test_no_runs_no_series():
    assert judgements(history([])) == []

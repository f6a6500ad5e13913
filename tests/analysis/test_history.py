"""Series of figures over runs: like conditions only, the newest run and its reruns against what was before."""

import numpy as np
import pytest

from cuzklab.analysis.history import CONFIRMS, history, judgements
from cuzklab.trace import Recorder, RunInfo, Span, write_run
from cuzklab.units import Metric

MS = 1_000_000


def store(folder, name, created, value_s, ntt_ms=(10, 12), confirms="", outcome="ok", **conditions):
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
        inputs={CONFIRMS: confirms} if confirms else {},
    )  # fmt: skip
    return write_run(folder / name, info, recorder)


def test_a_row_for_each_run_and_figure(tmp_path):
    runs = [store(tmp_path, "b", 2, 40.0, ntt_ms=(10, 30, 20)), store(tmp_path, "a", 1, 41.0)]
    table = history(runs)
    assert list(zip(table["run"], table["kind"], table["label"])) == [
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
    series = table[table["kind"] == "batch_average"].set_index("run")["series"]
    assert series["a"] == series["b"] != series["c"]


def test_runs_that_failed_have_no_figures(tmp_path):
    assert not len(history([store(tmp_path, "a", 1, 40.0, outcome="device_oom")]))


def test_the_newest_run_and_its_reruns_are_judged_against_what_was_before(tmp_path):
    runs = [store(tmp_path, f"night{day}", day, 40.0 + 0.01 * day) for day in range(1, 13)]
    # A disturbed night of the past was measured again; those reruns are no ordinary nights.
    runs += [store(tmp_path, f"again{number}", 5, 60.0 + number, confirms="night5") for number in range(3)]
    runs.append(store(tmp_path, "tonight", 13, 44.0))
    judged = {one.kind: one for one in judgements(history(runs))}
    average = judged["batch_average"]
    assert (average.newest, average.judgement.state, average.judgement.baseline) == ("tonight", "suspect", 12)
    assert average.baseline_level == pytest.approx(40.065)
    runs += [store(tmp_path, f"confirm{number}", 13, 44.1 + 0.1 * number, confirms="tonight") for number in range(4)]
    average = next(one for one in judgements(history(runs)) if one.kind == "batch_average")
    assert average.judgement.state == "slower" and average.judgement.candidates == 5
    assert average.judgement.effect == pytest.approx(44.2 / 40.065 - 1, abs=2e-3)
    assert judgements(history(runs))[0] == average, "the worst comes first"


def test_a_history_that_stepped_says_since_when(tmp_path):
    runs = [
        store(tmp_path, f"night{day:02d}", day, (40.0 if day <= 12 else 44.0) + day % 5 / 50) for day in range(1, 25)
    ]  # fmt: skip
    average = next(one for one in judgements(history(runs)) if one.kind == "batch_average")
    assert average.changes == ("night13",)


def test_no_runs_no_series():
    assert judgements(history([])) == []

"""Figures: they show exactly what the runs hold, say why where there is nothing, and take no markup from names."""

import json

import numpy as np
import pytest

from cuzklab.analysis import Case, Verdict
from cuzklab.report import figures, schedule
from cuzklab.report.figures.axes import Absent, ordered, short_worker
from cuzklab.report.naming import labels
from cuzklab.report.postmortem import PostMortem
from cuzklab.trace import Recorder, RunInfo, write_run
from cuzklab.units import GiB
from tests.analysis.example import phase9_like, phase10_out_of_memory, phase10_roomy, safe_check
from tests.report.hostile import hostile_run

NOTHING = Verdict("undecided", "Undecided.", (), "")
ALL = (figures.timeline, figures.device_memory, figures.lock_waits, figures.overlap_map, figures.what_is_hidden)


def traces(figure):
    return {trace.name: trace for trace in figure.data}


def test_the_timeline_has_every_bar_in_its_lane(tmp_path):
    figure = figures.timeline(phase9_like(tmp_path))
    bars = traces(figure)
    # The first partition's H-MSM, [22, 34) ms, in the worker's lane and in the device's.
    msm = bars["h_msm"]
    place = list(msm.y).index("w0")
    assert (msm.base[place], msm.x[place]) == (22.0, 12.0)
    assert sorted(set(msm.y)) == ["gpu0 kernels", "w0", "w1"]
    assert len(msm.x) == 8
    held = bars["lock held"]
    assert list(zip(held.base, held.x, held.text, strict=True)) == [
        (10.0, 40.0, "w0"), (50.0, 40.0, "w1"), (90.0, 40.0, "w0"), (130.0, 40.0, "w1"),
    ]  # fmt: skip
    assert sum(bars["waits for a lock"].x) == 39 + 37 + 37
    assert sum(bars["waits otherwise"].x) == 1  # the barrier
    assert figure.layout.xaxis.title.text == "time since the start (ms)"
    assert list(figure.layout.xaxis.range) == [0.0, 172.0]


def test_a_part_of_a_timeline_is_cut_at_its_edges(tmp_path):
    figure = figures.timeline(phase9_like(tmp_path), 0.030, 0.060)
    for trace in figure.data:
        assert min(trace.base) >= 30
        assert max(np.asarray(trace.base) + np.asarray(trace.x)) <= 60
    assert "part of the run" in figure.layout.title.subtitle.text
    assert isinstance(figures.timeline(phase9_like(tmp_path), 9.0, 10.0), Absent)


def test_long_runs_are_shown_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr("cuzklab.report.figures.lanes.MOST_BARS", 20)
    figure = figures.timeline(phase9_like(tmp_path))
    assert 0 < sum(len(trace.x) for trace in figure.data) <= 60
    assert "part of the run" in figure.layout.title.subtitle.text


def test_device_memory_adds_up_to_what_was_recorded(tmp_path):
    run = phase10_roomy(tmp_path)
    figure = figures.device_memory(run)
    areas = [trace for trace in figure.data if trace.stackgroup]
    assert [trace.name for trace in areas] == [
        "w0 d_bc", "w0 d_a", "w0 scratch", "w1 d_bc", "w1 d_a", "w1 scratch",
    ]  # fmt: skip
    total = sum(np.asarray(trace.y) for trace in areas) * GiB
    live = run.table("vram")["live"].tolist()
    assert total.tolist() == [*live, live[-1]]  # the last level until the run's end
    assert all(trace.x[-1] == figure.layout.xaxis.range[1] for trace in areas)
    assert all(trace.line.shape == "hv" for trace in areas)
    texts = [note.text for note in figure.layout.annotations]
    assert "limit 40.0 GiB" in texts
    assert any(text.startswith("<b>peak 25.0 GiB</b>") for text in texts)


def test_thinned_memory_keeps_its_peak(tmp_path, monkeypatch):
    monkeypatch.setattr("cuzklab.report.figures.memory.MOST_EVENTS", 8)
    figure = figures.device_memory(phase10_roomy(tmp_path))
    total = sum(np.asarray(trace.y) for trace in figure.data if trace.stackgroup)
    assert len(total) < 20
    assert total.max() == 25


def test_a_failed_request_is_drawn_above_what_is_live(tmp_path):
    figure = figures.device_memory(phase10_out_of_memory(tmp_path))
    (line,) = [shape for shape in figure.layout.shapes if shape.line.dash == "dot"]
    assert (line.x0, line.y0, line.y1) == (14.0, 16.0, 24.0)
    assert any("w1 asks for d_bc, 8.00 GiB" in note.text for note in figure.layout.annotations)
    assert figure.layout.yaxis.range[1] > 24


def test_waiting_is_charged_to_the_holder(tmp_path):
    bars = traces(figures.lock_waits(phase9_like(tmp_path)))
    assert list(bars["held by w0"].y) == ["w1"]
    assert bars["held by w0"].x == (76.0,)  # [11, 50) and [93, 130)
    assert bars["held by w1"].x == (37.0,)


def test_what_is_hidden_is_known(tmp_path):
    bars = traces(figures.what_is_hidden(phase9_like(tmp_path)))
    row = list(bars["no kernel running"].y).index("b_g2_msm")
    assert bars["behind another worker's kernels"].x[row] == 70.0
    assert bars["behind its own worker's kernels"].x[row] == 25.0
    assert bars["no kernel running"].x[row] == 5.0


def test_device_time_adds_up_to_the_whole(tmp_path):
    runs = [phase9_like(tmp_path), phase10_roomy(tmp_path)]
    figure = figures.device_time(runs)
    for place in range(2):
        assert sum(trace.x[place] for trace in figure.data) == pytest.approx(100, abs=1e-9)
    assert traces(figure)["kernels running"].x[0] == pytest.approx(100 * 136 / 172, abs=1e-9)
    assert list(figure.data[0].y) == [
        "phase9, 16 GiB,<br>2 workers",
        "phase10_ordered, 40 GiB,<br>2 workers",
    ]


def test_nothing_to_show_is_said_and_not_drawn(tmp_path):
    info = RunInfo("imported", "a capture", policy="")
    empty = write_run(tmp_path / "empty", info, Recorder(clock=lambda: 0), not_captured=("vram",))
    for figure in ALL:
        answer = figure(empty)
        assert isinstance(answer, Absent)
        assert "a capture" in answer.reason
    assert "vram (not captured)" in figures.device_memory(empty).reason
    assert isinstance(figures.device_time([empty, safe_check(tmp_path)]), Absent)
    assert isinstance(schedule.wait_graph(empty), Absent)


@pytest.mark.parametrize("draw", [*ALL, lambda run: figures.device_time([run]), schedule.wait_graph])
def test_names_cannot_become_markup(tmp_path, draw):
    figure = draw(hostile_run(tmp_path))
    assert not isinstance(figure, Absent)
    text = json.dumps(figure.to_plotly_json(), default=lambda value: np.asarray(value).tolist())
    for forbidden in ("<img", "<a ", "</script", "javascript:alert(1))</", "\\u202e", "\\u001b"):
        assert forbidden not in text
    assert "&lt;" in text


def test_a_schedule_shows_who_did_what_and_the_memory_after(tmp_path):
    run = phase10_out_of_memory(tmp_path, origin="counterexample")
    steps = schedule.steps(run)
    failed = [step for step in steps if step.failed_bytes]
    assert [(step.actor, step.effect, step.live_bytes, step.failed_bytes) for step in failed] == [
        ("gpu0.w1", f"Alloc d_bc {8 * GiB} B", 16 * GiB, 8 * GiB)
    ]
    assert failed[0].held == (("gpu0.compute", "gpu0.w1"),)
    table = schedule.table(run)
    assert "Alloc d_bc 8.00 GiB" in table
    assert "16.0 GiB + 8.00 GiB" in table


def test_workers_are_in_the_order_of_their_numbers():
    assert ordered(["synth0", "gpu0.w10", "gpu0.w2", "collector", "gpu1.w0"]) == [
        "gpu0.w2", "gpu0.w10", "gpu1.w0", "collector", "synth0",
    ]  # fmt: skip
    assert [short_worker(name) for name in ("gpu0.w1", "synth2", "gpu0.mem", "w3")] == ["w1", "synth2", "mem", "w3"]


def test_of_repeated_runs_the_median_is_typical(tmp_path):
    slow, fast, middle = (phase10_roomy(tmp_path / name, gain_ms=gain) for name, gain in (("a", 0), ("b", 4), ("c", 2)))
    failed = phase10_out_of_memory(tmp_path)
    post = PostMortem(Case("phase10_ordered", "phase9", (slow, fast, failed, middle)), (), NOTHING)
    assert post.typical("live") == (failed, middle)
    assert labels((slow, fast, failed)) == [
        "phase10_ordered, 40 GiB, 2 workers, no. 1", "phase10_ordered, 40 GiB, 2 workers, no. 2",
        "phase10_ordered, 16 GiB, 2 workers",
    ]  # fmt: skip

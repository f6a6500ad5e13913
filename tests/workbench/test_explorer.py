"""The widgets without a browser: what they hold, answer and write."""

import json
from dataclasses import replace

import pytest

import cuzklab.workbench.timeline as timeline_module
from cuzklab.analysis import frames
from cuzklab.errors import BadInput
from cuzklab.report.canvas.columns import decode
from cuzklab.trace import LockUse, Recorder, Run, RunInfo, Span, WaitInterval, write_run
from cuzklab.workbench import Compare, Timeline, TraceExplorer
from tests.analysis.example import MS, phase9_like, phase10_roomy
from tests.report.hostile import EVIL, hostile_run
from tests.workbench.large import large_run


@pytest.fixture
def phase9(tmp_path):
    return phase9_like(tmp_path)


def captions(tables):
    return [table["caption"] for table in tables]


def place_of(widget, run, category, number=0):
    """The place in the picture of a bar of a category."""
    bars = frames.timeline(run)
    row = int(bars.index[bars["category"] == category][number])
    return int((widget._whole.source == row).argmax()), row


def test_a_small_run_is_saved_whole(phase9):
    widget = Timeline(phase9)
    header, columns = decode(widget.picture)
    assert widget.complete and header["spans"] == len(columns["start"]) == 60
    assert {"picture", "complete", "selection", "chosen", "tables"} <= set(widget.get_state())


def test_of_a_large_run_a_smaller_picture_is_saved_and_the_whole_is_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline_module, "MOST_SAVED", 5_000)
    widget, sent = Timeline(large_run(tmp_path / "run", 20_000)), []
    header, columns = decode(widget.picture)
    assert not widget.complete
    assert len(columns["start"]) <= 5_000 < header["spans"]
    assert "merged" in header["note"]
    monkeypatch.setattr(widget, "send", lambda content, buffers: sent.append((content, buffers)))
    widget._handle_custom_msg({"ask": "whole"}, [])
    ((content, (whole,)),) = sent
    assert content == {"whole": True}
    header, columns = decode(whole)
    assert len(columns["start"]) == header["spans"] and header["note"] == ""


def test_a_click_on_a_wait_tells_who_is_to_blame(phase9):
    widget = TraceExplorer(phase9)
    place, row = place_of(widget, phase9, "wait:lock")
    widget.chosen = {"place": place, "time": 70 * MS, "whole": True}
    blame, queue = widget.tables
    # w0 waits in [53, 90); at 70 ms w1 holds the lock and is in h_msm ([62, 74)).
    assert blame["caption"] == "Who waits for whom at 70.0 ms: to blame is gpu0.w1, which is in h_msm."
    assert blame["rows"] == [["gpu0.w0", "the lock gpu0.lock", "53.0 ms", "17.0 ms"]]
    assert queue["rows"] == [["1", "gpu0.w0", "p0.2", "53.0 ms", "37.0 ms", "gpu0.w1", "3.00 ms", "34.0 ms", "3.00 ms"]]
    assert widget.ask(row, 70 * MS) == widget.tables


def test_a_click_on_a_hold_tells_whom_it_delayed(phase9):
    widget = TraceExplorer(phase9)
    place, _ = place_of(widget, phase9, "hold")
    widget.chosen = {"place": place, "time": 20 * MS, "whole": True}
    (table,) = widget.tables
    assert table["caption"].endswith("caused: 39.0 ms of waiting.")
    assert table["rows"] == [["gpu0.w1", "p0.1", "11.0 ms", "39.0 ms"]]


def test_a_click_on_work_answers_nothing(phase9):
    widget = TraceExplorer(phase9)
    place, _ = place_of(widget, phase9, "cpu")
    widget.chosen = {"place": place, "time": 0, "whole": True}
    assert widget.tables == []


def test_a_deadlock_is_called_one(tmp_path):
    recorder = Recorder(clock=lambda: 0)
    for worker, mine, other in (("a", "m", "n"), ("b", "n", "m")):
        recorder.add(Span(0, 20, "work", "cpu", worker=worker))
        recorder.add(LockUse(mine, 0, 1, None, worker=worker))
        recorder.add(WaitInterval(5, 20, "lock", other, "", worker))
    run = write_run(tmp_path / "dead", RunInfo("live", "dead", "deadlock"), recorder)
    row = int((frames.timeline(run)["category"] == "wait:lock").to_numpy().argmax())
    assert "a deadlock" in TraceExplorer(run).ask(row)[0]["caption"]


@pytest.mark.parametrize("chosen", [{"place": -1}, {"place": 10**9}, {"place": "x"}, {"time": 3}])
def test_a_bar_that_is_none_is_not_looked_up(phase9, chosen):
    widget = TraceExplorer(phase9)
    widget.chosen = {"whole": True, "time": 0, **chosen}
    assert len(widget.tables) == 1 and widget.tables[0]["rows"] == []


def test_a_selection_tells_what_the_time_went_into(phase9):
    widget = TraceExplorer(phase9)
    widget.selection = [20 * MS, 60 * MS]
    device, stages, locks, memory = widget.tables
    assert device["rows"][0] == ["0", "kernels", "kernels run", "34.0 ms", "85 %"]
    assert captions(widget.tables)[0] == "Device time, 20.0 ms to 60.0 ms"
    assert [row[0] for row in stages["rows"]][:2] == ["prep_msm", "b_g2_msm"]
    assert locks["rows"][1][-1] == "30.0 ms"
    assert memory["rows"][0] == ["0", "22.0 ms", "d_bc", "gpu0.w0", "p0.0", "8.00 GiB"]
    widget.selection = []
    assert widget.tables == []


def test_the_export_holds_what_is_in_the_stretch(phase9, tmp_path):
    widget = TraceExplorer(phase9, folder=tmp_path)
    widget._handle_custom_msg({"ask": "export", "range": [20.4 * MS, 60 * MS]}, [])
    file = tmp_path / f"{phase9.name}-20400000-60000000.perfetto.json"
    assert str(file) in widget.tables[0]["caption"]
    events = json.loads(file.read_text())["traceEvents"]
    written = [event["args"] for event in events if event.get("args", {}).get("table") == "spans"]
    spans = phase9.table("spans")
    inside = spans[(spans["end"] >= 20_400_000) & (spans["start"] <= 60_000_000)]
    assert sorted((row["start"], row["name"]) for row in written) == sorted(zip(inside["start"], inside["name"]))
    assert 0 < len(inside) < len(spans)


def test_an_export_that_fails_says_so(phase9, tmp_path):
    widget = TraceExplorer(phase9, folder=tmp_path / "nowhere")
    widget._handle_custom_msg({"ask": "export", "range": [0, 10]}, [])
    assert widget.tables[0]["caption"].startswith("Not written: ")


def test_a_run_is_opened_by_its_path(phase9):
    assert TraceExplorer(str(phase9.path)).run.name == phase9.name


def test_names_of_a_trace_stay_text(tmp_path):
    widget = TraceExplorer(hostile_run(tmp_path))
    widget.select(0, 20 * MS)
    cells = [cell for table in widget.tables for row in table["rows"] for cell in row]
    assert EVIL in cells


def test_two_runs_are_compared_kind_by_kind_and_stage_by_stage(tmp_path):
    widget = Compare(phase9_like(tmp_path), phase10_roomy(tmp_path, gain_ms=8))
    figures, stages, *_ = widget.tables
    by_name = {row[0]: row for row in figures["rows"]}
    assert by_name["peak vram"][1:4] == ["13.0 GiB", "25.0 GiB", "0.520"]
    assert "partitions" in by_name["wall"][4] and by_name["kernel occupancy"][4] == ""
    rows = {row[0]: row for row in stages["rows"]}
    assert rows["ntt_h"][1:6] == ["4", "4", "8.00 ms", "8.00 ms", "1.000"]
    header, _ = decode(widget.picture)
    assert [memory["title"] for memory in header["memory"]] == ["left gpu0 memory", "right gpu0 memory"]
    assert {lane["section"].partition(" · ")[0] for lane in header["lanes"]} == {"left", "right"}


def test_unlike_runs_are_not_divided(tmp_path):
    left = phase9_like(tmp_path)
    conditions = {**left.info.conditions, "workload": "another"}
    right = Run(left.path, replace(left.info, conditions=conditions))
    reason, figures, *rest = Compare(left, right).tables
    assert reason["caption"] == (
        "These runs are not divided by each other: they differ in workload (example and another)."
    )
    assert {row[3] for row in figures["rows"]} == {"–"} and {row[4] for row in figures["rows"]} == {"not compared"}
    assert captions(rest) == ["Conditions that differ"]


def test_steps_and_times_have_no_common_axis(tmp_path, phase9):
    recorder = Recorder(clock=lambda: 0)
    recorder.add(Span(0, 3, "x", "cpu", worker="a"))
    steps = write_run(tmp_path / "steps", RunInfo("counterexample", "c", "deadlock", time_unit="step"), recorder)
    with pytest.raises(BadInput, match="counterexample has steps"):
        Compare(phase9, steps)
    assert json.loads(json.dumps(TraceExplorer(steps).select(0, 2)))[0]["caption"].endswith("0 steps to 2 steps")

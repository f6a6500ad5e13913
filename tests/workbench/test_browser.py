"""What a person sees and does, in Chromium: through the module as a notebook loads it, with a stub of its model."""

import json

import pytest

import cuzklab.workbench.timeline as timeline_module
from cuzklab.workbench import Timeline, TraceExplorer
from tests.analysis.example import MS, phase9_like
from tests.report.hostile import EVIL, hostile_run
from tests.workbench.browser import in_chromium
from tests.workbench.large import large_run

# Middle of w0's second row: a heading of 21 pixels, a row of 17, one between them.
STAGES_OF_W0 = 47
ELEMENTS = {
    "b", "button", "canvas", "caption", "dd", "details", "div", "dl", "dt", "input", "li", "span", "summary", "table",
    "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip


def quiet(page):
    return page["requests"] == page["errors"] == [] and page["wide"] <= page["view"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seen")
    widget = TraceExplorer(phase9_like(folder), folder=folder)
    answer = widget.select(20 * MS, 60 * MS)
    widget.selection = []
    steps = [
        {"point": [70, STAGES_OF_W0]},
        {"click": [70, STAGES_OF_W0]},
        {"drag": [20, 60, STAGES_OF_W0]},
        {"set": {"tables": answer}},
        {"keys": ["z"]},
        {"keys": ["Home", "Escape"]},
        {"search": "tail_msm"},
        {"search": "no such name"},
        {"search": ""},
        {"keys": ["ArrowDown", "r"]},
        {"keys": ["]", "Enter"]},
    ]
    page = in_chromium(folder, widget, (0, 172), steps)
    names = ["point", "click", "drag", "answer", "zoom", "clear", "search", "none", "all", "keys", "next"]
    return page, dict(zip(names, page["seen"], strict=True))


def test_nothing_is_asked_for_and_nothing_fails(seen):
    page, _ = seen
    assert quiet(page)
    assert page["spans"] == 60 and page["note"] == "60 spans over 172 ms"


def test_pointing_tells_the_exact_times(seen):
    _, did = seen
    assert did["point"]["tip"].splitlines() == [
        "waits for a lock: gpu0.lock", "gpu0.w0 · p0.2", "37 ms (37,000,000 ns)", "from 53 ms (53,000,000 ns)",
        "to 90 ms (90,000,000 ns)",
    ]  # fmt: skip


def test_a_click_asks_about_the_bar(seen):
    _, did = seen
    chosen = did["click"]["chosen"]
    assert chosen["whole"] is True and chosen["time"] == pytest.approx(70 * MS, abs=MS // 2)
    assert did["click"]["status"].startswith("waits for a lock: gpu0.lock")
    assert did["click"]["saved"] == 1


def test_a_drag_selects_a_stretch(seen):
    _, did = seen
    assert did["drag"]["selection"] == pytest.approx([20 * MS, 60 * MS], abs=MS // 2)
    assert did["drag"]["tables"][-1]["caption"].startswith("Selected: 20 ms to 60 ms (40 ms)")
    ntt = [row for row in did["drag"]["tables"][-1]["rows"] if row[1:3] == ["ntt_h", "device lanes"]]
    assert ntt == [["ntt_h", "ntt_h", "device lanes", "2", "8 ms", "20 %", "8 ms"]]


def test_answers_stand_above_the_sums(seen):
    _, did = seen
    tables = did["answer"]["tables"]
    assert tables[0]["rows"][0] == ["0", "kernels", "kernels run", "34.0 ms", "85 %"]
    assert len(tables) == 5


def test_keys_zoom_and_clear(seen):
    _, did = seen
    assert did["zoom"]["tables"][-1]["caption"].startswith("Selected: 20 ms to 60 ms")
    assert did["clear"]["selection"] == []
    assert did["clear"]["tables"][-1]["caption"].startswith("In view: 0 s to 172 ms (172 ms)")


def test_search_counts_and_filters(seen):
    _, did = seen
    assert did["search"]["found"] == "8 found"
    assert {row[0] for row in did["search"]["tables"][-1]["rows"]} == {"tail_msm"}
    assert (did["none"]["found"], did["none"]["tables"][-1]["rows"]) == ("nothing found", [])
    assert did["all"]["found"] == ""


def test_bars_are_reached_by_keys(seen):
    _, did = seen
    first, last = did["keys"]["selection"]
    assert did["keys"]["status"] != did["click"]["status"] and last > first
    assert did["next"]["chosen"] != did["click"]["chosen"]


def test_without_a_kernel_it_is_said_and_the_browser_exports(tmp_path):
    widget = TraceExplorer(phase9_like(tmp_path), folder=tmp_path)
    steps = [
        {"disconnect": True}, {"click": [70, STAGES_OF_W0]}, {"drag": [20, 60, STAGES_OF_W0]}, {"press": "export"},
    ]  # fmt: skip
    page = in_chromium(tmp_path, widget, (0, 172), steps)
    assert page["errors"] == []
    assert page["seen"][1]["status"].startswith("No kernel answers")
    assert page["seen"][3]["status"].startswith("No kernel answers. Saved by the browser: stretch-")
    ((file),) = page["files"]
    assert file["name"].endswith(".perfetto.json")
    events = json.loads(file["text"])["traceEvents"]
    first, last = page["seen"][2]["selection"]
    shown = [event for event in events if event["ph"] == "X"]
    bars = widget._bars
    inside = (bars["end_ns"] - widget._whole.origin_ns >= first) & (bars["start_ns"] - widget._whole.origin_ns <= last)
    assert len(shown) == inside.sum()
    assert sum(event["dur"] for event in shown) == pytest.approx(
        (bars["end_ns"] - bars["start_ns"])[inside].sum() * 1e-3
    )
    assert all(first <= event["ts"] * 1e3 <= last for event in events if event["ph"] == "C")


@pytest.mark.parametrize("scheme", ["--light", pytest.param("--dark", marks=pytest.mark.slow)])
def test_names_never_become_elements(tmp_path, scheme):
    widget = TraceExplorer(hostile_run(tmp_path))
    widget.select(0, 20 * MS)
    page = in_chromium(tmp_path, widget, (0, 21), [{"point": [3, 33]}, {"search": EVIL}], scheme)
    assert quiet(page)
    assert set(page["elements"]) <= ELEMENTS
    assert page["title"] == "" and EVIL.partition("/")[0] in page["text"]
    assert "evil.example" in page["seen"][0]["tip"]


@pytest.mark.slow
def test_a_saved_notebook_shows_the_smaller_picture_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline_module, "MOST_SAVED", 4_000)
    widget = Timeline(large_run(tmp_path / "run", 20_000))
    page = in_chromium(tmp_path, widget, (0, 7.6), [], whole=False)
    assert quiet(page)
    assert page["spans"] <= 4_000
    assert "are merged into" in page["note"] and page["note"].startswith(f"{page['spans']:,} bars for ")


@pytest.mark.slow
def test_a_running_kernel_sends_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline_module, "MOST_SAVED", 4_000)
    widget = Timeline(large_run(tmp_path / "run", 20_000))
    page = in_chromium(tmp_path, widget, (0, 7.6), [{"keys": ["Home"]}])
    assert page["spans"] == len(widget._whole) and page["errors"] == []
    assert page["note"].startswith(f"{page['spans']:,} spans over")

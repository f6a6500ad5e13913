"""The live view: one frame in flight, and an end that is always told."""

import signal
import threading
from pathlib import Path

import pytest

from cuzklab.trace import load_run
from cuzklab.workbench.child import Child
from cuzklab.workbench.live import LiveView

STATE = {"outcomes": 0, "actors": [], "locks": [], "devices": [], "queues": [], "total": 6}


@pytest.fixture
def view(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr("cuzklab.workbench.live.time.monotonic", lambda: float(next(clock)))
    return LiveView()


def test_at_most_one_frame_is_in_flight_and_the_next_is_the_newest(view):
    for outcomes in range(50):
        view._status({**STATE, "outcomes": outcomes})
    assert view.frame["number"] == 1
    assert view.frame["outcomes"] == 0
    view._heard(None, {"drawn": 1}, None)
    assert (view.frame["number"], view.frame["outcomes"]) == (2, 49)
    view._heard(None, {"drawn": 1}, None)  # an old acknowledgement releases nothing
    view._status({**STATE, "outcomes": 50})
    assert view.frame["number"] == 2


def test_a_page_that_is_loaded_anew_goes_on(view):
    view._status(STATE)
    view._status({**STATE, "outcomes": 3})
    view._heard(None, {"drawn": "anew"}, None)
    assert view.frame["outcomes"] == 3


@pytest.mark.parametrize("message", [None, 3, [], {}, {"drawn": None}, {"stop": False}])
def test_what_a_page_sends_is_trusted_in_nothing(view, message):
    view._heard(None, message, None)
    assert view.state == "idle"


def ended(view: LiveView) -> str:
    """The state of a view whose child has ended."""
    states = ("done", "failed", "stopped")
    over = threading.Event()
    view.observe(lambda change: over.set() if change["new"] in states else None, "state")
    assert view.state in states or over.wait(60)
    return view.state


@pytest.mark.slow
def test_a_run_is_followed_to_its_end_and_opened(tmp_path):
    view = LiveView()
    view.observe(lambda change: view._heard(None, {"drawn": change["new"].get("number")}, None), "frame")
    view.start("phase9", workers=2, partitions=3, log2_domain=13, vram_gib=24, backend="host", place=tmp_path)
    assert ended(view) == "done"
    assert view.result["verified"] == view.result["proofs"] == 1
    assert view.frame["total"] == 3
    assert {device["index"] for device in view.frame["devices"]} == {0}
    assert load_run(Path(view.result["run"])).info.origin == "live"
    view.open_run()
    assert view.opened.children[0].run.path == Path(view.result["run"])


def test_a_run_is_stopped_while_it_goes_on(tmp_path):
    view = LiveView()
    begun = threading.Event()
    view.observe(lambda change: begun.set(), "frame")
    view.start("phase9", workers=1, partitions=200, log2_domain=13, vram_gib=24, backend="host", place=tmp_path)
    assert begun.wait(60)
    view.stop()
    assert ended(view) == "stopped"
    assert not list(tmp_path.iterdir())


def test_a_run_that_cannot_start_is_shown_with_its_reason(tmp_path):
    view = LiveView()
    view.start("no-such-policy", workers=1, backend="host", place=tmp_path)
    assert ended(view) == "failed"
    assert "no policy 'no-such-policy'" in view.result["explanation"]


def test_a_run_that_is_killed_is_shown(tmp_path):
    view = LiveView()
    begun = threading.Event()
    view.observe(lambda change: begun.set(), "frame")
    view.start("phase9", workers=1, partitions=200, log2_domain=13, vram_gib=24, backend="host", place=tmp_path)
    assert begun.wait(60)
    view.child._process.send_signal(signal.SIGKILL)
    assert ended(view) == "failed"
    assert view.result["words"] == "killed by SIGKILL"


def test_a_child_tells_lines_errors_and_its_end(tmp_path):
    ends, over = [], threading.Event()
    errors = []
    (tmp_path / "said.py").write_text(
        'import sys\nprint("no json")\nprint(\'{"a": 1}\')\nprint("[1]")\nprint("bad", file=sys.stderr)\nsys.exit(3)\n'
    )
    heard = []
    Child(
        ["said"], folder=tmp_path, on_line=heard.append, on_error=errors.append,
        on_end=lambda end: (ends.append(end), over.set()),
    )  # fmt: skip
    assert over.wait(30)
    assert heard == [{"a": 1}]
    assert errors == ["bad"]
    assert (ends[0].status, ends[0].words, ends[0].stopped) == (3, "ended with status 3", False)

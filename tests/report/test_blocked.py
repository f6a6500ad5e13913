"""Who would have run, and who waits for whom at the worst moment, as a page shows it."""

import re
from html import unescape

import pytest

from cuzklab.report import show
from cuzklab.report.figures import wait_graph
from tests.analysis.example import phase9_like, safe_check
from tests.report.hostile import hostile_run


@pytest.fixture
def shown(monkeypatch):
    """What is displayed: HTML, and figures as they are."""
    found = []
    monkeypatch.setattr("cuzklab.report.display.markup", found.append)
    monkeypatch.setattr("cuzklab.report.display.figure", found.append)
    return found


def text_of(parts) -> str:
    html = " ".join(part for part in parts if isinstance(part, str))
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_the_holder_who_would_have_run_and_the_graph(shown, tmp_path):
    show.blame(phase9_like(tmp_path))
    text = text_of(shown)
    # w0's second wait, [53, 90) ms: w1 holds the lock from 50 on and its kernels run in [54, 74) and [75, 89), so the
    # device is idle for three times 1 ms of it.
    assert "gpu0.w0 would have run. It stood first in the queue of gpu0.lock for 37.0 ms, held by gpu0.w1" in text
    assert "the device was idle for 3.00 ms of it, of which its own work would have filled 3.00 ms." in text
    assert "Table: who would have run, 3 waits" in text
    (graph,) = (part for part in shown if not isinstance(part, str))
    assert graph.layout.meta["description"] == "gpu0.w1 waits for gpu0.w0"
    # Never more than one waits; w1's first wait, [11, 50) ms, is the longest.
    assert "11.0 ms after the start, for 39.0 ms; no cycle" in graph.layout.title.subtitle.text


def test_a_run_without_waits_says_so(shown, tmp_path):
    show.blame(safe_check(tmp_path))
    text = text_of(shown)
    assert "nobody would have run instead" in text
    assert "nobody waits for what another worker holds" in text


def test_names_stay_text(shown, tmp_path):
    show.blame(hostile_run(tmp_path))
    assert not [part for part in shown if isinstance(part, str) and "<img" in part]


def test_things_that_one_waits_for_of_one_stand_at_one_arrow():
    graph = wait_graph([("a", "b", "lock"), ("a", "b", "memory"), ("a", "b", "lock"), ("b", "c", "x")], "now")
    labels = [note.text for note in graph.layout.annotations if note.text]
    assert [re.sub(r"\s+", " ", label) for label in labels] == ["waits for lock, memory", "waits for x"]

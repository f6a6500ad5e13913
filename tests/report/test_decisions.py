"""Decisions have the colour of what they ask for, in badges, in verdicts and on the index."""

from importlib import resources

import pytest

from cuzklab.analysis.model import DECISIONS
from cuzklab.report import decisions
from cuzklab.report.overview import Made, write_overview
from cuzklab.report.show import history


@pytest.mark.parametrize(
    ("look", "names"),
    [
        ("good", ("keep", "steady")),
        ("doubt", ("tune", "undecided", "suspect")),
        ("bad", ("revert", "regressed", "failed")),
        ("neutral", ("described", "measured", "tuned", "simulated", "too short", "a word of somebody's own")),
    ],
)
def test_a_decision_has_the_colour_of_what_it_asks_for(look, names):
    assert {decisions.look_of(name) for name in names} == {look}


def test_every_decision_that_can_be_made_was_thought_of():
    own = {*DECISIONS, history.REGRESSED, history.STEADY, history.SUSPECT, history.TOO_SHORT}
    assert {name for name in own if decisions.look_of(name) == "neutral"} == {"described", "too short"}


def test_each_class_but_neutral_has_its_own_colour_in_the_style():
    style = (resources.files("cuzklab.report") / "page" / "parts.css").read_text()
    for look, colour in (("good", "--good"), ("doubt", "--doubt"), ("bad", "--bad")):
        assert f".cz-verdict.{look} {{ border-top-color: var({colour}); }}" in style
        assert any(f".cz-badge.{look} {{ color: var({colour}); }}" in line for line in style.splitlines())
    assert ".neutral" not in style  # the colour of text that is no warning


def test_the_index_counts_decisions_and_says_what_colours_mean(tmp_path):
    made = [
        Made("a", "a", {}, "keep", "Fine.", "a/a.html"), Made("b", "b", {}, "measured", "So it is.", "b/b.html"),
        Made("c", "c", {}, "revert", "Worse.", "c/c.html"),
    ]  # fmt: skip
    page = write_overview(tmp_path / "index.html", "All", made).read_text()
    assert "3 reports: 1 revert, 1 keep, 1 measured. All were made." in page
    assert '<span class="cz-badge neutral">measured</span>' in page
    assert '<span class="cz-badge bad">revert</span>' in page
    assert "</span> tells what is, decides nothing</li>" in page
    assert "act or look again" not in page  # no such decision is on the page
    assert "Small runs" not in page


def test_the_index_of_quick_reports_says_that_their_runs_were_small(tmp_path):
    made = [Made("a", "a", {}, "keep", "Fine.", "a/a.html"), Made("b", "b", {}, "failed", "It stopped.")]
    page = write_overview(tmp_path / "index.html", "All", made, quick=True).read_text()
    assert '<div class="cz-warning">Small runs: made with <code>--quick</code>,' in page
    assert "2 reports: 1 failed, 1 keep. 1 failed or needs a look." in page

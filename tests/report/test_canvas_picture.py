"""From a run to what is drawn: lanes, rows, kinds, memory; and the smaller picture of a large run."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.analysis import frames, vram
from cuzklab.report.canvas import picture_of
from cuzklab.report.canvas.columns import decode
from cuzklab.report.canvas.merge import thinned
from cuzklab.report.canvas.picture import beside
from cuzklab.report.canvas.rows import rows_of
from cuzklab.trace import Kernel, Recorder, RunInfo, Span, Transfer, write_run
from tests.analysis.example import MS, phase9_like
from tests.report.hostile import EVIL, hostile_run
from tests.workbench.large import large_run


@pytest.fixture(scope="module")
def phase9(tmp_path_factory):
    return phase9_like(tmp_path_factory.mktemp("phase9"))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return picture_of(large_run(tmp_path_factory.mktemp("large") / "run", 30_000))


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=40)


@given(SPANS)
@settings(max_examples=200)
def test_spans_of_a_row_do_not_overlap(spans):
    spans = sorted(((start, start + length) for start, length in spans), key=lambda span: (span[0], -span[1]))
    starts, ends = (np.array([span[side] for span in spans], dtype=np.int64) for side in (0, 1))
    rows = rows_of(starts, ends)
    for row in set(rows.tolist()):
        own = rows == row
        assert (starts[own][1:] >= ends[own][:-1]).all()
    # Not more rows than spans that are open at once.
    open_at = [sum(start <= moment < end for start, end in spans) for moment in range(81)]
    assert rows.max(initial=-1) + 1 <= max(open_at, default=0) + sum(start == end for start, end in spans)


def test_what_encloses_stands_above():
    starts, ends = np.array([0, 0, 5, 20]), np.array([10, 4, 9, 30])
    assert rows_of(starts, ends).tolist() == [0, 1, 1, 0]


def test_everything_with_an_extent_is_in_the_picture(phase9):
    picture, bars = picture_of(phase9), frames.timeline(phase9)
    assert len(picture) == len(bars) == 60
    assert (picture.unit, picture.length_ns) == ("ns", 172 * MS)
    assert sorted(picture.source) == list(range(60))
    origin, _ = frames.window(phase9)
    assert (picture.start + origin == bars["start_ns"].to_numpy()[picture.source]).all()
    for column in ("label", "worker", "partition"):
        assert [picture.strings[place] for place in getattr(picture, column)] == bars[column].iloc[
            picture.source
        ].tolist()
    assert [(lane.section, lane.label) for lane in picture.lanes] == [
        ("GPU workers", "w0"), ("GPU workers", "w0/prep"), ("GPU workers", "w1"), ("GPU workers", "w1/prep"),
        ("locks: who holds them", "gpu0.lock"), ("device, by stream", "gpu0 w0 upload"),
        ("device, by stream", "gpu0 w1 upload"), ("device, by stream", "gpu0 w0 compute"),
        ("device, by stream", "gpu0 w1 compute"),
    ]  # fmt: skip
    assert picture.row_count.sum() == 60
    # A call stands above the stages of its worker; prep has one row.
    assert np.bincount(picture.row_lane).tolist() == [2, 1, 2, 1, 1, 1, 1, 1, 1]


def test_kinds_have_the_colours_of_reports(phase9):
    kinds = {kind.name: kind for kind in picture_of(phase9).kinds}
    assert (kinds["h_msm"].role, kinds["h_msm"].colour) == ("work", "#56B4E9")
    assert kinds["waits for a lock"].role == "wait" and kinds["waits for a lock"].pattern == "/"
    holders = [kind for kind in kinds.values() if kind.role == "hold"]
    assert len({kind.colour for kind in holders}) == len({kind.pattern for kind in holders}) == 2


def test_memory_adds_up_at_every_event(phase9):
    (memory,) = picture_of(phase9).memory
    steps = vram.steps(phase9)
    assert memory.live_bytes.tolist() == steps["live_bytes"].tolist()
    assert memory.limit_bytes == 16 << 30
    total = np.zeros(len(memory.time), dtype=np.int64)
    for layer in memory.layers:
        place = np.searchsorted(layer.event, np.arange(len(memory.time)), side="right") - 1
        total += np.where(place >= 0, layer.level_bytes[np.maximum(place, 0)], 0)
    assert total.tolist() == memory.live_bytes.tolist()


def test_names_stay_data_in_the_binary(tmp_path):
    picture = picture_of(hostile_run(tmp_path))
    header, _ = decode(picture.to_bytes())
    assert EVIL in header["strings"]
    assert [failure["bytes"] for failure in header["memory"][0]["failures"]] == [8 << 30] * 2


def test_an_empty_run_is_a_picture(tmp_path):
    picture = picture_of(write_run(tmp_path / "none", RunInfo("live", "none"), Recorder()))
    header, columns = decode(picture.to_bytes())
    assert (len(picture), header["lanes"], header["length"]) == (0, [], 1)
    assert len(columns["start"]) == 0


def test_two_pictures_stand_beside_each_other(phase9):
    picture = picture_of(phase9)
    both = beside(picture, picture)
    assert len(both) == 120 and len(both.lanes) == 18 and len(both.memory) == 2
    assert both.kinds == picture.kinds
    assert [both.strings[place] for place in both.label[60:]] == [picture.strings[place] for place in picture.label]
    assert len(decode(both.to_bytes())[1]["start"]) == 120
    # What is compared stands together, and every row is still in its own lane.
    sections = list(dict.fromkeys(lane.section for lane in both.lanes))
    assert sections[:4] == [
        f"{side} · {of}" for of in ("GPU workers", "locks: who holds them") for side in ("left", "right")
    ]
    rows = len(picture.row_lane)
    for row, lane in enumerate(both.row_lane):
        of = picture.lanes[picture.row_lane[row % rows]]
        assert both.lanes[lane].label == of.label
        assert both.lanes[lane].section == f"{'left' if row < rows else 'right'} · {of.section}"


def test_a_small_picture_is_not_touched(large):
    assert thinned(large, len(large)) is large


@pytest.mark.parametrize("at_most", [20_000, 4_000, 1_000])
def test_a_smaller_picture_accounts_for_every_span(large, at_most):
    small = thinned(large, at_most)
    assert len(small) <= at_most
    assert small.merged.sum() == len(large)
    assert small.row_count.sum() == len(small)
    assert (small.length - small.idle).sum() == large.length.sum()
    for first, count in zip(small.row_first, small.row_count, strict=True):
        own = slice(first, first + count)
        assert (small.start[own][1:] >= (small.start + small.length)[own][:-1]).all()
    kept = small.source >= 0
    assert (small.merged[kept] == 1).all() and (small.merged[~kept] > 1).all()
    merged = small.merged[~kept]
    assert f"{merged.sum():,} spans" in small.note and f"{len(merged):,} bars" in small.note
    # What is longer than every merged bar survives as it is.
    longer = large.source[large.length > small.length[~kept].max(initial=0)]
    assert set(longer) <= set(small.source)


def test_kinds_keep_their_proportion(large):
    small = thinned(large, 10_000)

    def shares(picture):
        time = np.bincount(picture.kind, picture.length - picture.idle, minlength=len(large.kinds))
        return time / time.sum()

    # Each merged bar is one draw by time: four standard errors of the share of so many draws.
    draws = int((small.source < 0).sum())
    assert np.abs(shares(small) - shares(large)).max() < 4 * 0.5 / np.sqrt(draws)


def test_a_smaller_picture_is_always_the_same(large):
    assert thinned(large, 3_000).to_bytes() == thinned(large, 3_000).to_bytes()


def test_names_that_only_count_are_one_kind_and_streams_stay_apart(tmp_path):
    recorder = Recorder(clock=lambda: 0)
    for number in range(40):
        recorder.add(Span(10 * number, 10 * number + 9, f"Step {number} to {number + 1}", "cpu", worker="a"))
        recorder.add(Kernel(10 * number, 10 * number + 5, "k", "7", 0, worker="a"))
        recorder.add(Transfer(10 * number + 5, 10 * number + 7, 0, 8, "h2d", True, "7", 0, "a"))
    picture = picture_of(write_run(tmp_path / "steps", RunInfo("imported", "steps"), recorder))
    assert [kind.name for kind in picture.kinds] == ["Step … to …", "k", "copy"]
    assert [lane.label for lane in picture.lanes] == ["a", "gpu0 copies 7", "gpu0 kernels 7"]


def test_memory_that_changes_often_keeps_its_peaks_and_what_they_consist_of(large, monkeypatch):
    monkeypatch.setattr("cuzklab.report.canvas.merge.MOST_EVENTS", 200)
    (before,), small = large.memory, thinned(large, len(large))
    (after,) = small.memory
    assert len(after.time) <= 200 < len(before.time)
    assert f"{len(after.time)} of {len(before.time):,} changes" in small.note
    assert len(small) == len(large)
    assert set(after.time) <= set(before.time)
    # Every stretch has its highest moment, and layers still add up to what is live.
    stretch = -(-large.length_ns * 2 // 200)
    for number in np.unique(before.time // stretch):
        highest = [memory.live_bytes[memory.time // stretch == number].max() for memory in (before, after)]
        assert highest[0] == highest[1]
    for place in range(len(after.time)):
        levels = [layer.level_bytes[layer.event <= place][-1:].sum() for layer in after.layers]
        assert sum(levels) == after.live_bytes[place]


def test_memory_that_is_small_enough_is_not_touched(large):
    assert thinned(large, len(large)).memory is large.memory

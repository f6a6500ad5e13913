"""What a stretch of time went into: exact figures of the example, and sums that always add up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.analysis import blocking, frames, locks, occupancy, stages, stretch
from cuzklab.analysis.intervals import clip, total
from cuzklab.trace import Recorder, RunInfo, write_run
from tests.analysis.example import MS, phase9_like

W0, W1 = "gpu0.w0", "gpu0.w1"


@pytest.fixture(scope="module")
def phase9(tmp_path_factory):
    return phase9_like(tmp_path_factory.mktemp("phase9"))


def rows(frame, *columns):
    return [tuple(row[column] for column in columns) for row in frame.to_dict("records")]


def test_a_stretch_of_the_example(phase9):
    # From 20 to 60 ms: w0 runs kernels until 34 and in [35, 49); w1 holds the lock from 50 and runs kernels from 54.
    device = stretch.device_time(phase9, 20 * MS, 60 * MS)
    assert rows(device, "device", "cause", "time_ns") == [
        (0, "kernels", 34 * MS), (0, "transfer", 4 * MS), (0, "barrier", MS), (0, "lock", MS),
    ]  # fmt: skip
    assert device["share"].tolist() == [0.85, 0.1, 0.025, 0.025]
    held = stretch.lock_time(phase9, 20 * MS, 60 * MS)
    assert rows(held, "lock", "worker", "holds", "held_ns", "waits", "waited_ns") == [
        ("gpu0.lock", W0, 1, 30 * MS, 1, 7 * MS), ("gpu0.lock", W1, 1, 10 * MS, 1, 30 * MS),
    ]  # fmt: skip
    gpu = stretch.stage_time(phase9, 20 * MS, 60 * MS).query("processor == 'gpu'")
    assert rows(gpu, "stage", "count", "time_ns", "share") == [
        ("h_msm", 1, 12 * MS, 0.3), ("batch_add", 1, 10 * MS, 0.25), ("ntt_h", 2, 8 * MS, 0.2),
        ("tail_msm", 1, 4 * MS, 0.1),
    ]  # fmt: skip
    memory = stretch.memory_at_peak(phase9, 20 * MS, 60 * MS)
    assert rows(memory, "time_ns", "buffer", "worker", "bytes") == [
        (22 * MS, "d_bc", W0, 8 << 30), (22 * MS, "d_a", W0, 4 << 30), (22 * MS, "h_msm scratch", W0, 1 << 30),
    ]  # fmt: skip


def test_memory_from_before_the_stretch_counts(phase9):
    memory = stretch.memory_at_peak(phase9, 15 * MS, 16 * MS)
    assert rows(memory, "time_ns", "buffer") == [(15 * MS, "d_bc"), (15 * MS, "d_a")]


def test_who_waited_during_a_hold(phase9):
    waiting = stretch.waiting_during(phase9, "gpu0.lock", 10 * MS, 50 * MS)
    assert rows(waiting, "worker", "requested_ns", "time_ns") == [(W1, 11 * MS, 39 * MS)]


def test_a_run_without_rows_has_no_rows(tmp_path):
    run = write_run(tmp_path / "none", RunInfo("live", "none"), Recorder())
    tables = [
        stretch.device_time(run, 0, 9), stretch.stage_time(run, 0, 9), stretch.lock_time(run, 0, 9),
        stretch.memory_at_peak(run, 0, 9), stretch.waiting_during(run, "lock", 0, 9),
    ]  # fmt: skip
    assert [len(table) for table in tables] == [0] * 5


@given(start=st.integers(-20, 190), length=st.integers(1, 200))
@settings(max_examples=15)
def test_a_devices_time_adds_up_to_the_stretch(phase9, start, length):
    first, last = frames.window(phase9)
    begins, ends = start * MS, (start + length) * MS
    found = stretch.device_time(phase9, begins, ends)
    inside = max(min(ends, last) - max(begins, first), 0)
    assert found["time_ns"].sum() == inside
    held = stretch.lock_time(phase9, begins, ends)
    uses = locks.uses(phase9)
    assert held["held_ns"].sum() == total(clip(uses[["acquired_ns", "released_ns"]].to_numpy(np.int64), begins, ends))


def test_the_whole_run_is_what_the_other_analyses_say(phase9):
    whole = frames.window(phase9)
    found = stretch.device_time(phase9, *whole).set_index("cause")["time_ns"].to_dict()
    assert found.pop("kernels") == occupancy.occupancy(phase9)["kernel_busy_ns"].sum()
    assert found == occupancy.idle(phase9).set_index("cause")["time_ns"].to_dict()
    times = stretch.stage_time(phase9, *whole).set_index("stage")["time_ns"].to_dict()
    assert times == stages.stage_times(phase9).set_index("stage")["total_ns"].to_dict()


def test_who_would_have_run_at_a_moment_is_a_part_of_who_would_have_run(phase9):
    every = blocking.would_have_run(phase9)
    for moment in range(0, 172, 7):
        here = blocking.would_have_run(phase9, "gpu0.lock", moment * MS)
        under_way = (every["start_ns"] <= moment * MS) & (every["start_ns"] + every["wait_ns"] > moment * MS)
        assert here.to_dict("records") == every[under_way].to_dict("records")
    assert not len(blocking.would_have_run(phase9, "no such lock"))

"""What a partition costs the device, on a run whose every interval is known."""

import pytest

from cuzklab.analysis import frames, partition_times
from cuzklab.trace import Kernel, LockUse, Recorder, RunInfo, Span, Transfer, VramEvent, WaitInterval, write_run

MS = 1_000_000


def span(name, category, start, end):
    return Span(start * MS, end * MS, name, category, 0, "w", "w", 0, "p0", 0)


@pytest.fixture
def run(tmp_path):
    """The transform begins on what has arrived of a copy that lasts from 10 to 20; 5 ms are waited at the barrier."""
    recorder = Recorder(clock=lambda: 0)
    rows = [
        span("pin", "memory", 0, 3), span("alloc", "memory", 8, 9), span("ntt_h", "gpu", 12, 25),
        span("h_msm", "gpu", 25, 55), span("batch_add.l", "gpu", 60, 70), span("batch_add.a", "gpu", 70, 78),
        span("tail_msm.l", "gpu", 80, 84), span("prep_msm", "cpu", 0, 60), span("b_g2_msm", "cpu", 60, 90),
        Transfer(10 * MS, 20 * MS, 10 * MS, 100, "h2d", True, "p0.upload", 0, "w", "p0"),
        Transfer(26 * MS, 30 * MS, 25 * MS, 50, "h2d", True, "p0.compute", 0, "w", "p0"),  # points of h_msm
        Kernel(13 * MS, 16 * MS, "ntt", "p0.compute", 0, 12 * MS, "ntt_h", "w", "p0"),
        Kernel(20 * MS, 24 * MS, "ntt", "p0.compute", 0, 12 * MS, "ntt_h", "w", "p0"),
        Kernel(30 * MS, 54 * MS, "msm", "p0.compute", 0, 25 * MS, "h_msm", "w", "p0"),
        Kernel(61 * MS, 69 * MS, "sum", "p0.compute", 0, 60 * MS, "batch_add.l", "w", "p0"),
        WaitInterval(55 * MS, 60 * MS, "barrier", "p0.barrier", "", "w", "p0"),
        LockUse("gpu0.lock", 3 * MS, 7 * MS, 85 * MS, "w", "w", "p0", "", 1),
        VramEvent(8 * MS, "alloc", "d_a", 32, 0, 32, 64, "w", "p0", "", ""),
    ]  # fmt: skip
    for row in rows:
        recorder.add(row)
    return write_run(
        tmp_path / "run", RunInfo("live", "known", devices=({"index": 0, "vram_limit_bytes": 64},)), recorder
    )


def test_three_kinds_of_gpu_time_are_kept_apart(run):
    (row,) = partition_times.of_partitions(run).to_dict("records")
    assert row["copy_ms"] == 10  # without the points of h_msm
    assert (row["ntt_h_ms"], row["h_msm_ms"], row["batch_add_ms"], row["tail_msm_ms"]) == (13, 30, 18, 4)
    assert row["h_ms"] == 45  # 10 to 55: the copy and the transform overlap
    assert row["device_ms"] == 45 + 18 + 4
    assert row["gpu_total_ms"] == 84 - 8  # from the allocation, the wait at the barrier included
    assert row["kernels_ms"] == 3 + 4 + 24 + 8
    assert (row["barrier_wait_ms"], row["prep_msm_ms"], row["b_g2_msm_ms"], row["pin_ms"]) == (5, 60, 30, 3)


def test_waits_shares_and_what_is_hidden(run):
    row = partition_times.of_run(run)
    assert (row["lock_wait_ms"], row["lock_held_ms"]) == (4, 78)
    assert row["b_g2_msm_hidden"] == pytest.approx(8 / 30)
    assert row["peak_vram_share"] == 0.5


def test_a_run_without_kernels_has_a_timeline(tmp_path):
    recorder = Recorder(clock=lambda: 0)
    recorder.add(span("alloc", "memory", 0, 1))
    bare = write_run(tmp_path / "bare", RunInfo("live", "bare"), recorder)
    assert frames.timeline(bare)["label"].tolist() == ["alloc"]

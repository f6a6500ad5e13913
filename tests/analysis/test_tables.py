"""Every table on the small runs of `example`, against numbers worked out by hand."""

import numpy as np
import pytest

from cuzklab.analysis import calls, frames, locks, occupancy, overlap, stages, vram
from cuzklab.trace import LockUse, Recorder, RunInfo, Span, VramEvent, write_run
from cuzklab.units import GiB
from tests.analysis.example import MS, phase9_like, phase10_out_of_memory, phase10_roomy

W0, W1 = "gpu0.w0", "gpu0.w1"


@pytest.fixture(scope="module")
def phase9(tmp_path_factory):
    return phase9_like(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def oom(tmp_path_factory):
    return phase10_out_of_memory(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    return phase10_roomy(tmp_path_factory.mktemp("runs"))


def run_of(folder, *rows, **info):
    recorder = Recorder(clock=lambda: 0)
    for row in rows:
        recorder.add(row)
    return write_run(folder / "run", RunInfo(**({"origin": "live", "title": "test"} | info)), recorder)


def as_dicts(table, *columns):
    return [tuple(row[column] for column in columns) for row in table.to_dict("records")]


# --- timeline --------------------------------------------------------------------------------------------------------


def test_timeline_has_a_bar_for_everything_with_an_extent(phase9):
    table = frames.timeline(phase9)
    assert list(table.columns) == list(frames.TIMELINE_COLUMNS)
    # 4 calls, 4 × 4 GPU stages, 4 × 3 CPU stages, 3 lock waits, 1 barrier wait; 4 holds; 16 kernels, 4 copies
    assert table.groupby("group").size().to_dict() == {"worker": 4 + 16 + 12 + 4, "lock": 4, "device": 16 + 4}
    assert table["group"].drop_duplicates().tolist() == ["worker", "lock", "device"]
    assert set(table["lane"]) == {W0, W1, f"{W0}/prep", f"{W1}/prep", "gpu0.lock", "gpu0 kernels", "gpu0 copies"}
    holds = table[table["category"] == "hold"]
    assert as_dicts(holds, "start_ns", "end_ns", "label") == [
        (10 * MS, 50 * MS, W0), (50 * MS, 90 * MS, W1), (90 * MS, 130 * MS, W0), (130 * MS, 170 * MS, W1)
    ]  # fmt: skip
    assert not table["open"].any()
    assert table["start_ns"].dtype == np.int64


def test_a_lock_held_at_the_end_is_drawn_to_the_end_and_marked(tmp_path):
    run = run_of(tmp_path, LockUse("m", 1, 2, None, worker="a"), Span(0, 9, "x", "cpu", worker="a"))
    bar = frames.timeline(run).query("category == 'hold'").iloc[0]
    assert (bar["start_ns"], bar["end_ns"], bar["open"]) == (2, 9, True)


def test_without_kernels_the_spans_of_gpu_stages_stand_for_them(tmp_path):
    run = run_of(tmp_path, Span(5, 9, "batch_add.l", "gpu", worker="gpu0.w0", device=0))
    work = frames.device_work(run).iloc[0]
    assert (work["stage"], work["part"], work["start_ns"], work["end_ns"]) == ("batch_add", "l", 5, 9)
    assert frames.timeline(run).query("group == 'device'")["lane"].tolist() == ["gpu0 stages"]


def test_window_spans_all_tables(phase9):
    assert frames.window(phase9) == (0, 172 * MS)


# --- locks -----------------------------------------------------------------------------------------------------------


def test_contention_of_the_one_lock(phase9):
    (row,) = locks.contention(phase9).to_dict("records")
    assert row == {
        "lock": "gpu0.lock", "uses": 4, "contended": 3, "contended_share": 0.75,
        "wait_total_ns": (39 + 37 + 37) * MS, "wait_mean_ns": 113 / 4 * MS, "wait_max_ns": 39 * MS,
        "hold_total_ns": 160 * MS, "hold_mean_ns": 40 * MS, "hold_max_ns": 40 * MS,
        "held_share": 160 / 172, "handoffs": 3, "handoff_delay_ns": 0,
    }  # fmt: skip


def test_contention_by_worker(phase9):
    table = locks.contention(phase9, by_worker=True)
    assert as_dicts(table, "worker", "uses", "contended", "wait_total_ns", "hold_total_ns") == [
        (W1, 2, 2, 76 * MS, 80 * MS), (W0, 2, 1, 37 * MS, 80 * MS)
    ]  # fmt: skip


def test_who_waited_for_whom(phase9):
    assert as_dicts(locks.waited_for(phase9), "victim", "holder", "waits", "time_ns") == [
        (W1, W0, 2, 76 * MS), (W0, W1, 1, 37 * MS)
    ]  # fmt: skip


def test_a_wait_is_charged_to_every_holder_in_turn_and_the_hand_over_to_nobody(tmp_path):
    run = run_of(
        tmp_path,
        LockUse("m", 0, 0, 10, worker="a"),
        LockUse("m", 1, 12, 20, worker="b", holder_at_request="a"),
        LockUse("m", 2, 23, 30, worker="c", holder_at_request="a"),
    )
    charged = {(row[0], row[1]): row[2] for row in as_dicts(locks.waited_for(run), "victim", "holder", "time_ns")}
    assert charged == {("b", "a"): 9, ("b", ""): 2, ("c", "a"): 8, ("c", "b"): 8, ("c", ""): 2 + 3}
    (row,) = locks.contention(run).to_dict("records")
    assert (row["handoffs"], row["handoff_delay_ns"]) == (2, 2 + 3)


def test_permits_held_together_are_each_charged(tmp_path):
    run = run_of(
        tmp_path,
        LockUse("s", 0, 0, 30, worker="a"),
        LockUse("s", 1, 1, 10, worker="b"),
        LockUse("s", 2, 10, 12, worker="c", holder_at_request="a"),
    )
    charged = {row[0]: row[1] for row in as_dicts(locks.waited_for(run), "holder", "time_ns")}
    assert charged == {"a": 8, "b": 8}


def test_a_request_that_was_given_up_waits_to_the_end_and_holds_nothing(tmp_path):
    run = run_of(tmp_path, LockUse("m", 0, 0, None, worker="a"), LockUse("m", 3, None, None, worker="b",
                 holder_at_request="a"), Span(0, 8, "x", "cpu", worker="a"))  # fmt: skip
    table = locks.uses(run)
    assert as_dicts(table, "worker", "wait_ns", "hold_ns", "given_up", "held_to_end") == [
        ("a", 0, 8, False, True), ("b", 5, 0, True, False)
    ]  # fmt: skip
    assert as_dicts(locks.waited_for(run), "victim", "holder", "time_ns") == [("b", "a", 5)]


# --- device memory ---------------------------------------------------------------------------------------------------


def test_peak_and_who_holds_what(phase9):
    assert as_dicts(vram.peaks(phase9), "device", "time_ns", "live_bytes", "limit_bytes", "headroom_bytes") == [
        (0, 22 * MS, 13 * GiB, 16 * GiB, 3 * GiB)
    ]
    assert as_dicts(vram.peak_holdings(phase9), "buffer", "worker", "partition", "bytes") == [
        ("d_bc", W0, "p0.0", 8 * GiB), ("d_a", W0, "p0.0", 4 * GiB), ("h_msm scratch", W0, "p0.0", 1 * GiB)
    ]  # fmt: skip
    assert vram.failed_requests(phase9).empty
    assert vram.leaks(phase9).empty


def test_two_workers_at_the_peak_of_the_roomy_device(roomy):
    (peak,) = vram.peaks(roomy).to_dict("records")
    assert (peak["live_bytes"], peak["time_ns"]) == (25 * GiB, 30 * MS)
    by_worker = vram.peak_holdings(roomy).groupby("worker")["bytes"].sum().to_dict()
    assert by_worker == {W0: 13 * GiB, W1: 12 * GiB}


def test_failed_request_and_what_was_live_then(oom):
    (request,) = vram.failed_requests(oom).to_dict("records")
    assert request == {
        "event": 3, "time_ns": 14 * MS, "device": 0, "worker": W1, "partition": "p0.1", "buffer": "d_bc",
        "requested_bytes": 8 * GiB, "live_bytes": 16 * GiB, "limit_bytes": 16 * GiB, "short_bytes": 8 * GiB,
        "lock_held": "gpu0.compute",
    }  # fmt: skip
    assert as_dicts(vram.failed_holdings(oom), "event", "buffer", "worker", "bytes") == [
        (3, "d_bc", W0, 8 * GiB), (3, "d_a", W0, 4 * GiB), (3, "d_a", W1, 4 * GiB)
    ]  # fmt: skip
    assert vram.leaks(oom).empty


def test_a_leak_and_memory_that_no_row_names(tmp_path):
    run = run_of(
        tmp_path,
        VramEvent(1, "alloc", "kept", 5, 0, 9, 20, "a", "p"),  # 4 bytes were live before the recording
        VramEvent(2, "alloc", "short", 3, 0, 12, 20, "b", "p"),
        VramEvent(4, "free", "short", 3, 0, 9, 20, "c", "p"),
    )
    assert as_dicts(vram.leaks(run), "buffer", "worker", "bytes", "allocated_ns") == [("kept", "a", 5, 1)]
    assert as_dicts(vram.peak_holdings(run), "buffer", "worker", "bytes") == [
        ("kept", "a", 5), (vram.NOT_TRACED, "", 4), ("short", "b", 3)
    ]  # fmt: skip
    short = vram.allocations(run).set_index("buffer").loc["short"]
    assert (short["freed_ns"], short["freed_by"]) == (4, "c")


def test_reservations_do_not_count_as_live(tmp_path):
    run = run_of(
        tmp_path,
        VramEvent(1, "reserve", "reservation", 15, 0, 15, 20, "a"),
        VramEvent(2, "alloc", "x", 5, 0, 5, 20, "a"),
        VramEvent(3, "fail", "y", 16, 0, 5, 20, "b"),
    )
    assert vram.peaks(run)["live_bytes"].tolist() == [5]
    assert as_dicts(vram.failed_holdings(run), "buffer", "bytes") == [("x", 5)]


# --- overlap ---------------------------------------------------------------------------------------------------------


def test_what_of_the_cpu_stages_is_hidden_behind_kernels(phase9):
    table = overlap.hidden(phase9).set_index("stage")
    g2 = table.loc["b_g2_msm"]
    assert (g2["count"], g2["total_ns"]) == (4, 40 * MS)
    assert (g2["behind_others_ns"], g2["behind_own_ns"], g2["exposed_ns"]) == (28 * MS, 10 * MS, 2 * MS)
    assert (g2["behind_others_fraction"], g2["hidden_fraction"], g2["exposed_fraction"]) == (0.7, 0.95, 0.05)
    # prep_msm: [0,35) own from 14 to 34; [0,20) behind w0 6; [52,72) behind w1 18; [92,112) behind w0 18
    prep = table.loc["prep_msm"]
    assert (prep["behind_others_ns"], prep["behind_own_ns"], prep["exposed_ns"]) == (42 * MS, 20 * MS, 33 * MS)


def test_stage_overlap_counts_other_workers_only(phase9):
    table = overlap.stage_overlap(phase9).set_index(["stage", "other_stage"])
    kernels = ["ntt_h", "h_msm", "batch_add", "tail_msm"]
    g2 = [table["time_ns"].get(("b_g2_msm", stage), 0) for stage in kernels]
    assert sum(g2) == 28 * MS
    assert table.loc[("b_g2_msm", "h_msm"), "fraction"] == (10 - 2 + 2 + 2) / 40
    assert ("ntt_h", "h_msm") not in table.index  # one lock: kernels of two workers never run together


def test_kernels_of_nobody_hide_but_are_not_anothers(tmp_path):
    run = run_of(
        tmp_path, Span(0, 10, "b_g2_msm", "cpu", worker="gpu0.w0"), Span(4, 9, "ntt_h", "gpu", worker="", device=0)
    )
    (row,) = overlap.hidden(run).to_dict("records")
    assert (row["behind_others_ns"], row["behind_own_ns"], row["behind_unknown_ns"], row["exposed_ns"]) == (0, 0, 5, 5)


# --- occupancy -------------------------------------------------------------------------------------------------------


def test_both_kinds_of_occupancy(phase9):
    (row,) = occupancy.occupancy(phase9).to_dict("records")
    assert (row["window_ns"], row["kernel_busy_ns"], row["idle_ns"]) == (172 * MS, 136 * MS, 36 * MS)
    assert (row["kernel_occupancy"], row["call_occupancy"]) == (136 / 172, 1.0)


def test_every_idle_nanosecond_has_one_cause(phase9):
    table = occupancy.idle(phase9)
    assert dict(zip(table["cause"], table["time_ns"])) == {
        "ramp": 14 * MS,  # before the first ntt_h
        "transfer": 12 * MS,  # the uploads of p0.1 to p0.3
        "lock": 5 * MS,  # three times from tail_msm to the release, twice between h_msm and batch_add
        "drain": 3 * MS,
        "barrier": 1 * MS,
        "host": 1 * MS,  # p0.3 between h_msm and batch_add, with nobody waiting
    }
    assert table["time_ns"].sum() == occupancy.occupancy(phase9)["idle_ns"].iloc[0]
    pieces = occupancy.idle_pieces(phase9)
    assert (pieces["start_ns"].to_numpy()[1:] >= pieces["end_ns"].to_numpy()[:-1]).all()


def test_nothing_queued_and_what_the_trace_does_not_tell(tmp_path):
    from cuzklab.trace import Kernel, WaitInterval

    run = run_of(
        tmp_path,
        Kernel(0, 10, "ntt_h", worker="gpu0.w0"),
        Kernel(30, 40, "ntt_h", worker="gpu0.w0"),
        WaitInterval(12, 25, "queue", "ready", worker="gpu0.w0"),
        WaitInterval(10, 30, "queue", "jobs", worker="synth0"),  # not a worker of the device
    )
    table = occupancy.idle(run)
    assert dict(zip(table["cause"], table["time_ns"])) == {"queue": 13, "unattributed": 7}


# --- stages and calls ------------------------------------------------------------------------------------------------


def test_stage_times(phase9):
    table = stages.stage_times(phase9).set_index("stage")
    assert table.loc["prep_msm", ["count", "median_ns", "max_ns", "total_ns"]].tolist() == [
        4, 20 * MS, 35 * MS, 95 * MS
    ]  # fmt: skip
    assert table.loc["h_msm", "processor"] == "gpu"
    assert table.loc["prep_msm", "p90_ns"] == pytest.approx(30.5 * MS)


def test_inflation_is_relative_to_the_least_competition_seen(tmp_path):
    rows = [Span(0, 10, "synthesis", "cpu", worker="s0")]
    rows += [Span(100, 115, "synthesis", "cpu", worker=f"s{number}") for number in range(3)]
    table = stages.inflation(run_of(tmp_path, *rows))
    assert as_dicts(table, "competing", "count", "median_ns", "inflation") == [(0, 1, 10.0, 1.0), (2, 3, 15.0, 1.5)]


def test_calls_and_the_times_between_their_ends(phase9):
    table = calls.calls(phase9)
    assert as_dicts(table, "worker", "partition", "duration_ns", "lock_wait_ns", "kernel_ns", "proved") == [
        (W0, "p0.0", 52 * MS, 0, 34 * MS, True), (W1, "p0.1", 92 * MS, 39 * MS, 34 * MS, True),
        (W0, "p0.2", 80 * MS, 37 * MS, 34 * MS, True), (W1, "p0.3", 80 * MS, 37 * MS, 34 * MS, True),
    ]  # fmt: skip
    assert calls.completion_intervals_ns(phase9).tolist() == [40 * MS] * 3


def test_calls_without_spans_reach_from_first_to_last_trace_of_a_partition(tmp_path):
    from cuzklab.trace import Kernel

    run = run_of(
        tmp_path,
        Span(0, 50, "synthesis", "cpu", worker="synth0", partition="p0.0"),
        Span(50, 60, "prep_msm", "cpu", worker="gpu0.w0", partition="p0.0"),
        LockUse("gpu0.lock", 52, 55, 80, worker="gpu0.w0", partition="p0.0"),
        Kernel(56, 70, "ntt_h", worker="gpu0.w0", partition="p0.0"),
        Span(81, 90, "epilogue", "cpu", worker="gpu0.w0", partition="p0.0"),
    )
    assert as_dicts(calls.calls(run), "worker", "start_ns", "end_ns", "lock_wait_ns", "kernel_ns") == [
        ("gpu0.w0", 50, 90, 3, 14)
    ]


def test_failed_calls_are_marked_and_complete_nothing(tmp_path):
    run = run_of(
        tmp_path,
        *(Span(0, end, name, "call", worker="gpu0.w0", partition=f"p{end}")
          for end, name in ((5, "prove_partition"), (7, "failed_partition"), (12, "prove_partition"))),
    )  # fmt: skip
    assert calls.calls(run)["proved"].tolist() == [True, False, True]
    assert calls.completion_intervals_ns(run).tolist() == [7]

"""Critical paths, queues, orders of locks, what fits, stages compared, predictions scored: figures known by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.analysis import compare_stages, lock_order, occupancy, queueing, vram_fit
from cuzklab.analysis.critical_path import critical_path, critical_stages
from cuzklab.analysis.intervals import total, union
from cuzklab.trace import LockUse, Recorder, RunInfo, Span, VramEvent, WaitInterval, write_run
from cuzklab.units import GiB
from tests.analysis.example import MS, phase9_like, phase10_roomy
from tests.analysis.test_findings import BASELINE, run_of, with_info
from tests.analysis.test_findings_of_cost import W0, W1, call, cpu, kernel, memory_call, wait, with_figures

# --- critical path ---------------------------------------------------------------------------------------------------


def pieces(run):
    return [(row.start_ns // MS, row.end_ns // MS, row.what, row.worker) for row in critical_path(run).itertuples()]


def gpu(start, end, name, worker=W0, partition="p0.0"):
    return Span(start * MS, end * MS, name, "gpu", 0, worker, worker, 0, partition, 0)


def test_the_path_goes_over_the_barrier_to_the_thread_that_notified_it(tmp_path):
    prep = f"{W0}/prep"
    run = run_of(
        tmp_path, BASELINE, call(10, 60), cpu(0, 10, "synthesis", "synth0"),
        wait(0, 10, "queue", "ready", partition=""),
        gpu(10, 20, "ntt_h"), cpu(10, 35, "prep_msm", thread=prep), wait(20, 35, "barrier", "p0.0.barrier"),
        gpu(35, 50, "batch_add.l"), cpu(50, 60, "epilogue"), cpu(35, 55, "b_g2_msm", thread=prep),
    )  # fmt: skip
    assert pieces(run) == [
        (0, 10, "synthesis", "synth0"), (10, 35, "prep_msm", W0), (35, 50, "batch_add.l", W0), (50, 60, "epilogue", W0),
    ]  # fmt: skip
    shares = {row.what: row.share for row in critical_stages(run).itertuples()}
    assert shares == {"prep_msm": 25 / 60, "batch_add": 15 / 60, "synthesis": 10 / 60, "epilogue": 10 / 60}


def test_the_path_goes_over_a_lock_to_who_held_it(tmp_path):
    rows = (
        gpu(0, 40, "h_msm", W1, "p1.0"), LockUse("gpu0.lock", 0, 0, 40 * MS, W1, W1, "p1.0"),
        LockUse("gpu0.lock", 5 * MS, 40 * MS, 60 * MS, W0, W0, "p0.0", W1),
        wait(5, 40, "lock", "gpu0.lock", holder=W1), memory_call(0, 5, "pin"), gpu(40, 60, "h_msm"),
    )  # fmt: skip
    run = run_of(tmp_path, BASELINE, *rows)
    assert pieces(run) == [(0, 40, "h_msm", W1), (40, 60, "h_msm", W0)]


def test_a_wait_that_nothing_explains_and_a_gap_are_pieces_themselves(tmp_path):
    run = run_of(
        tmp_path, BASELINE, memory_call(0, 5, "pin"), wait(5, 20, "memory", "gpu0 d_a"), cpu(30, 40, "epilogue")
    )
    assert [row[2] for row in pieces(run)] == ["pin", "gpu0 d_a", "not traced", "epilogue"]
    assert list(critical_path(run)["kind"]) == ["memory", "wait:memory", "host", "cpu"]


NAMES = (
    "synthesis", "prep_msm", "b_g2_msm", "epilogue", "lock", "barrier", "join", "queue", "event", "memory"
)  # fmt: skip
acts = st.lists(
    st.tuples(
        st.integers(0, 60), st.integers(1, 30), st.sampled_from(NAMES),
        st.sampled_from([W0, W1, f"{W0}/prep", "synth0"]), st.sampled_from(["p0.0", "p0.1", "p1.0"]),
    ),
    min_size=1, max_size=25,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(acts)
def test_pieces_of_any_path_add_up_to_the_time_of_the_proof(tmp_path_factory, of):
    recorder = Recorder(clock=lambda: 0)
    for start, length, name, thread, partition in of:
        worker = thread.partition("/")[0]
        if name in ("lock", "barrier", "join", "queue", "event", "memory"):
            on = "gpu0.lock" if name == "lock" else f"{partition}.{name}"
            recorder.add(WaitInterval(start, start + length, name, on, "", thread, partition))
            if name == "lock":
                recorder.add(LockUse(on, start, start + length, start + length + 3, thread, worker, partition, W1))
        else:
            recorder.add(Span(start, start + length, name, "cpu", 0, thread, worker, int(partition[1]), partition))
    run = write_run(tmp_path_factory.mktemp("path") / "run", RunInfo("live", "any", "ok", "", BASELINE, {}), recorder)
    spans = run.table("spans")
    for proof, path in critical_path(run).groupby("proof"):
        mine = spans[spans["proof"] == proof]
        assert path["start_ns"].iloc[0] == mine["start"].min()
        assert path["end_ns"].iloc[-1] == mine["end"].max()
        assert (path["start_ns"].to_numpy()[1:] == path["end_ns"].to_numpy()[:-1]).all()
        assert (path["end_ns"] > path["start_ns"]).all()


# --- idle time -------------------------------------------------------------------------------------------------------


def test_idle_time_on_allocation_and_on_host_memory_has_causes_of_its_own(tmp_path):
    rows = (
        call(0, 100), kernel(0, 10), memory_call(10, 30, "alloc d_a"), memory_call(30, 60, "unpin"),
        cpu(60, 80, "epilogue"), kernel(80, 100),
    )  # fmt: skip
    run = run_of(tmp_path, BASELINE, *rows)
    found = dict(zip(occupancy.idle(run)["cause"], occupancy.idle(run)["time_ns"], strict=True))
    assert found == {"host_memory": 30 * MS, "allocation": 20 * MS, "host": 20 * MS}
    (bound,) = occupancy.bindings(run)
    assert (bound.cause, bound.busy_share, bound.inner_ns) == ("host_memory", 0.3, 100 * MS)


def test_every_idle_nanosecond_of_the_example_has_one_cause(tmp_path):
    for run in (phase9_like(tmp_path), phase10_roomy(tmp_path)):
        cut = occupancy.idle_pieces(run)
        assert total(union(cut["start_ns"], cut["end_ns"])) == (cut["end_ns"] - cut["start_ns"]).sum()
        assert (cut["end_ns"] - cut["start_ns"]).sum() == occupancy.occupancy(run)["idle_ns"].sum()


def test_idle_time_under_a_lock_is_charged_to_its_holder(tmp_path):
    rows = (
        kernel(0, 10), kernel(40, 60, worker=W1, partition="p0.1"),
        LockUse("gpu0.lock", 0, 0, 40 * MS, W0, W0, "p0.0"),
        LockUse("gpu0.lock", 5 * MS, 40 * MS, 60 * MS, W1, W1, "p0.1", W0),
    )  # fmt: skip
    (row,) = occupancy.idle_under_locks(run_of(tmp_path, BASELINE, *rows)).itertuples()
    assert (row.lock, row.holder, row.time_ns) == ("gpu0.lock", W0, 30 * MS)


# --- queues ----------------------------------------------------------------------------------------------------------


def test_queues_hold_to_littles_law(tmp_path):
    run = phase9_like(tmp_path)
    found = queueing.queueing(run).set_index("resource")
    lock = found.loc["lock gpu0.lock"]
    # Four requests; three of them wait 30, 33 and 50 ms (see the example), 113 ms in a window of 172 ms.
    assert (lock["arrivals"], lock["waited"]) == (4, 3)
    assert lock["mean_queue"] == pytest.approx(113 / 172)
    assert lock["mean_in_service"] == pytest.approx(lock["busy_share"]) == pytest.approx(160 / 172)
    for row in found.itertuples():
        assert row.mean_queue == pytest.approx(row.per_second * row.wait_mean_ns * 1e-9)


def test_partitions_wait_for_a_worker_from_their_synthesis_on(tmp_path):
    rows = cpu(0, 10, "synthesis", "synth0"), cpu(0, 14, "synthesis", "synth1", "p0.1"), call(10, 30), kernel(10, 30)
    run = run_of(tmp_path, BASELINE, *rows, call(30, 50, partition="p0.1"), kernel(30, 50, partition="p0.1"))
    row = queueing.queueing(run).set_index("resource").loc["GPU workers"]
    assert (row["arrivals"], row["wait_max_ns"], row["service_mean_ns"]) == (2, 16 * MS, 20 * MS)


# --- locks together --------------------------------------------------------------------------------------------------


def used(lock, requested, acquired, released, worker, holder=""):
    return LockUse(lock, requested * MS, acquired * MS, released * MS, worker, worker, "p0.0", holder)


def test_locks_taken_in_both_orders_are_inverted(tmp_path):
    rows = used("a", 0, 0, 10, W0), used("b", 2, 2, 8, W0), used("b", 20, 20, 30, W1), used("a", 22, 22, 28, W1)
    order = lock_order.order(run_of(tmp_path, BASELINE, *rows))
    assert {(row.held, row.wanted, row.times, row.inverted) for row in order.itertuples()} == {
        ("a", "b", 1, True), ("b", "a", 1, True),
    }  # fmt: skip


def test_locks_taken_in_one_order_are_not(tmp_path):
    rows = used("a", 0, 0, 10, W0), used("b", 2, 2, 8, W0), used("a", 20, 20, 30, W1), used("b", 22, 22, 28, W1)
    (row,) = lock_order.order(run_of(tmp_path, BASELINE, *rows)).itertuples()
    assert (row.held, row.wanted, row.times, row.workers, row.inverted) == ("a", "b", 2, 2, False)


def test_memory_waited_for_under_a_lock_that_its_holder_wants_is_a_cycle(tmp_path):
    rows = (
        used("mem", 0, 0, 50, W1), used("mem", 5, 50, 60, W0, W1), wait(5, 50, "lock", "mem", holder=W1),
        wait(10, 40, "memory", "gpu0 d_bc", W1, "p0.1", W0),
    )  # fmt: skip
    run = run_of(tmp_path, BASELINE, *rows)
    (row,) = lock_order.order(run).itertuples()
    assert (row.held, row.wanted, row.inverted) == ("mem", lock_order.MEMORY, True)
    edges = lock_order.wait_for(run, 20 * MS)
    assert {(row.waiter, row.kind, row.holder) for row in edges.itertuples()} == {(W0, "lock", W1), (W1, "memory", W0)}
    assert lock_order.cycles(edges) == [(W0, W1)]
    assert lock_order.cycles(lock_order.wait_for(run, 45 * MS)) == []


def test_the_moment_when_the_most_workers_wait(tmp_path):
    def waits(start, end, worker, kind="lock", holder="x"):
        return WaitInterval(start * MS, end * MS, kind, "a", holder, worker, "p0.0")

    # Two wait in [20, 30) and in [50, 65); three in [70, 75), but one of them for nobody.
    rows = (
        waits(0, 30, "a"), waits(20, 40, "b"), waits(50, 90, "a"), waits(45, 65, "b", "memory"), waits(70, 75, "b"),
        waits(70, 75, "c", "barrier", ""),
    )  # fmt: skip
    assert lock_order.most_waiting(run_of(tmp_path / "one", *rows)) == (50 * MS, 65 * MS)
    assert lock_order.most_waiting(run_of(tmp_path / "none", waits(0, 5, "a", holder=""))) is None


def test_a_convoy_is_a_lock_that_is_always_waited_for(tmp_path):
    rows = (
        used("a", 0, 0, 10, W0), used("a", 5, 10, 20, W1), used("a", 12, 20, 30, W0), used("a", 25, 30, 40, W1),
        used("a", 60, 60, 70, W0), used("a", 80, 80, 90, W1),
    )  # fmt: skip
    (row,) = lock_order.convoys(run_of(tmp_path, BASELINE, *rows)).itertuples()
    assert (row.start_ns, row.end_ns, row.holds, row.workers, row.hold_mean_ns) == (0, 40 * MS, 4, 2, 10 * MS)


# --- device memory ---------------------------------------------------------------------------------------------------


def test_what_fits_beside_what(tmp_path):
    run = phase9_like(tmp_path)
    need = vram_fit.owners(run).set_index("worker")
    assert set(need["own_peak_bytes"]) == {13 * GiB}
    (fit,) = vram_fit.fits(run)
    assert (fit.worker_bytes, fit.fitting_workers, fit.short_bytes) == (13 * GiB, 1, 10 * GiB)
    assert fit.headroom_bytes == 3 * GiB
    (roomy,) = vram_fit.fits(phase10_roomy(tmp_path))
    assert (roomy.fitting_workers, roomy.short_bytes) == (3, 12 * GiB)
    lives = vram_fit.lifetimes(run).set_index("buffer")
    assert lives.loc["d_bc", ["count", "bytes", "life_mean_ns"]].tolist() == [4, 8 * GiB, 24 * MS]


def test_memory_that_is_no_known_buffer(tmp_path):
    rows = (
        VramEvent(0, "alloc", "d_a", 4 * GiB, 0, 6 * GiB, 16 * GiB, W0, "p0.0"),
        VramEvent(1, "fail", "d_bc", 8 * GiB, 0, 6 * GiB, 16 * GiB, W0, "p0.0"),
    )
    (row,) = vram_fit.fragmentation(run_of(tmp_path, BASELINE, *rows)).itertuples()
    assert (row.unexplained_max_bytes, row.failed_with_room, row.at_least_bytes) == (2 * GiB, 1, 2 * GiB)
    (row,) = vram_fit.fragmentation(phase9_like(tmp_path)).itertuples()
    assert (row.unexplained_max_bytes, row.failed_with_room) == (0, 0)


# --- comparison and predictions --------------------------------------------------------------------------------------


def stages_of(folder, policy, lengths_ms, **more):
    rows = [cpu(0, length, "prep_msm", partition=f"p0.{place}") for place, length in enumerate(lengths_ms)]
    rows += [
        gpu(0, 5, part, partition=f"p0.{place}")
        for place in range(len(lengths_ms))
        for part in ("batch_add.l", "batch_add.a")
    ]
    return run_of(folder, policy, *rows, **more)  # fmt: skip


def test_stages_are_compared_by_partition_with_intervals(tmp_path):
    slow = stages_of(tmp_path, "new", [20, 22, 21, 19, 20, 21])
    fast = stages_of(tmp_path, "old", [10, 11, 10, 9, 11, 10])
    rows = compare_stages.by_stage(slow, fast).set_index("stage")
    assert rows.loc["prep_msm", "ratio"] == pytest.approx(123 / 61)
    assert rows.loc["prep_msm", "low"] < 123 / 61 < rows.loc["prep_msm", "high"]
    assert rows["resolved"].to_dict() == {"prep_msm": True, "batch_add": False}
    assert rows.loc["batch_add", ["count", "mean_ns", "ratio"]].tolist() == [6, 10 * MS, 1.0]


def test_unlike_runs_are_refused_by_name(tmp_path):
    other = stages_of(tmp_path, "old", [10])
    other = with_info(other, conditions={**other.info.conditions, "workload": "larger"})
    with pytest.raises(compare_stages.NotComparable, match=r"they differ in workload \(example and larger\)"):
        compare_stages.by_stage(stages_of(tmp_path, "new", [10]), other)


def test_a_prediction_is_scored_against_what_came(tmp_path):
    predicted = with_figures(stages_of(tmp_path, "new", [10, 10], origin="simulated"), batch_average=0.9)
    measured = with_figures(stages_of(tmp_path, "new", [8, 12]), batch_average=1.0)
    found = {(one.kind, one.label): one for one in compare_stages.score(predicted, measured)}
    assert found["batch_average", ""].error == pytest.approx(-0.1)
    assert found["duration", "prep_msm"].error == pytest.approx(0.0)
    with pytest.raises(compare_stages.NotComparable, match="must be a simulation"):
        compare_stages.score(measured, predicted)
    other = with_info(measured, conditions={**measured.info.conditions, "gw": 5})
    with pytest.raises(compare_stages.NotComparable, match=r"they differ in gw \(2 and 5\)"):
        compare_stages.score(predicted, other)


def test_sizes_of_arrays_do_not_matter_where_there_is_nothing(tmp_path):
    empty = run_of(tmp_path, BASELINE)
    for frame in (
        critical_path(empty), critical_stages(empty), queueing.queueing(empty), lock_order.order(empty),
        lock_order.convoys(empty), vram_fit.lifetimes(empty), vram_fit.owners(empty), vram_fit.fragmentation(empty),
        occupancy.idle_under_locks(empty), compare_stages.by_stage(empty, empty), lock_order.wait_for(empty, 0),
    ):  # fmt: skip
        assert len(frame) == 0
    assert vram_fit.fits(empty) == [] == occupancy.bindings(empty)

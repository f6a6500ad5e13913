"""Blame for waiting, on runs whose truth is plain: three workers and two locks, to the nanosecond."""

import pytest

from cuzklab.analysis import blocking
from cuzklab.trace import Kernel, LockUse, Recorder, RunInfo, Span, WaitInterval, write_run


def run_of(tmp_path, *rows):
    recorder = Recorder()
    for row in rows:
        recorder.add(row)
    return write_run(tmp_path / "run", RunInfo("live", "example"), recorder)


def use(lock, worker, requested, acquired, released, holder=""):
    return LockUse(lock, requested, acquired, released, worker, worker, f"p.{worker}", holder)


def wait(worker, start, end, on, holder):
    return WaitInterval(start, end, "lock", on, holder, worker, f"p.{worker}")


@pytest.fixture
def chain(tmp_path):
    """a holds A for 100; b holds B, then waits for A from 10 on; c waits for B from 20 on; a works all the while."""
    return run_of(
        tmp_path,
        use("A", "a", 0, 0, 100),
        use("B", "b", 5, 5, 130),
        use("A", "b", 10, 100, 120, "a"),
        use("B", "c", 20, 130, 140, "b"),
        wait("b", 10, 100, "A", "a"),
        wait("c", 20, 130, "B", "b"),
        Span(0, 100, "ntt_h", "gpu", worker="a", thread="a"),
        Span(0, 100, "prove_partition", "call", worker="a", thread="a"),
        Span(100, 120, "h_msm", "gpu", worker="b", thread="b"),
        Kernel(30, 60, "k", "s", worker="a", span="ntt_h"),
        Kernel(100, 118, "k", "s", worker="b", span="h_msm"),
        Kernel(131, 139, "k", "s", worker="c", span="h_msm"),
    )


def test_delay_is_waiters_times_time(tmp_path):
    run = run_of(
        tmp_path,
        use("A", "a", 0, 0, 100),
        use("A", "b", 10, 100, 110, "a"),
        use("A", "c", 40, 112, 120, "a"),
    )
    found = {row.holder: row for row in blocking.delay_caused(run).itertuples()}
    # a kept b waiting for 90 and c for 60; b kept c waiting for 10; from 110 to 112 nobody had it.
    assert (found["a"].caused_ns, found["a"].victims, found["a"].waits) == (150, 2, 2)
    assert (found["b"].caused_ns, found["b"].victims, found["b"].waits) == (10, 1, 1)
    assert set(found) == {"a", "b"}


def test_the_walk_ends_at_who_waits_for_nobody(chain):
    walk = blocking.walk_to_root(chain, "c", 50)
    assert [(link.worker, link.on, link.since_ns) for link in walk.links] == [("c", "B", 20), ("b", "A", 10)]
    assert (walk.root, walk.doing, walk.cycle) == ("a", "ntt_h", False)
    assert blocking.walk_to_root(chain, "c", 110).root == "b"
    alone = blocking.walk_to_root(chain, "a", 50)
    assert (alone.links, alone.root) == ((), "a")


def test_root_blockers_share_out_every_nanosecond(chain):
    found = {
        (row.victim, row.root, row.doing, row.depth): row.time_ns for row in blocking.root_blockers(chain).itertuples()
    }
    assert found == {
        ("b", "a", "ntt_h", 1): 90,
        ("c", "a", "ntt_h", 2): 80,  # 20 to 100: through b
        ("c", "b", "h_msm", 1): 20,  # 100 to 120
        ("c", "b", "", 1): 10,  # 120 to 130: b holds B and does nothing that is recorded
    }


def test_a_cycle_is_a_deadlock(tmp_path):
    run = run_of(
        tmp_path,
        use("A", "a", 0, 0, None),
        use("B", "b", 0, 0, None),
        LockUse("B", 10, None, None, "a", "a", "", "b"),
        LockUse("A", 20, None, None, "b", "b", "", "a"),
        wait("a", 10, 50, "B", "b"),
        wait("b", 20, 50, "A", "a"),
    )
    assert blocking.walk_to_root(run, "a", 30).cycle
    found = {(row.victim, row.root): row.time_ns for row in blocking.root_blockers(run).itertuples()}
    assert found == {("a", "b"): 10, ("a", "(deadlock)"): 30, ("b", "(deadlock)"): 30}


def test_who_would_have_run_and_what_it_would_fill(chain):
    first, second = blocking.would_have_run(chain).itertuples()
    # b waited for A from 10 to 100; the device was idle from 60 to 100 (its first work began at 30), and b had 18.
    assert (first.worker, first.lock, first.holder, first.place) == ("b", "A", "a", 1)
    assert (first.wait_ns, first.idle_ns, first.work_ns, first.fillable_ns) == (90, 40, 18, 18)
    # c waited for B from 20 to 130: idle 60 to 100 and 118 to 130; c had 8.
    assert (second.worker, second.idle_ns, second.work_ns, second.fillable_ns) == ("c", 52, 8, 8)


def test_places_follow_the_queue(tmp_path):
    run = run_of(
        tmp_path,
        use("A", "a", 0, 0, 100),
        use("A", "b", 10, 100, 110, "a"),
        use("A", "c", 20, 110, 120, "a"),
        use("A", "d", 105, 120, 130, "b"),
    )
    assert {row.worker: row.place for row in blocking.would_have_run(run).itertuples()} == {"b": 1, "c": 2, "d": 2}


def test_a_request_given_up_waits_until_then(tmp_path):
    run = run_of(
        tmp_path,
        use("A", "a", 0, 0, 1000),
        LockUse("A", 10, None, 60, "b", "b", "", "a"),
    )
    (row,) = blocking.delay_caused(run).itertuples()
    assert row.caused_ns == 50


def test_a_run_without_waits_blames_nobody(tmp_path):
    run = run_of(tmp_path, use("A", "a", 0, 0, 10))
    assert len(blocking.delay_caused(run)) == len(blocking.root_blockers(run)) == len(blocking.would_have_run(run)) == 0

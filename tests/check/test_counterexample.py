"""Checks as runs in the trace's tables."""

import pytest

from cuzklab.check import check, check_run, counterexample_run, replay
from cuzklab.errors import BadInput
from cuzklab.policies import load
from cuzklab.trace import load_run
from cuzklab.units import GiB


@pytest.fixture(scope="module")
def ordered():
    return check(load("phase10_ordered"), workers=2, partitions=1, vram_bytes=16 * GiB)


@pytest.fixture(scope="module")
def nested():
    return check(load("phase10_nested", on_full="wait"), workers=2, partitions=1, vram_bytes=16 * GiB)


def _rows(run, table, *columns):
    return [tuple(row) for row in run.table(table)[list(columns)].itertuples(index=False)]


def test_out_of_memory_as_a_run(ordered, tmp_path):
    (finding,) = ordered.findings
    counterexample_run(ordered, finding, tmp_path / "run")
    run = load_run(tmp_path / "run")
    info = run.info
    assert (info.origin, info.outcome, info.policy, info.time_unit) == (
        "counterexample", "device_oom", "phase10_ordered", "step",
    )  # fmt: skip
    assert info.explanation == finding.message
    assert info.conditions["steps"] == 21 and info.conditions["workers"] == 2 and info.conditions["shortest"]
    assert info.devices == ({"index": 0, "name": "gpu0", "vram_limit_bytes": 16 * GiB, "margin_bytes": GiB // 2},)
    first, second = (finding.schedule[0].actor, finding.schedule[-1].actor)
    assert _rows(run, "vram", "time", "op", "buffer", "bytes", "live", "limit", "worker", "lock_held") == [
        (6, "alloc", "d_a", 4 * GiB, 4 * GiB, 16 * GiB, first, "gpu0.mem"),
        (7, "alloc", "d_bc", 8 * GiB, 12 * GiB, 16 * GiB, first, "gpu0.mem"),
        (20, "alloc", "d_a", 4 * GiB, 16 * GiB, 16 * GiB, second, "gpu0.compute"),
        (21, "fail", "d_bc", 8 * GiB, 16 * GiB, 16 * GiB, second, "gpu0.compute"),
    ]
    spans = run.table("spans")
    assert list(spans["start"]) == list(range(1, 22)) and list(spans["end"]) == list(range(2, 23))
    assert list(spans["worker"]) == [first] * 11 + [second] * 3 + [first] + [second] * 6
    locks = run.table("locks").astype(object).where(lambda frame: frame.notna(), None)
    assert [tuple(row) for row in locks[["lock", "acquired", "released", "worker"]].itertuples(index=False)] == [
        ("gpu0.mem", 3, 12, first), ("gpu0.mem", 14, 19, second), ("gpu0.compute", 19, None, second),
        ("gpu0.compute", None, None, first),
    ]  # fmt: skip
    assert _rows(run, "waits", "kind", "on", "holder", "worker", "end") == [
        ("device_sync", "gpu0", "", second, 16), ("lock", "gpu0.compute", second, first, 22),
    ]  # fmt: skip
    # Queued in step 8, ended by step 15: until then the other's trim waits for the device.
    assert _rows(run, "transfers", "start", "end", "pinned", "worker") == [(8, 16, True, first)]


def test_deadlock_as_a_run(nested, tmp_path):
    finding = nested.findings[0]
    run = counterexample_run(nested, finding, tmp_path / "run")
    assert (run.info.outcome, run.info.conditions["finding"]) == ("deadlock", "capacity_deadlock")
    (memory,) = (wait for wait in finding.wait_for if wait.kind == "memory")
    (lock,) = (wait for wait in finding.wait_for if wait.kind == "lock")
    assert sorted(_rows(run, "waits", "kind", "on", "holder", "worker", "end")) == [
        ("device_sync", "gpu0", "", memory.actor, 18),
        ("event", "gpu0 ntt_h", "", lock.actor, 16),
        ("lock", "gpu0.mem", memory.actor, lock.actor, 20),
        ("memory", memory.on, "w0, w1", memory.actor, 20),
    ]
    # The launch is one span from its start to the end of its second step, and a kernel.
    assert _rows(run, "kernels", "name", "start", "end") == [("ntt_h", 16, 18)]


def test_all_findings_can_be_stored(nested, tmp_path):
    for number, finding in enumerate(nested.findings):
        run = counterexample_run(nested, finding, tmp_path / str(number))
        assert run.info.conditions["steps"] == len(finding.schedule)
        vram = run.table("vram")
        assert (vram["live"] <= vram["limit"]).all()
        assert vram["op"].isin(["alloc", "free", "fail"]).all()
        assert (vram["op"] == "fail").sum() == (finding.kind == "oom")


def test_safe_check_as_a_run(tmp_path):
    found = check(load("phase9"), workers=3, partitions=2, vram_bytes=16 * GiB)
    check_run(found, tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert (run.info.origin, run.info.outcome) == ("check", "ok")
    conditions = run.info.conditions
    assert (conditions["workers"], conditions["partitions"], conditions["vram_bytes"]) == (3, 2, 16 * GiB)
    assert (conditions["states"], conditions["complete"]) == (found.states, True)
    assert all(not len(run.table(table)) for table in ("spans", "locks", "vram", "waits"))
    assert run.info.availability["spans"]["state"] == "not captured"


def test_unsafe_check_is_not_stored_as_one_that_ended_well(ordered, tmp_path):
    with pytest.raises(BadInput, match="a check with findings is stored as its counterexamples"):
        check_run(ordered, tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_replay_follows_the_schedule(ordered):
    (finding,) = ordered.findings
    steps = replay(ordered.exploration, finding)
    assert [(step.actor, str(step.effect)) for step in steps] == [(s.actor, s.effect) for s in finding.schedule]
    assert [step.fault is not None for step in steps] == [False] * 20 + [True]
    assert steps[-1].blocked == {finding.schedule[0].actor}


def test_replay_refuses_another_schedule(ordered, nested):
    with pytest.raises(BadInput, match=r"step \d+: w\d does .*, not "):
        replay(ordered.exploration, nested.findings[0])


def test_a_search_that_was_cut_off_reports_nothing_that_a_whole_one_would_not():
    """Who may still set a waiting actor free is known when all that can be reached is."""
    whole = check(load("phase10_ticket"), workers=3, partitions=2, vram_bytes=16 * GiB, shortest=False)
    assert whole.complete and {finding.kind for finding in whole.findings} == {"oom"}
    for states in (3_000, 6_000, 9_000, 12_000):
        part = check(
            load("phase10_ticket"), workers=3, partitions=2, vram_bytes=16 * GiB, shortest=False, max_states=states
        )
        assert not part.complete
        assert {finding.kind for finding in part.findings} <= {"oom"}

"""How runs end: deadlocks are found at once, failures fail no more than they must, threads never stay."""

import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from cuzklab import policies
from cuzklab.backends.device import DeviceMemoryExhausted
from cuzklab.backends.emulated import EmulatedDevice
from cuzklab.live import run
from cuzklab.live.work import StageFailed
from cuzklab.policies import Policy
from cuzklab.policies import effects as e
from cuzklab.policies.engine import EngineConfig, engine_programs
from cuzklab.policies.model import Flag, Gpu, Lock, Queue, Semaphore, WaitFor, program
from cuzklab.stages import PartitionSizes
from tests.live.programs import GPU, SmallWorkload, run_small, small_partition

A, B = Lock("A"), Lock("B")


def engine(policy, *, workers=2, proofs=1, partitions=2, vram_bytes=1000, workload=None, scratch=None, **options):
    """A whole engine with d_a of 320 and d_bc of 640 bytes a partition; its collector's outcomes, and all it left."""
    gpu = Gpu(0, vram_bytes, margin_bytes=10)
    config = EngineConfig(proofs, partitions, (gpu,), 2, 1, workers, 2)
    sizes = PartitionSizes(960, 320, 640, scratch or {})
    ran = run_small(engine_programs(policy, config, sizes), workload, vram_bytes, deadline_s=60, **options)
    outcomes = ran.ended.results["collector"] or ()
    return sorted(outcomes, key=lambda outcome: outcome.partition.name), ran


@program
def takes(first, second):
    yield e.Acquire(first)
    yield e.Notify(Semaphore(f"has {first.name}"))
    yield e.Wait(Semaphore(f"has {second.name}"))
    yield e.Acquire(second)


def test_lock_order_deadlock_names_who_waits_for_whom():
    ran = run_small({"a": takes(A, B), "b": takes(B, A)})
    assert ran.ended.outcome == "deadlock"
    assert ran.ended.waits_for == (WaitFor("a", "lock", "B", ("b",)), WaitFor("b", "lock", "A", ("a",)))
    assert ran.ended.explanation == ("nobody can go on: a waits for lock B (held by b); b waits for lock A (held by a)")
    given_up = [row for row in ran.rows("locks") if row.acquired is None]
    held = [row for row in ran.rows("locks") if row.acquired is not None]
    assert {(row.lock, row.worker, row.holder_at_request) for row in given_up} == {("B", "a", "b"), ("A", "b", "a")}
    assert {(row.lock, row.worker, row.released) for row in held} == {("A", "a", None), ("B", "b", None)}
    assert {(row.kind, row.on, row.holder) for row in ran.rows("waits") if row.kind == "lock"} == {
        ("lock", "B", "b"),
        ("lock", "A", "a"),
    }
    assert sorted(ran.ended.leaks) == ["lock A (a)", "lock B (b)"]


@program
def counts_itself():
    yield e.SetFlag(Flag("done"), True)


def test_making_rows_of_what_devices_did_is_no_part_of_what_a_run_took(monkeypatch):
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: clock.now_s, monotonic_ns=time.monotonic_ns))
    join, record = run.threading.Thread.join, run.Run._record_device

    def joined(thread, timeout=None):
        join(thread, timeout)
        clock.now_s += 3.0 * (thread.name == "keeper")

    def recorded(self):
        clock.now_s += 1000.0
        record(self)

    monkeypatch.setattr(run.threading.Thread, "join", joined)
    monkeypatch.setattr(run.Run, "_record_device", recorded)
    assert run_small({"a": counts_itself()}).ended.took_s == 3.0


@pytest.mark.parametrize(
    ("steps", "edge"),
    [
        ([e.Acquire(A), e.Acquire(A)], "a waits for lock A (held by a)"),
        ([e.Wait(Semaphore("s"))], "a waits for barrier s"),
        ([e.Get(Queue("q"))], "a waits for queue q"),
        ([e.Put(Queue("q", 1), 1), e.Put(Queue("q", 1), 2)], "a waits for queue q"),
        ([e.Reserve(GPU, 600), e.Reserve(GPU, 600)], "a waits for memory gpu0 reservation of 600 B (held by a)"),
        (
            [e.Alloc(GPU, "x", 600), e.Alloc(GPU, "y", 600, on_full="wait")],
            "a waits for memory gpu0 y 600 B (held by a)",
        ),
        ([e.Alloc(GPU, "y", 1001, on_full="wait")], "a waits for memory gpu0 y 1001 B"),
    ],
)
def test_every_wait_that_cannot_end_is_a_deadlock(steps, edge):
    @program
    def waits():
        for step in steps:
            _ = yield step

    ran = run_small({"a": waits()})
    assert ran.ended.outcome == "deadlock"
    assert ran.ended.explanation == f"nobody can go on: {edge}"


def test_a_join_in_a_circle_is_a_deadlock():
    @program
    def child():
        yield e.Wait(Semaphore("never"))

    @program
    def parent():
        yield e.Join((yield e.Fork(child())))

    ran = run_small({"w": parent()})
    assert [str(edge) for edge in ran.ended.waits_for] == [
        "w waits for join w/child (held by w/child)",
        "w/child waits for barrier never",
    ]


def test_an_actor_that_ends_can_leave_the_others_in_a_deadlock():
    @program
    def goes():
        yield e.Put(Queue("q"), 1)

    @program
    def waits():
        yield e.Get(Queue("q"))
        yield e.Get(Queue("q"))

    assert run_small({"a": goes(), "b": waits()}).ended.outcome == "deadlock"


def test_nested_phase_10_with_waiting_allocation_deadlocks_on_capacity():
    """One worker computes and then wants `mem` to free; the other holds `mem` until memory is free."""
    no_room = threading.Event()

    class Device(EmulatedDevice):
        def alloc(self, *arguments, **options):
            try:
                return super().alloc(*arguments, **options)
            except DeviceMemoryExhausted:
                no_room.set()
                raise

    class Waits(SmallWorkload):
        def streamed_bytes(self, partition, stage, part):
            assert no_room.wait(
                20
            )  # on the host, just before the launch, so that the other's trim finds an idle device
            return 0

    policy = policies.load("phase10_nested", on_full="wait")
    _, ran = engine(policy, workload=Waits(), device_class=Device)
    assert ran.ended.outcome == "deadlock"
    edges = {edge.on: edge for edge in ran.ended.waits_for}
    computes, allocates = edges["gpu0.mem"], edges["gpu0 d_a 320 B"]
    assert computes.holders == (allocates.actor,)
    assert allocates.holders == (computes.actor,)
    assert {computes.actor, allocates.actor} == {"gpu0.w0", "gpu0.w1"}


@pytest.mark.parametrize("name", ["phase8", "phase9", "phase10_ordered", "phase10_nested"])
def test_shipped_policies_prove_every_partition_where_memory_suffices(name):
    outcomes, ran = engine(policies.load(name), proofs=2, partitions=3, vram_bytes=2000)
    assert ran.ended.outcome == "ok"
    assert [(outcome.partition.name, outcome.ok) for outcome in outcomes] == [
        (f"p{proof}.{index}", True) for proof in range(2) for index in range(3)
    ]
    assert ran.ended.leaks == ()
    calls = [row for row in ran.rows("spans") if row.category == "call"]
    assert len(calls) == 6 and {row.name for row in calls} == {"prove_partition"}
    # What a forked thread does is part of its parent's call; synthesis is of none.
    parents = {row.name: row.parent for row in ran.rows("spans") if row.category == "cpu"}
    call = "prove_partition"
    assert parents == {"synthesis": "", "prep_msm": call, "b_g2_msm": call, "epilogue": call}
    # synthesis, prep_msm, b_g2_msm, epilogue; NTT, H-MSM, four sums of ones, three tails
    assert len(ran.workload.ran) == 6 * (4 + 9)
    assert len(ran.rows("kernels")) == 6 * 9
    assert len([row for row in ran.rows("transfers") if row.bytes == 960]) == 6
    assert sorted(ran.workload.finished_partitions) == [outcome.partition.name for outcome in outcomes]


def test_what_runs_out_of_memory_fails_alone_and_gives_everything_back():
    @program
    def prove_partition(p, gpu):
        yield e.Acquire(gpu.lock)
        yield e.Pin(p.abc)
        d_a = yield e.Alloc(gpu, "d_a", 320, p)
        big = yield e.Alloc(gpu, "big", 700 if p.index == 1 else 640, p)
        yield e.Free(big)
        yield e.Free(d_a)
        yield e.Unpin(p.abc)
        yield e.Release(gpu.lock)

    outcomes, ran = engine(Policy("test", "", SimpleNamespace(prove_partition=prove_partition)), partitions=3)
    assert ran.ended.outcome == "ok" and ran.ended.leaks == ()
    assert [outcome.ok for outcome in outcomes] == [True, False, True]
    assert str(outcomes[1].fault) == "big needs 700 B, but 320 B of 1000 B are in use"
    assert outcomes[1].effect.name == "big"
    assert [row.name for row in ran.rows("spans") if row.partition == "p0.1" and row.category == "call"] == [
        "failed_partition"
    ]
    (failed,) = [row for row in ran.rows("vram") if row.op == "fail"]
    assert (failed.bytes, failed.live, failed.lock_held, failed.partition) == (700, 320, "gpu0.lock", "p0.1")
    assert ran.rows("vram")[-1].live == 0
    assert ran.device.live == frozenset()


@pytest.mark.parametrize("name", ["phase8", "phase9", "phase10_ordered", "phase10_nested"])
@pytest.mark.parametrize("stage", ["synthesis", "prep_msm", "b_g2_msm", "ntt_h", "h_msm", "batch_add.a", "epilogue"])
def test_a_stage_that_fails_fails_its_partition_by_name(name, stage):
    workload = SmallWorkload(fails=f"p0.1 {stage}")
    outcomes, ran = engine(policies.load(name), partitions=3, vram_bytes=2000, workload=workload)
    assert ran.ended.outcome == "ok" and ran.ended.leaks == ()
    assert [outcome.ok for outcome in outcomes] == [True, False, True]
    assert isinstance(outcomes[1].fault, StageFailed)
    assert str(outcomes[1].fault) == f"stage {stage} of partition p0.1 failed: ValueError: made to fail"


def test_a_policy_that_raises_stops_the_run_and_is_named():
    @program
    def prove_partition(p, gpu):
        yield e.Acquire(gpu.lock)
        raise KeyError("a mistake")

    _, ran = engine(Policy("test", "", SimpleNamespace(prove_partition=prove_partition)))
    assert ran.ended.outcome == "fault"
    assert "KeyError at test_endings.py:" in ran.ended.explanation
    assert ran.ended.explanation.startswith("gpu0.w")


def test_a_run_past_its_deadline_is_stopped_and_tells_who_waits():
    go = threading.Event()

    @program
    def waits():
        yield e.Wait(Semaphore("s"))

    @program
    def works():
        yield e.Compute("prep_msm", small_partition())
        yield e.Notify(Semaphore("s"))

    class Slow(SmallWorkload):
        def compute(self, partition, stage, part, threads):
            assert go.wait(10)

    ran = run_small({"a": waits(), "b": works()}, Slow(), deadline_s=0, progress=lambda done: go.set())
    assert ran.ended.outcome == "fault"
    assert ran.ended.explanation == "not done after 0 s; a waits for barrier s"


def test_interruption_unwinds_every_thread():
    before = threading.active_count()

    class Interrupts(SmallWorkload):
        def compute(self, partition, stage, part, threads):
            os.kill(os.getpid(), signal.SIGINT)

    @program
    def waits():
        yield e.Wait(Semaphore("s"))

    @program
    def works():
        yield e.Compute("prep_msm", small_partition())
        yield e.Wait(Semaphore("t"))

    with pytest.raises(KeyboardInterrupt):
        # The others would be in a deadlock; the third keeps the run alive until the signal arrives.
        run_small({"a": waits(), "b": works(), "c": spins()}, Interrupts())
    assert threading.active_count() == before


@program
def spins():
    while True:
        yield e.ReadFlag(Flag("never"))

"""Every effect does for real what its rule says, and leaves exactly the rows that it should."""

import threading

import pytest

from cuzklab.policies import effects as e
from cuzklab.policies.model import Flag, Gpu, HostBuffer, Lock, Queue, Semaphore, Stream, program
from tests.live.programs import GPU, SmallWorkload, run_small, small_partition

LOCK, P = Lock("L"), small_partition()


@program
def lists(*steps):
    """Yield effects one after the other; the results."""
    results = []
    for step in steps:
        results.append((yield step))
    return results


def test_a_lock_is_recorded_from_request_to_release():
    ran = run_small({"a": lists(e.Acquire(LOCK), e.Release(LOCK))})
    assert ran.ended.outcome == "ok"
    (use,) = ran.rows("locks")
    assert (use.lock, use.worker, use.thread, use.holder_at_request, use.permits) == ("L", "a", "a", "", 1)
    assert use.requested < use.acquired < use.released
    assert ran.rows("waits") == []


def test_a_lock_excludes_and_the_victim_knows_the_holder():
    inside = []

    @program
    def uses(name):
        yield e.Acquire(LOCK)
        inside.append(name)
        assert len(inside) == 1
        yield e.Put(Queue("go"), name)
        yield e.Get(Queue("on"))
        inside.remove(name)
        yield e.Release(LOCK)

    @program
    def conductor():
        for _ in range(2):
            yield e.Get(Queue("go"))
            yield e.Put(Queue("on"), None)

    ran = run_small({"a": uses("a"), "b": uses("b"), "c": conductor()})
    assert ran.ended.outcome == "ok"
    uses = ran.rows("locks")
    assert len(uses) == 2
    assert uses[0].released <= uses[1].acquired
    for wait in (row for row in ran.rows("waits") if row.kind == "lock"):
        # Nobody holds it while it is handed over.
        assert wait.on == "L" and wait.holder in ({"a", "b"} - {wait.worker} | {""})


def test_release_by_another_is_a_fault():
    ran = run_small({"a": lists(e.Release(LOCK))})
    assert ran.ended.outcome == "fault"
    assert ran.ended.explanation == "a: a releases L, held by nobody"
    assert isinstance(ran.ended.fault, e.ReleaseByNonOwner)


def test_allocation_and_free_are_accounted():
    @program
    def allocates():
        a = yield e.Alloc(GPU, "d_a", 320, P, pooled=True)
        free = [(yield e.QueryFree(GPU))]
        b = yield e.Alloc(GPU, "d_bc", 640, P, device_wide=True)
        free.append((yield e.QueryFree(GPU)))
        yield e.Free(b, device_wide=True)
        yield e.Free(a)
        free.append((yield e.QueryFree(GPU)))  # the pool keeps d_a
        yield e.TrimPool(GPU)
        free.append((yield e.QueryFree(GPU)))
        return free

    ran = run_small({"a": allocates()})
    assert ran.ended.results["a"] == [680, 40, 680, 1000]
    assert [(row.op, row.buffer, row.bytes, row.live, row.limit, row.partition) for row in ran.rows("vram")] == [
        ("alloc", "d_a", 320, 320, 1000, "p0.0"),
        ("alloc", "d_bc", 640, 960, 1000, "p0.0"),
        ("free", "d_bc", 640, 320, 1000, "p0.0"),
        ("free", "d_a", 320, 0, 1000, "p0.0"),
    ]


def test_out_of_memory_is_thrown_into_the_policy_which_may_go_on():
    @program
    def allocates():
        yield e.Acquire(LOCK)
        a = yield e.Alloc(GPU, "d_a", 320, P)
        try:
            yield e.Alloc(GPU, "big", 681, P)
        except e.OutOfDeviceMemory as full:
            numbers = full.size_bytes, full.live_bytes, full.limit_bytes
        yield e.Free(a)
        yield e.Release(LOCK)
        return numbers

    ran = run_small({"a": allocates()})
    assert ran.ended.outcome == "ok"
    assert ran.ended.results["a"] == (681, 320, 1000)
    fail = ran.rows("vram")[1]
    assert (fail.op, fail.buffer, fail.bytes, fail.live, fail.lock_held) == ("fail", "big", 681, 320, "L")


def test_the_pool_serves_only_pooled_allocations():
    @program
    def allocates():
        a = yield e.Alloc(GPU, "d_a", 600, pooled=True)
        yield e.Free(a)
        b = yield e.Alloc(GPU, "d_a", 600, pooled=True)
        yield e.Free(b)
        yield e.Alloc(GPU, "d_bc", 600)

    ran = run_small({"a": allocates()})
    assert ran.ended.outcome == "device_oom"
    assert ran.ended.explanation == "a: d_bc needs 600 B, but 600 B of 1000 B are in use"


def test_a_waiting_allocation_goes_on_when_memory_is_freed():
    @program
    def has():
        a = yield e.Alloc(GPU, "d_a", 700)
        yield e.Put(Queue("go"), None)
        yield e.Get(Queue("on"))
        yield e.Free(a)

    @program
    def wants():
        yield e.Get(Queue("go"))
        yield e.Put(Queue("on"), None)
        b = yield e.Alloc(GPU, "d_bc", 640, on_full="wait")
        yield e.Free(b)

    ran = run_small({"a": has(), "b": wants()})
    assert ran.ended.outcome == "ok"
    assert [row.op for row in ran.rows("vram")] == ["alloc", "free", "alloc", "free"]


@pytest.mark.parametrize(
    ("steps", "fault", "words"),
    [
        (lambda b: [e.Free(b), e.Free(b)], e.DoubleFree, "d_a of a is not allocated"),
        (
            lambda b: [e.Free(b), e.Launch(GPU, "ntt_h", P, uses=(b,))],
            e.UseAfterFree,
            "ntt_h uses d_a of a, which was freed",
        ),
        (
            lambda b: [e.Free(b), e.Upload(P.abc, (b,), P.stream(GPU, "up"), P)],
            e.UseAfterFree,
            "the upload of p0.0.abc uses d_a of a, which was freed",
        ),
    ],
)
def test_misuse_of_memory_is_a_fault(steps, fault, words):
    @program
    def misuses():
        buffer = yield e.Alloc(GPU, "d_a", 320, P)
        for step in steps(buffer):
            _ = yield step

    ran = run_small({"a": misuses()})
    assert isinstance(ran.ended.fault, fault)
    assert ran.ended.explanation == f"a: {words}"


def test_memory_of_another_device_is_a_fault():
    @program
    def misuses():
        buffer = yield e.Alloc(GPU, "d_a", 320, P)
        yield e.Launch(Gpu(0, 999), "ntt_h", P, uses=(buffer,))

    ran = run_small({"a": misuses()})
    assert isinstance(ran.ended.fault, e.WrongDevice)


def test_reservations_count_against_the_device():
    ran = run_small(
        {"a": lists(e.Reserve(GPU, 600), e.Reserve(GPU, 400), e.Unreserve(GPU, 600), e.Unreserve(GPU, 400))}
    )
    assert ran.ended.outcome == "ok"
    assert [(row.op, row.bytes, row.live) for row in ran.rows("vram")] == [
        ("reserve", 600, 0),
        ("reserve", 400, 0),
        ("unreserve", 600, 0),
        ("unreserve", 400, 0),
    ]


def test_a_reservation_that_is_not_given_back_is_a_leak():
    ran = run_small({"a": lists(e.Reserve(GPU, 600))})
    assert ran.ended.outcome == "fault"
    assert ran.ended.leaks == ("reservation of 600 B (a)",)


def test_what_is_not_given_back_is_named():
    ran = run_small({"a": lists(e.Acquire(LOCK), e.Alloc(GPU, "d_a", 320, P))})
    assert ran.ended.outcome == "fault"
    assert ran.ended.explanation == "never given back: d_a (320 B of gpu0, a), lock L (a)"
    (use,) = ran.rows("locks")
    assert use.acquired and use.released is None


def test_uploads_cross_the_link_at_the_rates_of_the_profile():
    stream = P.stream(GPU, "up")

    @program
    def uploads(pin):
        if pin:
            yield e.Pin(P.abc)
        d_a = yield e.Alloc(GPU, "d_a", 320, P)
        yield e.Upload(P.abc, (d_a,), stream, P)
        yield e.WaitEvent((yield e.RecordEvent(stream)))
        if pin:
            yield e.Unpin(P.abc)
        yield e.Free(d_a)

    for pin, lasts_ns in ((False, 3200), (True, 320)):
        ran = run_small({"a": uploads(pin)})
        assert ran.ended.outcome == "ok"
        (row,) = ran.rows("transfers")
        assert (row.bytes, row.direction, row.pinned, row.stream, row.partition) == (320, "h2d", pin, "p0.0.up", "p0.0")
        # Looking at the fake clock takes a nanosecond, from either thread.
        assert lasts_ns <= row.end - row.start <= lasts_ns + 3
        assert row.issue < row.start


def test_pinning_lasts_as_long_as_its_bytes():
    ran = run_small({"a": lists(e.Pin(P.abc), e.Unpin(P.abc))})
    pin, unpin = ran.rows("spans")
    assert (pin.name, pin.category) == ("pin", "memory")
    assert 1920 <= pin.end - pin.start <= 1925
    assert 960 <= unpin.end - unpin.start <= 965


def test_kernels_wait_for_the_events_that_their_stream_waits_for():
    seen = []

    @program
    def stages():
        yield e.Pin(P.abc)
        d_a = yield e.Alloc(GPU, "d_a", 320, P)
        up, compute = P.stream(GPU, "upload"), P.stream(GPU, "compute")
        yield e.Upload(P.abc, (d_a,), up, P)
        yield e.WaitEvent((yield e.RecordEvent(up)), compute)
        yield e.Launch(GPU, "ntt_h", P, uses=(d_a,))
        yield e.Free(d_a)
        yield e.Unpin(P.abc)

    class Looks(SmallWorkload):
        def launch(self, partition, stage, part, memory):
            seen.append(set(memory["d_a"].array.tolist()))

    ran = run_small({"a": stages()}, Looks())
    assert ran.ended.outcome == "ok"
    assert seen == [{7}]
    (transfer,), (kernel,) = ran.rows("transfers"), ran.rows("kernels")
    assert transfer.end <= kernel.start
    assert (kernel.name, kernel.stream, kernel.span, kernel.partition) == ("ntt_h", "p0.0.compute", "ntt_h", "p0.0")


def test_a_stage_takes_its_scratch_and_streams_its_points():
    p = small_partition(scratch={("h_msm", ""): 100})
    ran = run_small({"a": lists(e.Launch(GPU, "h_msm", p))})
    assert [(row.op, row.buffer, row.live) for row in ran.rows("vram")] == [
        ("alloc", "h_msm scratch", 100),
        ("free", "h_msm scratch", 0),
    ]
    (kernel,), (transfer,) = ran.rows("kernels"), ran.rows("transfers")
    assert (transfer.bytes, transfer.pinned) == (64, True)
    assert kernel.start <= transfer.start and kernel.end >= transfer.start + 64


def test_a_stage_without_room_for_its_scratch_fails_before_it_starts():
    p = small_partition(scratch={("h_msm", ""): 1001})
    ran = run_small({"a": lists(e.Launch(GPU, "h_msm", p))})
    assert ran.ended.outcome == "device_oom"
    assert ran.ended.explanation == "a: h_msm scratch needs 1001 B, but 0 B of 1000 B are in use"
    assert ran.workload.ran == [] and ran.rows("kernels") == []


def test_device_sync_waits_for_every_stream():
    started, go = threading.Event(), threading.Event()

    def meanwhile(label):
        started.set()
        assert go.wait(10)

    @program
    def runs():
        yield e.Launch(GPU, "ntt_h", P)

    @program
    def syncs():
        assert started.wait(10)
        threading.Timer(0, go.set).start()
        yield e.DeviceSync(GPU)
        return list(workload.ran)

    workload = SmallWorkload(meanwhile=meanwhile)
    ran = run_small({"a": runs(), "b": syncs()}, workload)
    assert ran.ended.results["b"] == ["p0.0 ntt_h"]
    assert {row.kind for row in ran.rows("waits")} <= {"device_sync"}


def test_semaphores_keep_permits_and_queues_keep_order():
    ran = run_small(
        {
            "a": lists(e.Notify(Semaphore("s")), e.Wait(Semaphore("s")), e.Wait(Semaphore("t", 1))),
            "b": lists(*(e.Put(Queue("q"), i) for i in range(3)), *(e.Get(Queue("q")) for _ in range(3))),
        }
    )
    assert ran.ended.outcome == "ok"
    assert ran.ended.results["b"][3:] == [0, 1, 2]
    assert [row.value for row in ran.rows("counters")] == [1, 2, 3, 2, 1, 0]
    assert {row.name for row in ran.rows("counters")} == {"queue q"}


def test_flags():
    flag = Flag("busy")
    ran = run_small(
        {"a": lists(e.ReadFlag(flag), e.SetFlag(flag), e.ReadFlag(flag), e.ClearFlag(flag), e.ReadFlag(flag))}
    )
    assert ran.ended.results["a"] == [False, None, True, None, False]


def test_forked_programs_have_names_of_their_own_and_are_joined():
    @program
    def child():
        yield e.Wait(Semaphore("s"))

    @program
    def parent():
        first = yield e.Fork(child())
        second = yield e.Fork(child())
        yield e.Notify(Semaphore("s"))
        yield e.Notify(Semaphore("s"))
        yield e.Join(first)
        yield e.Join(second)
        third = yield e.Fork(child())
        yield e.Notify(Semaphore("s"))
        yield e.Join(third)
        return first.actor, second.actor, third.actor

    ran = run_small({"w": parent()})
    assert ran.ended.results["w"] == ("w/child", "w/child#2", "w/child")


def test_a_host_event_without_a_stream_blocks_the_policy_only_until_it_fires():
    ran = run_small({"a": lists(e.RecordEvent(Stream(GPU, "s")))})
    (event,) = ran.ended.results["a"]
    assert event.event.fired


def test_spans_name_who_and_what():
    ran = run_small({"gpu0.w1": lists(e.Compute("prep_msm", P), e.Launch(GPU, "batch_add", P, "l"))})
    assert [
        (row.name, row.category, row.worker, row.proof, row.partition, row.device) for row in ran.rows("spans")
    ] == [("prep_msm", "cpu", "gpu0.w1", 0, "p0.0", -1), ("batch_add.l", "gpu", "gpu0.w1", 0, "p0.0", 0)]


def test_a_host_buffer_is_pinned_by_name():
    buffer = HostBuffer("p0.0.abc", 960)
    ran = run_small({"a": lists(e.Pin(buffer))})
    assert P.abc in ran.run.pinned
    assert ran.ended.leaks == ("pinned p0.0.abc",)

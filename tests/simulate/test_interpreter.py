"""Tiny programs whose virtual times are known by hand, and what the trace says about them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import simpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    Compute,
    DeviceSync,
    DoubleFree,
    Fork,
    Free,
    Get,
    Join,
    Launch,
    Notify,
    OutOfDeviceMemory,
    Pin,
    Put,
    QueryFree,
    ReadFlag,
    RecordEvent,
    Release,
    ReleaseByNonOwner,
    Reserve,
    TrimPool,
    Unpin,
    Unreserve,
    Upload,
    Wait,
    WaitEvent,
)
from cuzklab.policies.model import Flag, Lock, Queue, Semaphore, program
from cuzklab.profiles import StageNumbers
from cuzklab.simulate.costs import Machine
from cuzklab.simulate.interpreter import NoProgress
from cuzklab.stages import STAGES

S = 1_000_000_000
LOCK = Lock("mem")


def test_one_actor_takes_the_sum_of_its_effects(toy):
    p = toy.partition()

    def worker():
        yield Compute("synthesis", p)
        yield Pin(p.abc)
        buffer = yield Alloc(toy.gpu, "d_a", 300, p)
        pooled = yield Alloc(toy.gpu, "d_bc", 600, p, pooled=True)
        yield Launch(toy.gpu, "ntt_h", p, uses=(buffer,))
        yield Free(pooled)
        yield Free(buffer)
        yield TrimPool(toy.gpu)
        yield DeviceSync(toy.gpu)
        yield Unpin(p.abc)
        yield Compute("epilogue", p)
        return (yield QueryFree(toy.gpu))

    ending = toy.run(worker=worker)
    assert toy.spans() == [
        ("worker", "synthesis", 0, 1),
        ("worker", "pin", 1, 2),
        ("worker", "alloc d_a", 2, 2.25),
        ("worker", "alloc d_bc", 2.25, 2.25),
        ("worker", "ntt_h", 2.25, 3.25),
        ("worker", "free d_bc", 3.25, 3.25),
        ("worker", "free d_a", 3.25, 3.75),
        ("worker", "trim pool", 3.75, 3.875),
        ("worker", "device sync", 3.875, 3.9375),
        ("worker", "unpin", 3.9375, 4.4375),
        ("worker", "epilogue", 4.4375, 4.9375),
    ]
    assert ending.end_ns == 4.9375 * S
    assert ending.results == {"worker": 1000}
    assert [(row.op, row.buffer, row.live, row.time / S) for row in toy.rows["vram"]] == [
        ("alloc", "d_a", 300, 2), ("alloc", "d_bc", 900, 2.25), ("free", "d_bc", 300, 3.25), ("free", "d_a", 0, 3.25),
    ]  # fmt: skip
    assert [(row.name, row.start / S, row.end / S) for row in toy.rows["kernels"]] == [("ntt_h", 2.25, 3.25)]
    assert toy.waits() == []


def test_two_actors_on_one_lock(toy):
    def holder():
        yield Acquire(LOCK)
        yield Compute("prep_msm", toy.partition())
        yield Release(LOCK)

    def other():
        yield Compute("synthesis", toy.partition(1))
        yield Acquire(LOCK)
        yield Compute("prep_msm", toy.partition(1))
        yield Release(LOCK)

    toy.run(a=holder, b=other)
    assert [
        (row.worker, row.requested / S, row.acquired / S, row.released / S, row.holder_at_request)
        for row in toy.rows["locks"]
    ] == [("a", 0, 0, 2, ""), ("b", 1, 2, 4, "a")]
    assert toy.waits() == [("b", "lock", "mem", "a", 1, 2)]


def test_a_lock_is_handed_over_in_the_order_of_requests_and_nobody_slips_in_between(toy):
    order = []

    def worker(name, times):
        def run():
            for _ in range(times):
                yield Acquire(LOCK)
                order.append(name)
                yield Compute("synthesis", toy.partition())
                yield Release(LOCK)

        return run

    toy.run(a=worker("a", 2), b=worker("b", 2), c=worker("c", 1))
    assert order == ["a", "b", "c", "a", "b"]


def test_a_pinned_upload_goes_on_beside_the_policy_and_kernels_wait_for_it(toy):
    p = toy.partition()
    upload, compute = p.stream(toy.gpu, "upload"), p.stream(toy.gpu, "compute")

    def worker():
        yield Pin(p.abc)
        buffer = yield Alloc(toy.gpu, "d_a", 300, p)
        yield Upload(p.abc, (buffer,), upload, p)
        event = yield RecordEvent(upload)
        yield WaitEvent(event, compute)
        yield Compute("epilogue", p)
        yield Launch(toy.gpu, "ntt_h", p, uses=(buffer,))
        yield WaitEvent(event)

    ending = toy.run(worker=worker)
    copied = 1.25 + 0.9375
    (row,) = toy.rows["transfers"]
    assert (row.issue / S, row.start / S, row.end / S, row.bytes, row.pinned) == (1.25, 1.25, copied, 5760, True)
    assert ("worker", "epilogue", 1.25, 1.75) in toy.spans()
    assert toy.waits() == [("worker", "event", "gpu0 ntt_h", "", 1.75, copied)]
    assert ending.end_ns == (copied + 1) * S


def test_a_pageable_upload_blocks_at_the_lower_rate(toy):
    p = toy.partition()

    def worker():
        buffer = yield Alloc(toy.gpu, "d_a", 300, p)
        yield Upload(p.abc, (buffer,), p.stream(toy.gpu, "compute"), p)
        yield Compute("epilogue", p)

    toy.run(worker=worker)
    assert toy.spans()[1:] == [("worker", "upload", 0.25, 2.25), ("worker", "epilogue", 2.25, 2.75)]
    assert [row.pinned for row in toy.rows["transfers"]] == [False]


def test_work_of_one_stream_is_in_order_without_events(toy):
    p = toy.partition()

    def worker():
        yield Pin(p.abc)
        buffer = yield Alloc(toy.gpu, "d_a", 300, p, pooled=True)
        yield Upload(p.abc, (buffer,), p.stream(toy.gpu, "compute"), p)
        yield Upload(p.abc, (buffer,), p.stream(toy.gpu, "compute"), p)
        yield Launch(toy.gpu, "ntt_h", p, uses=(buffer,))

    toy.run(worker=worker)
    assert [(row.start / S, row.end / S) for row in toy.rows["transfers"]] == [(1, 1.9375), (1.9375, 2.875)]
    (kernel,) = toy.rows["kernels"]
    assert (kernel.launch / S, kernel.start / S, kernel.end / S) == (1, 2.875, 3.875)


def test_two_uploads_share_the_bus_and_two_kernels_the_device(toy):
    def worker(index):
        p = toy.partition(index)

        def run():
            yield Pin(p.abc)
            buffer = yield Alloc(toy.gpu, "d_a", 300, p, pooled=True)
            stream = p.stream(toy.gpu, "upload")
            yield Upload(p.abc, (buffer,), stream, p)
            yield WaitEvent((yield RecordEvent(stream)), p.stream(toy.gpu, "compute"))
            yield Launch(toy.gpu, "ntt_h", p, uses=(buffer,))

        return run

    toy.run(a=worker(0), b=worker(1))
    assert [(row.start / S, row.end / S) for row in toy.rows["transfers"]] == [(1, 2.875), (1, 2.875)]
    assert [(row.start / S, row.end / S) for row in toy.rows["kernels"]] == [(2.875, 4.875), (2.875, 4.875)]


def test_a_stage_that_streams_lasts_the_longer_of_kernels_and_copies(toy):
    def two_at_once(index):
        def run():
            yield Launch(toy.gpu, "h_msm", toy.partition(index))

        return run

    toy.run(a=two_at_once(0))
    assert toy.spans() == [("a", "h_msm", 0, 2)]
    assert [(row.bytes, row.end / S) for row in toy.rows["transfers"]] == [(6144, 2)]
    toy.run(a=two_at_once(0), b=two_at_once(1))
    assert toy.spans() == [("a", "h_msm", 0, 4), ("b", "h_msm", 0, 4)]


def test_device_wide_calls_wait_until_the_device_is_idle(toy):
    def kernels():
        yield Launch(toy.gpu, "ntt_h", toy.partition())

    def sync():
        yield DeviceSync(toy.gpu)

    def alloc():
        yield Alloc(toy.gpu, "x", 10, device_wide=True)

    toy.run(a=kernels, b=sync, c=alloc)
    assert toy.spans() == [
        ("a", "ntt_h", 0, 1), ("b", "device sync", 1, 1.0625), ("c", "alloc x", 1, 1.25),
    ]  # fmt: skip
    assert [wait[:3] for wait in toy.waits()] == [("b", "device_sync", "gpu0"), ("c", "device_sync", "gpu0 x 10 B")]


def test_a_full_queue_blocks_the_putter_and_an_empty_one_the_getter(toy):
    queue = Queue("items", 1)
    got = []

    def producer():
        for item in range(3):
            yield Put(queue, item)

    def consumer():
        for _ in range(3):
            yield Compute("synthesis", toy.partition())
            got.append((yield Get(queue)))
        got.append((yield Get(queue)))

    def late():
        for _ in range(5):
            yield Compute("synthesis", toy.partition(1))
        yield Put(queue, "late")

    ending = toy.run(producer=producer, consumer=consumer, late=late)
    assert got == [0, 1, 2, "late"]
    assert toy.waits() == [
        ("producer", "queue", "items", "", 0, 1),
        ("producer", "queue", "items", "", 1, 2),
        ("consumer", "queue", "items", "", 3, 5),
    ]
    assert ending.end_ns == 5 * S
    assert [(row.time / S, row.value) for row in toy.rows["counters"]] == [
        (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (5, 1), (5, 0),
    ]  # fmt: skip


def test_fork_join_and_a_notification_before_the_wait(toy):
    barrier = Semaphore("barrier")

    @program
    def prep():
        yield Notify(barrier)
        yield Compute("prep_msm", toy.partition())

    def worker():
        task = yield Fork(prep())
        yield Compute("synthesis", toy.partition())
        yield Wait(barrier)
        yield Join(task)

    ending = toy.run(worker=worker)
    assert toy.spans() == [("worker", "synthesis", 0, 1), ("worker/prep", "prep_msm", 0, 2)]
    assert toy.waits() == [("worker", "join", "worker/prep", "worker/prep", 1, 2)]
    assert ending.end_ns == 2 * S


def test_cores_are_shared_when_there_are_too_few(toy, hardware_with):
    def worker(index):
        def run():
            yield Compute("synthesis", toy.partition(index))

        return run

    toy.run(hardware_with(cores=2), **{f"w{n}": worker(n) for n in range(4)})
    assert {span[3] for span in toy.spans()} == {2.0}


def test_threads_beyond_the_cores_slow_everybody_equally(toy):
    def pool():
        yield Compute("b_g2_msm", toy.partition())

    def fewer():
        yield Compute("b_g2_msm", toy.partition(), threads=1)

    def single():
        yield Compute("prep_msm", toy.partition(1))

    toy.run(a=pool)
    assert toy.spans() == [("a", "b_g2_msm", 0, 1)]
    toy.run(a=fewer)
    assert toy.spans() == [("a", "b_g2_msm", 0, 4)]
    # Five threads on four cores: each gets 0.8. The pool ends after 1.25 s, and the single thread has 1 s left of 2 s.
    toy.run(a=pool, b=single)
    assert toy.spans() == [("a", "b_g2_msm", 0, 1.25), ("b", "prep_msm", 0, 2.25)]


def test_hardware_threads_of_a_core_share_what_it_yields(toy, hardware_with):
    def pool():
        yield Compute("b_g2_msm", toy.partition(), threads=2)

    def single():
        yield Compute("prep_msm", toy.partition(1))

    # Two cores of two threads that together do 1.5 times the work of one. The pool's 4 core seconds on two cores: 2 s.
    smt = hardware_with(cores=2, threads_per_core=2, smt_yield=1.5)
    # The profile's four threads have a throughput of 3, so 1 s of them is 1.5 s on two threads, one a core.
    toy.run(smt, a=pool)
    assert toy.spans() == [("a", "b_g2_msm", 0, 1.5)]
    # Three threads: throughput 2.5, so each gets 5/6 of a core.
    toy.run(smt, a=pool, b=single)
    assert toy.spans()[0] == ("a", "b_g2_msm", 0, pytest.approx(1.5 * 6 / 5, abs=1e-9))


def test_memory_of_others_slows_the_part_that_waits_for_it(toy, hardware_with):
    traffic = STAGES["synthesis"].host_traffic_bytes(toy.shape, "")

    def worker(index):
        def run():
            yield Compute("synthesis", toy.partition(index))

        return run

    # Half of the second waits for memory; each other synthesis draws half of what there is.
    hardware = hardware_with(memory_share={"synthesis": 0.5}, memory_bandwidth_bytes_per_s=2.0 * traffic)
    toy.run(hardware, a=worker(0))
    assert toy.spans() == [("a", "synthesis", 0, 1)]
    toy.run(hardware, a=worker(0), b=worker(1))
    assert {span[3] for span in toy.spans()} == {1 + 0.5 * 0.5}
    toy.run(hardware, a=worker(0), b=worker(1), c=worker(2))
    assert {span[3] for span in toy.spans()} == {1 + 0.5 * 1.0}
    squared = hardware_with(
        memory_share={"synthesis": 0.5}, memory_bandwidth_bytes_per_s=1.0 * traffic, overload_exponent=2.0
    )
    toy.run(squared, a=worker(0), b=worker(1), c=worker(2))
    assert {span[3] for span in toy.spans()} == {1 + 0.5 * 2.0**2}


def test_a_pool_in_the_cache_lengthens_the_memory_waits_of_others(toy, hardware_with):
    def pool():
        yield Compute("b_g2_msm", toy.partition(), threads=2)

    def single():
        yield Compute("prep_msm", toy.partition(1))

    # Two threads with buckets for five points each: 2^3 · 384 bytes a thread, in a cache of twice that.
    hardware = hardware_with(
        memory_share={"prep_msm": 0.25}, llc_bytes=2 * 2 * 8 * 384, cache_pressure=2.0,
        memory_bandwidth_bytes_per_s=1e30,
    )  # fmt: skip
    toy.run(hardware, a=pool, b=single)
    pool_span, prep_span = toy.spans()
    assert pool_span == ("a", "b_g2_msm", 0, 2)
    # For 2 s it is slowed by 1 + 0.25 · 2 · 1/2; what is left of its 2 s then runs at full speed.
    assert prep_span == ("b", "prep_msm", 0, pytest.approx(2 + (2 - 2 / 1.25), abs=1e-9))


def test_page_locking_that_excludes_kernels_goes_one_by_one_and_beside_no_stage(toy, hardware_with):
    def kernels():
        yield Launch(toy.gpu, "ntt_h", toy.partition(2))
        yield Launch(toy.gpu, "h_msm", toy.partition(2))

    def pinner(index):
        def run():
            yield Compute("epilogue", toy.partition(index))
            yield Pin(toy.partition(index).abc)

        return run

    programs = {"k": kernels, "a": pinner(0), "b": pinner(1)}
    toy.run(hardware_with(), **programs)
    assert ("k", "h_msm", 1, 3) in toy.spans()
    assert [span[2:] for span in toy.spans() if span[1] == "pin"] == [(0.5, 1.5), (0.5, 1.5)]
    toy.run(hardware_with(pin_excludes_kernels=True), **programs)
    # The pins wait for the kernels that run, the next launch waits for the pins before it, and they for each other.
    assert ("k", "ntt_h", 0, 1) in toy.spans() and ("k", "h_msm", 1, 5) in toy.spans()
    assert sorted(span[3] for span in toy.spans() if span[1] == "pin") == [2, 3]
    toy.run(hardware_with(pin_excludes_kernels=True), k=kernels, a=pinner(0))
    assert ("k", "h_msm", 1, 4) in toy.spans()


def test_page_locking_that_delays_launches_begins_at_once_and_stops_what_goes_on(toy, hardware_with):
    def kernels():
        yield Launch(toy.gpu, "ntt_h", toy.partition(2))
        yield Launch(toy.gpu, "h_msm", toy.partition(2))

    def pinner(index):
        def run():
            yield Compute("epilogue", toy.partition(index))
            yield Pin(toy.partition(index).abc)

        return run

    hardware = hardware_with()
    hardware = replace(hardware, transfer=replace(hardware.transfer, pin_delays_launches=True))
    toy.run(hardware, k=kernels, a=pinner(0), b=pinner(1))
    # Page-locking goes on from 0.5 to 2.5, in turn a third of each; ntt_h has half a second left then.
    ends = sorted(span[3] for span in toy.spans() if span[1] == "pin")
    assert ends == pytest.approx([0.5 + 5 / 3, 2.5], abs=1e-8)
    ((_, _, start, end), (_, _, start_h, end_h)) = [span for span in toy.spans() if span[0] == "k"]
    assert (start, end, start_h, end_h) == pytest.approx((0, 3, 3, 5), abs=1e-8)


def test_calls_of_the_driver_have_their_turn_between_arrays_that_are_locked(toy, hardware_with):
    """Three calls of 1/3 s to lock pages, from 0 on; an allocation asked for meanwhile comes after the first of them.

    It takes place then, and not when it was asked for; and before a second one, which was asked for later.
    """

    def pin():
        yield Pin(toy.partition().abc)

    def allocates(index):
        def run():
            yield Compute("epilogue", toy.partition(index))
            yield Alloc(toy.gpu, "d_a", 100, toy.partition(index))

        return run

    hardware = hardware_with().with_constants({"transfer.pin_delays_launches": True, "rates.epilogue": 5.0})
    toy.run(hardware, p=pin, a=allocates(0), b=allocates(1))
    assert [(row.worker, row.time / S) for row in toy.rows["vram"]] == [
        ("a", pytest.approx(1 / 3, abs=1e-8)), ("b", pytest.approx(1 / 3 + 0.25, abs=1e-8)),
    ]  # fmt: skip
    # The second array came to it after both had asked, the third after that.
    (pinned,) = [span for span in toy.spans() if span[1] == "pin"]
    assert pinned[3] == pytest.approx(1 + 2 * 0.25, abs=1e-8)


@pytest.mark.parametrize(
    ("kernels_s", "overlaps", "ends"), [(1, False, 2.0375), (1, True, 0.9375 + 3 / 7), (4, True, 4.3125)]
)
def test_a_stage_may_begin_with_the_first_of_three_arrays(toy, hardware_with, kernels_s, overlaps, ends):
    """The copy takes C = 0.9375 s, the launch 0.1 s. Of 1 s of kernels 3/7 come after c; 4 s go on from C/3."""
    p = toy.partition()

    def worker():
        buffers = []
        for name, size_bytes in (("d_a", 300), ("d_bc", 600)):
            buffers.append((yield Alloc(toy.gpu, name, size_bytes, p, pooled=True)))
        yield Pin(p.abc)
        yield Upload(p.abc, tuple(buffers), p.stream(toy.gpu, "upload"), p)
        yield WaitEvent((yield RecordEvent(p.stream(toy.gpu, "upload"))), p.stream(toy.gpu, "compute"))
        yield Launch(toy.gpu, "ntt_h", p, uses=tuple(buffers))

    hardware = hardware_with().with_constants({"device.launch_s": 0.1, "rates.ntt_h": 1344 / kernels_s})
    hardware = replace(hardware, device=replace(hardware.device, begins_with_first_array=overlaps))
    toy.run(hardware, w=worker)
    assert toy.ending.end_ns / S == pytest.approx(1 + ends, abs=1e-8)


_SECONDS = st.floats(1e-6, 1e6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the fixtures keep nothing
@given(_SECONDS, _SECONDS, _SECONDS, st.floats(0, 1e6))
def test_what_is_left_of_a_stage_that_began_beside_its_copy(toy, hardware_with, launch_s, kernels_s, copy_s, waited_s):
    """Never less than the transforms that need c, never more than the whole; the longer the wait, the less is left."""
    hardware = hardware_with().with_constants(
        {"device.launch_s": launch_s, "rates.ntt_h": STAGES["ntt_h"].work(toy.shape, "") / kernels_s,
         "transfer.pinned_bytes_per_s": toy.partition().sizes.abc / copy_s, "device.begins_with_first_array": True}
    )  # fmt: skip
    machine, effect = Machine(simpy.Environment(), hardware, toy.shape), Launch(toy.gpu, "ntt_h", toy.partition())
    left = [machine.launch_times(effect, round(one * S)) for one in (0, waited_s / 2, waited_s)]
    assert all(one >= 0 for times in left for one in times)
    assert left[0] == pytest.approx((launch_s, kernels_s))
    totals = [sum(times) for times in left]
    assert totals == sorted(totals, reverse=True) or totals == pytest.approx(sorted(totals, reverse=True), rel=1e-9)
    assert totals[-1] >= 3 / 7 * kernels_s * (1 - 1e-9)
    assert totals[-1] >= launch_s + kernels_s - round(waited_s * S) / S - 1e-9 * (launch_s + kernels_s + waited_s)


def test_launches_differ_from_time_to_time_and_kernels_do_not(toy, hardware_with):
    def worker():
        for index in range(200):
            yield Launch(toy.gpu, "ntt_h", toy.partition(index))

    hardware = hardware_with(spread={"launching": 0.3}).with_constants({"device.launch_s": 1.0})
    toy.run(hardware, w=worker)
    launch_s = np.array([end - start for _, _, start, end in toy.spans()]) - 1
    assert np.log(launch_s).std() == pytest.approx(0.3, rel=0.15) and launch_s.mean() == pytest.approx(1, rel=0.1)
    assert {row.end - row.start for row in toy.rows["kernels"]} == {S}


def test_who_has_waited_for_another_thread_has_to_wake(toy, hardware_with):
    """A quarter of a second after the lock was released at 2 s; who did not wait goes on at once."""

    def holder():
        yield Acquire(LOCK)
        yield Compute("prep_msm", toy.partition())
        yield Release(LOCK)

    def other():
        yield Compute("synthesis", toy.partition(1))
        yield Acquire(LOCK)
        yield Compute("synthesis", toy.partition(2))
        yield Release(LOCK)

    toy.run(hardware_with().with_constants({"engine.wake_s": 0.25}), a=holder, b=other)
    assert ("a", "prep_msm", 0, 2) in toy.spans() and ("b", "synthesis", 2.25, 3.25) in toy.spans()


@pytest.mark.parametrize(
    ("give", "want", "ends"),
    [
        (lambda toy: Notify(Semaphore("barrier")), lambda toy: Wait(Semaphore("barrier")), 2.25),
        (lambda toy: Unreserve(toy.gpu, 700), lambda toy: Reserve(toy.gpu, 400), 2.25),
        (lambda toy: Put(Queue("work", 1), toy.partition(1)), lambda toy: Get(Queue("work", 1)), 2.0),
    ],
    ids=["semaphore", "promised memory", "queue"],
)
def test_what_a_thread_wakes_from(toy, hardware_with, give, want, ends):
    """Given after 1 s; a stage of 1 s follows. A queue's item is there at once: how long that takes is `pickup_s`."""

    def first():
        yield Reserve(toy.gpu, 700)
        yield Compute("synthesis", toy.partition())
        yield give(toy)

    def second():
        yield want(toy)
        yield Compute("synthesis", toy.partition(2))

    toy.run(hardware_with().with_constants({"engine.wake_s": 0.25}), a=first, b=second)
    assert [span[3] for span in toy.spans() if span[0] == "b"] == [ends]


def test_who_has_waited_for_a_forked_program_has_to_wake(toy, hardware_with):
    @program
    def prep():
        yield Compute("prep_msm", toy.partition())

    def worker():
        task = yield Fork(prep())
        yield Join(task)
        yield Compute("synthesis", toy.partition())

    toy.run(hardware_with().with_constants({"engine.wake_s": 0.25}), worker=worker)
    assert toy.spans() == [("worker/prep", "prep_msm", 0, 2), ("worker", "synthesis", 2.25, 3.25)]


def test_an_allocation_that_waited_for_memory_has_the_memory_at_once_and_its_turn_at_the_driver_then(
    toy, hardware_with
):
    """Freeing takes place at 0.75 s and has the driver until 1.25 s; an allocation takes 0.25 s."""

    def holder():
        buffer = yield Alloc(toy.gpu, "d_a", 800)
        yield Compute("epilogue", toy.partition())
        yield Free(buffer)

    def waits():
        yield Alloc(toy.gpu, "d_b", 500, on_full="wait")

    toy.run(hardware_with().with_constants({"transfer.pin_delays_launches": True}), a=holder, b=waits)
    assert [(row.op, row.buffer, row.time / S) for row in toy.rows["vram"]] == [
        ("alloc", "d_a", 0), ("free", "d_a", 0.75), ("alloc", "d_b", 0.75),
    ]  # fmt: skip
    assert toy.waits() == [("b", "memory", "gpu0 d_b 500 B", "a", 0.25, 0.75)]
    assert [span for span in toy.spans() if span[1] != "epilogue"] == [
        ("a", "alloc d_a", 0, 0.25), ("a", "free d_a", 0.75, 1.25), ("b", "alloc d_b", 1.25, 1.5),
    ]  # fmt: skip


def test_a_launch_takes_its_time_of_the_host_and_longer_where_threads_are_too_many(toy, hardware_with):
    """Alone 1 s before 1 s of kernels. With 8 threads on 4 cores a half, and a burst waits 1 + 3 · (8/4 − 1)² times."""

    def kernels():
        yield Launch(toy.gpu, "ntt_h", toy.partition(2))

    def prep(index):
        def run():
            for _ in range(9):
                yield Compute("prep_msm", toy.partition(index))

        return run

    hardware = replace(hardware_with(wakeup_penalty=3.0), launch=StageNumbers({"ntt_h": 1.0}, "by hand"))
    toy.run(hardware, k=kernels)
    assert ("k", "ntt_h", 0, 2) in toy.spans()
    toy.run(hardware, k=kernels, **{f"p{index}": prep(index) for index in range(7)})
    assert ("k", "ntt_h", 0, 2 * 4 + 1) in toy.spans()


def test_a_short_burst_keeps_its_core_or_loses_it(toy, hardware_with):
    """8 threads on 4 cores. 1 ms between two stages: 2 ms on a core that is kept; a fourth waits 12 times longer."""

    def kernels():
        for index in range(300):
            yield Launch(toy.gpu, "ntt_h", toy.partition(index))

    def prep():
        for index in range(350):
            yield Compute("prep_msm", toy.partition(index))

    constants = {"device.between_s": 0.001, "host.lost_core_share": 0.25}
    toy.run(hardware_with(wakeup_penalty=3.0).with_constants(constants), k=kernels, **dict.fromkeys("abcdefg", prep))
    stages = [span for span in toy.spans() if span[0] == "k"]
    gaps_ms = [(after[2] - before[3]) * 1e3 for before, after in pairwise(stages)]
    lost = sum(gap == pytest.approx(2 * (1 + 4 * 3), rel=1e-3) for gap in gaps_ms)
    assert lost + sum(gap == pytest.approx(2, rel=1e-3) for gap in gaps_ms) == 299
    assert lost / 299 == pytest.approx(0.25, abs=0.06)


@pytest.mark.parametrize(("idle_s", "ends"), [(0.0, 1.145), (0.01, 3.175), (0.03, 3.195)])
def test_a_device_wide_call_that_has_to_wake_does_not_find_the_device_idle_between_stages(
    toy, hardware_with, idle_s, ends
):
    """Stages from 0.02 to 1.02 and from 1.04 to 3.04; trimming takes 0.125 s, once the device was idle so long.

    Who launches has the interpreter's lock from 1.02 to 1.04.
    """

    def kernels():
        yield Launch(toy.gpu, "ntt_h", toy.partition(2))
        yield Launch(toy.gpu, "h_msm", toy.partition(2))

    def trim():
        yield Compute("epilogue", toy.partition(1))
        yield TrimPool(toy.gpu)

    hardware = hardware_with()
    hardware = replace(hardware, device=replace(hardware.device, idle_s=idle_s, between_s=0.02))
    toy.run(hardware, k=kernels, t=trim)
    (end,) = [span[3] for span in toy.spans() if span[1] == "trim pool"]
    assert end == pytest.approx(ends, abs=1e-9)


def test_a_part_of_a_stage_that_one_thread_does_alone_does_not_shrink_with_its_pool(toy, hardware_with):
    """1 s on 4 threads, a fourth of one thread's work serial: T(1) / T(4) = 1 / (1/4 + 3/16)."""

    def stage():
        yield Compute("b_g2_msm", toy.partition(), threads=1)

    hardware = replace(hardware_with(), serial_share=StageNumbers({"b_g2_msm": 0.25}, "by hand"))
    toy.run(hardware, a=stage)
    (span,) = toy.spans()
    assert span[3] == pytest.approx(16 / 7, abs=1e-8)


def test_each_thread_of_a_pool_adds_to_the_work_that_is_shared(toy, hardware_with):
    """1 s on 4 threads, each further thread a ninth of the work: T(1) / T(4) = 1 / ((1 + 3/9) / 4) = 3."""

    def stage():
        yield Compute("b_g2_msm", toy.partition(), threads=1)

    work = STAGES["b_g2_msm"].work(toy.shape, "")
    hardware = replace(hardware_with(), split_work=StageNumbers({"b_g2_msm": work / 9}, "by hand"))
    toy.run(hardware, a=stage)
    (span,) = toy.spans()
    assert span[3] == pytest.approx(3, abs=1e-8)


def test_a_pageable_copy_is_slowed_like_a_stage(toy, hardware_with):
    p = toy.partition()

    def copy():
        buffer = yield Alloc(toy.gpu, "d_a", 300, p, pooled=True)
        yield Upload(p.abc, (buffer,), p.stream(toy.gpu, "compute"), p)

    def prep():
        yield Compute("prep_msm", toy.partition(1))
        yield Compute("prep_msm", toy.partition(1))

    traffic = STAGES["prep_msm"].host_traffic_bytes(toy.shape, "") / 2  # a second
    hardware = hardware_with(memory_share={"pageable_copy": 0.5}, memory_bandwidth_bytes_per_s=traffic)
    toy.run(hardware, a=copy, b=prep)
    assert ("a", "upload", 0, 3) in toy.spans()


def test_kernels_of_an_emulated_device_take_the_hosts_cores_and_turns(toy, hardware_with):
    def worker(index):
        def run():
            yield Launch(toy.gpu, "ntt_h", toy.partition(index))

        return run

    def prep():
        yield Compute("prep_msm", toy.partition(5))

    toy.run(hardware_with(kernels_on_host=True, cores=1), a=worker(0), b=worker(1), c=prep)
    # One core for a kernel and prep_msm: each of the two kernels of 1 s takes 2 s, and they take turns.
    assert toy.spans() == [("a", "ntt_h", 0, 2), ("c", "prep_msm", 0, 4), ("b", "ntt_h", 0, 4)]


def test_an_allocation_that_does_not_fit_fails_or_waits(toy):
    def holder():
        buffer = yield Alloc(toy.gpu, "x", 600)
        yield Compute("synthesis", toy.partition())
        yield Free(buffer)

    def failing():
        yield Compute("epilogue", toy.partition(1))
        try:
            yield Alloc(toy.gpu, "y", 500)
        except OutOfDeviceMemory as fault:
            return fault.live_bytes

    def waiting():
        yield Compute("epilogue", toy.partition(1))
        yield Alloc(toy.gpu, "z", 500, on_full="wait")

    ending = toy.run(holder=holder, failing=failing, waiting=waiting)
    assert ending.results["failing"] == 600
    assert toy.waits() == [("waiting", "memory", "gpu0 z 500 B", "holder", 0.5, 1.25)]
    assert [(row.op, row.buffer, row.live, row.worker) for row in toy.rows["vram"]] == [
        ("alloc", "x", 600, "holder"), ("fail", "y", 600, "failing"), ("free", "x", 0, "holder"),
        ("alloc", "z", 500, "waiting"),
    ]  # fmt: skip


def test_scratch_memory_of_a_stage_counts_while_it_runs(toy):
    def worker():
        yield Acquire(LOCK)
        yield Launch(toy.gpu, "ntt_h", toy.partition(ntt_h=400))
        yield Launch(toy.gpu, "ntt_h", toy.partition(ntt_h=1001))

    ending = toy.run(worker=worker)
    assert isinstance(ending.faults["worker"], OutOfDeviceMemory)
    assert [(row.op, row.bytes, row.live, row.time / S, row.lock_held) for row in toy.rows["vram"]] == [
        ("alloc", 400, 400, 0, "mem"), ("free", 400, 0, 1, "mem"), ("fail", 1001, 0, 1, "mem"),
    ]  # fmt: skip
    assert [(row.lock, row.released) for row in toy.rows["locks"]] == [("mem", None)]


def test_reservations_are_recorded_and_block(toy):
    def first():
        yield Reserve(toy.gpu, 700)
        yield Compute("synthesis", toy.partition())
        yield Unreserve(toy.gpu, 700)

    def second():
        yield Reserve(toy.gpu, 400)

    toy.run(a=first, b=second)
    assert toy.waits() == [("b", "memory", "gpu0 400 B", "a", 0, 1)]
    assert [(row.op, row.bytes, row.live) for row in toy.rows["vram"]] == [
        ("reserve", 700, 0), ("unreserve", 700, 0), ("reserve", 400, 0),
    ]  # fmt: skip


def test_the_fault_of_a_forked_program_reaches_the_one_that_joins_it(toy):
    @program
    def child():
        yield Compute("synthesis", toy.partition())
        yield Alloc(toy.gpu, "x", 2000)

    def joins():
        task = yield Fork(child())
        try:
            yield Join(task)
        except OutOfDeviceMemory:
            return "told"

    def goes_on():
        yield Fork(child())
        yield Compute("prep_msm", toy.partition())
        try:
            yield Compute("prep_msm", toy.partition())
        except OutOfDeviceMemory:
            return "told"

    def leaves():
        yield Fork(child())

    ending = toy.run(a=joins, b=goes_on, c=leaves)
    assert (ending.results["a"], ending.results["b"]) == ("told", "told")
    assert list(ending.faults) == ["c/child"]
    assert ending.stuck == ()


def test_defects_end_the_program_that_has_them(toy):
    def release():
        yield Release(LOCK)

    def double_free():
        buffer = yield Alloc(toy.gpu, "x", 10)
        yield Free(buffer)
        yield Free(buffer)

    def spin():
        while not (yield ReadFlag(Flag("never"))):
            pass

    ending = toy.run(a=release, b=double_free, c=spin)
    assert {name: type(fault) for name, fault in ending.faults.items()} == {
        "a": ReleaseByNonOwner, "b": DoubleFree, "c": NoProgress,
    }  # fmt: skip


def test_a_deadlock_names_who_waits_for_what_and_whom(toy):
    other = Lock("compute")

    def worker(first, second):
        def run():
            yield Acquire(first)
            yield Compute("synthesis", toy.partition())
            yield Acquire(second)

        return run

    ending = toy.run(a=worker(LOCK, other), b=worker(other, LOCK))
    assert [str(stuck) for stuck in ending.stuck] == [
        "a waits for lock compute (held by b)",
        "b waits for lock mem (held by a)",
    ]
    assert [(row.lock, row.worker, row.requested / S, row.acquired, row.released) for row in toy.rows["locks"]] == [
        ("mem", "a", 0, 0, None), ("compute", "b", 0, 0, None), ("compute", "a", 1, None, None),
        ("mem", "b", 1, None, None),
    ]  # fmt: skip


def test_a_wait_that_never_ends_is_recorded_to_the_end_of_the_run(toy):
    def worker():
        yield Wait(Semaphore("never"))

    def other():
        yield Compute("synthesis", toy.partition())

    ending = toy.run(a=worker, b=other)
    assert [str(stuck) for stuck in ending.stuck] == ["a waits for barrier never"]
    assert toy.waits() == [("a", "barrier", "never", "", 0, 1)]

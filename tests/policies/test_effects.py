"""The rules of effects, one by one, on a world that is a plain dictionary."""

from dataclasses import replace

import pytest

from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    ClearFlag,
    Compute,
    DeviceSync,
    DoubleFree,
    Exchange,
    Fork,
    Free,
    FreeHost,
    Get,
    Join,
    Launch,
    Notify,
    OutOfDeviceMemory,
    Pin,
    Put,
    QueryFree,
    ReadBeforeWrite,
    ReadFlag,
    RecordEvent,
    Release,
    ReleaseByNonOwner,
    Reserve,
    SetFlag,
    TrimPool,
    Unpin,
    Unreserve,
    Upload,
    UseAfterFree,
    Wait,
    WaitClear,
    WaitEvent,
    WrongDevice,
    live_bytes,
    pool_bytes,
)
from cuzklab.policies.model import Flag, Gpu, Lock, Partition, Queue, Semaphore, Task, program
from cuzklab.stages import NO_FLOW, POREP_32G, partition_sizes

GPU = Gpu(0, 100, 5)
OTHER = Gpu(1, 100, 5)
PARTITION = Partition(0, 0, replace(partition_sizes(POREP_32G), flow=NO_FLOW))


class Plain(dict):
    """A world: what was never written reads as None."""

    read = dict.get

    def write(self, key, value):
        self[key] = value


@pytest.fixture
def world():
    return Plain()


def do(world, effect, actor="w0"):
    assert effect.ready(world, actor)
    result = effect.start(world, actor)
    effect.finish(world, actor)
    return result


def test_a_lock_has_one_holder_and_is_not_re_entrant(world):
    lock = Lock("mem")
    do(world, Acquire(lock))
    assert not Acquire(lock).ready(world, "w1")
    assert not Acquire(lock).ready(world, "w0")
    assert Acquire(lock).blockers(world) == ("w0",)
    do(world, Release(lock))
    assert Acquire(lock).ready(world, "w1")


def test_only_the_holder_may_release(world):
    do(world, Acquire(Lock("mem")))
    with pytest.raises(ReleaseByNonOwner, match="w1 releases mem, held by w0"):
        Release(Lock("mem")).start(world, "w1")


def test_allocation_that_does_not_fit_fails_or_waits(world):
    do(world, Alloc(GPU, "x", 60))
    with pytest.raises(OutOfDeviceMemory) as failed:
        do(world, Alloc(GPU, "y", 41), "w1")
    assert (failed.value.size_bytes, failed.value.live_bytes, failed.value.limit_bytes) == (41, 60, 100)
    waiting = Alloc(GPU, "y", 41, on_full="wait")
    assert not waiting.ready(world, "w1")
    assert waiting.blockers(world) == ("w0",)
    assert Alloc(GPU, "y", 40, on_full="wait").ready(world, "w1")


def test_freeing_twice_is_a_fault(world):
    x = do(world, Alloc(GPU, "x", 60))
    do(world, Free(x))
    with pytest.raises(DoubleFree):
        do(world, Free(x))


def test_the_pool_keeps_freed_memory_until_it_is_trimmed(world):
    do(world, Free(do(world, Alloc(GPU, "x", 60, pooled=True))))
    assert (live_bytes(world, GPU), pool_bytes(world, GPU)) == (0, 60)
    assert do(world, QueryFree(GPU)) == 40
    # Another pooled allocation can use what the pool keeps, a plain one cannot.
    with pytest.raises(OutOfDeviceMemory):
        do(world, Alloc(GPU, "y", 41))
    y = do(world, Alloc(GPU, "y", 90, pooled=True))
    assert pool_bytes(world, GPU) == 0
    do(world, Free(y))
    do(world, TrimPool(GPU))
    assert do(world, QueryFree(GPU)) == 100


def test_a_reservation_is_a_counted_promise(world):
    do(world, Reserve(GPU, 70))
    assert not Reserve(GPU, 31).ready(world, "w1")
    with pytest.raises(ReleaseByNonOwner):
        do(world, Unreserve(GPU, 70), "w1")
    do(world, Unreserve(GPU, 70))
    assert Reserve(GPU, 100).ready(world, "w1")


def test_a_launch_takes_scratch_and_makes_the_device_busy(world):
    gpu = Gpu(0, 16 << 30)
    launch = Launch(gpu, "h_msm", PARTITION)
    launch.start(world, "w0")
    assert live_bytes(world, gpu) == PARTITION.sizes.scratch["h_msm", ""]
    assert not DeviceSync(gpu).ready(world, "w1")
    assert not TrimPool(gpu).ready(world, "w1")
    launch.finish(world, "w0")
    assert live_bytes(world, gpu) == 0
    assert DeviceSync(gpu).ready(world, "w1")


def test_a_launch_whose_scratch_does_not_fit_leaves_nothing_behind(world):
    with pytest.raises(OutOfDeviceMemory):
        Launch(GPU, "h_msm", PARTITION).start(world, "w0")
    assert live_bytes(world, GPU) == 0
    assert DeviceSync(GPU).ready(world, "w1")


def test_work_on_freed_or_foreign_memory_is_a_fault(world):
    x = do(world, Alloc(GPU, "x", 10))
    with pytest.raises(WrongDevice, match="gpu1 uses x of gpu0"):
        Launch(OTHER, "ntt_h", PARTITION, uses=(x,)).start(world, "w0")
    do(world, Free(x))
    with pytest.raises(UseAfterFree):
        Launch(GPU, "ntt_h", PARTITION, uses=(x,)).start(world, "w0")


def test_kernels_wait_for_the_event_of_an_upload(world):
    x = do(world, Alloc(GPU, "x", 10))
    upload = PARTITION.stream(GPU, "upload")
    do(world, Pin(PARTITION.abc))
    copy = Upload(PARTITION.abc, (x,), upload, PARTITION)
    assert copy.asynchronous(world)
    copy.start(world, "w0")
    event = do(world, RecordEvent(upload))
    launch = Launch(GPU, "ntt_h", PARTITION, uses=(x,))
    assert launch.ready(world, "w0")
    do(world, WaitEvent(event, launch.stream))
    assert not launch.ready(world, "w0")
    assert not WaitEvent(event).ready(world, "w0")
    copy.finish(world, "w0")
    assert launch.ready(world, "w0")


def test_a_copy_from_pageable_memory_is_not_asynchronous(world):
    assert not Upload(PARTITION.abc, (), PARTITION.stream(GPU, "upload"), PARTITION).asynchronous(world)


def test_a_notification_before_the_wait_is_kept(world):
    barrier = Semaphore("barrier")
    assert not Wait(barrier).ready(world, "w0")
    do(world, Notify(barrier))
    do(world, Wait(barrier))
    assert not Wait(barrier).ready(world, "w0")
    assert Wait(Semaphore("full", 2)).ready(world, "w0")


def test_a_bounded_queue_blocks_at_both_ends(world):
    queue = Queue("q", 1)
    assert not Get(queue).ready(world, "w0")
    do(world, Put(queue, "a"))
    assert not Put(queue, "b").ready(world, "w0")
    assert do(world, Get(queue)) == "a"


def test_a_flag_is_one_boolean(world):
    assert do(world, ReadFlag(Flag("throttle"))) is False
    do(world, SetFlag(Flag("throttle")))
    assert do(world, ReadFlag(Flag("throttle"))) is True


def test_join_waits_for_the_end_of_the_task(world):
    @program
    def nothing():
        return
        yield

    task = do(world, Fork(nothing()))
    assert task.actor == "w0/nothing"
    assert not Join(task).ready(world, "w0")
    world.write(("task", task.actor), "ended")
    assert Join(task).ready(world, "w0")


def test_the_name_of_a_forked_program_is_free_when_it_has_been_joined(world):
    @program
    def child():
        return
        yield

    def names():
        return [do(world, Fork(child())).actor for _ in range(2)]

    assert names() == ["w0/child", "w0/child#2"]
    world.write(("task", "w0/child"), "ended")
    assert do(world, Fork(child())).actor == "w0/child#3"
    do(world, Join(Task("w0/child")))
    assert do(world, Fork(child())).actor == "w0/child"


def test_a_slot_gives_what_was_there_to_one_actor(world):
    slot, x = GPU.slot("kept"), do(world, Alloc(GPU, "x", 60))
    assert do(world, Exchange(slot, x)) is None
    assert do(world, Exchange(slot), "w1") == x
    assert do(world, Exchange(slot), "w2") is None
    # Who takes a buffer out has to give it back; who puts one in has given it away.
    assert Exchange(slot).undo(x) == Exchange(slot, x)
    assert Exchange(slot, x).settles == Free(x).settles == Alloc(GPU, "x", 60).undo(x).settles
    assert (Exchange(slot, 1).settles, Exchange(slot).settles, Exchange(slot).undo(1)) == (None, None, None)


def test_a_flag_can_be_waited_for(world):
    flag = Flag("throttle")
    assert WaitClear(flag).ready(world, "w0")
    do(world, SetFlag(flag))
    assert not WaitClear(flag).ready(world, "w0")
    assert SetFlag(flag).undo(None) == ClearFlag(flag)
    do(world, ClearFlag(flag))
    assert WaitClear(flag).ready(world, "w0")


def test_host_memory_is_freed_once_and_not_uploaded_afterwards(world):
    do(world, FreeHost(PARTITION.abc, PARTITION))
    with pytest.raises(DoubleFree, match=r"p0\.0\.abc was freed before"):
        do(world, FreeHost(PARTITION.abc, PARTITION))
    with pytest.raises(UseAfterFree, match=r"upload uses p0\.0\.abc, which was freed"):
        Upload(PARTITION.abc, (), PARTITION.stream(GPU, "upload"), PARTITION).start(world, "w0")


def test_a_pooled_pin_is_undone_as_one():
    assert Pin(PARTITION.abc, pooled=True).undo(None) == Unpin(PARTITION.abc, pooled=True)
    assert Unpin(PARTITION.abc).settles == Unpin(PARTITION.abc, pooled=True).settles


# --- data -----------------------------------------------------------------------------------------------------------

REAL = partition_sizes(POREP_32G)


def test_a_stage_begins_only_when_what_it_reads_is_written(world):
    p, gpu = Partition(0, 0, REAL), Gpu(0, 16 << 30)
    with pytest.raises(ReadBeforeWrite, match=r"batch_add\.l of p0\.0 reads bitmaps, which prep_msm has yet to write"):
        Launch(gpu, "batch_add", p, "l").start(world, "w0")
    do(world, Compute("prep_msm", p))
    Launch(gpu, "batch_add", p, "l").start(world, "w0")
    other = Partition(0, 1, REAL)  # each partition has data of its own
    with pytest.raises(ReadBeforeWrite):
        Launch(gpu, "batch_add", other, "l").start(world, "w0")


def test_data_are_written_at_the_end_and_not_at_the_start_of_a_step(world):
    p, gpu = Partition(0, 0, REAL), Gpu(0, 16 << 30)
    ntt = Launch(gpu, "ntt_h", p)
    upload = Upload(p.abc, (), p.stream(gpu, "upload"), p)
    upload.start(world, "w0")
    with pytest.raises(ReadBeforeWrite, match=r"ntt_h of p0\.0 reads a, b, c on the device, which the upload has yet"):
        ntt.start(world, "w0")
    upload.finish(world, "w0")
    ntt.start(world, "w0")
    with pytest.raises(ReadBeforeWrite, match=r"h_msm of p0\.0 reads h, which ntt_h has yet to write"):
        Launch(gpu, "h_msm", p).start(world, "w0")
    ntt.finish(world, "w0")
    Launch(gpu, "h_msm", p).start(world, "w0")


def test_a_partition_of_an_engine_must_be_synthesised_first(world):
    p = Partition(0, 0, REAL, synthesised=False)
    upload = Upload(p.abc, (), p.stream(GPU, "upload"), p)
    with pytest.raises(
        ReadBeforeWrite, match=r"the upload of p0\.0 reads a, b and c, which synthesis has yet to write"
    ):
        upload.start(world, "w0")
    do(world, Compute("synthesis", p))
    upload.start(world, "w0")


def test_a_step_that_no_table_knows_reads_and_writes_nothing(world):
    mine = Compute("mine", Partition(0, 0, REAL))
    assert (mine.reads, mine.writes) == ((), ())
    do(world, mine)
    assert Compute("epilogue", PARTITION).reads == Compute("epilogue", Partition(0, 0, None)).reads == ()

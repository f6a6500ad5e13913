"""Which proofs go first: the rule of queues, the arrival of urgent proofs, and where a failure was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzklab.policies import effects as e
from cuzklab.policies.engine import EngineConfig, Latencies, Outcome, Urgent, failure_of
from cuzklab.policies.model import Gpu, Partition, Priority, Queue
from cuzklab.policies.requests import batch_partitions, urgent_partitions
from tests.interpreters.systems import World

GPU = Gpu(0, 100)


def part(index, priority=Priority.NORMAL, proof=0):
    return Partition(proof, index, None, priority)


_PUTS = st.lists(st.sampled_from(list(Priority)), max_size=12)


@given(_PUTS)
def test_a_queue_gives_the_highest_priority_first_and_the_oldest_of_it(priorities):
    world, queue = World(), Queue("q")
    items = [part(index, priority) for index, priority in enumerate(priorities)]
    for item in items:
        e.Put(queue, item).start(world, "a")
    got = [e.Get(queue).start(world, "a") for _ in items]
    assert got == sorted(items, key=lambda item: -item.priority)  # sorting is stable


@given(_PUTS, st.integers(1, 4))
def test_a_full_queue_holds_up_only_what_would_come_behind(priorities, capacity):
    world, queue = World(), Queue("q", capacity)
    for index, priority in enumerate(priorities):
        item = part(index, priority)
        before = [other for other in world.read(queue) or () if other.priority >= priority]
        assert e.Put(queue, item).ready(world, "a") == (len(before) < capacity)
        if len(before) < capacity:
            e.Put(queue, item).start(world, "a")
    for priority in Priority:
        assert sum(item.priority == priority for item in world.read(queue) or ()) <= capacity


def test_urgent_proofs_are_numbered_after_the_batch():
    urgent = (Urgent("windowpost", None, 1, Priority.HIGH), Urgent("winningpost", None, 2, after=3))
    config = EngineConfig(2, 2, (GPU,), 2, 1, 1, 1, urgent)
    assert [part.name for proof in batch_partitions(config, None) for part in proof] == ["p0.0", "p0.1", "p1.0", "p1.1"]
    assert [(part.name, part.kind, part.priority) for proof in urgent_partitions(config) for part in proof] == [
        ("p2.0", "windowpost", 1),
        ("p3.0", "winningpost", 2),
        ("p3.1", "winningpost", 2),
    ]
    assert [config.partitions_of(proof) for proof in range(4)] == [2, 2, 1, 2]
    assert config.total_partitions == 7


@pytest.mark.parametrize(
    ("urgent", "message"),
    [
        (Urgent("w", None, partitions=0), "urgent w: partitions must be at least 1"),
        (Urgent("w", None, after=5), "urgent w arrives after 5 partitions; the batch has 4"),
        (Urgent("w", None, after=-1), "urgent w arrives after -1 partitions"),
    ],
)
def test_an_urgent_proof_that_never_arrives_is_refused(urgent, message):
    with pytest.raises(ValueError, match=message):
        EngineConfig(2, 2, (GPU,), 2, 1, 1, 1, (urgent,))


def test_a_failure_says_where():
    fault = e.OutOfDeviceMemory("x", 60, 90, 100)
    fault.at("gpu0.w1/prep", e.Alloc(GPU, "x", 60))
    fault.at("gpu0.w1", e.Wait(None))  # on its way to the worker: the first place stays
    failure = failure_of(Outcome(Partition(3, 7, None, kind="winningpost"), fault, e.Release(GPU.lock)))
    assert (failure.proof, failure.partition, failure.kind) == (3, "p3.7", "oom")
    assert (failure.effect, failure.worker) == ("Alloc gpu0 x 60 B", "gpu0.w1/prep")
    assert failure.message == (
        "winningpost proof 3, partition 7, at Alloc gpu0 x 60 B, by gpu0.w1/prep: x needs 60 B, but 90 B of 100 B are "
        "in use"
    )


def test_latency_is_from_the_first_partition_queued_to_the_last_outcome():
    times = Latencies()
    for now, item in ((5, part(0)), (6, part(1)), (9, None), (11, Outcome(part(1))), (15, Outcome(part(0)))):
        times.passed(item, now)
    assert times.seconds(0) == pytest.approx(10e-9, abs=0)
    assert times.seconds(1) is None

"""The data of partitions: made once, ahead of what is timed, and by one thread without another's waiting for it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cuzklab.live.circuit import circuit_with_test_key
from cuzklab.live.stages import Groth16, Means
from cuzklab.policies.model import Partition
from cuzklab.stages import DeviceModel


@pytest.fixture(scope="module")
def circuit():
    return circuit_with_test_key(8, 1)


def partition(circuit, index):
    return Partition(0, index, circuit.sizes(DeviceModel(1)))


def test_who_asks_for_a_partition_does_not_wait_for_the_making_of_another(circuit):
    begun, go = threading.Event(), threading.Event()

    def make(one):
        if one.index == 0:
            begun.set()
            assert go.wait(10)
        return circuit.job(one)

    groth16 = Groth16(circuit.key, make, Means(1))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(groth16.job, partition(circuit, 0))
        assert begun.wait(10)
        assert groth16.job(partition(circuit, 1)).key is circuit.key  # while the other is still being made
        assert not first.done()
        go.set()
        assert first.result(10) is groth16.job(partition(circuit, 0))


def test_a_partition_that_many_ask_for_is_made_once(circuit):
    made = []

    def make(one):
        made.append(one.index)
        return circuit.job(one)

    groth16 = Groth16(circuit.key, make, Means(1))
    groth16.make_jobs([partition(circuit, 0), partition(circuit, 1)])
    together = threading.Barrier(4)

    def ask(index):
        together.wait(10)
        return groth16.job(partition(circuit, index))

    with ThreadPoolExecutor(4) as pool:
        jobs = list(pool.map(ask, [0, 2, 2, 2]))
    assert sorted(made) == [0, 1, 2]
    assert jobs[1] is jobs[2] is jobs[3] is not jobs[0]

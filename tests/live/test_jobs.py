"""The data of partitions: made once, ahead of what is timed, and by one thread without another's waiting for it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cuzklab.live import circuit as circuit_module
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


def test_witnesses_are_kept_for_the_next_run_up_to_a_size(circuit, monkeypatch):
    fresh = circuit_module._Witnesses()
    made = []

    def witness(number):
        def make():
            made.append(number)
            return np.full((4, 4), number, np.uint64)

        return fresh.of(number, make)

    monkeypatch.setattr(circuit_module, "_MOST_WITNESS_BYTES", 2 * 4 * 4 * 8)
    assert [int(witness(number)[0, 0]) for number in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert made == [1, 2, 3, 2]  # 2 was the one not used for longest when 3 came
    monkeypatch.setattr(circuit_module, "_MOST_WITNESS_BYTES", 4 * 4 * 8 - 1)
    assert [int(witness(number)[0, 0]) for number in (4, 4)] == [4, 4]
    assert made[-2:] == [4, 4] and not fresh._kept, "one that is larger than the bound is not kept"
    with pytest.raises(ValueError, match="read-only"):
        witness(2)[0, 0] = 0


def test_a_job_has_the_same_witness_every_time_and_its_own(circuit):
    first, again, other = (circuit.job(partition(circuit, index)) for index in (0, 0, 1))
    assert first.witness is again.witness
    assert (first.witness != other.witness).any()
    assert (first.r, first.s) == (again.r, again.s)

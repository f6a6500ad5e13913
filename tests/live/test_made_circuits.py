"""Circuits and keys as a device makes them, here the CPU in its place: those of `circuit_with_test_key`."""

import hashlib

import numpy as np
import pytest

from cuzklab.backends.keys import HOST_KEYS
from cuzklab.errors import BadInput
from cuzklab.live.circuit import Maker, circuit_made_by, circuit_with_test_key, digest_in_blocks
from cuzklab.live.place import place
from cuzklab.policies.model import Partition
from cuzklab.prover.prove import prove
from cuzklab.prover.verify import verify
from cuzklab.stages import DeviceModel

released = []
CPU = Maker(np, HOST_KEYS, lambda: released.append(1))


def test_a_made_circuit_proves_what_the_cpus_proves():
    seen = []
    mine = circuit_made_by(CPU, 10, 4, lambda words, share: seen.append((words, share)))
    other = circuit_with_test_key(10, 4)
    assert mine.shape == other.shape and mine.sizes(DeviceModel(1)).abc == other.sizes(DeviceModel(1)).abc
    partition = Partition(0, 3, mine.sizes(DeviceModel(1)))
    one, two = mine.job(partition), other.job(partition)
    assert np.array_equal(one.witness, two.witness) and (one.r, one.s) == (two.r, two.s)
    proofs = [prove(job.key, job.witness, r=job.r, s=job.s) for job in (one, two)]
    assert verify(other.key.vk, proofs[0][1], proofs[0][0]).valid
    for name in ("a", "b", "c"):
        assert np.array_equal(getattr(proofs[0][0], name), getattr(proofs[1][0], name))
    shares = [share for _, share in seen]
    assert shares == sorted(shares) and seen[0] == ("circuit", 0.0) and ("key: H query" in dict(seen))
    assert released, "device memory was given back"


def test_the_last_made_circuit_is_remembered_and_no_other():
    one = circuit_made_by(CPU, 8, 1)
    assert circuit_made_by(CPU, 8, 1) is one
    assert circuit_made_by(CPU, 8, 2) is not one
    again = circuit_made_by(CPU, 8, 1)
    assert again is not one and again.digests == one.digests
    assert set(one.digests) == {"circuit, in blocks", "test key, in blocks"}


def test_a_digest_in_blocks_is_that_of_the_blocks_digests(monkeypatch):
    monkeypatch.setattr("cuzklab.live.circuit._BLOCK_BYTES", 64)
    arrays = [np.arange(20, dtype=np.uint64).reshape(5, 4), np.arange(3, dtype=np.uint32), np.zeros(0, np.uint64)]
    blocks = [arrays[0].tobytes()[:64], arrays[0].tobytes()[64:128], arrays[0].tobytes()[128:], arrays[1].tobytes()]
    wanted = hashlib.sha256(b"".join(hashlib.sha256(block).digest() for block in blocks)).hexdigest()
    assert digest_in_blocks(arrays) == wanted


def test_sizes_that_cannot_be_made_are_refused():
    with pytest.raises(BadInput, match="from 8 to 27"):
        circuit_made_by(CPU, 28, 1)
    with pytest.raises(BadInput, match=r"from 8 to 22 \(a GPU makes them up to 27\)"):
        place("host", None).circuit(23, 1, None)

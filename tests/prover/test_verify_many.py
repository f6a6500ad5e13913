"""Batches of proofs: the same verdicts as one by one, wherever the invalid ones stand and whatever is wrong."""

import dataclasses
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.backends import host
from cuzklab.errors import BadInput
from cuzklab.prover import verify_many as module
from cuzklab.prover.bench import rerandomised
from cuzklab.prover.porep_shaped import porep_circuit, porep_witness
from cuzklab.prover.prove import prove_many
from cuzklab.prover.setup import setup
from cuzklab.prover.verify import prepare, verify
from cuzklab.prover.verify_many import verify_many
from tests.prover.special_points import cofactor_point_g1, cofactor_point_g2

COUNT = 16


@pytest.fixture(scope="module")
def batch():
    """A key and different valid proofs of different statements."""
    circuit = porep_circuit(248, seed=5)
    key = setup(circuit.system, 5)
    made = prove_many(key, (porep_witness(circuit, number) for number in range(4)))
    several = [rerandomised(*made[i % 4], i + 1) for i in range(COUNT)]
    return prepare(key.vk), [public for _, public in several], [proof for proof, _ in several]


def break_one(public, proof, how: str):
    outside1, outside2 = (host.coordinates_to_limbs(it()) for it in (cofactor_point_g1, cofactor_point_g2))
    changed = public.copy()
    changed[-1, 0] ^= np.uint64(1)
    return {
        "equation": (changed, proof),
        "swapped": (public, dataclasses.replace(proof, a=proof.c, c=proof.a)),
        "infinity": (public, dataclasses.replace(proof, c=np.zeros_like(proof.c))),
        "subgroup": (public, dataclasses.replace(proof, a=host.add_g1(proof.a, outside1))),
        "subgroup of B": (public, dataclasses.replace(proof, b=host.add_g2(proof.b, outside2))),
        "curve": (public, dataclasses.replace(proof, c=proof.c ^ np.uint64(1))),
        "inputs": (public[:-1], proof),
        "not below r": (np.full_like(public, ~np.uint64(0)), proof),
    }[how]


KINDS = ("equation", "swapped", "infinity", "subgroup", "subgroup of B", "curve", "inputs", "not below r")


def test_all_valid(batch):
    for threads in (1, 2, 3):
        calls = []
        found = verify_many(*batch, threads=threads, progress=lambda *call, calls=calls: calls.append(call))
        assert [verdict.valid for verdict in found] == [True] * COUNT
        assert calls[-1] == (COUNT, COUNT) and [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert verify_many(batch[0], [], []) == []


@settings(max_examples=6, deadline=None)
@given(faults=st.dictionaries(st.integers(0, COUNT - 1), st.sampled_from(KINDS), min_size=1, max_size=5))
def test_verdicts_are_those_of_one_by_one(batch, faults):
    key, publics, proofs = batch[0], list(batch[1]), list(batch[2])
    for place, how in faults.items():
        publics[place], proofs[place] = break_one(publics[place], proofs[place], how)
    expected = [verify(key, publics[i], proofs[i]) if i in faults else module.VALID for i in range(COUNT)]
    assert [verdict.valid for verdict in expected] == [i not in faults for i in range(COUNT)]
    assert verify_many(key, publics, proofs, threads=2) == expected


def test_faults_that_cancel_without_random_exponents_are_found(batch):
    """C of one proof moved to another: the product of the plain equations would still hold."""
    key, publics, proofs = batch[0], list(batch[1]), list(batch[2])
    moved = host.G1_GENERATOR
    proofs[3] = dataclasses.replace(proofs[3], c=host.add_g1(proofs[3].c, moved))
    proofs[9] = dataclasses.replace(proofs[9], c=host.add_g1(proofs[9].c, host.neg_g1(moved)))
    found = verify_many(key, publics, proofs, threads=1)
    assert [i for i, verdict in enumerate(found) if not verdict.valid] == [3, 9]
    # With exponents all alike that batch does hold: the test above tests something.
    with patch.object(module.secrets, "token_bytes", lambda count: (1).to_bytes(16, "little") * (count // 16)):
        equations = module._Equations(key, publics, proofs)
        assert equations._all_hold(range(COUNT))


def test_exponents_come_from_the_operating_system_anew_for_each_batch(batch):
    drawn, draw = [], module.secrets.token_bytes
    with patch.object(module.secrets, "token_bytes", lambda count: drawn.append(draw(count)) or drawn[-1]):
        verify_many(*batch, threads=1)
        verify_many(*batch, threads=1)
    assert [len(it) for it in drawn] == [16 * COUNT] * 2 and drawn[0] != drawn[1]


def test_a_bad_key_and_lengths_that_differ(batch):
    with pytest.raises(ValueError, match="16 proofs and 15 sets"):
        verify_many(batch[0], batch[1][1:], batch[2])
    circuit = porep_circuit(248, seed=5)
    vk = setup(circuit.system, 5).vk
    with pytest.raises(BadInput, match="infinity"):
        verify_many(dataclasses.replace(vk, delta_g2=np.zeros_like(vk.delta_g2)), batch[1], batch[2])


def test_a_batch_of_nothing_but_invalid_proofs(batch):
    key, publics, proofs = batch
    changed = [break_one(public, proof, "equation")[0] for public, proof in zip(publics, proofs, strict=True)]
    assert verify_many(key, changed, proofs, threads=1) == [module.WRONG_EQUATION] * COUNT

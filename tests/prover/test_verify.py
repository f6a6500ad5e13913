"""Our verifier against snarkjs, mcl and py_ecc, on real proofs, on changed ones, and on the ones only a subgroup
check refuses."""

import copy
import dataclasses

import numpy as np
import pytest

from cuzklab.backends.bls12_381 import FR_MODULUS
from cuzklab.backends.limbs import coordinates_to_limbs, ints_to_limbs
from cuzklab.errors import BadInput
from cuzklab.prover.files import read_key_or_vk, read_proof, read_public
from cuzklab.prover.files.proof_json import proof_document, public_document
from cuzklab.prover.files.vk_json import vk_document
from cuzklab.prover.verify import verify
from tests.prover import judges
from tests.prover.special_points import add_g1, cofactor_point_g1, cofactor_point_g2

CIRCUITS = ("chain", "poseidon2", "merkle16")


@pytest.fixture(params=CIRCUITS)
def folder(shared_data, request):
    return shared_data / "groth16" / request.param


@pytest.fixture
def chain(shared_data):
    return shared_data / "groth16" / "chain"


def ours(folder):
    return (
        read_key_or_vk(folder / "verification_key.json"),
        read_public(folder / "public.json"),
        read_proof(folder / "proof.json"),
    )


def all_judges(vk, public, proof) -> dict[str, bool]:
    documents = vk_document(vk), public_document(public), proof_document(proof)
    return {
        "ours": verify(vk, public, proof).valid,
        "snarkjs": judges.snarkjs_verify(*documents),
        "mcl": judges.pymcl_verify(*documents),
    }


def test_real_proofs_are_valid_for_all(folder):
    assert all_judges(*ours(folder)) == {"ours": True, "snarkjs": True, "mcl": True}


def test_py_ecc_agrees(chain):
    vk, public, proof = judges.load(chain)
    assert judges.py_ecc_verify(vk, public, proof)


def test_changed_public_value_is_refused_by_all(folder):
    vk, public, proof = ours(folder)
    public[-1, 0] ^= np.uint64(1)
    assert all_judges(vk, public, proof) == {"ours": False, "snarkjs": False, "mcl": False}
    assert verify(vk, public, proof).why == "equation"


@pytest.mark.parametrize("point", ["a", "b", "c"])
def test_another_proofs_point_is_refused_by_all(shared_data, point):
    vk, public, proof = ours(shared_data / "groth16" / "chain")
    other = ours(shared_data / "groth16" / "merkle16")[2]
    mixed = dataclasses.replace(proof, **{point: getattr(other, point)})
    assert all_judges(vk, public, mixed) == {"ours": False, "snarkjs": False, "mcl": False}
    assert verify(vk, public, mixed).why == "equation"


def test_point_of_cofactor_order_added_to_a_is_refused_though_the_equation_holds(chain):
    vk, public, proof = ours(chain)
    tainted = dataclasses.replace(proof, a=add_g1(judges.load(chain)[2]["pi_a"], cofactor_point_g1()))
    verdict = verify(vk, public, tainted)
    assert (verdict.valid, verdict.why) == (False, "subgroup")
    assert "A" in verdict.detail
    documents = vk_document(vk), public_document(public), proof_document(tainted)
    assert not judges.pymcl_verify(*documents)
    # Why the check is needed: the equation alone is satisfied.
    assert judges.snarkjs_verify(*documents)


def test_each_point_is_checked_for_subgroup_and_curve(chain):
    vk, public, proof = ours(chain)
    g1, g2 = coordinates_to_limbs(cofactor_point_g1()), coordinates_to_limbs(cofactor_point_g2())
    for name, outside in (("a", g1), ("b", g2), ("c", g1)):
        assert verify(vk, public, dataclasses.replace(proof, **{name: outside})).why == "subgroup"
        off_curve = outside.copy()
        off_curve[0] ^= np.uint64(1)
        assert verify(vk, public, dataclasses.replace(proof, **{name: off_curve})).why == "curve"


def test_wrong_number_of_public_values(chain):
    vk, public, proof = ours(chain)
    for values in (public[:1], public[:0], np.concatenate([public, public[:1]])):
        assert verify(vk, values, proof).why == "inputs"


def test_value_plus_r_is_not_canonical(chain):
    vk, public, proof = ours(chain)
    alias = [int(value) + FR_MODULUS for value in public_document(public)]
    assert verify(vk, ints_to_limbs(alias, 4), proof).why == "inputs"
    assert not judges.snarkjs_verify(vk_document(vk), [str(value) for value in alias], proof_document(proof))


def test_proof_of_points_at_infinity_is_refused(chain):
    vk, public, proof = ours(chain)
    nothing = dataclasses.replace(proof, a=np.zeros_like(proof.a), b=np.zeros_like(proof.b), c=np.zeros_like(proof.c))
    assert all_judges(vk, public, nothing) == {"ours": False, "snarkjs": False, "mcl": False}


@pytest.mark.parametrize("name", ["alpha_g1", "beta_g2", "gamma_g2", "delta_g2"])
def test_keys_that_let_anybody_forge_are_bad_input(chain, name):
    vk, public, proof = ours(chain)
    broken = dataclasses.replace(vk, **{name: np.zeros_like(getattr(vk, name))})
    with pytest.raises(BadInput, match="infinity"):
        verify(broken, public, proof)


def test_points_of_the_key_are_checked(chain):
    vk, public, proof = ours(chain)
    ic = copy.deepcopy(vk.ic)
    ic[2] = coordinates_to_limbs(cofactor_point_g1())
    with pytest.raises(BadInput, match=r"IC\[2\] is not in the subgroup"):
        verify(dataclasses.replace(vk, ic=ic), public, proof)
    ic[2, 0] ^= np.uint64(1)
    with pytest.raises(BadInput, match=r"IC\[2\] is not on the curve"):
        verify(dataclasses.replace(vk, ic=ic), public, proof)
    with pytest.raises(BadInput, match="gamma is not in the subgroup"):
        verify(dataclasses.replace(vk, gamma_g2=coordinates_to_limbs(cofactor_point_g2())), public, proof)


def test_a_zkey_serves_as_verification_key(folder):
    _, public, proof = ours(folder)
    assert verify(read_key_or_vk(folder / f"{folder.name}.zkey"), public, proof).valid

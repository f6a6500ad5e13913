"""Whole proofs: real circuits and our own, judged by our verifier and by software that shares no code with it."""

import hashlib
import lzma
from pathlib import Path

import numpy as np
import pytest

from cuzklab.errors import BadInput
from cuzklab.prover.files import read_r1cs, read_witness, read_zkey, write_witness, write_zkey
from cuzklab.prover.files.proof_json import proof_document, public_document
from cuzklab.prover.files.vk_json import vk_document
from cuzklab.prover.hash_circuit import sha256_circuit
from cuzklab.prover.porep_shaped import porep_circuit, porep_witness
from cuzklab.prover.prove import prove
from cuzklab.prover.setup import setup
from cuzklab.prover.stages import dense_key
from cuzklab.prover.verify import verify
from tests.prover import judges
from tests.prover.plain import R


def verdicts(vk, public, proof) -> dict[str, bool]:
    documents = vk_document(vk), public_document(public), proof_document(proof)
    return {
        "ours": verify(vk, public, proof).valid,
        "snarkjs": judges.snarkjs_verify(*documents),
        "mcl": judges.pymcl_verify(*documents),
    }


def all_accept_and_refuse_another_input(vk, public, proof) -> bool:
    changed = public.copy()
    changed[0, 0] ^= 1
    return set(verdicts(vk, public, proof).values()) == {True} and set(verdicts(vk, changed, proof).values()) == {False}


@pytest.mark.parametrize("name", ["chain", "poseidon2", "merkle16"])
def test_proofs_of_real_circuits_are_accepted_by_all(shared_data, name):
    folder = shared_data / "groth16" / name
    key, witness = read_zkey(folder / f"{name}.zkey"), read_witness(folder / f"{name}.wtns")
    proof, public = prove(key, witness)
    assert public_document(public) == judges.load(folder)[1]
    assert all_accept_and_refuse_another_input(key.vk, public, proof)


def test_py_ecc_accepts_too(shared_data):
    folder = shared_data / "groth16" / "chain"
    key = read_zkey(folder / "chain.zkey")
    proof, public = prove(key, read_witness(folder / "chain.wtns"))
    assert judges.py_ecc_verify(vk_document(key.vk), public_document(public), proof_document(proof))


def test_sha256_of_circom_with_a_key_of_ours(shared_data, tmp_path):
    """No key was made for this circuit: setup, prove, verify. Its 256 public values are digest bits."""
    for kind in ("r1cs", "wtns"):
        packed = shared_data / "groth16" / "sha256_1" / f"sha256_1.{kind}.xz"
        (tmp_path / f"s.{kind}").write_bytes(lzma.decompress(packed.read_bytes()))
    system, witness = read_r1cs(tmp_path / "s.r1cs"), read_witness(tmp_path / "s.wtns")
    key = setup(system, seed="test", threads=2)
    proof, public = prove(key, witness, system=system)
    assert all_accept_and_refuse_another_input(key.vk, public, proof)


def same(one, other) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("a", "b", "c"))


def test_given_randomness_fixes_the_proof_bit_for_bit(shared_data):
    folder = shared_data / "groth16" / "merkle16"
    key, witness = read_zkey(folder / "merkle16.zkey"), read_witness(folder / "merkle16.wtns")
    system = read_r1cs(folder / "merkle16.r1cs")
    reference, _ = prove(key, witness, r=5, s=R - 3, threads=1)
    for threads in (1, 2, 3):
        assert same(prove(key, witness, r=5, s=R - 3, threads=threads)[0], reference)
    assert same(prove(dense_key(key, system), witness, r=5, s=R - 3)[0], reference), "with C's own matrix"
    assert not same(prove(key, witness)[0], prove(key, witness)[0]), "without given randomness each proof is another"


def test_no_randomness_at_all_is_a_valid_proof(shared_data):
    folder = shared_data / "groth16" / "chain"
    key = read_zkey(folder / "chain.zkey")
    proof, public = prove(key, read_witness(folder / "chain.wtns"), r=0, s=0)
    assert set(verdicts(key.vk, public, proof).values()) == {True}


def test_our_hash_circuit_proves_a_digest():
    system, witness = sha256_circuit(b"cuzklab", public="packed")
    key = setup(system, seed=3, threads=2)
    proof, public = prove(key, witness, r=1, s=2, threads=2)
    digest = "".join(f"{int(half):032x}" for half in public_document(public))
    assert digest == hashlib.sha256(b"cuzklab").hexdigest()
    assert same(prove(key, witness, r=1, s=2, threads=1)[0], proof), "every stage shares work among threads here"
    assert all_accept_and_refuse_another_input(key.vk, public, proof)


def test_porep_shaped_partitions_share_a_key_and_snarkjs_proves_with_it_too(tmp_path: Path):
    circuit = porep_circuit(994, seed=5)
    key = setup(circuit.system, seed=5)
    dense = dense_key(key)
    for partition in range(2):
        witness = porep_witness(circuit, partition)
        proof, public = prove(dense, witness)
        assert all_accept_and_refuse_another_input(key.vk, public, proof)
    write_zkey(tmp_path / "k.zkey", key)
    write_witness(tmp_path / "w.wtns", witness)
    theirs = judges.snarkjs("prove", zkey=tmp_path / "k.zkey", wtns=tmp_path / "w.wtns")
    assert judges.pymcl_verify(vk_document(key.vk), theirs["public"], theirs["proof"])


@pytest.mark.parametrize("with_system", [False, True])
def test_an_unsatisfied_witness_is_refused(shared_data, with_system):
    folder = shared_data / "groth16" / "chain"
    key, witness = read_zkey(folder / "chain.zkey"), read_witness(folder / "chain.wtns")
    witness = witness.copy()
    witness[100, 0] ^= 1
    system = read_r1cs(folder / "chain.r1cs") if with_system else None
    expected = r"constraint \d+ of 250 does not hold" if with_system else "does not satisfy the key's circuit"
    with pytest.raises(BadInput, match=expected):
        prove(key, witness, system=system)


def test_a_witness_of_another_circuit_and_impossible_randomness_are_refused(shared_data):
    folder = shared_data / "groth16"
    key, witness = read_zkey(folder / "chain" / "chain.zkey"), read_witness(folder / "chain" / "chain.wtns")
    with pytest.raises(BadInput, match="243 values for a circuit of 253 wires"):
        prove(key, read_witness(folder / "poseidon2" / "poseidon2.wtns"))
    for r in (-1, R):
        with pytest.raises(BadInput, match="is no scalar"):
            prove(key, witness, r=r)


def test_a_system_of_another_circuit_is_refused(shared_data):
    folder = shared_data / "groth16"
    key, witness = read_zkey(folder / "chain" / "chain.zkey"), read_witness(folder / "chain" / "chain.wtns")
    with pytest.raises(BadInput, match=r"243 wires.*253 wires.*do not belong together"):
        prove(key, witness, system=read_r1cs(folder / "poseidon2" / "poseidon2.r1cs"))


def test_progress_names_the_stages_in_order(shared_data):
    folder = shared_data / "groth16" / "chain"
    seen = []
    prove(read_zkey(folder / "chain.zkey"), read_witness(folder / "chain.wtns"), progress=lambda *x: seen.append(x))
    assert [step for step, _ in seen] == [
        "synthesis", "ntt_h", "h_msm", "prep_msm", "batch_add", "tail_msm", "b_g2_msm", "epilogue", "verification",
        "done",
    ]  # fmt: skip
    assert seen[-1][1] == 1.0

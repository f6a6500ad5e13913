"""setup, prove and verify from the command line on real circuits, judged by unrelated software."""

import json

import pytest

from tests.cli.command import cuzklab
from tests.prover import judges


def files_of(folder, name):
    return folder / "groth16" / name / f"{name}.zkey", folder / "groth16" / name / f"{name}.wtns"


@pytest.mark.parametrize("name", ["chain", "poseidon2", "merkle16"])
def test_a_proof_with_a_key_of_snarkjs_is_accepted_by_all(shared_data, tmp_path, name):
    key, witness = files_of(shared_data, name)
    proof, public = tmp_path / "proof.json", tmp_path / "public.json"
    done = cuzklab("prove", "--key", key, "--witness", witness, "-o", proof, "--public", public)
    assert done.status == 0, done.err
    assert json.loads(public.read_text()) == json.loads((key.parent / "public.json").read_text())

    vk = key.parent / "verification_key.json"
    for checked_with in (key, vk):
        assert cuzklab("verify", "--key", checked_with, "--public", public, "--proof", proof).status == 0
    documents = [json.loads(path.read_text()) for path in (vk, public, proof)]
    assert judges.snarkjs_verify(*documents)
    assert judges.pymcl_verify(*documents)

    documents[1][0] = str(int(documents[1][0]) + 1)
    public.write_text(json.dumps(documents[1]))
    refused = cuzklab("verify", "--key", vk, "--public", public, "--proof", proof, "--json")
    assert (refused.status, refused.json["valid"], refused.json["why"]) == (1, False, "equation")
    assert not judges.snarkjs_verify(*documents)
    assert not judges.pymcl_verify(*documents)


def test_the_same_randomness_gives_the_same_bytes_whatever_the_threads(shared_data, tmp_path):
    key, witness = files_of(shared_data, "poseidon2")
    for threads in (1, 2, 3):
        out = tmp_path / f"{threads}.json"
        arguments = ("prove", "--key", key, "--witness", witness, "-o", out, "--r", 5, "--s", 7, "--threads", threads)
        assert cuzklab(*arguments).status == 0
    assert len({path.read_bytes() for path in tmp_path.glob("*.json")}) == 1


def test_a_circuit_of_our_own_with_a_test_key(tmp_path):
    circuit, key = tmp_path / "c", tmp_path / "key.zkey"
    made = cuzklab("circuit", "make", "porep-shaped", "--log2-domain", 11, "-o", circuit, "--json")
    assert made.status == 0
    assert made.json["domain"] == 2**11
    done = cuzklab("setup", "--r1cs", circuit / "circuit.r1cs", "--seed", "x", "-o", key)
    assert done.status == 0
    assert "TEST KEY" in done.err
    proof, public = tmp_path / "proof.json", tmp_path / "public.json"
    arguments = ("--key", key, "--witness", circuit / "circuit.wtns", "-o", proof, "--public", public)
    done = cuzklab("prove", *arguments)
    assert done.status == 0
    assert "TEST KEY" in done.err
    assert cuzklab("verify", "--key", key, "--public", public, "--proof", proof).status == 0


def test_an_unsatisfied_witness_writes_nothing_and_names_the_constraint(shared_data, tmp_path):
    from cuzklab.prover.files import read_witness, write_witness

    key, witness = files_of(shared_data, "chain")
    values = read_witness(witness).copy()
    values[100, 0] ^= 1
    bad, out = tmp_path / "bad.wtns", tmp_path / "proof.json"
    write_witness(bad, values)
    done = cuzklab("prove", "--key", key, "--witness", bad, "-o", out)
    assert done.status == 2
    assert "does not satisfy" in done.err
    done = cuzklab("prove", "--key", key, "--witness", bad, "-o", out, "--r1cs", key.with_suffix(".r1cs"))
    assert done.status == 2
    assert "constraint" in done.err
    assert not out.exists()


@pytest.mark.parametrize("option", ["--r", "--s"])
@pytest.mark.parametrize("value", ["-1", "1.5", "x", "9" * 99])
def test_what_is_no_scalar_is_refused(shared_data, tmp_path, option, value):
    key, witness = files_of(shared_data, "chain")
    done = cuzklab("prove", "--key", key, "--witness", witness, "-o", tmp_path / "p.json", f"{option}={value}")
    assert done.status == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["--key", "--witness"])
def test_a_missing_file_is_named(shared_data, tmp_path, missing):
    key, witness = files_of(shared_data, "chain")
    files = {"--key": key, "--witness": witness} | {missing: tmp_path / "nowhere"}
    done = cuzklab("prove", *(part for pair in files.items() for part in pair), "-o", tmp_path / "p.json")
    assert done.status == 2
    assert "nowhere" in done.err

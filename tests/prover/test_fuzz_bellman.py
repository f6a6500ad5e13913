"""Damaged keys and proofs of the bellman dialect, and files of many proofs: readers succeed or raise `BadInput`, take
no memory that the file does not justify, and accept no point that blst or arkworks refuses."""

import json
import os
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from py_arkworks_bls12381 import G1Point, G2Point
from py_ecc.fields import optimized_bls12_381_FQ

from cuzklab.backends import peers
from cuzklab.errors import BadInput
from cuzklab.prover.files import (
    NoProof,
    proof_from_bytes,
    proof_to_bytes,
    read_bellman_vk,
    read_key_or_vk,
    read_params,
    read_proof_lines,
    read_publics,
    write_bellman_vk,
    write_params,
    write_proof_lines,
)
from cuzklab.prover.files.proof_json import proof_document, public_document
from cuzklab.prover.files.vk_json import vk_document
from cuzklab.prover.files.zkey import open_zkey
from cuzklab.prover.keycheck import check_key
from cuzklab.prover.keys import dense_bellman_key, open_key
from cuzklab.prover.porep_shaped import porep_shaped
from cuzklab.prover.prove import prove
from cuzklab.prover.setup import bellman_setup
from cuzklab.prover.streaming import read
from cuzklab.prover.verify import verify
from tests.prover import judges
from tests.prover.test_fuzz_files import EXTREMES, damage, survives

# Few every day; `CUZKLAB_EXAMPLES=2000` for a long night.
EXAMPLES = int(os.environ.get("CUZKLAB_EXAMPLES", "15"))
MODULUS = optimized_bls12_381_FQ.field_modulus
bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A circuit, its key's files and a proof."""
    folder = tmp_path_factory.mktemp("bellman")
    system, witness = porep_shaped(248, seed=1)
    key = bellman_setup(system, 1)
    write_params(folder / "k.params", key)
    write_bellman_vk(folder / "k.vk", key)
    proof, public = prove(dense_bellman_key(key, system), witness)
    write_proof_lines(folder / "p.jsonl", [(proof, public)] * 3)
    return folder, system, key, proof, public


def read_all_of_params(path) -> None:
    key = read_params(path)
    for name in ("h", "l", "a", "b_g1", "b_g2"):
        points = getattr(key, name)
        read(points, 0, len(points), threads=1)


READERS = {
    "k.params": (read_all_of_params, read_bellman_vk, read_key_or_vk),
    "k.vk": (read_bellman_vk, read_key_or_vk, read_params),
    "p.jsonl": (lambda path: list(read_proof_lines(path)), read_publics),
}


@pytest.mark.parametrize("name", READERS)
@bounded
@given(data=st.data())
def test_damaged(made, tmp_path, name, data):
    readers = READERS[name] if name != "k.params" else (*READERS[name], lambda path: open_key(path, made[1]))
    survives(readers, tmp_path / f"damaged.{name[2:]}", data.draw(damage((made[0] / name).read_bytes())))


@bounded
@given(data=st.data())
def test_counts_of_arrays(made, tmp_path, data):
    """Any of the counts replaced, big end first; nothing is allocated for points that are not there."""
    raw = (made[0] / "k.params").read_bytes()
    places, at = [], 864
    for width in (96, 96, 96, 96, 96, 192):
        places.append(at)
        at += 4 + width * struct.unpack_from(">I", raw, at)[0]
    place = data.draw(st.sampled_from(places))
    count = struct.unpack_from(">I", raw, place)[0]
    new = data.draw(st.sampled_from([*EXTREMES, count - 1, count + 1]))
    survives(READERS["k.params"], tmp_path / "k.params", raw[:place] + struct.pack(">I", new) + raw[place + 4 :])


@bounded
@given(rest=st.binary(max_size=1200))
def test_noise(tmp_path, rest):
    for readers in READERS.values():
        survives(readers, tmp_path / "noise.params", rest)
    survives(READERS["k.vk"], tmp_path / "noise.vk", bytes(868) + rest)


def test_points_that_are_none_are_told_where_the_roots_are_looked_at(shared_data, tmp_path):
    """The check of the roots comes before that of all points, and must not stumble."""
    source = shared_data / "groth16" / "chain" / "chain.zkey"
    key = open_zkey(source)
    raw = source.read_bytes()
    for name, width in (("b_g2", 192), ("h", 96)):
        array = key.points[name]
        first = array.section.offset + width * int(np.flatnonzero(array.points.any(axis=1))[0])
        for spoilt in (bytes([raw[first] ^ 1]), b"\xff" * 48):
            (tmp_path / "k.zkey").write_bytes(raw[:first] + spoilt + raw[first + len(spoilt) :])
            with pytest.raises(BadInput, match="points of B are not those"):
                open_key(tmp_path / "k.zkey")


@bounded
@given(data=st.data())
def test_no_point_is_accepted_that_blst_and_arkworks_refuse(made, tmp_path, data):
    """One point of a key changed: if our check passes it, so do both of them, each with its own reader."""
    folder, _, key, _, _ = made
    raw = bytearray((folder / "k.params").read_bytes())
    start = data.draw(st.sampled_from([0, 192, 868, 868 + 4 + 96 * len(key.vk.ic)]))
    width = 192 if start == 192 else 96
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.sampled_from([0, width // 2]) | st.integers(0, width - 1))
        raw[start + at] = data.draw(st.integers(0, 255))
    path = tmp_path / "k.params"
    path.write_bytes(raw)
    numbers = [int.from_bytes(raw[start + at : start + at + 48], "big") for at in range(0, width, 48)]
    if width == 192:
        numbers = [numbers[1], numbers[0], numbers[3], numbers[2]]
    try:
        check_key(path, remember=False)
    except BadInput:
        return
    plain = b"".join(number.to_bytes(48, "little") for number in numbers)
    (G2Point if width == 192 else G1Point).from_xy_bytes_le(plain)  # raises where it refuses
    scaled = [(n << 384) % MODULUS for n in numbers]
    limbs = np.frombuffer(b"".join(n.to_bytes(48, "little") for n in scaled), np.uint64)
    assert peers.blst_on_curve(limbs) and peers.blst_in_subgroup(limbs)


@bounded
@given(data=st.data())
def test_no_damaged_proof_is_accepted_that_mcl_refuses(made, data):
    _, _, key, proof, public = made
    raw = bytearray(proof_to_bytes(proof))
    at = data.draw(st.sampled_from([0, 48, 144]) | st.integers(0, 191))
    raw[at] = data.draw(st.sampled_from([raw[at], raw[at] ^ 0x20, raw[at] ^ 0x40]) | st.integers(0, 255))
    try:
        found = proof_from_bytes(bytes(raw))
    except NoProof:
        return
    ours = verify(key.vk, public, found).valid
    assert ours == judges.pymcl_verify(vk_document(key.vk), public_document(public), proof_document(found))
    assert ours == (bytes(raw) == proof_to_bytes(proof)), "a proof of this scheme can be changed, but not byte by byte"


@bounded
@given(data=st.data())
def test_lines_with_one_value_replaced_are_judged_as_mcl_judges_them(made, tmp_path, data):
    """The JSON form: what is accepted is accepted by mcl, and never with another public value."""
    _, _, key, proof, public = made
    document = {"proof": proof_document(proof), "publicSignals": public_document(public)}
    strange = ["0", "1", "01", "-1", "+1", " 1", "1 ", "0x1", "1e0", "", "1" * 200]
    value = data.draw(st.sampled_from(strange) | st.text(max_size=4))
    point = data.draw(st.sampled_from(["pi_a", "pi_c", "publicSignals"]))
    place = document["publicSignals"] if point == "publicSignals" else document["proof"][point]
    place[data.draw(st.integers(0, len(place) - 1))] = value
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(document))
    try:
        ((_, found, values),) = read_proof_lines(path)
    except BadInput as error:
        assert "line 1" in str(error) and "\n" not in str(error)
        return
    ours = verify(key.vk, values, found).valid
    assert ours == judges.pymcl_verify(vk_document(key.vk), public_document(values), proof_document(found))


def test_a_damaged_key_that_still_opens_makes_no_proof(made, tmp_path):
    """A point of h replaced by another valid one: nothing in the file tells, the proof does, and it does not leave."""
    folder, system, key, _, _ = made
    witness = porep_shaped(248, seed=1)[1]
    raw = bytearray((folder / "k.params").read_bytes())
    first_h = 868 + 96 * len(key.vk.ic) + 4
    raw[first_h + 96 * 20 : first_h + 96 * 21] = raw[first_h : first_h + 96]
    (tmp_path / "k.params").write_bytes(raw)
    with pytest.raises(BadInput, match="is not valid"):
        prove(open_key(tmp_path / "k.params", system), witness, system=system)

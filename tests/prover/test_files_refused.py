"""Files that are wrong are refused on one line that says where and what to do."""

import json
import lzma
import struct
import sys

import numpy as np
import pytest

from cuzklab.backends.bls12_381 import FP_MODULUS, FR_MODULUS
from cuzklab.backends.limbs import ints_to_limbs
from cuzklab.errors import BadInput
from cuzklab.prover.files import (
    read_key_or_vk,
    read_proof,
    read_public,
    read_r1cs,
    read_vk,
    read_witness,
    read_zkey,
    read_zkey_vk,
    write_r1cs,
)
from cuzklab.prover.model import ConstraintSystem, SparseMatrix


def refused(read, path) -> str:
    with pytest.raises(BadInput) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    assert "; " in message
    return message


def patched(source, target, changes: dict[int, bytes]):
    data = bytearray(source.read_bytes())
    for at, new in changes.items():
        data[at : at + len(new)] = new
    target.write_bytes(data)
    return target


u32 = struct.Struct("<I").pack
R_BYTES = FR_MODULUS.to_bytes(32, "little")
BN254_R = 21888242871839275222246405745257275088548364400416034343698204186575808495617
BN254_Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583

# Offsets in the files of `chain`: r1cs sections 2, 1, 3 at 24, 39036, 39112; wtns 1, 2 at 24, 76; zkey header at 40,
# IC at 1016, coefficients at 1316.
WRONG = [
    ("r1cs", {39040: BN254_R.to_bytes(32, "little")}, "section 1 (header) at offset 39036: made for the scalar field"),
    ("r1cs", {39040: BN254_R.to_bytes(32, "little")}, "BN254"),
    ("r1cs", {39040: bytes(31) + b"\x01"}, "an unknown field with a modulus of 249 bits"),
    ("r1cs", {39040: FP_MODULUS.to_bytes(48, "little")[:32]}, "an unknown field with a modulus of 255 bits"),
    ("r1cs", {39036: u32(31)}, "unknown field"),
    ("r1cs", {39036: u32(2**32 - 1)}, "a field modulus of 4294967295 bytes, 60 are left"),
    ("r1cs", {39072: u32(2**32 - 1)}, "section 3 (labels) at offset 39112: 2024 bytes where 4294967295 wires make"),
    ("r1cs", {39076: u32(252)}, "fewer than the 255 that are one, outputs and inputs"),
    ("r1cs", {39096: u32(2**32 - 1)}, "beyond 2^28; split the circuit"),
    ("r1cs", {39096: u32(2**27)}, "section 2 (constraints) at offset 24: 39000 bytes cannot hold 134217728"),
    ("r1cs", {39096: u32(249)}, "linear combinations end at byte 38844 of 39000"),
    ("r1cs", {39096: u32(251)}, "of 251"),
    ("r1cs", {24: u32(2**32 - 1)}, "in constraint 0 of 250"),
    ("r1cs", {28: u32(253)}, "at offset 28: constraint 0, A: wire 253 of 253"),
    (
        "r1cs",
        {32: R_BYTES},
        "at offset 28: constraint 0, A: a coefficient that is not below r",
    ),
    ("r1cs", {4: u32(2)}, "version 2 at offset 4, only 1 is known"),
    ("r1cs", {8: u32(2**31)}, "2147483648 sections announced at offset 8"),
    ("r1cs", {8: u32(2)}, "2036 bytes behind the last section, offset 39100"),
    ("r1cs", {8: u32(4)}, "section 4 of 4 missing at offset 41136"),
    ("r1cs", {16: b"\xff" * 8}, "section 2 (constraints) at offset 24: announces 18446744073709551615 bytes, 41112"),
    ("r1cs", {39024: u32(2)}, "section 2 (constraints) at offset 39036: occurs twice"),
    ("r1cs", {39024: u32(77)}, "section 1 (header) is missing"),
    ("wtns", {28: BN254_R.to_bytes(32, "little")}, "section 1 (header) at offset 24: made for the scalar field of BN2"),
    ("wtns", {60: u32(2**32 - 1)}, "section 2 (values) at offset 76: 8096 bytes where 4294967295 values make"),
    (
        "wtns",
        {76 + 32 * 5: R_BYTES},
        "at offset 236: value 5 is not below r; compute the witness",
    ),
    ("wtns", {76: b"\x02"}, "value 0, the constant one, is not 1"),
    ("zkey", {24: u32(2)}, "section 1 (protocol) at offset 24: a key for PLONK, not Groth16"),
    ("zkey", {24: u32(10)}, "FFLONK"),
    ("zkey", {24: u32(3)}, "protocol 3"),
    ("zkey", {44: BN254_Q.to_bytes(48, "little")}, "section 2 (header) at offset 40: made for the coordinate field of"),
    ("zkey", {128: u32(2**32 - 1)}, "section 5 (A) at offset 83064: 24288 bytes where 4294967295 points make"),
    ("zkey", {132: u32(253)}, "at offset 128: 253 public wires of 253"),
    ("zkey", {132: u32(3)}, "section 3 (IC) at offset 1016: 288 bytes where 4 points make 384"),
    ("zkey", {136: u32(0)}, "at offset 136: a domain of 0"),
    ("zkey", {136: u32(255)}, "a domain of 255, not a power of two"),
    ("zkey", {136: u32(2**29)}, "a domain of 536870912, not a power of two up to 2^28"),
    ("zkey", {136: u32(2**28)}, "section 9 (H) at offset 34464: 24576 bytes where 268435456 points make"),
    ("zkey", {136: u32(2)}, "a domain of 2 has no room for 3 rows"),
    ("zkey", {140: b"\xff" * 48}, "section 2 (header) at offset 140: alpha_g1 has a coordinate that is not below"),
    ("zkey", {236 + 48: b"\xff" * 48}, "section 2 (header) at offset 236: beta_g1 has a coordinate"),
    ("zkey", {1016 + 96: b"\xff" * 48}, "section 3 (IC) at offset 1112: point 1 has a coordinate that is not below"),
    ("zkey", {1316: u32(2**32 - 1)}, "section 4 (coefficients) at offset 1316: 33136 bytes where a count and"),
    ("zkey", {1320: u32(2)}, "at offset 1320: record 0: matrix 2, there are 2"),
    ("zkey", {1324 + 44: u32(256)}, "at offset 1364: record 1: row 256, there are 256"),
    ("zkey", {1328 + 88: u32(253)}, "at offset 1408: record 2: wire 253, there are 253"),
    ("zkey", {1332: b"\xff" * 32}, "at offset 1320: record 0: a coefficient that is not below r"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), WRONG)
def test_wrong_files_are_refused_with_the_place(shared_data, tmp_path, kind, changes, message):
    read = {"r1cs": read_r1cs, "wtns": read_witness, "zkey": read_zkey}[kind]
    path = patched(shared_data / "groth16" / "chain" / f"chain.{kind}", tmp_path / f"bad.{kind}", changes)
    assert message in refused(read, path)


def test_the_same_wire_twice_in_one_linear_combination(tmp_path):
    one = ints_to_limbs([1, 1, 1], 4)
    twice = SparseMatrix(np.array([0, 1, 3]), np.array([2, 1, 1], np.uint32), one)
    empty = SparseMatrix(np.array([0, 0, 0]), np.empty(0, np.uint32), one[:0])
    write_r1cs(tmp_path / "x.r1cs", ConstraintSystem(3, 0, 0, twice, empty, empty))
    assert "constraint 1, A: wire 1 twice" in refused(read_r1cs, tmp_path / "x.r1cs")
    # Unordered, but each once: allowed, and kept in order.
    unordered = SparseMatrix(np.array([0, 1, 3]), np.array([2, 2, 1], np.uint32), one)
    write_r1cs(tmp_path / "x.r1cs", ConstraintSystem(3, 0, 0, unordered, empty, empty))
    assert read_r1cs(tmp_path / "x.r1cs").a.wire.tolist() == [2, 2, 1]


def test_unknown_sections_are_passed_over(shared_data, tmp_path):
    path = shared_data / "groth16" / "chain" / "chain.r1cs"
    data = path.read_bytes()
    odd = struct.pack("<IQ", 999, 3) + b"abc"
    (tmp_path / "x.r1cs").write_bytes(data[:8] + u32(5) + odd + odd + data[12:])
    # Three odd bytes twice also move every body off its alignment.
    assert read_r1cs(tmp_path / "x.r1cs").a.value.tolist() == read_r1cs(path).a.value.tolist()


def test_custom_gates_are_refused(shared_data, tmp_path):
    data = (shared_data / "groth16" / "chain" / "chain.r1cs").read_bytes()
    (tmp_path / "x.r1cs").write_bytes(data[:8] + u32(4) + data[12:] + struct.pack("<IQI", 4, 4, 1))
    assert "PLONK" in refused(read_r1cs, tmp_path / "x.r1cs")


def test_paths_that_are_no_files(tmp_path):
    for read in (read_r1cs, read_witness, read_zkey, read_proof, read_public, read_vk, read_key_or_vk, read_zkey_vk):
        assert "No such file" in refused(read, tmp_path / "absent")
        assert "not a regular file" in refused(read, tmp_path)
    with pytest.raises(BadInput) as caught:
        read_zkey(tmp_path / "a\nb")
    assert "\n" not in str(caught.value)


def test_a_file_of_another_kind_is_named(shared_data, tmp_path):
    folder = shared_data / "groth16" / "chain"
    assert "not a .zkey file (begins with b'r1cs')" in refused(read_zkey, folder / "chain.r1cs")
    (tmp_path / "empty").write_bytes(b"")
    assert "not a .wtns file" in refused(read_witness, tmp_path / "empty")
    (tmp_path / "short").write_bytes(b"wtns\x02")
    assert "too short" in refused(read_witness, tmp_path / "short")


def test_xz_is_refused_where_it_cannot_be(tmp_path, shared_data):
    chain = (shared_data / "groth16" / "chain" / "chain.r1cs").read_bytes()
    packed = lzma.compress(chain)
    path = tmp_path / "x.xz"
    path.write_bytes(packed)
    assert "xz -dk" in refused(read_zkey, path)
    path.write_bytes(packed[:-40])
    assert "end early" in refused(read_r1cs, path)
    path.write_bytes(packed[:100] + b"\x00" + packed[101:])
    assert "xz: " in refused(read_r1cs, path)
    path.write_bytes(packed + b"more")
    assert "more data behind" in refused(read_r1cs, path)
    path.write_bytes(lzma.compress(bytes(1 << 22)))
    assert "hold no .r1cs file" in refused(read_r1cs, path)


def test_unpacking_stops_at_its_limits(tmp_path, monkeypatch):
    path = tmp_path / "bomb.xz"
    path.write_bytes(lzma.compress(b"r1cs" + bytes(1 << 24)))
    monkeypatch.setattr("cuzklab.prover.files.container.MAXIMUM_UNPACKED_BYTES", 1 << 20)
    assert "bytes unpacked" in refused(read_r1cs, path)
    monkeypatch.setattr("cuzklab.prover.files.container._XZ_DECODER_BYTES", 1 << 20)
    assert "Memory usage limit" in refused(read_r1cs, path)


JSON_WRONG = [
    ("proof", "groth16", "plonk", "protocol: 'plonk', not groth16"),
    ("proof", "bls12381", "bn128", "curve: 'bn128' (BN254), this program works over bls12381"),
    ("proof", '"1"\n ],\n "pi_b"', '"2"\n ],\n "pi_b"', "pi_a: the third coordinate is not 1"),
    ("proof", '"pi_a": [', '"pi_a": ["1",', "pi_a: a list of 4 where a list of 3 is expected"),
    ("proof", '"pi_c"', '"pi_d"', "pi_c: is missing"),
    ("proof", '"pi_c"', '"pi_a"', "a name occurs twice"),
    ("proof", '"351581', '"0351581', "pi_a[0]: '0351581188906"),
    ("proof", '"351581', '"+351581', "not a canonical decimal"),
    ("proof", '"351581', '"٣351581', "not a canonical decimal"),
    ("proof", '"351581', '"9351581', "is not below the modulus"),
    ("proof", '"351581', '"' + "9" * 5000 + "351581", "is not below the modulus"),
    ("proof", '"3515811889063102870255001692792276037953805221583055062095257933963600014196264334448150459635464'
     '086395803448975630"', "9" * 5000, "a bare number of 5000 digits"),
    ("proof", '"1"\n ],\n "pi_b"', '1\n ],\n "pi_b"', "pi_a[2]: 1 where a decimal string is expected"),
    ("proof", '"1"\n ],\n "pi_b"', '1.5\n ],\n "pi_b"', "only whole numbers"),
    ("proof", '"1"\n ],\n "pi_b"', 'NaN\n ],\n "pi_b"', "only whole numbers"),
    ("proof", "{", "{{", "not JSON"),
    ("proof", "{", '{"x": "' + "x" * (1 << 17) + '",', "larger than 65536 bytes"),
    ("public", '"7"', '"-7"', "[1]: '-7' is not a canonical decimal number"),
    ("public", '"7"', '""', "[1]: '' is not a canonical decimal number"),
    ("public", '"7"', '"' + str(1 << 256) + '"', "is not below 2^256"),
    ("public", '"7"', "true", "[1]: True where a decimal string is expected"),
    ("verification_key", '"nPublic": 2', '"nPublic": 3', "nPublic: 3, but IC has 3 points"),
    ("verification_key", '"nPublic": 2', '"nPublic": "2"', "nPublic: '2', but"),
    ("verification_key", "bls12381", "bn128", "BN254"),
    ("verification_key", '"IC": [', '"IC": [[],', "nPublic: 2, but IC has 4 points"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "message"), JSON_WRONG)
def test_wrong_json_is_refused_with_the_place(shared_data, tmp_path, name, old, new, message):
    text = (shared_data / "groth16" / "chain" / f"{name}.json").read_text()
    assert old in text
    path = tmp_path / f"{name}.json"
    path.write_text(text.replace(old, new, 1))
    read = {"proof": read_proof, "public": read_public, "verification_key": read_key_or_vk}[name]
    assert message in refused(read, path)


def test_a_verification_key_has_a_point_for_the_constant_one(shared_data, tmp_path):
    root = json.loads((shared_data / "groth16" / "chain" / "verification_key.json").read_text())
    (tmp_path / "vk.json").write_text(json.dumps(root | {"IC": [], "nPublic": -1}))
    assert "nPublic: -1, but IC has 0 points" in refused(read_key_or_vk, tmp_path / "vk.json")


def test_json_nested_deeply(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("[" * 60_000 + "]" * 4_000)
    before = sys.getrecursionlimit()
    # Other tests may have raised the limit.
    sys.setrecursionlimit(1_000)
    try:
        assert "nested too deeply" in refused(read_proof, path)
    finally:
        sys.setrecursionlimit(before)


def test_json_that_is_not_text(tmp_path):
    path = tmp_path / "x.json"
    for raw in (b"\xff\xfe", b"", b"[]", b"null", b'{"protocol": []}', b'"\x00"'):
        path.write_bytes(raw)
        refused(read_proof, path)
    path.write_bytes(b"[]")
    assert read_public(path).shape == (0, 4)

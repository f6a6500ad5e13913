"""Compressed proofs, 192 bytes, against arkworks and py_ecc; nothing is taken that either of them refuses."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py_arkworks_bls12381 import G1Point, G2Point
from py_ecc.bls import point_compression
from py_ecc.bls.typing import G1Compressed, G2Compressed
from py_ecc.optimized_bls12_381 import is_inf

from cuzklab.backends.bls12_381 import FP_MODULUS
from cuzklab.backends.limbs import coordinates_to_limbs, limbs_to_coordinates
from cuzklab.errors import BadInput
from cuzklab.prover.files import NoProof, proof_from_bytes, proof_to_bytes, read_proof_bytes, write_proof_bytes
from cuzklab.prover.model import Proof
from cuzklab.prover.verify import verify
from tests.backends.judges import known_points
from tests.prover.special_points import cofactor_point_g1, cofactor_point_g2

PLACES = {"a": slice(0, 48), "b": slice(48, 144), "c": slice(144, 192)}


@pytest.fixture(scope="module")
def proofs() -> list[Proof]:
    (a, _), (b, _), (c, _) = known_points("g1", 6, 1), known_points("g2", 6, 2), known_points("g1", 6, 3)
    return [Proof(*points) for points in zip(a, b, c, strict=True)]


def same(one: Proof, other: Proof) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in "abc")


def test_arkworks_compresses_the_same_and_every_proof_comes_back(proofs):
    for proof in proofs:
        raw = proof_to_bytes(proof)
        assert len(raw) == 192
        for name, place in PLACES.items():
            kind = G2Point if name == "b" else G1Point
            plain = b"".join(x.to_bytes(48, "little") for x in limbs_to_coordinates(getattr(proof, name)))
            assert bytes(kind.from_xy_bytes_le(plain).to_compressed_bytes()) == raw[place]
        assert same(proof_from_bytes(raw), proof)


def py_ecc_points(raw: bytes) -> list[tuple[int, ...]] | None:
    """x and y of the three points by py_ecc; None where it refuses one. It does not look at subgroups."""
    whole = [int.from_bytes(raw[at : at + 48], "big") for at in range(0, 192, 48)]
    found = []
    try:
        for numbers in (whole[:1], whole[1:3], whole[3:]):
            if len(numbers) == 1:
                point = point_compression.decompress_G1(G1Compressed(numbers[0]))
            else:
                point = point_compression.decompress_G2(G2Compressed(tuple(numbers)))
            if is_inf(point):
                return None  # bellman's proofs hold no infinity
            x, y = (it / point[2] for it in point[:2])
            found.append((x.n, y.n) if len(numbers) == 1 else (*map(int, x.coeffs), *map(int, y.coeffs)))
    except ValueError:
        return None
    return found


def test_py_ecc_reads_the_same_points(proofs):
    for proof in proofs[:2]:
        found = py_ecc_points(proof_to_bytes(proof))
        assert found == [limbs_to_coordinates(getattr(proof, name)) for name in "abc"]


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_taken_as_py_ecc_takes_them(proofs, data):
    raw = bytearray(proof_to_bytes(data.draw(st.sampled_from(proofs))))
    for _ in range(data.draw(st.integers(1, 2))):
        # The first bytes of the points carry the flags.
        at = data.draw(st.sampled_from([0, 48, 96, 144]) | st.integers(0, 191))
        raw[at] = data.draw(
            st.sampled_from([raw[at] ^ 0x80, raw[at] ^ 0x40, raw[at] ^ 0x20, 0xFF, 0]) | st.integers(0, 255)
        )
    judged = py_ecc_points(bytes(raw))
    try:
        proof = proof_from_bytes(bytes(raw))
    except NoProof:
        assert judged is None
        return
    assert judged == [limbs_to_coordinates(getattr(proof, name)) for name in "abc"]
    assert proof_to_bytes(proof) == bytes(raw)


@pytest.mark.parametrize("name", PLACES)
def test_each_rule_for_each_point(proofs, name):
    raw, place = proof_to_bytes(proofs[0]), PLACES[name]

    def refused(change) -> str:
        point = bytearray(raw[place])
        change(point)
        with pytest.raises(NoProof, match=f"point {name.upper()}") as caught:
            proof_from_bytes(raw[: place.start] + bytes(point) + raw[place.stop :])
        return str(caught.value)

    def flags(value: int):
        return lambda point: point.__setitem__(0, point[0] & 0x1F | value)

    assert "not marked as compressed" in refused(flags(0x00))
    assert "infinity" in refused(flags(0xC0))
    assert "infinity" in refused(lambda point: point.__setitem__(slice(None), b"\xc0" + bytes(len(point) - 1)))
    modulus = FP_MODULUS.to_bytes(48, "big")
    for at in range(0, place.stop - place.start, 48):
        change = bytes([modulus[0] | (0x80 if at == 0 else 0)]) + modulus[1:]
        assert "below the modulus" in refused(
            lambda point, at=at, change=change: point.__setitem__(slice(at, at + 48), change)
        )
    # The other sign is the other point.
    flipped = bytearray(raw)
    flipped[place.start] ^= 0x20
    found = limbs_to_coordinates(getattr(proof_from_bytes(bytes(flipped)), name))
    numbers = limbs_to_coordinates(getattr(proofs[0], name))
    half = len(numbers) // 2
    assert found[:half] == numbers[:half]
    assert found[half:] == tuple(-y % FP_MODULUS for y in numbers[half:])


def test_an_x_of_no_point_and_points_outside_the_subgroup(proofs, shared_data):
    raw = bytearray(proof_to_bytes(proofs[0]))
    seen = set()
    for last in range(12):
        raw[47] = last
        try:
            proof_from_bytes(bytes(raw))
            seen.add("a point")
        except NoProof as error:
            assert "no point on the curve" in str(error)
            seen.add("none")
    assert seen == {"a point", "none"}
    # Readable, and then refused by `verify`, as by arkworks.
    from cuzklab.prover.files import read_public, read_vk

    folder = shared_data / "groth16" / "chain"
    vk, public = read_vk(folder / "verification_key.json"), read_public(folder / "public.json")
    outside = {"a": coordinates_to_limbs(cofactor_point_g1()), "b": coordinates_to_limbs(cofactor_point_g2())}
    for name, point in outside.items():
        raw = proof_to_bytes(dataclasses.replace(proofs[0], **{name: point}))
        assert verify(vk, public, proof_from_bytes(raw)).why == "subgroup"
        with pytest.raises(ValueError):
            (G1Point if name == "a" else G2Point).from_compressed_bytes(raw[PLACES[name]])


def test_infinity_has_no_compressed_proof(proofs):
    with pytest.raises(ValueError, match="infinity"):
        proof_to_bytes(dataclasses.replace(proofs[0], c=np.zeros(12, np.uint64)))


@given(raw=st.binary(max_size=200) | st.binary(min_size=192, max_size=192))
def test_noise_is_refused(raw):
    with pytest.raises(NoProof):
        # A random x belongs to a point half the time; three flags and three of them seldom.
        proof_from_bytes(raw.ljust(192, b"\0") if len(raw) % 2 else raw[:191])


def test_files_of_many(proofs, tmp_path):
    path = tmp_path / "proofs.bin"
    write_proof_bytes(path, proofs)
    assert [same(proof_from_bytes(raw), proof) for raw, proof in zip(read_proof_bytes(path), proofs, strict=True)]
    for content in (b"", path.read_bytes()[:-1], path.read_bytes() + b"x"):
        path.write_bytes(content)
        with pytest.raises(BadInput, match="compressed proofs have 192"):
            read_proof_bytes(path)

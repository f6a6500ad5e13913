"""Keys with points where none should be are refused, with the place; keys that passed are remembered."""

import dataclasses
import json

import numpy as np
import pytest
from py_arkworks_bls12381 import G1Point, G2Point

from cuzklab.backends.limbs import coordinates_to_limbs, limbs_to_coordinates
from cuzklab.errors import BadInput
from cuzklab.prover.files import read_zkey, write_zkey
from cuzklab.prover.files.zkey import open_zkey
from cuzklab.prover.keycheck import check_key, records_folder, vouch_for
from tests.prover.special_points import cofactor_point_g1, cofactor_point_g2

# Of chain.zkey: name, section and its title, index, offset of the section's body, bytes of a point.
PLACES = [
    ("alpha_g1", 2, "header", 0, 140, 96),
    ("delta_g2", 2, "header", 0, 812, 192),
    ("ic", 3, "IC", 2, 1016, 96),
    ("a", 5, "A", 7, 83064, 96),
    ("b_g1", 6, "B in G1", 252, 107364, 96),
    ("b_g2", 7, "B in G2", 100, 131664, 192),
    ("l", 8, "C", 0, 59052, 96),
    ("h", 9, "H", 255, 34464, 96),
]


@pytest.fixture
def chain(shared_data):
    return shared_data / "groth16" / "chain" / "chain.zkey"


@pytest.fixture(autouse=True)
def records(tmp_path, monkeypatch):
    """A folder of the test's own; a whole cache of its own would have the kernels compiled again."""
    monkeypatch.setattr("cuzklab.prover.keycheck.records_folder", lambda: tmp_path / "records")
    return tmp_path / "records"


@pytest.mark.parametrize("name", ["chain", "poseidon2", "merkle16"])
def test_real_keys_pass(shared_data, name):
    path = shared_data / "groth16" / name / f"{name}.zkey"
    key = read_zkey(path)
    found = check_key(path, remember=False)
    assert found.points == 6 + key.public + 1 + 3 * key.wires + (key.wires - key.public - 1) + key.domain
    assert not found.remembered


def test_arkworks_agrees_on_every_point_of_a_key(chain):
    for array in open_zkey(chain).points.values():
        kind = G1Point if array.group == "g1" else G2Point
        for point in array.points:
            kind.from_xy_bytes_le(b"".join(n.to_bytes(48, "little") for n in limbs_to_coordinates(point)))


@pytest.mark.parametrize(("name", "section", "title", "index", "body", "width"), PLACES)
@pytest.mark.parametrize("fault", ["curve", "subgroup", "modulus"])
def test_bad_point_is_refused_with_its_place(chain, tmp_path, name, section, title, index, body, width, fault):
    data, at = bytearray(chain.read_bytes()), body + index * width
    assert bytes(data[at : at + width]) == open_zkey(chain).points[name].points[index].tobytes()
    if fault == "subgroup":
        outside = cofactor_point_g1() if width == 96 else cofactor_point_g2()
        data[at : at + width] = coordinates_to_limbs(outside).tobytes()
    elif fault == "curve":
        data[at] ^= 1
    else:
        data[at : at + 48] = b"\xff" * 48
    path = tmp_path / "bad.zkey"
    path.write_bytes(data)
    with pytest.raises(BadInput) as caught:
        check_key(path)
    what = "not in the subgroup of order r" if fault == "subgroup" else "not on the curve"
    point = name if section == 2 else f"point {index}"
    assert f"bad.zkey: section {section} ({title}) at offset {at}: {point} is {what}; " in str(caught.value)


def test_infinity_is_a_point_of_a_key(chain, tmp_path):
    data = bytearray(chain.read_bytes())
    data[83064 : 83064 + 96] = bytes(96)
    (tmp_path / "k.zkey").write_bytes(data)
    assert check_key(tmp_path / "k.zkey", remember=False).points == check_key(chain, remember=False).points


def test_a_key_that_passed_is_remembered_until_it_changes(chain, tmp_path):
    path = tmp_path / "k.zkey"
    path.write_bytes(chain.read_bytes())
    first, second = check_key(path), check_key(path)
    assert (first.remembered, second.remembered) == (False, True)
    assert first.sha256 == second.sha256
    data = bytearray(path.read_bytes())
    data[83064] ^= 1
    path.write_bytes(data)
    with pytest.raises(BadInput, match="not on the curve"):
        check_key(path)
    # Nothing is noted about a key that failed.
    with pytest.raises(BadInput, match="not on the curve"):
        check_key(path)


def test_a_key_of_our_own_is_vouched_for_until_it_changes(chain, tmp_path):
    path = tmp_path / "own.zkey"
    write_zkey(path, dataclasses.replace(read_zkey(chain), test_only=True))
    vouch_for(path)
    assert check_key(path).remembered
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert not check_key(path).remembered


def test_a_spoilt_record_is_not_believed(chain, records):
    check_key(chain)
    (record,) = records.glob("*.json")
    good = json.loads(record.read_text())
    for text in ("", "[]", "{", json.dumps(good | {"points": 1}), json.dumps(good | {"sha256": "0" * 64})):
        record.write_text(text)
        assert not check_key(chain).remembered
        assert json.loads(record.read_text()) == good


def test_records_lie_in_the_private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert records_folder() == tmp_path / "cuzklab" / "checked-keys"
    (tmp_path / "cuzklab").chmod(0o777)
    with pytest.raises(BadInput, match="others may write"):
        records_folder()


def test_progress_reaches_the_end(chain):
    calls = []
    found = check_key(chain, progress=lambda *call: calls.append(call), remember=False)
    size = chain.stat().st_size
    assert calls[0] == ("hash", 0, size)
    assert calls[-1] == ("points", found.points, found.points)
    for what in ("hash", "points"):
        done = [call[1] for call in calls if call[0] == what]
        assert done == sorted(done)


def test_threads_find_the_same_first_point(chain, tmp_path):
    data = bytearray(chain.read_bytes())
    outside = coordinates_to_limbs(cofactor_point_g1()).tobytes()
    for index in (200, 50):
        data[83064 + 96 * index : 83064 + 96 * (index + 1)] = outside
    (tmp_path / "k.zkey").write_bytes(data)
    for threads in (1, 2):
        with pytest.raises(BadInput, match="point 50 is not in the subgroup"):
            check_key(tmp_path / "k.zkey", threads=threads)
    assert np.array_equal(read_zkey(tmp_path / "k.zkey").a_query[50], np.frombuffer(outside, np.uint64))

"""Files of circom and snarkjs: read as they are, written so that snarkjs reads them."""

import dataclasses
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.backends.bls12_381 import FP_MODULUS, FR_MODULUS
from cuzklab.backends.limbs import coordinates_to_limbs, ints_to_limbs, limbs_to_coordinates, limbs_to_ints
from cuzklab.prover.files import (
    read_key_or_vk,
    read_proof,
    read_public,
    read_r1cs,
    read_r1cs_header,
    read_vk,
    read_witness,
    read_zkey,
    write_proof,
    write_public,
    write_r1cs,
    write_vk,
    write_witness,
    write_zkey,
)
from cuzklab.prover.files.fields import first_not_below
from cuzklab.prover.files.vk_json import vk_document
from cuzklab.prover.model import ConstraintSystem, Proof, SparseMatrix
from tests.prover import judges

# Wires, constraints, public values, domain: from the README beside the data.
CIRCUITS = {"chain": (253, 250, 2, 256), "poseidon2": (243, 240, 1, 256), "merkle16": (3890, 3872, 1, 4096)}


@pytest.fixture(params=CIRCUITS)
def circuit(shared_data, request):
    """A file of real data without its ending."""
    return shared_data / "groth16" / request.param / request.param


def sections(path) -> dict[int, bytes]:
    """An independent reading of the container, for tests."""
    data, found, at = path.read_bytes(), {}, 12
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        kind, length = struct.unpack_from("<IQ", data, at)
        found[kind] = data[at + 12 : at + 12 + length]
        at += 12 + length
    assert at == len(data)
    return found


def rows_times_witness(matrix: SparseMatrix, witness: list[int], unit: int = 1) -> list[int]:
    values, wires = limbs_to_ints(matrix.value), matrix.wire.tolist()
    bounds = matrix.row_start.tolist()
    return [
        sum(values[k] * unit * witness[wires[k]] for k in range(bounds[row], bounds[row + 1])) % FR_MODULUS
        for row in range(matrix.rows)
    ]


# -- reading --------------------------------------------------------------------------------------------------------


def test_r1cs_and_witness_fit_together(circuit):
    system, witness = read_r1cs(circuit.with_suffix(".r1cs")), read_witness(circuit.with_suffix(".wtns"))
    assert (system.wires, system.constraints, system.public, system.domain) == CIRCUITS[circuit.name]
    w = limbs_to_ints(witness)
    assert len(w) == system.wires
    a, b, c = (rows_times_witness(matrix, w) for matrix in (system.a, system.b, system.c))
    assert [x * y % FR_MODULUS for x, y in zip(a, b)] == c
    assert any(c)


def test_r1cs_is_what_snarkjs_reads(shared_data):
    path = shared_data / "groth16" / "poseidon2" / "poseidon2.r1cs"
    system, info = read_r1cs(path), judges.snarkjs("r1cs_info", r1cs=path)
    assert (info["wires"], info["outputs"], info["publicInputs"]) == (243, 1, 0)
    assert len(info["constraints"]) == system.constraints
    for which, matrix in enumerate((system.a, system.b, system.c)):
        values = limbs_to_ints(matrix.value)
        for row, constraint in enumerate(info["constraints"]):
            entries = range(matrix.row_start[row], matrix.row_start[row + 1])
            mine = {str(matrix.wire[k]): values[k] for k in entries}
            assert mine == {wire: int(value) for wire, value in constraint[which].items()}


def test_public_values_are_the_first_wires(circuit):
    witness, public = read_witness(circuit.with_suffix(".wtns")), read_public(circuit.parent / "public.json")
    assert np.array_equal(public, witness[1 : 1 + len(public)])
    assert len(public) == CIRCUITS[circuit.name][2]


def test_xz_is_read(shared_data):
    folder = shared_data / "groth16" / "sha256_1"
    system, witness = read_r1cs(folder / "sha256_1.r1cs.xz"), read_witness(folder / "sha256_1.wtns.xz")
    assert (system.constraints, system.wires, system.public, system.domain) == (31264, 31209, 256, 1 << 15)
    assert np.array_equal(witness[1:257], read_public(folder / "public.json"))
    assert read_r1cs_header(folder / "sha256_1.r1cs.xz").constraints == 31264


def test_zkey_has_the_matrices_of_the_circuit(circuit):
    key, system = read_zkey(circuit.with_suffix(".zkey")), read_r1cs(circuit.with_suffix(".r1cs"))
    wires, constraints, public, domain = CIRCUITS[circuit.name]
    assert (key.wires, key.public, key.domain, key.test_only) == (wires, public, domain, False)
    # The key holds v·R²: undone, the circuit's own numbers, and one row for each public wire.
    factor = pow(1 << 512, -1, FR_MODULUS)
    for mine, theirs, extra in ((key.a, system.a, public + 1), (key.b, system.b, 0)):
        count = theirs.nonzeros
        assert mine.nonzeros == count + extra
        assert mine.row_start[: constraints + 1].tolist() == theirs.row_start.tolist()
        assert np.array_equal(mine.wire[:count], theirs.wire)
        plain = [value * factor % FR_MODULUS for value in limbs_to_ints(mine.value)]
        assert plain == limbs_to_ints(theirs.value) + [1] * extra
        assert mine.wire[count:].tolist() == list(range(extra))
        assert mine.rows == constraints + public + 1


def test_zkey_points_are_views_of_the_file(circuit):
    path = circuit.with_suffix(".zkey")
    key, bodies = read_zkey(path), sections(path)
    queries = {3: key.vk.ic, 5: key.a_query, 6: key.b_g1_query, 7: key.b_g2_query, 8: key.l_query, 9: key.h_query}
    for kind, points in queries.items():
        assert points.tobytes() == bodies[kind]
        assert points.flags.c_contiguous
        assert points.flags.owndata == (kind == 3)
    assert not key.a_query.flags.writeable


def test_verification_key_of_zkey_and_json_agree(circuit):
    from_key = read_key_or_vk(circuit.with_suffix(".zkey"))
    from_json = read_key_or_vk(circuit.parent / "verification_key.json")
    assert vk_document(from_key) == vk_document(from_json)


def test_coefficients_in_any_order_are_sorted_by_row(shared_data, tmp_path):
    path = shared_data / "groth16" / "chain" / "chain.zkey"
    data = bytearray(path.read_bytes())
    record = np.dtype([("place", "<u4", 3), ("value", "<u8", 4)])
    view = np.frombuffer(data, record, (33136 - 4) // 44, 1316 + 4)
    view[:] = view[np.random.default_rng(1).permutation(len(view))]
    (tmp_path / "shuffled.zkey").write_bytes(data)
    shuffled, key = read_zkey(tmp_path / "shuffled.zkey"), read_zkey(path)
    for mine, theirs in ((shuffled.a, key.a), (shuffled.b, key.b)):
        assert mine.row_start.tolist() == theirs.row_start.tolist()
        for row in range(mine.rows):
            some = slice(mine.row_start[row], mine.row_start[row + 1])
            order, reference = np.argsort(mine.wire[some]), np.argsort(theirs.wire[some])
            assert np.array_equal(mine.wire[some][order], theirs.wire[some][reference])
            assert np.array_equal(mine.value[some][order], theirs.value[some][reference])


# -- writing --------------------------------------------------------------------------------------------------------


def test_r1cs_is_written_as_circom_writes_it(circuit, tmp_path):
    path, copy = circuit.with_suffix(".r1cs"), tmp_path / "copy.r1cs"
    header = read_r1cs_header(path)
    write_r1cs(copy, read_r1cs(path), private_inputs=header.private_inputs, labels=header.labels)
    # All but the label map, the last section, which the model does not keep.
    assert copy.read_bytes()[: -8 * header.wires] == path.read_bytes()[: -8 * header.wires]
    assert judges.snarkjs("check_witness", r1cs=copy, wtns=circuit.with_suffix(".wtns"))


def test_witness_is_written_byte_for_byte(circuit, tmp_path):
    write_witness(tmp_path / "w", read_witness(circuit.with_suffix(".wtns")))
    assert (tmp_path / "w").read_bytes() == circuit.with_suffix(".wtns").read_bytes()


def test_json_is_written_byte_for_byte(circuit, tmp_path):
    for name, read, write in (("proof", read_proof, write_proof), ("public", read_public, write_public)):
        path = circuit.parent / f"{name}.json"
        write(tmp_path / name, read(path))
        assert (tmp_path / name).read_bytes() == path.read_bytes()


def test_verification_key_survives(circuit, tmp_path):
    vk = read_vk(circuit.parent / "verification_key.json")
    write_vk(tmp_path / "vk.json", vk)
    assert vk_document(read_vk(tmp_path / "vk.json")) == vk_document(vk)


def test_zkey_sections_survive_byte_for_byte(circuit, tmp_path):
    path, copy = circuit.with_suffix(".zkey"), tmp_path / "copy.zkey"
    write_zkey(copy, read_zkey(path))
    before, after = sections(path), sections(copy)
    assert list(after) == [1, 2, 3, 4, 9, 8, 5, 6, 7, 10]
    assert {kind for kind in before if before[kind] != after[kind]} <= {10}
    assert after[10] == bytes(68)


@pytest.mark.parametrize("test_only", [False, True])
def test_snarkjs_takes_our_zkey_and_proves_with_it(shared_data, tmp_path, test_only):
    folder, copy = shared_data / "groth16" / "chain", tmp_path / "copy.zkey"
    write_zkey(copy, dataclasses.replace(read_zkey(folder / "chain.zkey"), test_only=test_only))
    vk = judges.load(folder)[0]
    assert judges.snarkjs("export_vk", zkey=copy) == vk
    made = judges.snarkjs("prove", zkey=copy, wtns=folder / "chain.wtns")
    assert judges.snarkjs_verify(vk, made["public"], made["proof"])
    assert judges.pymcl_verify(vk, made["public"], made["proof"])


def test_a_test_key_says_so(shared_data, tmp_path):
    key = read_zkey(shared_data / "groth16" / "chain" / "chain.zkey")
    path = tmp_path / "test.zkey"
    write_zkey(path, dataclasses.replace(key, test_only=True))
    assert read_zkey(path).test_only
    assert b"TEST KEY" in sections(path)[0x7E57]
    write_zkey(path, key)
    assert not read_zkey(path).test_only


def test_a_witness_that_breaks_a_constraint_is_noticed_by_snarkjs(shared_data, tmp_path):
    folder = shared_data / "groth16" / "chain"
    witness = read_witness(folder / "chain.wtns")
    witness[-1, 0] ^= np.uint64(1)
    write_witness(tmp_path / "w.wtns", witness)
    assert not judges.snarkjs("check_witness", r1cs=folder / "chain.r1cs", wtns=tmp_path / "w.wtns")


def test_writers_refuse_arrays_that_do_not_fit(shared_data, tmp_path):
    key = read_zkey(shared_data / "groth16" / "chain" / "chain.zkey")
    with pytest.raises(ValueError, match="l_query"):
        write_zkey(tmp_path / "x", dataclasses.replace(key, l_query=key.l_query[1:]))
    with pytest.raises(ValueError, match="shape"):
        write_witness(tmp_path / "x", np.zeros((3, 5), np.uint64))
    assert list(tmp_path.iterdir()) == []


# -- circuits that nobody wrote by hand -------------------------------------------------------------------------------


@st.composite
def constraint_systems(draw) -> ConstraintSystem:
    wires = draw(st.integers(3, 12))
    rows = draw(st.integers(0, 6))
    numbers = st.one_of(st.sampled_from([0, 1, FR_MODULUS - 1]), st.integers(0, FR_MODULUS - 1))

    def matrix() -> SparseMatrix:
        lines = [sorted(draw(st.sets(st.integers(0, wires - 1), max_size=4))) for _ in range(rows)]
        row_start = np.cumsum([0, *map(len, lines)]).astype(np.int64)
        values = draw(st.lists(numbers, min_size=int(row_start[-1]), max_size=int(row_start[-1])))
        return SparseMatrix(
            row_start, np.array([wire for line in lines for wire in line], np.uint32), ints_to_limbs(values, 4)
        )

    return ConstraintSystem(wires, 1, draw(st.integers(0, 1)), matrix(), matrix(), matrix())


@settings(max_examples=60, deadline=None)
@given(system=constraint_systems())
def test_any_constraint_system_survives(tmp_path_factory, system):
    path = tmp_path_factory.mktemp("r1cs") / "any.r1cs"
    write_r1cs(path, system)
    back = read_r1cs(path)
    assert (back.wires, back.public_outputs, back.public_inputs) == (system.wires, 1, system.public_inputs)
    for name in "abc":
        mine, theirs = getattr(system, name), getattr(back, name)
        assert mine.row_start.tolist() == theirs.row_start.tolist()
        assert mine.wire.tolist() == theirs.wire.tolist()
        assert mine.value.tolist() == theirs.value.tolist()


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.integers(0, FR_MODULUS - 1), max_size=20))
def test_any_witness_survives(tmp_path_factory, values):
    witness = ints_to_limbs([1, *values], 4)
    path = tmp_path_factory.mktemp("wtns") / "any.wtns"
    write_witness(path, witness)
    assert np.array_equal(read_witness(path), witness)


# -- numbers ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, FP_MODULUS - 1), min_size=4, max_size=4))
def test_montgomery_form_and_back(numbers):
    point = coordinates_to_limbs(numbers)
    assert limbs_to_coordinates(point) == tuple(numbers)
    assert limbs_to_ints(point.reshape(4, 6)) == [(n << 384) % FP_MODULUS for n in numbers]


@pytest.mark.parametrize(("modulus", "limbs"), [(FR_MODULUS, 4), (FP_MODULUS, 6)])
@given(data=st.data())
def test_first_not_below(modulus, limbs, data):
    # Around the modulus limb by limb, where a comparison would go wrong.
    near = [modulus + delta * (1 << (64 * limb)) for limb in range(limbs) for delta in (-1, 0, 1)]
    values = data.draw(st.lists(st.one_of(st.sampled_from(near), st.integers(0, (1 << 64 * limbs) - 1)), max_size=8))
    expected = next((i for i, value in enumerate(values) if value >= modulus), -1)
    assert first_not_below(ints_to_limbs(values, limbs), modulus) == expected


def test_infinity_as_snarkjs_writes_it(tmp_path):
    zero = Proof(np.zeros(12, np.uint64), np.zeros(24, np.uint64), np.zeros(12, np.uint64))
    write_proof(tmp_path / "p.json", zero)
    assert '"0",\n  "1",\n  "0"' in (tmp_path / "p.json").read_text()
    back = read_proof(tmp_path / "p.json")
    assert not (back.a.any() or back.b.any() or back.c.any())

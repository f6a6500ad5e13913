"""The bellman dialect: its setup against the definitions, its files, and whole proofs judged by unrelated software."""

import dataclasses

import numpy as np
import pytest
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from cuzklab.backends import host
from cuzklab.errors import BadInput
from cuzklab.prover.builder import CircuitBuilder, multiply
from cuzklab.prover.constraints import densities, evaluate
from cuzklab.prover.files import (
    read_bellman_vk,
    read_key_or_vk,
    read_params,
    read_r1cs,
    read_witness,
    read_zkey,
    write_bellman_vk,
    write_params,
    write_zkey,
)
from cuzklab.prover.files.proof_json import proof_document, public_document
from cuzklab.prover.files.vk_json import vk_document
from cuzklab.prover.keycheck import check_key
from cuzklab.prover.keys import dense_bellman_key, open_key
from cuzklab.prover.porep_shaped import porep_shaped
from cuzklab.prover.prove import prove, prove_many
from cuzklab.prover.setup import bellman_setup, setup, trapdoor_from_seed
from cuzklab.prover.stages import dense_key
from cuzklab.prover.streaming import read
from tests.prover import judges
from tests.prover.plain import R, integers

POINTS = ("h", "l", "a", "b_g1", "b_g2")


@pytest.fixture(scope="module")
def small():
    """x³ + y = output for a private x and a public y: 2 constraints and 3 public rows, so a domain of 8."""
    builder = CircuitBuilder()
    x, y = builder.private(3), builder.public_input(4)
    builder.public_output(multiply(builder, multiply(builder, x, x), x) + y)
    system, witness = builder.build()
    return system, witness, bellman_setup(system, seed=1)


@pytest.fixture(scope="module")
def medium():
    """Both keys of one PoRep-shaped circuit."""
    system, witness = porep_shaped(248, seed=2)
    return system, witness, setup(system, 2), bellman_setup(system, 2)


def g1(scalar: int) -> bytes:
    return bytes((G1Point() * Scalar(scalar % R)).to_xy_bytes_be())


def lagrange(tau: int, domain: int) -> list[int]:
    root = pow(7, (R - 1) // domain, R)
    assert pow(root, domain // 2, R) == R - 1
    vanishing = pow(tau, domain, R) - 1
    return [pow(root, i, R) * vanishing * pow(domain * (tau - pow(root, i, R)), -1, R) % R for i in range(domain)]


def columns(system, tau: int) -> list[list[int]]:
    """u, v and t of every wire."""
    basis, sums = lagrange(tau, system.domain), []
    for matrix in (system.a, system.b, system.c):
        column = [0] * system.wires
        for row in range(matrix.rows):
            for k in range(matrix.row_start[row], matrix.row_start[row + 1]):
                column[matrix.wire[k]] += integers(matrix.value[k : k + 1])[0] * basis[row]
        sums.append(column)
    for wire in range(1 + system.public):
        sums[0][wire] += basis[system.constraints + wire]
    return sums


def test_every_byte_of_a_params_file_is_what_its_definition_says(small, tmp_path):
    """Built here from the definitions with another library's points, in the order of the format."""
    system, _, key = small
    s = trapdoor_from_seed(1, system.domain)
    u, v, t = columns(system, s.tau)
    combined = [s.beta * x + s.alpha * y + z for x, y, z in zip(u, v, t, strict=True)]
    vanishing = pow(s.tau, 8, R) - 1
    by_delta, by_gamma = pow(s.delta, -1, R), pow(s.gamma, -1, R)

    def g2(scalar: int) -> bytes:
        x0, x1, y0, y1 = (
            bytes((G2Point() * Scalar(scalar % R)).to_xy_bytes_be())[at : at + 48] for at in range(0, 192, 48)
        )
        return x1 + x0 + y1 + y0

    def array(points: list[bytes]) -> bytes:
        return len(points).to_bytes(4, "big") + b"".join(points)

    # arkworks writes c0 first, whichever the end that comes first.
    assert bytes(G2Point().to_xy_bytes_be())[:48] == host.limbs_to_coordinates(host.G2_GENERATOR)[0].to_bytes(48, "big")
    inputs = 1 + system.public
    vk = g1(s.alpha) + g1(s.beta) + g2(s.beta) + g2(s.gamma) + g1(s.delta) + g2(s.delta)
    vk += array([g1(x * by_gamma) for x in combined[:inputs]])
    expected = vk + b"".join(
        (
            array([g1(pow(s.tau, i, R) * vanishing * by_delta) for i in range(7)]),
            array([g1(x * by_delta) for x in combined[inputs:]]),
            array([g1(x) for x in u if x % R]),
            array([g1(x) for x in v if x % R]),
            array([g2(x) for x in v if x % R]),
        )
    )
    write_params(tmp_path / "k.params", dataclasses.replace(key, test_only=False))
    assert (tmp_path / "k.params").read_bytes() == expected
    write_bellman_vk(tmp_path / "k.vk", key)
    assert (tmp_path / "k.vk").read_bytes() == vk
    assert len(vk) == 864 + 4 + 96 * inputs


def test_densities_leave_out_what_does_not_occur_but_keep_every_input(small):
    system = small[0]
    a, b = densities(system)
    u, v, _ = columns(system, 12345)
    assert a.tolist() == [i for i, x in enumerate(u) if x % R]
    assert b.tolist() == [i for i, x in enumerate(v) if x % R]
    zeroed = dataclasses.replace(system.b, value=np.zeros_like(system.b.value))
    assert len(densities(dataclasses.replace(system, b=zeroed))[1]) == 0, "a coefficient of zero is none"


def test_the_vector_of_h_are_the_quotients_coefficients(field_path):
    """By schoolbook polynomials: A·B − C = H·(X^n − 1)."""
    n = 8
    generator = np.random.default_rng(5)
    a, b = ([int.from_bytes(generator.bytes(31), "little") for _ in range(n)] for _ in range(2))
    c = [x * y % R for x, y in zip(a, b, strict=True)]
    root = pow(7, (R - 1) // n, R)

    def coefficients(values: list[int]) -> list[int]:
        return [
            sum(value * pow(root, -i * k, R) for i, value in enumerate(values)) * pow(n, -1, R) % R for k in range(n)
        ]

    pa, pb, pc = map(coefficients, (a, b, c))
    product = [0] * (2 * n)
    for i, x in enumerate(pa):
        for j, y in enumerate(pb):
            product[i + j] = (product[i + j] + x * y) % R
    for i, x in enumerate(pc):
        product[i] = (product[i] - x) % R
    expected = [0] * n
    for i in range(2 * n - 1, n - 1, -1):
        expected[i - n] = product[i]
        product[i - n] = (product[i - n] + product[i]) % R
    assert not any(product[:n]), "the remainder is zero"
    vectors = [host.fr_to_montgomery(host.ints_to_limbs(values, 4)) for values in (a, b, c)]
    assert host.limbs_to_ints(host.h_coefficients(*vectors)) == expected
    assert expected[-1] == 0


def verdicts(vk, public, proof) -> set[bool]:
    documents = vk_document(vk), public_document(public), proof_document(proof)
    return {judges.snarkjs_verify(*documents), judges.pymcl_verify(*documents)}


def test_one_statement_proved_in_both_dialects_is_accepted_by_unrelated_software(medium, tmp_path):
    system, witness, snarkjs_key, bellman_key = medium
    write_zkey(tmp_path / "k.zkey", snarkjs_key)
    write_params(tmp_path / "k.params", bellman_key)
    for path, vk in ((tmp_path / "k.zkey", snarkjs_key.vk), (tmp_path / "k.params", bellman_key.vk)):
        key = open_key(path, system)
        assert key.test_only
        proof, public = prove(key, witness, threads=2)
        assert np.array_equal(public, witness[1 : 1 + system.public])
        assert verdicts(vk, public, proof) == {True}
        changed = public.copy()
        changed[0, 0] ^= 1
        assert verdicts(vk, changed, proof) == {False}


def test_py_ecc_accepts_a_proof_of_a_params_key(small):
    system, witness, key = small
    proof, public = prove(dense_bellman_key(key, system), witness)
    assert judges.py_ecc_verify(vk_document(key.vk), public_document(public), proof_document(proof))


@pytest.mark.parametrize("name", ["chain", "poseidon2"])
def test_real_circuits(shared_data, name):
    folder = shared_data / "groth16" / name
    system, witness = read_r1cs(folder / f"{name}.r1cs"), read_witness(folder / f"{name}.wtns")
    key = bellman_setup(system, 3)
    proof, public = prove(dense_bellman_key(key, system), witness)
    assert public_document(public) == judges.load(folder)[1]
    assert verdicts(key.vk, public, proof) == {True}


def test_mapped_and_in_memory_and_every_number_of_threads_give_the_same_proof(medium, tmp_path):
    system, witness, snarkjs_key, bellman_key = medium
    write_zkey(tmp_path / "k.zkey", snarkjs_key)
    write_params(tmp_path / "k.params", bellman_key)
    in_memory = {"zkey": dense_key(snarkjs_key), "params": dense_bellman_key(bellman_key, system)}
    for kind, ready in in_memory.items():
        reference = prove(ready, witness, r=5, s=R - 3, threads=1)[0]
        mapped = open_key(tmp_path / f"k.{kind}", system)
        for threads in (1, 2, 3):
            again = prove(mapped, witness, r=5, s=R - 3, threads=threads)[0]
            assert all(np.array_equal(getattr(again, it), getattr(reference, it)) for it in "abc"), (kind, threads)


def test_several_witnesses_in_one_call(medium):
    system, witness, _, key = medium
    dense = dense_bellman_key(key, system)
    made = prove_many(dense, iter([witness, witness]), threads=2)
    assert len(made) == 2
    assert not np.array_equal(made[0][0].a, made[1][0].a), "randomness of its own"
    for proof, public in made:
        assert verdicts(key.vk, public, proof) == {True}
    wrong = witness.copy()
    wrong[-1, 0] ^= 1
    with pytest.raises(BadInput, match="witness 2: the proof made of it is not valid"):
        prove_many(dense, [witness, wrong])
    with pytest.raises(BadInput, match=r"witness 2: constraint \d+ of 248 does not hold"):
        prove_many(dense, [witness, wrong], system=system)


def test_what_a_ceremony_appends_is_passed_over_and_a_test_key_stays_one(medium, tmp_path):
    system, _, _, key = medium
    path = tmp_path / "k.params"
    write_params(path, key)
    read_back = read_params(path)
    assert read_back.test_only
    for name in POINTS:
        points = getattr(read_back, name)
        assert np.array_equal(read(points, 0, len(points)), getattr(key, name))
    write_params(path, dataclasses.replace(key, test_only=False))
    path.write_bytes(path.read_bytes() + bytes(range(256)) * 3)
    again = read_params(path)
    assert not again.test_only
    assert len(again.b_g2) == len(key.b_g2)
    for vk in (again.vk, read_bellman_vk(path), read_key_or_vk(path)):
        assert all(np.array_equal(getattr(vk, it), getattr(key.vk, it)) for it in vars(key.vk))
    write_bellman_vk(tmp_path / "k.vk", key)
    assert np.array_equal(read_key_or_vk(tmp_path / "k.vk").ic, key.vk.ic)
    assert open_key(path, system).dialect == "bellman"


def test_a_params_key_needs_its_circuit_and_no_other(medium, small, tmp_path):
    write_params(tmp_path / "k.params", medium[3])
    with pytest.raises(BadInput, match=r"does not hold its circuit; give the circuit \(\.r1cs\)"):
        open_key(tmp_path / "k.params")
    with pytest.raises(BadInput, match="do not belong together"):
        open_key(tmp_path / "k.params", small[0])


def test_a_wire_without_a_constraint_has_no_place_in_such_a_key():
    builder = CircuitBuilder()
    x = builder.private(3)
    builder.private(9)
    builder.public_output(multiply(builder, x, x))
    with pytest.raises(BadInput, match=r"wire 3 occurs in no constraint|wire \d occurs in no constraint"):
        bellman_setup(builder.build()[0], 1)


def test_points_of_a_params_key_are_checked_like_those_of_a_zkey(medium, tmp_path):
    from tests.prover.special_points import cofactor_point_g1

    path = tmp_path / "k.params"
    write_params(path, medium[3])
    found = check_key(path, remember=False)
    assert found.points == 6 + len(medium[3].vk.ic) + sum(len(getattr(medium[3], name)) for name in POINTS)
    outside = host.coordinates_to_limbs(cofactor_point_g1())
    for points, why in ((outside, "not in the subgroup"), (outside ^ np.uint64(1), "not on the curve")):
        changed = medium[3].l.copy()
        changed[7] = points
        write_params(path, dataclasses.replace(medium[3], l=changed))
        with pytest.raises(BadInput, match=f"point 7 of l at offset \\d+ is {why}"):
            check_key(path, remember=False)


def test_every_form_of_the_constraints_evaluates_to_the_same(medium, tmp_path):
    from cuzklab.prover.constraints import CircuitConstraints, compiled

    system, witness, key, _ = medium
    write_zkey(tmp_path / "k.zkey", key)
    mapped = open_key(tmp_path / "k.zkey").constraints
    reference = evaluate(compiled(system), witness, threads=1)
    rows = len(reference.a)
    for constraints in (CircuitConstraints(system), mapped, compiled(read_zkey(tmp_path / "k.zkey"))):
        for threads in (1, 3):
            found = evaluate(constraints, witness, threads=threads)
            for name in "abc":
                assert np.array_equal(getattr(found, name)[:rows], getattr(reference, name)), (type(constraints), name)
                assert not getattr(found, name)[rows:].any()
    spoilt = mapped.records.copy()
    spoilt[5, 4:8] = 255
    with pytest.raises(BadInput, match="record 5 of its coefficients has changed"):
        evaluate(dataclasses.replace(mapped, records=spoilt), witness, threads=1)
    shuffled = dataclasses.replace(mapped, records=mapped.records[::-1].copy(), ascending=False)
    assert np.array_equal(evaluate(shuffled, witness, threads=3).a[:rows], reference.a)

"""The test-only setup: every query against its definition, with Python's integers and another library's points."""

import numpy as np
import pytest
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from cuzklab.backends.host import SNARKJS_ROOT
from cuzklab.backends.limbs import limbs_to_coordinates
from cuzklab.prover.builder import CircuitBuilder, multiply
from cuzklab.prover.constraints import compiled, densities
from cuzklab.prover.porep_shaped import coded_porep_circuit, porep_shaped, porep_witness
from cuzklab.prover.setup import dense_setup, setup, trapdoor_from_seed
from cuzklab.prover.stages import dense_key
from tests.prover.plain import R, integers


@pytest.fixture(scope="module")
def small():
    """x³ + y = output for a private x and a public y: 2 constraints and 3 public rows, so a domain of 8."""
    builder = CircuitBuilder()
    x, y = builder.private(3), builder.public_input(4)
    builder.public_output(multiply(builder, multiply(builder, x, x), x) + y)
    system, witness = builder.build()
    return system, witness, setup(system, seed=1)


def lagrange(tau: int, domain: int) -> list[int]:
    """By the definition: L_i(τ) = ω^i · (τ^n − 1) / (n · (τ − ω^i))."""
    root = pow(SNARKJS_ROOT, 2**32 // domain, R)
    assert pow(root, domain, R) == 1 and pow(root, domain // 2, R) == R - 1
    vanishing = pow(tau, domain, R) - 1
    return [pow(root, i, R) * vanishing * pow(domain * (tau - pow(root, i, R)), -1, R) % R for i in range(domain)]


def g1(scalar: int) -> G1Point:
    return G1Point() * Scalar(scalar)


def same(array, points) -> bool:
    kind = G1Point if array.shape[1] == 12 else G2Point
    return [
        kind.from_xy_bytes_le(b"".join(n.to_bytes(48, "little") for n in limbs_to_coordinates(point)))
        for point in array
    ] == points


def test_every_query_is_what_its_definition_says(small):
    system, _, key = small
    secrets = trapdoor_from_seed(1, system.domain)
    assert key.domain == system.domain == 8
    basis = lagrange(secrets.tau, 8)
    sums = []
    for matrix in (system.a, system.b, system.c):
        column = [0] * system.wires
        for row in range(matrix.rows):
            for k in range(matrix.row_start[row], matrix.row_start[row + 1]):
                column[matrix.wire[k]] += integers(matrix.value[k : k + 1])[0] * basis[row]
        sums.append(column)
    for wire in range(1 + system.public):
        sums[0][wire] += basis[system.constraints + wire]
    u, v, t = sums
    combined = [(secrets.beta * x + secrets.alpha * y + z) % R for x, y, z in zip(u, v, t, strict=True)]
    by_delta = pow(secrets.delta, -1, R)
    assert same(key.a_query, [g1(x % R) for x in u])
    assert same(key.b_g1_query, [g1(x % R) for x in v])
    assert same(key.b_g2_query, [G2Point() * Scalar(x % R) for x in v])
    assert same(key.vk.ic, [g1(x) for x in combined[: 1 + system.public]])
    assert same(key.l_query, [g1(x * by_delta % R) for x in combined[1 + system.public :]])
    assert same(key.h_query, [g1(x * by_delta % R) for x in lagrange(secrets.tau, 16)[1::2]])
    singles = np.stack((key.vk.alpha_g1, key.beta_g1, key.delta_g1))
    assert same(singles, [g1(secrets.alpha), g1(secrets.beta), g1(secrets.delta)])
    twins = np.stack((key.vk.beta_g2, key.vk.delta_g2, key.vk.gamma_g2))
    assert same(twins, [G2Point() * Scalar(x) for x in (secrets.beta, secrets.delta, 1)])


def test_matrices_are_stored_times_r_squared_with_a_row_for_each_public_wire(small):
    system, _, key = small
    assert (key.a.rows, key.b.rows) == (system.constraints + 1 + system.public, system.constraints)
    assert key.a.wire[-3:].tolist() == [0, 1, 2]
    factor = 2**512 % R
    assert integers(key.a.value) == [x * factor % R for x in [*integers(system.a.value), 1, 1, 1]]
    assert integers(key.b.value) == [x * factor % R for x in integers(system.b.value)]


def test_the_key_says_that_it_is_a_test_key(small):
    assert small[2].test_only


def test_the_same_seed_gives_the_same_key_for_any_number_of_threads_and_another_seed_another(small):
    system, _, key = small
    for threads in (1, 2, 3):
        again = setup(system, seed=1, threads=threads)
        for name in ("a_query", "b_g1_query", "b_g2_query", "l_query", "h_query", "beta_g1", "delta_g1"):
            assert np.array_equal(getattr(again, name), getattr(key, name)), name
    other = setup(system, seed=2)
    assert not np.array_equal(other.h_query, key.h_query)
    assert trapdoor_from_seed("1", 8) == trapdoor_from_seed(1, 8)
    assert len({*vars(trapdoor_from_seed(1, 8)).values()}) == 5


def test_work_shared_among_threads_gives_the_same_points():
    """Large enough that threads do get a share each."""
    system, _ = porep_shaped(3976, seed=1)
    one, two = (setup(system, seed=1, threads=threads) for threads in (1, 2))
    for name in ("a_query", "b_g1_query", "b_g2_query", "l_query", "h_query"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


def test_progress_rises_to_one(small):
    seen = []
    setup(small[0], seed=1, progress=lambda step, share: seen.append((step, share)))
    shares = [share for _, share in seen]
    assert shares == sorted(shares) and shares[0] == 0.0 and seen[-1] == ("done", 1.0)
    assert [step for step, _ in seen][1] == "A query"


@pytest.mark.parametrize("coded", [True, False])
def test_a_dense_key_is_the_key_without_points_at_infinity(coded):
    circuit = coded_porep_circuit(994, 6)
    plain, witness = porep_shaped(994, 6)
    given = circuit.system if coded else plain
    mine, other = dense_setup(given, "a seed"), dense_key(setup(plain, "a seed"), plain)
    assert mine.test_only and (mine.wires, mine.public, mine.domain) == (other.wires, other.public, other.domain)
    for name in ("l", "a", "b_g1", "b_g2"):
        one, two = getattr(mine, name), getattr(other, name)
        assert one.wires.dtype == two.wires.dtype and np.array_equal(one.wires, two.wires), name
        assert np.array_equal(one.points, two.points), name
    for name in ("h", "beta_g1", "delta_g1"):
        assert np.array_equal(getattr(mine, name), getattr(other, name)), name
    for name in ("alpha_g1", "beta_g2", "gamma_g2", "delta_g2", "ic"):
        assert np.array_equal(getattr(mine.vk, name), getattr(other.vk, name)), name
    a_wires, b_wires = densities(given)
    assert np.array_equal(mine.a.wires, a_wires) and np.array_equal(mine.b_g2.wires, b_wires)
    assert np.array_equal(porep_witness(circuit, 6), witness)


def test_a_coded_circuit_evaluates_as_the_plain_one_in_a_fourth_of_the_memory():
    circuit = coded_porep_circuit(30_000, 2)
    plain, witness = porep_shaped(30_000, 2)
    mine, other = compiled(circuit.system), compiled(plain)
    assert (mine.rows, mine.nonzeros) == (other.rows, other.nonzeros) and mine.nbytes < 0.35 * other.nbytes
    rows = [[np.full((mine.rows, 4), 7, np.uint64) for _ in range(3)] for _ in range(2)]
    for matrices, out in zip((mine, other), rows, strict=True):
        matrices.evaluate(witness, *out, 2)
    for one, two in zip(*rows, strict=True):
        assert np.array_equal(one, two)
    assert all(np.array_equal(one, two) for one, two in zip(mine.entries_of_b(), other.entries_of_b(), strict=True))

"""The proving stages one by one, against another library's MSM and Python's integers."""

import numpy as np
import pytest
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from cuzklab.backends.host import SNARKJS_ROOT
from cuzklab.backends.limbs import limbs_to_coordinates
from cuzklab.errors import BadInput
from cuzklab.prover import stages
from cuzklab.prover.constraints import check_witness, compiled
from cuzklab.prover.files import read_r1cs, read_witness, read_zkey
from cuzklab.prover.porep_shaped import porep_shaped
from cuzklab.prover.setup import setup
from cuzklab.prover.shape import circuit_shape
from cuzklab.stages import STAGES
from tests.prover.plain import R, integers, limbs, products


def library_point(array):
    kind = G1Point if len(array) == 12 else G2Point
    if not array.any():
        return kind.identity()
    return kind.from_xy_bytes_unchecked_le(b"".join(n.to_bytes(48, "little") for n in limbs_to_coordinates(array)))


def library_msm(points, scalars):
    kind = G1Point if points.shape[1] == 12 else G2Point
    return kind.multiexp_unchecked([library_point(p) for p in points], [Scalar(x) for x in integers(scalars)])


@pytest.fixture(scope="module")
def porep():
    system, witness = porep_shaped(600, seed=1)
    key = setup(system, seed=1)
    return system, witness, key, stages.dense_key(key)


@pytest.fixture(scope="module")
def chain(shared_data):
    """Nearly all values of this witness are significant, so splitting does not pay."""
    folder = shared_data / "groth16" / "chain"
    system, witness = read_r1cs(folder / "chain.r1cs"), read_witness(folder / "chain.wtns")
    key = read_zkey(folder / "chain.zkey")
    return system, witness, key, stages.dense_key(key)


def full_msms(key, witness):
    """Each query's MSM over all wires, by the other library."""
    return {
        "l": library_msm(key.l_query, witness[1 + key.public :]),
        "a": library_msm(key.a_query, witness),
        "b_g1": library_msm(key.b_g1_query, witness),
        "b_g2": library_msm(key.b_g2_query, witness),
    }


@pytest.mark.parametrize("circuit", ["porep", "chain"])
@pytest.mark.parametrize("threads", [1, 2])
def test_split_msm_equals_the_plain_msm(circuit, threads, request):
    _, witness, key, dense = request.getfixturevalue(circuit)
    split = stages.prep_msm(dense, witness, threads=threads)
    assert all((query.ones is not None) == (circuit == "porep") for query in split.values())
    ones = {name: stages.batch_add(q.ones, threads=threads) for name, q in split.items() if q.ones}
    tails = {name: stages.tail_msm(split[name].tail, threads=threads) for name in ("l", "a", "b_g1")}
    tails["b_g2"] = stages.b_g2_msm(split["b_g2"].tail, threads=threads)
    sums = stages.add_up(np.zeros(12, np.uint64), ones, tails)
    for name, expected in full_msms(key, witness).items():
        assert library_point(getattr(sums, name)) == expected, name


def test_the_split_has_each_scalar_in_its_class(porep):
    system, witness, _, dense = porep
    split = stages.prep_msm(dense, witness)
    for query, wires in ((split["l"], dense.l.wires), (split["a"], dense.a.wires), (split["b_g1"], dense.b_g1.wires)):
        values = np.array(integers(witness[wires]), dtype=object)
        bits = np.unpackbits(query.ones.ones.view(np.uint8), bitorder="little")
        assert np.array_equal(bits[: len(values)], values == 1) and not bits[len(values) :].any()
        assert integers(query.tail.scalars) == [x for x in values if x > 1]
    assert np.array_equal(split["b_g1"].tail.scalars, split["b_g2"].tail.scalars)
    assert len(split["l"].tail.scalars) < 0.06 * system.wires


def test_dense_queries_leave_out_the_wires_of_no_row(porep):
    system, _, key, dense = porep
    assert np.array_equal(dense.b_g1.wires, np.unique(system.b.wire))
    assert np.array_equal(dense.b_g2.points, key.b_g2_query[dense.b_g2.wires])
    in_a = np.union1d(np.unique(system.a.wire), np.arange(1 + system.public))
    assert np.array_equal(dense.a.wires, in_a)
    assert np.array_equal(dense.l.wires, np.arange(1 + system.public, system.wires))
    points = len(dense.l.wires) + len(dense.a.wires) + len(dense.b_g1.wires) + key.domain
    assert dense.query_bytes == 96 * points + 192 * len(dense.b_g2.wires)


def test_streamed_bytes_are_those_of_points_and_bitmap(porep):
    _, witness, _, dense = porep
    split = stages.prep_msm(dense, witness)
    count = len(dense.b_g2.wires)
    assert split["b_g2"].ones.streamed_bytes == 192 * count + -(-count // 8)
    assert split["l"].tail.streamed_bytes == (96 + 32) * len(split["l"].tail.scalars)


def test_measured_bytes_equal_the_formulas_of_the_table_of_stages(porep):
    system, witness, _, dense = porep
    shape = circuit_shape("porep-600", system, witness)
    assert shape.domain == dense.domain
    assert shape.key_bytes == dense.query_bytes
    split = stages.prep_msm(dense, witness)
    for part in ("l", "a", "b_g1", "b_g2"):
        assert split[part].ones.streamed_bytes == STAGES["batch_add"].streamed_bytes(shape, part)
    assert split["l"].tail.streamed_bytes == STAGES["tail_msm"].streamed_bytes(shape, "l")
    assert shape.tail_share == pytest.approx(0.05, abs=0.5 / 600)


@pytest.mark.parametrize("source", ["key", "system"])
def test_synthesis_evaluates_the_constraints(chain, source):
    system, witness, key, _ = chain
    found = stages.synthesis(compiled(key if source == "key" else system), witness, threads=2)
    values, montgomery = integers(witness), 2**256 % R
    rows = system.constraints + 1 + system.public
    extra = values[: 1 + system.public]
    a, b, c = (products(matrix, values) for matrix in (system.a, system.b, system.c))
    zeros = [0] * len(extra)
    for vector, expected in ((found.a, a + extra), (found.b, b + zeros), (found.c, c + zeros)):
        assert vector.shape == (rows, 4)
        assert integers(vector) == [x * montgomery % R for x in expected]


def test_ntt_h_gives_a_b_minus_c_on_the_odd_powers():
    """Against polynomials evaluated one by one; the buffers given are used, whatever they held before."""
    domain = 8
    rng = np.random.default_rng(1)
    vectors = [[int(x) for x in rng.integers(0, 2**62, domain - 2)] for _ in range(3)]
    montgomery = [limbs([x * 2**256 % R for x in vector]) for vector in vectors]
    d_a = np.full((domain, 4), 7, np.uint64)
    d_bc = np.full((2, domain, 4), 7, np.uint64)
    stages.load_evaluations(stages.Evaluations(*montgomery), d_a, d_bc)
    stages.ntt_h(d_a, d_bc)

    double = pow(SNARKJS_ROOT, 2**32 // (2 * domain), R)

    def at(values, x):
        """The polynomial of degree below n with these values on the domain, at x, in Lagrange's form."""
        vanishing = pow(x, domain, R) - 1
        nodes = [pow(double, 2 * i, R) for i in range(domain)]
        terms = (y * w * pow(x - w, -1, R) for y, w in zip([*values, 0, 0], nodes, strict=True))
        return vanishing * pow(domain, -1, R) * sum(terms) % R

    odd = [pow(double, 2 * i + 1, R) for i in range(domain)]
    expected = [(at(vectors[0], x) * at(vectors[1], x) - at(vectors[2], x)) % R for x in odd]
    assert integers(d_a) == expected


def test_h_msm_is_the_plain_msm(porep):
    _, _, key, dense = porep
    scalars = limbs([pow(3, i, R) for i in range(key.domain)])
    inputs = stages.ScaledPoints(dense.h, scalars)
    assert library_point(stages.h_msm(inputs, threads=2)) == library_msm(key.h_query, scalars)


def test_an_unsatisfied_witness_is_told_by_its_first_constraint(porep):
    system, witness, _, _ = porep
    check_witness(system, witness)
    row = 300
    wire = next(
        w
        for w in range(1, system.wires)
        if np.flatnonzero(system.c.wire == w).size == 1
        and system.c.row_start[row] <= np.flatnonzero(system.c.wire == w)[0] < system.c.row_start[row + 1]
    )
    wrong = witness.copy()
    wrong[wire, 0] ^= 1
    touched = [
        int(np.searchsorted(m.row_start, k, side="right")) - 1
        for m in (system.a, system.b, system.c)
        for k in np.flatnonzero(m.wire == wire)
    ]
    with pytest.raises(BadInput, match=rf"constraint {min(touched)} of 600 does not hold"):
        check_witness(system, wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w[:-1], "belongs to another circuit"),
        (lambda w: np.concatenate((2 * w[:1], w[1:])), "value 0 must be the constant 1"),
        (lambda w: np.concatenate((w[:5], limbs([R]), w[6:])), "value 5 is not below"),
    ],
)
def test_what_is_no_witness_is_refused(porep, change, message):
    system, witness, _, _ = porep
    with pytest.raises(BadInput, match=message):
        check_witness(system, change(witness))

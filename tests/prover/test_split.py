"""The preparation of split MSMs, byte for byte against array operations that read every query's scalars anew."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import FR_MODULUS
from cuzklab.prover import stages
from cuzklab.prover.density import Density
from cuzklab.prover.stages import DenseQuery

EDGES = host.ints_to_limbs([2, FR_MODULUS - 1, 1 << 64, (1 << 64) + 1, 1 << 128, 1 << 192, (1 << 192) + 1, 1 << 63], 4)


def reference(scalars, points):
    """Bitmap of the ones or None, the tail's points and its scalars."""
    high = scalars[:, 1:].any(axis=1)
    one, other = (scalars[:, 0] == 1) & ~high, (scalars[:, 0] > 1) | high
    if 2 * np.count_nonzero(other) > len(scalars):
        tail = np.flatnonzero(scalars.any(axis=1))
        return None, points[tail], scalars[tail]
    padded = np.zeros(-(-len(scalars) // 64) * 64, bool)
    padded[: len(one)] = one
    tail = np.flatnonzero(other)
    return np.packbits(padded, bitorder="little").view(np.uint64), points[tail], scalars[tail]


def witness_of(wires, rng, shares):
    """Scalars that are zero, one, or other with these shares."""
    witness = np.zeros((wires, 4), np.uint64)
    kind = rng.choice(3, wires, p=shares)
    witness[:, 0] = kind == 1
    others = np.flatnonzero(kind == 2)
    witness[others] = EDGES[rng.integers(0, len(EDGES), len(others))]
    return witness


def key_of(wires, rng, kinds):
    """Queries over wires of these kinds: all, none, a range, a share; points are numbered."""

    def wires_of(kind):
        if kind == "range":
            begin, end = sorted(rng.integers(0, wires + 1, 2).tolist())
            return np.arange(begin, end)
        share = {"all": 1.0, "none": 0.0, "most": 0.997, "quarter": 0.25}[kind]
        return np.flatnonzero(rng.random(wires) < share)

    def query(chosen, width):
        points = rng.integers(0, 1 << 63, (len(chosen), width), np.uint64)
        return DenseQuery(points, Density.of(chosen, wires))

    in_l, in_a, in_b = map(wires_of, kinds)
    return SimpleNamespace(
        wires=wires, l=query(in_l, 12), a=query(in_a, 12), b_g1=query(in_b, 12), b_g2=query(in_b, 24)
    )


def same_as_the_reference(key, witness, threads):
    made = []

    def empty(*shape):
        made.append(np.full(shape, 7, np.uint64))
        return made[-1]

    split = stages.prep_msm(key, witness, threads=threads, empty=empty)
    assert set(split) == {"l", "a", "b_g1", "b_g2"}
    for name, found in split.items():
        query = getattr(key, name)
        ones, points, scalars = reference(witness[query.wires], query.points)
        if ones is None:
            assert found.ones is None, name
        else:
            assert np.array_equal(found.ones.ones, ones) and found.ones.points is query.points, name
        assert np.array_equal(found.tail.points, points) and np.array_equal(found.tail.scalars, scalars), name
        assert any(found.tail.points is one for one in made) and any(found.tail.scalars is one for one in made)
    assert len(made) == 7, "B's scalars are shared"


@settings(max_examples=60, deadline=None)
@given(
    wires=st.one_of(st.integers(1, 200), st.sampled_from([64, 128, 4096, 5000])),
    kinds=st.tuples(*[st.sampled_from(["all", "none", "range", "most", "quarter"])] * 3),
    shares=st.sampled_from([(0.48, 0.47, 0.05), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0.2, 0.25, 0.55), (0.3, 0.2, 0.5)]),
    seed=st.integers(0, 1 << 32),
    threads=st.sampled_from([1, 2]),
)
def test_the_split_is_the_references(wires, kinds, shares, seed, threads):
    rng = np.random.default_rng(seed)
    same_as_the_reference(key_of(wires, rng, kinds), witness_of(wires, rng, shares), threads)


@pytest.mark.parametrize("field_path", ["portable", None])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_split_of_many_is_the_references(field_path, threads, monkeypatch):
    """Enough for several pieces a thread; with and without the processor's instructions."""
    if field_path:
        monkeypatch.setenv("CUZKLAB_FIELD", field_path)
    rng = np.random.default_rng(1)
    key = key_of(150_001, rng, ("range", "most", "quarter"))
    same_as_the_reference(key, witness_of(150_001, rng, (0.4, 0.3, 0.3)), threads)


@pytest.mark.parametrize("rows", [-1, 1, 64])
def test_another_circuits_witness_is_refused(rows):
    rng = np.random.default_rng(1)
    key = key_of(128, rng, ("all", "all", "all"))
    witness = np.full((128 + rows, 4), 2, np.uint64)
    with pytest.raises(ValueError, match=r"witness: expected shape \(128, 4\)"):
        stages.prep_msm(key, witness, threads=1)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_a_density_has_its_wires(case):
    wires, chosen = case
    density = Density.of(np.array(sorted(chosen), np.int64), wires)
    assert density.wires.tolist() == sorted(chosen) and density.wires.dtype == np.uint32
    assert density.count == len(chosen) == host.count_bits(density.bits)
    assert len(density.bits) == -(-wires // 64)


def test_a_wire_beyond_the_circuit_is_refused():
    with pytest.raises(IndexError):
        Density.of(np.array([64]), 64)


def test_a_density_counts_its_bits_and_no_wire_from_the_end():
    assert Density.of(np.array([1, 1, 2]), 64).count == 2
    with pytest.raises(IndexError):
        Density.of(np.array([-1]), 64)


def test_a_count_of_points_that_is_not_the_densitys_is_refused():
    """Native code would write beyond the arrays that are made for so many."""
    classes = host.classify(np.full((128, 4), 2, np.uint64))
    density = Density.of(np.arange(100), 128)
    for points in (99, 101):
        with pytest.raises(ValueError, match=f"density: 100 wires, not {points}"):
            host.classes_of_query(classes, density.bits, points)

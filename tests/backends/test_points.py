"""Single points, curve and subgroup tests, judged by arkworks and blst."""

import numpy as np
import pytest

from cuzklab.backends import host, peers
from cuzklab.backends.bls12_381 import G1_COFACTOR, G2_COFACTOR
from tests.backends.judges import (
    GROUPS,
    WIDTH,
    P,
    R,
    curve_point,
    from_arkworks,
    function,
    generator_multiple,
    known_points,
    random_scalars,
    to_arkworks,
)

both_groups = pytest.mark.parametrize("group", GROUPS)
COFACTOR = {"g1": G1_COFACTOR, "g2": G2_COFACTOR}


@both_groups
def test_addition_with_every_special_case(field_path, group):
    add, negate = function("add", group), function("neg", group)
    points, _ = known_points(group, 3)
    infinity = np.zeros(WIDTH[group], np.uint64)
    cases = [infinity, *points, negate(points[0])]
    for p in cases:
        for q in cases:
            assert (add(p, q) == from_arkworks(group, to_arkworks(group, p) + to_arkworks(group, q))).all()
    assert (negate(infinity) == infinity).all()


@both_groups
def test_multiples(field_path, group):
    mul, generator = function("mul", group), generator_multiple(group, 1)
    for k in (0, 1, 2, 3, R - 1, R, R + 1, -1, -5, 1 << 300, *random_scalars(5)):
        assert (mul(generator, k) == generator_multiple(group, k)).all()
    assert not mul(np.zeros(WIDTH[group], np.uint64), 12345).any()


def test_generators_are_the_standard_ones():
    assert (generator_multiple("g1", 1) == host.G1_GENERATOR).all()
    assert (generator_multiple("g2", 1) == host.G2_GENERATOR).all()


@both_groups
def test_on_curve(field_path, group):
    on_curve = function("on_curve", group)
    points, _ = known_points(group, 100)
    points[3] = 0
    points[4] = curve_point(group)
    assert on_curve(points) == -1
    for threads in (1, 2, 3):
        for bad in (0, 50, 99):
            broken = points.copy()
            broken[bad, 0] ^= np.uint64(1)
            broken[99, -1] ^= np.uint64(1)
            assert on_curve(broken, threads=threads) == bad
            assert not peers.blst_on_curve(broken[bad])
    # x + p has the same residue but is not canonical.
    x = host.limbs_to_ints(points[0, :6])[0] + P
    broken = points.copy()
    broken[0, :6] = host.ints_to_limbs([x], 6)[0]
    assert on_curve(broken) == 0


@both_groups
def test_subgroup(field_path, group):
    in_subgroup, mul = function("in_subgroup", group), function("mul", group)
    points, _ = known_points(group, 40)
    points[3] = 0
    assert in_subgroup(points) == -1
    outside = [curve_point(group, start) for start in (5, 50, 500)]
    # r·Q has an order that divides the cofactor; its multiples have smaller ones.
    small = [mul(q, R) for q in outside]
    small += [mul(small[0], COFACTOR[group] // prime) for prime in _small_primes(COFACTOR[group])]
    small += [mul(small[1], COFACTOR[group] // prime) for prime in _small_primes(COFACTOR[group])]
    mixed = [function("add", group)(points[0], q) for q in small]
    tested = 0
    for q in outside + small + mixed:
        if not mul(q, R).any():
            continue  # the multiple fell on infinity: inside after all
        tested += 1
        assert not peers.blst_in_subgroup(q)
        assert not to_arkworks(group, q).is_in_subgroup()
        bad = points.copy()
        bad[17] = q
        bad[30] = outside[0]
        assert function("on_curve", group)(bad) == -1
        assert in_subgroup(bad, threads=2) == 17
    assert tested >= 10
    for q in outside:
        inside = mul(q, COFACTOR[group])
        assert inside.any() and in_subgroup(inside[None]) == -1


def _small_primes(n: int) -> list[int]:
    return [p for p in range(2, 20000) if n % p == 0 and all(p % q for q in range(2, int(p**0.5) + 1))]


def test_order_of_the_whole_curve():
    assert not host.mul_g1(curve_point("g1"), R * G1_COFACTOR).any()
    assert not host.mul_g2(curve_point("g2"), R * G2_COFACTOR).any()


def test_refusals():
    with pytest.raises(ValueError, match=r"shape \(12\)"):
        host.add_g1(host.G2_GENERATOR, host.G1_GENERATOR)
    with pytest.raises(ValueError, match="not below"):
        host.neg_g1(np.full(12, 2**64 - 1, np.uint64))
    with pytest.raises(ValueError, match=r"shape \(n, 24\)"):
        host.on_curve_g2(host.G2_GENERATOR)

"""Kernels against software of others: arkworks, blst, and Python's integers. Needs a GPU."""

import numpy as np
import pytest

from cuzklab.backends import cuda, host, peers
from cuzklab.backends.bls12_381 import FP_MODULUS, FP_R, FR_MODULUS, FR_R, SNARKJS_ROOT, TWO_ADICITY
from cuzklab.backends.cuda import multiples
from cuzklab.backends.limbs import ints_to_limbs, limbs_to_ints
from tests.backends.judges import (
    GROUPS,
    WIDTH,
    R,
    arkworks_msm,
    curve_point,
    generator_multiple,
    random_scalars,
    scalars_to_limbs,
)

pytestmark = pytest.mark.gpu

N = 2500
SCALARS = {
    "random": lambda n: random_scalars(n, 3),
    "zero": lambda n: [0] * n,
    "one": lambda n: [1] * n,
    "minus one": lambda n: [R - 1] * n,
    "equal": lambda n: random_scalars(1, 9) * n,
    "zeros": lambda n: [0 if i % 100 else k for i, k in enumerate(random_scalars(n, 4))],
    "ones": lambda n: [1 if i % 100 else k for i, k in enumerate(random_scalars(n, 5))],
    "edges": lambda n: [(0, 1, R - 1, 2, R - 2, 1 << 254, (1 << 254) - 1, R // 2)[i % 8] for i in range(n)],
}
LOGARITHMS = {
    "different": lambda n: random_scalars(n, 6),
    "repeated": lambda n: [77] * n,
    "opposite": lambda n: [k if i % 2 else -k % R for i, k in enumerate(np.repeat(random_scalars(n, 7), 2)[:n])],
    "infinity": lambda n: [0 if i % 3 == 0 else k for i, k in enumerate(random_scalars(n, 8))],
}


def points_of(group, logarithms):
    return getattr(host, f"fixed_base_{group}")(scalars_to_limbs(logarithms))


def judged(group, logarithms, scalars):
    """By arkworks: the generator times the dot product."""
    return generator_multiple(group, sum(x * y for x, y in zip(logarithms, scalars, strict=True)) % R)


def sums(group):
    """Every way to the sum of products."""

    def fixed(points, scalars, **options):
        return cuda.msm_of_multiples(cuda.store_multiples(points, **options), scalars)

    return {
        "variable base": getattr(cuda, f"msm_{group}"),
        "all multiples": fixed,
        "a third of them": lambda points, scalars: fixed(points, scalars, bits=11, multiples=8),
        "top window wider": lambda points, scalars: fixed(points, scalars, bits=15),
        "one multiple": lambda points, scalars: fixed(points, scalars, bits=9, multiples=1),
    }


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("point_kind", LOGARITHMS)
def test_sums_of_products_on_hostile_input(group, point_kind):
    logarithms = LOGARITHMS[point_kind](N)
    points = points_of(group, logarithms)
    ways = sums(group)
    for scalar_kind, make in SCALARS.items():
        scalars = make(N)
        wanted, limbs = judged(group, logarithms, scalars), scalars_to_limbs(scalars)
        for way, run in ways.items():
            assert (run(points, limbs) == wanted).all(), (way, scalar_kind)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 63, 511, 513])
def test_sums_of_products_of_any_length(group, n):
    logarithms, scalars = random_scalars(n, 11), random_scalars(n, 12)
    points, limbs = points_of(group, logarithms).reshape(n, WIDTH[group]), scalars_to_limbs(scalars).reshape(n, 4)
    wanted = judged(group, logarithms, scalars)
    for way, run in sums(group).items():
        assert (run(points, limbs) == wanted).all(), way


@pytest.mark.parametrize("group", GROUPS)
def test_tens_of_thousands_of_points_against_blst(group):
    n = 40_013
    points, scalars = points_of(group, random_scalars(n, 13)), scalars_to_limbs(random_scalars(n, 14))
    wanted = peers.blst_msm(points, scalars)
    for way, run in sums(group).items():
        assert (run(points, scalars) == wanted).all(), way


@pytest.mark.parametrize("group", GROUPS)
def test_points_outside_the_subgroup(group):
    """A point of the whole curve among others: scalars count as integers. Judged by arkworks."""
    points = points_of(group, random_scalars(40, 15))
    points[::5] = curve_point(group)
    scalars = random_scalars(40, 16)
    wanted = arkworks_msm(group, points, scalars)
    for way, run in sums(group).items():
        assert (run(points, scalars_to_limbs(scalars)) == wanted).all(), way


@pytest.mark.parametrize("group", GROUPS)
def test_stored_multiples_are_those_of_arkworks(group):
    """Row j is 2^(bits · sets · j) times the points; one that is infinity stays so, in every row."""
    logarithms = [*random_scalars(5, 17), 0, 1, R - 1]
    base = cuda.store_multiples(points_of(group, logarithms), bits=13, multiples=7)
    assert (base.sets, base.rows.shape) == (3, (7, 8, WIDTH[group]))
    assert base.table_bytes == multiples.table_bytes(group, 8, bits=13, multiples=7)
    for j, row in enumerate(base.rows.get()):
        for point, logarithm in zip(row, logarithms):
            assert (point == generator_multiple(group, logarithm << (13 * 3 * j))).all()


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", ["random", "equal", "ones"])
def test_batches_and_slices(group, kind, monkeypatch):
    """Multiples made in slices, scalars taken in batches from pinned memory or the device: nothing else changes."""
    import cupy
    import cupyx

    monkeypatch.setattr(multiples, "_SLICE_POINTS", 700)
    monkeypatch.setattr(multiples, "_BATCH_POINTS", 512)
    logarithms, scalars = random_scalars(N, 18), SCALARS[kind](N)
    base = cuda.store_multiples(points_of(group, logarithms), bits=10)
    limbs = scalars_to_limbs(scalars)
    pinned = cupyx.empty_like_pinned(limbs)
    pinned[...] = limbs
    for given in (limbs, pinned, cupy.asarray(limbs)):
        assert (cuda.msm_of_multiples(base, given) == judged(group, logarithms, scalars)).all()
    limbs[1700] = ints_to_limbs([R], 4)
    with pytest.raises(ValueError, match="element 1700 is not below"):
        cuda.msm_of_multiples(base, limbs)
    with pytest.raises(ValueError, match="scalars: expected shape"):
        cuda.msm_of_multiples(base, limbs[:-1])


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", LOGARITHMS)
@pytest.mark.parametrize("n", [1, 65, N])
def test_masked_sums(group, kind, n):
    logarithms = LOGARITHMS[kind](n)
    points = points_of(group, logarithms)
    masks = np.random.default_rng(n).random((3, n)) < np.array([[0.5], [0.01], [0.99]])
    for chosen in (*masks, np.ones(n, bool), np.zeros(n, bool)):
        bitmap = np.packbits(np.resize(np.append(chosen, [True] * 64), 64 * -(-n // 64)), bitorder="little")
        got = getattr(cuda, f"masked_sum_{group}")(points, bitmap.view(np.uint64))
        wanted = generator_multiple(group, sum(k for k, taken in zip(logarithms, chosen) if taken) % R)
        assert (got == wanted).all()


def fr(n, seed):
    return [x % FR_MODULUS for x in random_scalars(n, seed)]


def in_montgomery_form(values):
    return ints_to_limbs([x * FR_R % FR_MODULUS for x in values], 4)


@pytest.mark.parametrize("log_n", [1, 3, 6, 9, 10, 14, 18])
@pytest.mark.parametrize("coset", [None, 7])
def test_transforms_are_values_of_a_polynomial(log_n, coset):
    """Horner's rule in Python at some roots of unity; and the inverse gives the coefficients back."""
    n = 1 << log_n
    values = [FR_MODULUS - 1, 0, 1, *fr(n, 21)][:n]
    omega, shift = pow(SNARKJS_ROOT, 1 << (TWO_ADICITY - log_n), FR_MODULUS), coset or 1
    data = in_montgomery_form(values)
    cuda.ntt(data, coset=coset)
    got = limbs_to_ints(data)
    for k in {0, 1, n // 2, n - 1, 12345 % n}:
        x, value = shift * pow(omega, k, FR_MODULUS) % FR_MODULUS, 0
        for coefficient in reversed(values):
            value = (value * x + coefficient) % FR_MODULUS
        assert got[k] == value * FR_R % FR_MODULUS
    cuda.ntt(data, inverse=True, coset=coset)
    assert (data == in_montgomery_form(values)).all()


@pytest.mark.parametrize(
    ("field", "modulus", "factor", "limbs"), [("fr", FR_MODULUS, FR_R, 4), ("fp", FP_MODULUS, FP_R, 6)]
)
def test_field_operations(field, modulus, factor, limbs):
    """Python's integers, and blst for products."""
    edges = [0, 1, 2, modulus - 1, modulus - 2, modulus // 2, (1 << 32) - 1, 1 << 32, 1 << 64]
    a = [x for x in edges for _ in edges] + [x * x % modulus for x in random_scalars(5000, 31)]
    b = [x for _ in edges for x in edges] + [x * x * x % modulus for x in random_scalars(5000, 32)]
    left, right, back = ints_to_limbs(a, limbs), ints_to_limbs(b, limbs), pow(factor, -1, modulus)
    products = getattr(cuda, f"{field}_mul")(left, right)
    assert limbs_to_ints(products) == [x * y * back % modulus for x, y in zip(a, b)]
    assert limbs_to_ints(getattr(cuda, f"{field}_add")(left, right)) == [(x + y) % modulus for x, y in zip(a, b)]
    assert limbs_to_ints(getattr(cuda, f"{field}_sub")(left, right)) == [(x - y) % modulus for x, y in zip(a, b)]
    for i in range(0, len(a), 97):
        assert (peers.blst_product(field, left[i], right[i]) == products[i]).all()
    assert limbs_to_ints(getattr(cuda, f"{field}_to_montgomery")(left)) == [x * factor % modulus for x in a]
    assert limbs_to_ints(getattr(cuda, f"{field}_from_montgomery")(left)) == [x * back % modulus for x in a]


@pytest.mark.parametrize("log_n", [3, 8, 12])
def test_the_quotient_polynomial(log_n):
    """a · b − c at points outside the domain, by Python: values of the coefficients' polynomials."""
    n = 1 << log_n
    a, b = fr(n, 41), fr(n, 42)
    c = [x * y % FR_MODULUS for x, y in zip(a, b)]
    got = limbs_to_ints(cuda.h_polynomial(*(in_montgomery_form(x) for x in (a, b, c))))
    omega = pow(SNARKJS_ROOT, 1 << (TWO_ADICITY - log_n), FR_MODULUS)
    odd = pow(SNARKJS_ROOT, 1 << (TWO_ADICITY - log_n - 1), FR_MODULUS)

    def value(evaluations, x):
        """By the barycentric formula of Lagrange."""
        total = 0
        for i, y in enumerate(evaluations):
            root = pow(omega, i, FR_MODULUS)
            total += y * root * pow(x - root, -1, FR_MODULUS)
        return (pow(x, n, FR_MODULUS) - 1) * pow(n, -1, FR_MODULUS) * total % FR_MODULUS

    for k in {0, 1, n // 2, n - 1}:
        x = odd * pow(omega, k, FR_MODULUS) % FR_MODULUS
        assert got[k] == (value(a, x) * value(b, x) - value(c, x)) % FR_MODULUS

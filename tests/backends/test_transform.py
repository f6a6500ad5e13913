"""Transforms against sums of plain integers, and their inverses."""

import numpy as np
import pytest

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import FR_MODULUS as R
from tests.backends.judges import random_scalars


def montgomery(values: list[int]) -> np.ndarray:
    return host.fr_to_montgomery(host.ints_to_limbs(values, 4))


def plain(values: np.ndarray) -> list[int]:
    return host.limbs_to_ints(host.fr_from_montgomery(values))


def evaluate(coefficients: list[int], x: int) -> int:
    result = 0
    for c in reversed(coefficients):
        result = (result * x + c) % R
    return result


@pytest.mark.parametrize("log_n", range(8))
@pytest.mark.parametrize("root", [host.SNARKJS_ROOT, host.BELLMAN_ROOT], ids=["snarkjs", "bellman"])
@pytest.mark.parametrize("coset", [None, 7])
def test_forward_is_evaluation_and_inverse_brings_it_back(field_path, log_n, root, coset):
    n = 1 << log_n
    coefficients, omega, g = random_scalars(n, log_n), pow(root, 2**32 >> log_n, R), coset or 1
    values = montgomery(coefficients)
    assert host.ntt(values, root=root, coset=coset) is None
    assert plain(values) == [evaluate(coefficients, g * pow(omega, i, R) % R) for i in range(n)]
    host.ntt(values, root=root, coset=coset, inverse=True)
    assert plain(values) == coefficients


@pytest.mark.parametrize("log_n", [9, 10, 11, 12])
def test_larger_sizes_at_some_points(field_path, log_n):
    n = 1 << log_n
    coefficients, omega = random_scalars(n), pow(host.SNARKJS_ROOT, 2**32 >> log_n, R)
    values = montgomery(coefficients)
    host.ntt(values)
    result = plain(values)
    for i in (0, 1, 2, n // 2, n // 3, n - 1):
        assert result[i] == evaluate(coefficients, pow(omega, i, R))


def test_bytes_do_not_depend_on_threads(field_path):
    start = montgomery(random_scalars(1 << 12))
    for inverse in (False, True):
        results = []
        for threads in (1, 2, 3, 7):
            values = start.copy()
            host.ntt(values, inverse=inverse, coset=5, threads=threads)
            results.append(values.tobytes())
        assert len(set(results)) == 1


@pytest.mark.parametrize("kind", ["largest", "zero", "one and zeros", "largest in turn"])
@pytest.mark.parametrize("log_n", [6, 13, 16])
def test_extreme_values(field_path, kind, log_n):
    n = 1 << log_n
    values = np.zeros((n, 4), np.uint64)
    largest = host.ints_to_limbs([R - 1], 4)
    if kind == "largest":
        values[:] = largest
    elif kind == "one and zeros":
        values[0] = largest
    elif kind == "largest in turn":
        values[::2] = largest
    before = values.copy()
    host.ntt(values, threads=1)
    result = host.limbs_to_ints(values)
    if kind in ("zero", "one and zeros"):
        assert result == [R - 1 if kind == "one and zeros" else 0] * n
    else:
        # A constant sequence transforms to one value at 0, an alternating one to another at n/2 too.
        peaks = {0: n} if kind == "largest" else {0: n // 2, n // 2: n // 2}
        assert result == [(R - 1) * peaks.get(i, 0) % R for i in range(n)]
    host.ntt(values, inverse=True, threads=1)
    assert (values == before).all()


def test_h_polynomial_is_the_product_minus_c_on_odd_powers(field_path):
    n = 64
    omega_2n = pow(host.SNARKJS_ROOT, 2**32 // (2 * n), R)
    a, b, c = (random_scalars(n, seed) for seed in (1, 2, 3))
    coefficients = []
    for values in (a, b, c):
        x = montgomery(values)
        host.ntt(x, inverse=True)
        coefficients.append(plain(x))
    expected = []
    for i in range(n):
        ai, bi, ci = (evaluate(p, pow(omega_2n, 2 * i + 1, R)) for p in coefficients)
        expected.append((ai * bi - ci) % R)
    for threads in (1, 3):
        result = host.h_polynomial(montgomery(a), montgomery(b), montgomery(c), threads=threads)
        assert host.limbs_to_ints(result) == expected


def test_refusals():
    for n in (0, 3, 12):
        with pytest.raises(ValueError, match="power of two"):
            host.ntt(np.zeros((n, 4), np.uint64))
    values = np.zeros((4, 4), np.uint64)
    with pytest.raises(ValueError, match="order"):
        host.ntt(values, root=5)
    with pytest.raises(ValueError, match="coset"):
        host.ntt(values, coset=R)
    with pytest.raises(ValueError, match="at least 1"):
        host.ntt(values, threads=0)
    values.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        host.ntt(values)
    with pytest.raises(ValueError, match=r"shape \(4, 4\)"):
        host.h_polynomial(np.zeros((4, 4), np.uint64), np.zeros((2, 4), np.uint64), np.zeros((4, 4), np.uint64))

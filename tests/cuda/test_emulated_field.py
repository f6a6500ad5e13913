"""The algorithms of field_ptx.cuh, compiled for the CPU with an emulated carry flag, against Python integers."""

import ctypes
import random
import subprocess

import numpy as np
import pytest

from cuzklab.backends.bls12_381 import FP_MODULUS, FP_R, FR_MODULUS, FR_R
from cuzklab.backends.limbs import ints_to_limbs, limbs_to_ints
from cuzklab.backends.native import find_compiler
from cuzklab.resources import folder

FIELDS = {"fp": (FP_MODULUS, FP_R, 6), "fr": (FR_MODULUS, FR_R, 4)}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    target = tmp_path_factory.mktemp("emulated") / "field.so"
    source = folder("kernels").parent / "tests" / "cuda" / "emulated_field.cpp"
    compiler = find_compiler()
    command = [*compiler.command, "-std=c++17", "-O1", "-fno-strict-aliasing", *compiler.options]
    subprocess.run([*command, "-shared", "-fPIC", f"-I{folder('kernels')}", str(source), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def apply(library, name, a, b, limbs):
    a, b = ints_to_limbs(a, limbs), ints_to_limbs(b, limbs)
    out = np.full_like(a, 0xDEADBEEFDEADBEEF)
    getattr(library, name)(*(ctypes.c_void_p(x.ctypes.data) for x in (a, b, out)), ctypes.c_uint64(len(a)))
    return limbs_to_ints(out)


def operands(field, bound, seed):
    """Random values below `bound`, and all pairs of those at which carries and corrections turn."""
    modulus, factor, _ = FIELDS[field]
    words = [sum(0xFFFFFFFF << (32 * i) for i in range(j, 12, 2)) for j in range(2)]
    edges = [0, 1, 2, modulus - 1, modulus, modulus + 1, bound - 1, factor % modulus, 1 << 32, (1 << 32) - 1, 1 << 64]
    edges = [x % bound for x in (*edges, *words, bound // 2, modulus // 2)]
    source = random.Random(seed)
    a = [x for x in edges for _ in edges] + [source.randrange(bound) for _ in range(4000)]
    b = [x for _ in edges for x in edges] + [source.randrange(bound) for _ in range(4000)]
    return a, b


@pytest.mark.parametrize("field", ["fp", "fr"])
def test_arithmetic_on_all_of_the_lazy_range_is_exact(library, field):
    modulus, factor, limbs = FIELDS[field]
    back = pow(factor, -1, modulus)
    a, b = operands(field, 2 * modulus, 1)
    assert apply(library, f"{field}_mul", a, b, limbs) == [x * y * back % modulus for x, y in zip(a, b)]
    assert apply(library, f"{field}_sqr", a, b, limbs) == [x * x * back % modulus for x in a]
    assert apply(library, f"{field}_add", a, b, limbs) == [(x + y) % modulus for x, y in zip(a, b)]
    assert apply(library, f"{field}_sub", a, b, limbs) == [(x - y) % modulus for x, y in zip(a, b)]


def test_a_product_by_a_canonical_factor_stays_below_twice_r(library):
    a, b = operands("fr", 2 * FR_MODULUS, 2)
    b = [x % FR_MODULUS for x in b]
    got = apply(library, "fr_times_raw", a, b, 4)
    assert max(got) < 2 * FR_MODULUS
    assert [x % FR_MODULUS for x in got] == [x * y * pow(FR_R, -1, FR_MODULUS) % FR_MODULUS for x, y in zip(a, b)]


def test_a_product_by_a_known_factor_is_plain_and_stays_below_twice_r(library):
    """The factor's quotient replaces Montgomery's rows; all of 256 bits may be multiplied."""
    for bound in (2 * FR_MODULUS, 1 << 256):
        a, b = operands("fr", bound, 5)
        b = [x % FR_MODULUS for x in b]
        b[:3] = [FR_MODULUS - 1, 0, 1]
        a[:3] = [bound - 1] * 3
        left, out = ints_to_limbs(a, 4), np.full((len(a), 4), 0xDEADBEEFDEADBEEF, np.uint64)
        right = np.hstack([ints_to_limbs(b, 4), ints_to_limbs([(x << 256) // FR_MODULUS for x in b], 4)])
        library.fr_times_known_raw(
            *(ctypes.c_void_p(x.ctypes.data) for x in (left, right, out)), ctypes.c_uint64(len(a))
        )
        got = limbs_to_ints(out)
        assert [x % FR_MODULUS for x in got] == [x * y % FR_MODULUS for x, y in zip(a, b)]
        # r·(1 + x / 2^256), and a little for the columns that the quotient leaves out.
        assert all(y * 2**256 < FR_MODULUS * (2**256 + x + 2**228) for x, y in zip(a, got))


def test_fp_products_stay_below_twice_p_without_a_correction(library):
    a, b = operands("fp", 2 * FP_MODULUS + 1, 3)
    back = pow(FP_R, -1, FP_MODULUS)
    got = apply(library, "fp_mul_raw", a, b, 6)
    assert max(got) < 2 * FP_MODULUS
    assert [x % FP_MODULUS for x in got] == [x * y * back % FP_MODULUS for x, y in zip(a, b)]
    squares = apply(library, "fp_square_raw", a, b, 6)
    assert max(squares) < 2 * FP_MODULUS
    assert [x % FP_MODULUS for x in squares] == [x * x * back % FP_MODULUS for x in a]
    differences = apply(library, "fp_difference_of_products", a, b, 6)[::2][: len(a) // 2]
    assert differences == [(a[i] * b[i] - a[i + 1] * b[i + 1]) * back % FP_MODULUS for i in range(0, len(a) - 1, 2)]
    sums = apply(library, "fp_sum_of_products_raw", a, b, 6)[::2]
    sums = sums[: len(a) // 2]
    assert max(sums) < 2 * FP_MODULUS
    wanted = [(a[i] * b[i] + a[i + 1] * b[i + 1]) * back % FP_MODULUS for i in range(0, len(a) - 1, 2)]
    assert [x % FP_MODULUS for x in sums] == wanted


def test_fp2_products(library):
    source = random.Random(4)
    extremes = [0, FP_MODULUS, 2 * FP_MODULUS - 1]
    a = [source.choice(extremes) for _ in range(1000)] + [source.randrange(2 * FP_MODULUS) for _ in range(1000)]
    b = [source.choice(extremes) for _ in range(1000)] + [source.randrange(2 * FP_MODULUS) for _ in range(1000)]
    out = np.empty((2000, 6), np.uint64)
    la, lb = ints_to_limbs(a, 6), ints_to_limbs(b, 6)
    back = pow(FP_R, -1, FP_MODULUS)
    library.fp2_mul(*(ctypes.c_void_p(x.ctypes.data) for x in (la, lb, out)), ctypes.c_uint64(1000))
    wanted = []
    for i in range(0, 2000, 2):
        wanted.append((a[i] * b[i] - a[i + 1] * b[i + 1]) * back % FP_MODULUS)
        wanted.append((a[i] * b[i + 1] + a[i + 1] * b[i]) * back % FP_MODULUS)
    assert limbs_to_ints(out) == wanted
    library.fp2_sqr(*(ctypes.c_void_p(x.ctypes.data) for x in (la, lb, out)), ctypes.c_uint64(1000))
    wanted = []
    for i in range(0, 2000, 2):
        wanted.append((a[i] * a[i] - a[i + 1] * a[i + 1]) * back % FP_MODULUS)
        wanted.append(2 * a[i] * a[i + 1] * back % FP_MODULUS)
    assert limbs_to_ints(out) == wanted

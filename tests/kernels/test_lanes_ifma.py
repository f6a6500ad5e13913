"""Eight lanes of AVX-512 IFMA against Python integers, at the edges of what each operation promises to take."""

import ctypes
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cuzklab.backends import native
from cuzklab.backends.bls12_381 import FP_MODULUS, FR_MODULUS
from cuzklab.resources import folder

FIELDS = {"fp": (FP_MODULUS, 8), "fr": (FR_MODULUS, 5)}
IFMA = next(path for path in native.FIELD_PATHS if path.name == "ifma")
MASK = (1 << 52) - 1


@pytest.fixture(scope="module")
def lanes(tmp_path_factory):
    compiler = native.find_compiler()
    if not IFMA.runs_on(native.cpu_features(compiler)):
        pytest.skip("this CPU lacks AVX-512 IFMA")
    library = tmp_path_factory.mktemp("lanes") / "lanes.so"
    source = Path(__file__).with_name("lanes_ifma.cpp")
    options = [*native._OPTIONS, *compiler.options, *IFMA.vector_options, "-I", str(folder("kernels"))]
    subprocess.run([*compiler.command, *options, "-shared", str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def spread(values: list[int], limbs: int) -> np.ndarray:
    """Eight integers as [limb][lane]; the top limb takes whatever is left."""
    parts = [[v >> 52 * i & (MASK if i + 1 < limbs else ~0) for v in values] for i in range(limbs)]
    return np.array(parts, np.int64).view(np.uint64)


def values_of(array: np.ndarray) -> list[int]:
    """The integers of [limb][lane], each limb normal."""
    assert (array <= MASK).all()
    return [sum(int(x) << 52 * i for i, x in enumerate(column)) for column in array.T]


def call(lanes, name: str, *arrays: np.ndarray, limbs: int) -> list[int]:
    out = np.zeros((limbs, 8), np.uint64)
    getattr(lanes, name)(*(ctypes.c_void_p(x.ctypes.data) for x in (*arrays, out)))
    return values_of(out)


def samples(modulus: int, most: int, seed: int) -> list[list[int]]:
    """Values below most · modulus, in eights: all multiples and their neighbours, and random ones."""
    generator = random.Random(seed)
    edges = [k * modulus + d for k in range(most + 1) for d in (-2, -1, 0, 1, 2)] + [1 << 52 * i for i in range(1, 5)]
    edges = [v for v in edges if 0 <= v < most * modulus] + [generator.randrange(most * modulus) for _ in range(80)]
    generator.shuffle(edges)
    return [edges[i : i + 8] for i in range(0, len(edges) - 7, 8)]


def loosened(values: list[int], limbs: int, seed: int) -> np.ndarray:
    """The same values with limbs of any sign and size, as sums and products leave them."""
    array = spread(values, limbs).view(np.int64)
    generator = random.Random(seed)
    for lane in range(8):
        for i in range(limbs - 1):
            carry = generator.randrange(-60, 61)
            array[i, lane] += carry << 52
            array[i + 1, lane] -= carry
    return array.view(np.uint64)


@pytest.mark.parametrize("field", FIELDS)
def test_products_of_normal_factors(lanes, field):
    modulus, limbs = FIELDS[field]
    r = 1 << 52 * limbs
    back = pow(r, -1, modulus)
    # What the callers use: any normal factor against one below 1.1 modulus, and equal bounds of 5 for Fp.
    for a, b in [
        *zip(samples(modulus, 33, 1), samples(modulus, 1, 2) * 3),
        *(zip(samples(modulus, 5, 3), samples(modulus, 5, 4)) if field == "fp" else ()),
    ]:
        got = call(lanes, f"{field}_product", spread(a, limbs), spread(b, limbs), limbs=limbs)
        assert [x % modulus for x in got] == [x * y * back % modulus for x, y in zip(a, b)]
        assert all(x <= modulus + x0 * y0 // r for x, x0, y0 in zip(got, a, b))


@pytest.mark.parametrize("field", FIELDS)
def test_squares(lanes, field):
    modulus, limbs = FIELDS[field]
    r = 1 << 52 * limbs
    back = pow(r, -1, modulus)
    for a in samples(modulus, 5, 1):
        got = call(lanes, f"{field}_square", spread(a, limbs), limbs=limbs)
        assert [x % modulus for x in got] == [x * x * back % modulus for x in a]
        assert all(x <= modulus + y * y // r for x, y in zip(got, a))


def test_sums_of_two_products(lanes):
    back = pow(1 << 416, -1, FP_MODULUS)
    for quads in zip(*(samples(FP_MODULUS, 5, seed) for seed in (1, 2, 3, 4))):
        got = call(lanes, "fp_dot", *(spread(x, 8) for x in quads), limbs=8)
        assert [x % FP_MODULUS for x in got] == [(a * b + c * d) * back % FP_MODULUS for a, b, c, d in zip(*quads)]
        assert all(x < FP_MODULUS * 1001 // 1000 for x in got)


def test_products_over_the_extension(lanes):
    back = pow(1 << 416, -1, FP_MODULUS)
    for a0, a1, b0, b1 in zip(*(samples(FP_MODULUS, 4, seed) for seed in (5, 6, 7, 8))):
        a, b = (np.stack([spread(x, 8), spread(y, 8)]) for x, y in ((a0, a1), (b0, b1)))
        for name, arrays, c0, c1 in (("times", (a, b), b0, b1), ("squared", (a,), a0, a1)):
            out = np.zeros((2, 8, 8), np.uint64)
            getattr(lanes, f"fp2_{name}")(*(ctypes.c_void_p(x.ctypes.data) for x in (*arrays, out)))
            real, imaginary = ([x % FP_MODULUS for x in values_of(part)] for part in out)
            assert real == [(x * z - y * w) * back % FP_MODULUS for x, y, z, w in zip(a0, a1, c0, c1)]
            assert imaginary == [(x * w + y * z) * back % FP_MODULUS for x, y, z, w in zip(a0, a1, c0, c1)]


@pytest.mark.parametrize("field", FIELDS)
def test_loose_values_become_normal(lanes, field):
    modulus, limbs = FIELDS[field]
    for i, values in enumerate(samples(modulus, 8, 1)):
        assert call(lanes, f"{field}_normal", loosened(values, limbs, i), limbs=limbs) == values


@pytest.mark.parametrize("field", FIELDS)
def test_canonical_below_twice_the_modulus(lanes, field):
    modulus, limbs = FIELDS[field]
    for values in samples(modulus, 2, 1):
        assert call(lanes, f"{field}_canonical", spread(values, limbs), limbs=limbs) == [v % modulus for v in values]


def test_reduction_from_half_to_eight_times_the_modulus(lanes):
    for i, values in enumerate(samples(FP_MODULUS, 8, 1) + samples(FP_MODULUS, 8, 2)):
        values = [v if v >= FP_MODULUS // 2 else v + FP_MODULUS // 2 for v in values]
        got = call(lanes, "fp_reduced", loosened(values, 8, i), limbs=8)
        assert [x % FP_MODULUS for x in got] == [v % FP_MODULUS for v in values]
        assert all(x < FP_MODULUS * 1001 // 1000 for x in got)


def test_reduction_of_what_transforms_leave(lanes):
    for i, values in enumerate(samples(FR_MODULUS, 34, 1)):
        got = call(lanes, "fr_far_canonical", loosened(values, 5, i), limbs=5)
        assert got == [v % FR_MODULUS for v in values]


@pytest.mark.parametrize("field", FIELDS)
def test_multiples_of_the_modulus_are_found(lanes, field):
    modulus, limbs = FIELDS[field]
    for values in samples(modulus, 4, 1):
        array = spread(values, limbs)
        exact, rough = (
            getattr(lanes, f"{field}_{name}")(ctypes.c_void_p(array.ctypes.data))
            for name in ("multiples", "perhaps_multiples")
        )
        assert [bool(exact >> i & 1) for i in range(8)] == [v % modulus == 0 for v in values]
        assert all(rough >> i & 1 for i, v in enumerate(values) if v and v % modulus == 0)


@pytest.mark.parametrize("field", FIELDS)
def test_words_and_limbs_are_the_same_number(lanes, field):
    modulus, limbs = FIELDS[field]
    for values in samples(modulus, 1, 1):
        assert call(lanes, f"{field}_through_words", spread(values, limbs), limbs=limbs) == values


def test_eight_consecutive_elements_come_back(lanes):
    for values in samples(FR_MODULUS, 1, 2):
        words = np.frombuffer(b"".join(v.to_bytes(32, "little") for v in values), np.uint64).copy()
        limbs, back = np.zeros((5, 8), np.uint64), np.zeros_like(words)
        lanes.fr_eight(*(ctypes.c_void_p(x.ctypes.data) for x in (words, limbs, back)))
        assert (back == words).all()
        assert values_of(limbs) == [values[i] for i in (0, 2, 1, 3, 4, 6, 5, 7)]

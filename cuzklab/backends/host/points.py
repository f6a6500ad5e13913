"""Single points, and the tests that points from outside must pass."""

import functools

import numpy as np

from cuzklab.backends import bls12_381
from cuzklab.backends.bls12_381 import FP_MODULUS
from cuzklab.backends.host.field import _canonical, fp_constant
from cuzklab.backends.host.parallel import ranges, run, thread_count
from cuzklab.backends.limbs import checked, coordinates_to_limbs, ints_to_limbs
from cuzklab.backends.native import load

G1_GENERATOR = coordinates_to_limbs(bls12_381.G1_GENERATOR)
G2_GENERATOR = coordinates_to_limbs(bls12_381.G2_GENERATOR)
G1_GENERATOR.flags.writeable = G2_GENERATOR.flags.writeable = False

LIMBS = {"g1": 12, "g2": 24}


def checked_points(group: str, name: str, points: np.ndarray) -> np.ndarray:
    """`points`, if it is an (n, 12) or (n, 24) array of points of this group."""
    return checked(name, points, np.uint64, None, LIMBS[group])


def lockstep_scratch(group: str) -> np.ndarray:
    """What a native call needs that works on many points in lockstep."""
    return np.empty(getattr(load().library, f"{group}_lockstep_scratch_bytes")(), np.uint8)


def _checked_point(group: str, name: str, point: np.ndarray) -> np.ndarray:
    checked(name, point, np.uint64, LIMBS[group])
    _canonical("fp", name, point.reshape(-1, 6))
    return point


def _add(group: str, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    _checked_point(group, "p", p), _checked_point(group, "q", q)
    out = np.empty(LIMBS[group], np.uint64)
    getattr(load().library, f"{group}_add")(p.ctypes.data, q.ctypes.data, out.ctypes.data)
    return out


def _neg(group: str, p: np.ndarray) -> np.ndarray:
    _checked_point(group, "p", p)
    out = np.empty(LIMBS[group], np.uint64)
    getattr(load().library, f"{group}_neg")(p.ctypes.data, out.ctypes.data)
    return out


def _mul(group: str, p: np.ndarray, k: int) -> np.ndarray:
    _checked_point(group, "p", p)
    words = max(1, -(-abs(k).bit_length() // 64))
    out, limbs = np.empty(LIMBS[group], np.uint64), ints_to_limbs([abs(k)], words)
    getattr(load().library, f"{group}_mul")(p.ctypes.data, limbs.ctypes.data, words, out.ctypes.data)
    return _neg(group, out) if k < 0 else out


def add_g1(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """p + q of two G1 points (12,)."""
    return _add("g1", p, q)


def add_g2(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """p + q of two G2 points (24,)."""
    return _add("g2", p, q)


def neg_g1(p: np.ndarray) -> np.ndarray:
    """−p of a G1 point (12,)."""
    return _neg("g1", p)


def neg_g2(p: np.ndarray) -> np.ndarray:
    """−p of a G2 point (24,)."""
    return _neg("g2", p)


def mul_g1(p: np.ndarray, k: int) -> np.ndarray:
    """k·p of a point (12,) of the whole curve and any integer k, taken as it is and not modulo r."""
    return _mul("g1", p, k)


def mul_g2(p: np.ndarray, k: int) -> np.ndarray:
    """k·p of a point (24,) of the whole twisted curve and any integer k, taken as it is and not modulo r."""
    return _mul("g2", p, k)


def _first_bad(group: str, test: str, points: np.ndarray, constant: np.ndarray, threads: int | None) -> int:
    checked_points(group, "points", points)
    function, width = getattr(load().library, f"{group}_{test}"), 8 * LIMBS[group]
    threads, found = thread_count(threads), []
    in_lockstep = test == "in_subgroup"

    def work(begin: int, end: int, scratch: np.ndarray | None) -> None:
        more = (scratch.ctypes.data,) if in_lockstep else ()
        bad = function(points.ctypes.data + width * begin, end - begin, constant.ctypes.data, *more)
        if bad >= 0:
            found.append(begin + bad)

    pieces = ranges(len(points), 4 * threads if threads > 1 else 1, multiple=256)
    run(work, pieces, threads, (lambda: lockstep_scratch(group)) if in_lockstep else lambda: None)
    return min(found, default=-1)


def on_curve_g1(points: np.ndarray, threads: int | None = None) -> int:
    """Index of the first of (n, 12) points that is neither infinity nor on y² = x³ + 4, or −1.

    A coordinate that is not below the modulus counts as off the curve.
    """
    return _first_bad("g1", "on_curve", points, fp_constant(4), threads)


def on_curve_g2(points: np.ndarray, threads: int | None = None) -> int:
    """Index of the first of (n, 24) points that is neither infinity nor on y² = x³ + 4(1 + u), or −1."""
    return _first_bad("g2", "on_curve", points, np.concatenate([fp_constant(4), fp_constant(4)]), threads)


def in_subgroup_g1(points: np.ndarray, threads: int | None = None) -> int:
    """Index of the first of (n, 12) points outside the subgroup of order r, or −1.

    Points must lie on the curve: ask `on_curve_g1` first. The test is φ(P) = −[z²]P: M. Scott, "A note on group
    membership tests for G1, G2 and GT on BLS pairing-friendly curves", IACR ePrint 2021/1130.
    """
    return _first_bad("g1", "in_subgroup", points, _beta(), threads)


def in_subgroup_g2(points: np.ndarray, threads: int | None = None) -> int:
    """Index of the first of (n, 24) points outside the subgroup of order r, or −1.

    Points must lie on the curve: ask `on_curve_g2` first. The test is ψ(P) = [z]P; source as in `in_subgroup_g1`.
    """
    return _first_bad("g2", "in_subgroup", points, _frobenius(), threads)


@functools.cache
def _beta() -> np.ndarray:
    """The cube root of unity β with (βx, y) = −[z²](x, y) in the subgroup: of the two, 2^((p−1)/3) by trial.

    Its choice is checked against the generator, so a wrong one cannot go unnoticed.
    """
    z = 0xD201000000010000
    target = mul_g1(G1_GENERATOR, -z * z)
    for k in (1, 2):
        beta = fp_constant(pow(2, k * (FP_MODULUS - 1) // 3, FP_MODULUS))
        x = bls12_381.G1_GENERATOR[0] * pow(2, k * (FP_MODULUS - 1) // 3, FP_MODULUS) % FP_MODULUS
        if (coordinates_to_limbs((x, bls12_381.G1_GENERATOR[1])) == target).all():
            return beta
    raise AssertionError("no cube root of unity acts as −z² on the generator")


@functools.cache
def _frobenius() -> np.ndarray:
    """cx = (1 + u)^−((p−1)/3) and cy = (1 + u)^−((p−1)/2) of ψ, (4, 6) in Montgomery form."""
    cx = _fp2_power((1, 1), -(FP_MODULUS - 1) // 3)
    cy = _fp2_power((1, 1), -(FP_MODULUS - 1) // 2)
    return np.concatenate([fp_constant(x) for x in (*cx, *cy)])


def _fp2_power(base: tuple[int, int], exponent: int) -> tuple[int, int]:
    """base^exponent in Fp[u]/(u² + 1), as plain integers; the group has order p² − 1."""
    result, square = (1, 0), base
    exponent %= FP_MODULUS * FP_MODULUS - 1
    while exponent:
        if exponent & 1:
            result = _fp2_product(result, square)
        square, exponent = _fp2_product(square, square), exponent >> 1
    return result


def _fp2_product(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return (a[0] * b[0] - a[1] * b[1]) % FP_MODULUS, (a[0] * b[1] + a[1] * b[0]) % FP_MODULUS

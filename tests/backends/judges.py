"""Points and scalars for the tests, and the independent implementations that judge results."""

import random

import numpy as np
import py_arkworks_bls12381 as arkworks

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import FP_MODULUS as P
from cuzklab.backends.bls12_381 import FR_MODULUS as R

GROUPS = ("g1", "g2")
WIDTH = {"g1": 12, "g2": 24}


def function(name: str, group: str):
    return getattr(host, f"{name}_{group}")


def scalars_to_limbs(scalars) -> np.ndarray:
    return host.ints_to_limbs(scalars, 4)


def to_arkworks(group: str, point: np.ndarray):
    """The point as arkworks reads it, unchecked: it may lie outside the subgroup."""
    kind = arkworks.G1Point if group == "g1" else arkworks.G2Point
    if not point.any():
        return kind.identity()
    data = b"".join(x.to_bytes(48, "little") for x in host.limbs_to_coordinates(point))
    return kind.from_xy_bytes_unchecked_le(data)


def from_arkworks(group: str, point) -> np.ndarray:
    if point == type(point).identity():
        return np.zeros(WIDTH[group], np.uint64)
    data = bytes(point.to_xy_bytes_le())
    return host.coordinates_to_limbs(int.from_bytes(data[i : i + 48], "little") for i in range(0, len(data), 48))


def arkworks_msm(group: str, points: np.ndarray, scalars: list[int]) -> np.ndarray:
    kind = arkworks.G1Point if group == "g1" else arkworks.G2Point
    values = [arkworks.Scalar.from_le_bytes(k.to_bytes(32, "little")) for k in scalars]
    return from_arkworks(group, kind.multiexp_unchecked([to_arkworks(group, p) for p in points], values))


def random_scalars(n: int, seed: int = 1) -> list[int]:
    generator = random.Random(seed)
    return [generator.randrange(R) for _ in range(n)]


def known_points(group: str, n: int, seed: int = 2) -> tuple[np.ndarray, list[int]]:
    """Points and their discrete logarithms, so that plain integers judge any sum of them."""
    logarithms = random_scalars(n, seed)
    return function("fixed_base", group)(scalars_to_limbs(logarithms)), logarithms


def generator_multiple(group: str, k: int) -> np.ndarray:
    """k times the generator by arkworks."""
    kind = arkworks.G1Point if group == "g1" else arkworks.G2Point
    return from_arkworks(group, kind() * arkworks.Scalar.from_le_bytes((k % R).to_bytes(32, "little")))


def _fp2_square_root(a: tuple[int, int]) -> tuple[int, int] | None:
    """A root of a in Fp2, by the norm (p = 3 mod 4)."""
    norm = pow(a[0] * a[0] + a[1] * a[1], (P + 1) // 4, P)
    for sign in (1, -1):
        half = (a[0] + sign * norm) * pow(2, -1, P) % P
        x = pow(half, (P + 1) // 4, P)
        if x * x % P == half and x:
            y = a[1] * pow(2 * x, -1, P) % P
            if ((x * x - y * y) % P, 2 * x * y % P) == (a[0] % P, a[1] % P):
                return x, y
    return None


def curve_point(group: str, start: int = 5) -> np.ndarray:
    """A point of the whole curve, not of the subgroup (all but one in cofactor-many are not)."""
    for x in range(start, start + 1000):
        if group == "g1":
            square = (x**3 + 4) % P
            y = pow(square, (P + 1) // 4, P)
            if y * y % P == square:
                return host.coordinates_to_limbs((x, y))
        else:
            # x real: x³ + 4(1 + u)
            root = _fp2_square_root(((x**3 + 4) % P, 4))
            if root is not None:
                return host.coordinates_to_limbs((x, 0, *root))
    raise AssertionError("no point found")

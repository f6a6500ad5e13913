"""Field elements as limbs and as integers, and the names of fields by their primes."""

from collections.abc import Sequence

import numpy as np

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
"""Order of the groups of BLS12-381: the scalar field's prime."""
P = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
"""Prime of the coordinates."""
FR_BYTES, FP_BYTES = 32, 48

_MONTGOMERY = 1 << 384
_MONTGOMERY_INVERSE = pow(_MONTGOMERY, -1, P)
_BLOCK = 1 << 18


def _barreto_naehrig(t: int) -> tuple[int, int]:
    """Coordinate prime and group order of the Barreto-Naehrig curve with parameter t."""
    order = 36 * t**4 + 36 * t**3 + 18 * t**2 + 6 * t + 1
    return order + 6 * t**2, order


def _barreto_lynn_scott_12(x: int) -> tuple[int, int]:
    """Coordinate prime and group order of the BLS curve of embedding degree 12 with parameter x."""
    order = x**4 - x**2 + 1
    return (x - 1) ** 2 * order // 3 + x, order


_BN254 = _barreto_naehrig(4965661367192848881)
_BLS12_377 = _barreto_lynn_scott_12(0x8508C00000000001)
_NAMES = {
    R: "the scalar field of BLS12-381",
    P: "the coordinate field of BLS12-381",
    _BN254[1]: "the scalar field of BN254",
    _BN254[0]: "the coordinate field of BN254 (Grumpkin's scalar field)",
    _BLS12_377[1]: "the scalar field of BLS12-377",
    _BLS12_377[0]: "the coordinate field of BLS12-377",
    2**64 - 2**32 + 1: "the Goldilocks field",
    2**254 + 45560315531419706090280762371685220353: "the coordinate field of Pallas",
    2**254 + 45560315531506369815346746415080538113: "the coordinate field of Vesta",
    2**256 - 2**224 + 2**192 + 2**96 - 1: "the coordinate field of P-256",
}


def field_name(prime: int) -> str:
    """What a person calls the field of this prime; its bit length where no name is known."""
    return _NAMES.get(prime) or f"an unknown field with a modulus of {prime.bit_length()} bits"


def limbs_from_integers(values: Sequence[int], limbs: int) -> np.ndarray:
    """Integers in [0, 2^(64·limbs)) as an array of shape (n, limbs) uint64, low limb first."""
    raw = b"".join(value.to_bytes(8 * limbs, "little") for value in values)
    return np.frombuffer(raw, dtype="<u8").reshape(-1, limbs).copy()


def integers_from_limbs(array: np.ndarray) -> list[int]:
    """The integers in an array of shape (n, limbs) uint64."""
    raw, width = array.tobytes(), 8 * array.shape[-1]
    return [int.from_bytes(raw[at : at + width], "little") for at in range(0, len(raw), width)]


def coordinates(point: np.ndarray) -> list[int]:
    """Plain coordinates of one affine point in Montgomery form: x, y of G1 (12 limbs); x.c0, x.c1, y.c0, y.c1 of G2."""
    return [value * _MONTGOMERY_INVERSE % P for value in integers_from_limbs(point.reshape(-1, 6))]


def point_from_coordinates(values: Sequence[int]) -> np.ndarray:
    """One affine point in Montgomery form, (12,) uint64 from two plain coordinates or (24,) from four."""
    return limbs_from_integers([value * _MONTGOMERY % P for value in values], 6).reshape(-1)


def first_not_below(array: np.ndarray, modulus: int) -> int:
    """Index of the first row of an (n, limbs) uint64 array that is not an integer below `modulus`; −1 if all are."""
    bound = limbs_from_integers([modulus], array.shape[1])[0]
    for start in range(0, len(array), _BLOCK):
        block = array[start : start + _BLOCK]
        # Only rows whose top limb reaches the modulus' own need the comparison of all limbs.
        candidates = np.flatnonzero(block[:, -1] >= bound[-1])
        below = np.zeros(len(candidates), dtype=bool)
        for limb in range(array.shape[1]):
            column = block[candidates, limb]
            below = (column < bound[limb]) | ((column == bound[limb]) & below)
        if not below.all():
            return start + int(candidates[np.argmin(below)])
    return -1

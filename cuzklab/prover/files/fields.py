"""What files say about fields: which one, by its prime, and whether numbers are below it."""

import numpy as np

from cuzklab.backends.bls12_381 import FP_MODULUS, FR_MODULUS
from cuzklab.backends.limbs import ints_to_limbs

FR_BYTES, FP_BYTES = 32, 48
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
    FR_MODULUS: "the scalar field of BLS12-381",
    FP_MODULUS: "the coordinate field of BLS12-381",
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


def first_not_below(array: np.ndarray, modulus: int) -> int:
    """Index of the first row of an (n, limbs) uint64 array that is not an integer below `modulus`; −1 if all are."""
    bound = ints_to_limbs([modulus], array.shape[1])[0]
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

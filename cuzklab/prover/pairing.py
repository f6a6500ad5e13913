"""Points for the pairing library, and the one product that everything here is checked by."""

from collections.abc import Iterable, Sequence

import numpy as np
from py_arkworks_bls12381 import GT, G1Point, G2Point

from cuzklab.backends import host
from cuzklab.prover.files.fields import FP_BYTES


def library_points(points: np.ndarray) -> list[G1Point] | list[G2Point]:
    """Points, (n, 12) or (n, 24) uint64 in Montgomery form and below the modulus, as the pairing library takes them.

    Raises
    ------
    ValueError
        A point that is not on its curve. The subgroup is not looked at.
    """
    kind, width = (G1Point, 2 * FP_BYTES) if points.shape[1] == 12 else (G2Point, 4 * FP_BYTES)
    plain = host.fp_from_montgomery(np.ascontiguousarray(points).reshape(-1, 6)).tobytes()
    raw = [plain[at : at + width] for at in range(0, len(plain), width)]
    return [kind.from_xy_bytes_unchecked_le(it) if any(it) else kind.identity() for it in raw]


def pairing_product_is_one(g1: Sequence[np.ndarray], g2: Iterable[np.ndarray]) -> bool:
    """Whether Π e(g1_i, g2_i) = 1, for points (12,) and (24,) on their curves and in the subgroups of order r."""
    return GT.pairing_check(library_points(np.stack(g1)), library_points(np.stack(list(g2))))

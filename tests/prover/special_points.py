"""Points that lie on the curve and outside the subgroup, made with py_ecc: r times a point of the whole curve, so their
order divides the cofactor."""

import functools

from py_ecc import optimized_bls12_381 as curve
from py_ecc.bls.point_compression import modular_squareroot_in_FQ2

from cuzklab.backends.bls12_381 import FP_MODULUS, FR_MODULUS
from cuzklab.backends.limbs import coordinates_to_limbs


@functools.cache
def cofactor_point_g1() -> tuple[int, ...]:
    """Plain x and y of a point of G1's curve."""
    point = (curve.FQ(4), curve.FQ(pow(4**3 + 4, (FP_MODULUS + 1) // 4, FP_MODULUS)), curve.FQ(1))
    assert curve.is_on_curve(point, curve.b)
    small = curve.multiply(point, FR_MODULUS)
    assert not curve.is_inf(small)
    return tuple(int(n) for n in curve.normalize(small))


@functools.cache
def cofactor_point_g2() -> tuple[int, ...]:
    """Plain x.c0, x.c1, y.c0, y.c1 of a point of G2's curve."""
    x = 0
    while (y := modular_squareroot_in_FQ2(curve.FQ2([x, 1]) ** 3 + curve.b2)) is None:
        x += 1
    small = curve.multiply((curve.FQ2([x, 1]), y, curve.FQ2.one()), FR_MODULUS)
    assert not curve.is_inf(small)
    return tuple(int(n) for coordinate in curve.normalize(small) for n in coordinate.coeffs)


def add_g1(point: list[str], other: tuple[int, ...]):
    """A G1 point in snarkjs's JSON plus another, as (12,) uint64 in Montgomery form."""
    total = curve.add(tuple(curve.FQ(int(n)) for n in point), (*map(curve.FQ, other), curve.FQ(1)))
    return coordinates_to_limbs([int(n) for n in curve.normalize(total)])

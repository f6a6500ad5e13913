"""The host backend: BLS12-381 arithmetic on CPU threads, numpy arrays in and out.

`field` is element-wise arithmetic and sparse products, `transform` the number-theoretic transforms, `msm` the sums of
many points, `points` single points and membership tests,
`encoding` points of files, `scalars` the classification of a split MSM, `parallel` how
work is shared out. Layouts: an Fr element is 4 little-endian uint64 limbs, an Fp element 6; a G1 point x‖y has 12,
a G2 point 24, affine, in Montgomery form, infinity all zeros. Scalars of points are plain integers below r.

Every result is affine or canonical, hence unique: bytes do not depend on the number of threads. `threads=None` means
all cores. Wrong types, shapes or layouts raise ValueError; without a compiler the first call raises BadInput.
"""

from cuzklab.backends.bls12_381 import BELLMAN_ROOT, FP_MODULUS, FR_MODULUS, SNARKJS_ROOT
from cuzklab.backends.host.encoding import Refused, decode_points, encode_points, gather_points
from cuzklab.backends.host.field import (
    fp_add,
    fp_from_montgomery,
    fp_inverse,
    fp_mul,
    fp_sub,
    fp_to_montgomery,
    fr_add,
    fr_from_montgomery,
    fr_inverse,
    fr_mul,
    fr_powers,
    fr_sub,
    fr_to_montgomery,
    spmv,
    spmv_coded,
)
from cuzklab.backends.host.msm import (
    fixed_base_g1,
    fixed_base_g2,
    masked_sum_g1,
    masked_sum_g2,
    msm_g1,
    msm_g2,
    multiply_each_g1,
    multiply_each_g2,
)
from cuzklab.backends.host.points import (
    G1_GENERATOR,
    G2_GENERATOR,
    add_g1,
    add_g2,
    in_subgroup_g1,
    in_subgroup_g2,
    mul_g1,
    mul_g2,
    neg_g1,
    neg_g2,
    on_curve_g1,
    on_curve_g2,
)
from cuzklab.backends.host.scalars import Classes, classes_of_query, classify, count_bits, gather, gather_rows
from cuzklab.backends.host.transform import h_coefficients, h_polynomial, ntt
from cuzklab.backends.limbs import coordinates_to_limbs, ints_to_limbs, limbs_to_coordinates, limbs_to_ints

__all__ = [
    "BELLMAN_ROOT",
    "FP_MODULUS",
    "FR_MODULUS",
    "G1_GENERATOR",
    "G2_GENERATOR",
    "SNARKJS_ROOT",
    "Classes",
    "Refused",
    "add_g1",
    "add_g2",
    "classes_of_query",
    "classify",
    "coordinates_to_limbs",
    "count_bits",
    "decode_points",
    "encode_points",
    "fixed_base_g1",
    "fixed_base_g2",
    "fp_add",
    "fp_from_montgomery",
    "fp_inverse",
    "fp_mul",
    "fp_sub",
    "fp_to_montgomery",
    "fr_add",
    "fr_from_montgomery",
    "fr_inverse",
    "fr_mul",
    "fr_powers",
    "fr_sub",
    "fr_to_montgomery",
    "gather",
    "gather_points",
    "gather_rows",
    "h_coefficients",
    "h_polynomial",
    "in_subgroup_g1",
    "in_subgroup_g2",
    "ints_to_limbs",
    "limbs_to_coordinates",
    "limbs_to_ints",
    "masked_sum_g1",
    "masked_sum_g2",
    "msm_g1",
    "msm_g2",
    "mul_g1",
    "mul_g2",
    "multiply_each_g1",
    "multiply_each_g2",
    "neg_g1",
    "neg_g2",
    "ntt",
    "on_curve_g1",
    "on_curve_g2",
    "spmv",
    "spmv_coded",
]

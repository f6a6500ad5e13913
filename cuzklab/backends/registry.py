"""Which kernels each backend has benches for, and the source that holds the heart of each.

The benches, trials and the roofline take their names from here, and so does whoever offers them.
"""

from collections.abc import Mapping

# By backend and kernel: a file under `kernels/`. Those that the host's vector units have for themselves lie beside it.
KERNELS: Mapping[str, Mapping[str, str]] = {
    "host": {
        "fp_mul": "field/field_adx.h",
        "fr_mul": "field/field_adx.h",
        "msm_g1": "msm/batch_affine.h",
        "msm_g2": "msm/batch_affine.h",
        "ntt": "ntt/butterflies.h",
        "masked_sum_g1": "msm/point_tree.h",
        "masked_sum_g2": "msm/point_tree.h",
    },
    # `pinned_`: points and scalars in page-locked host memory. `fixed_`: multiples of the points are stored beforehand.
    "cuda": {
        "ntt": "cuda/ntt.cu",
        "h_polynomial": "cuda/ntt.cu",
        "msm_g1": "cuda/accumulate.cu",
        "pinned_msm_g1": "cuda/accumulate.cu",
        "fixed_msm_g1": "cuda/accumulate.cu",
        "msm_g2": "cuda/accumulate.cu",
        "fixed_msm_g2": "cuda/accumulate.cu",
        "masked_sum_g1": "cuda/accumulate.cu",
        "masked_sum_g2": "cuda/accumulate.cu",
    },
}

"""The CUDA backend: the functions of `host` on a GPU.

`compile` builds the kernels of `kernels/cuda/` (no GPU needed), `launch` finds the GPU and starts them. `field`,
`transform`, `quotient`, `msm` and `multiples` are the surface; `buckets` is what the last two are made of, in `parts`
whose copies overlap with kernels, and in one allocation (`arena`); `bench` measures what `harness` sets up. For proofs
and live runs: `backend` is the stages' arithmetic, `keys` that of test keys, `device` a device under a memory limit,
made of `streams`, `memory`, `workspace` and `clock`; `observe` sees each kernel and copy, `latency` is what a launch
takes, `arrivals` lets kernels begin on part of an upload, `card` says what the GPU is, `stalls` which of `host_calls`
stop other streams' kernels. Arrays are numpy's, copied as needed, or CuPy's, used where they lie. Importing this
package needs neither CuPy nor a GPU; the first call raises BadInput where one is missing.
"""

from cuzklab.backends.cuda.field import (
    fp_add,
    fp_from_montgomery,
    fp_mul,
    fp_sub,
    fp_to_montgomery,
    fr_add,
    fr_from_montgomery,
    fr_mul,
    fr_sub,
    fr_to_montgomery,
)
from cuzklab.backends.cuda.launch import available
from cuzklab.backends.cuda.msm import masked_sum_g1, masked_sum_g2, msm_g1, msm_g2
from cuzklab.backends.cuda.multiples import Multiples, msm_of_multiples, store_multiples
from cuzklab.backends.cuda.quotient import h_coefficients, h_polynomial, release_tables
from cuzklab.backends.cuda.transform import ntt

__all__ = [
    "Multiples",
    "available",
    "fp_add",
    "fp_from_montgomery",
    "fp_mul",
    "fp_sub",
    "fp_to_montgomery",
    "fr_add",
    "fr_from_montgomery",
    "fr_mul",
    "fr_sub",
    "fr_to_montgomery",
    "h_coefficients",
    "h_polynomial",
    "masked_sum_g1",
    "masked_sum_g2",
    "msm_g1",
    "msm_g2",
    "msm_of_multiples",
    "ntt",
    "release_tables",
    "store_multiples",
]

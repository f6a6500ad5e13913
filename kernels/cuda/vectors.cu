// Element-wise field arithmetic, for tests and for the passes between kernels. Results are canonical.
#include "../field/field_ptx.cuh"

#define INDEX (u64(blockIdx.x) * blockDim.x + threadIdx.x)

// A step of 0 repeats one element.
#define BINARY(name, F, expression) \
  extern "C" __global__ void name(const F* left, u64 left_step, const F* right, u64 right_step, F* out, u64 n) { \
    const u64 i = INDEX; \
    if (i >= n) return; \
    const F a = left[i * left_step], b = right[i * right_step]; \
    out[i] = (expression).reduced(); \
  }

#define FIELD_KERNELS(prefix, F) \
  BINARY(prefix##_add, F, a + b) \
  BINARY(prefix##_sub, F, a - b) \
  BINARY(prefix##_mul, F, a * b) \
  extern "C" __global__ void prefix##_to_montgomery(const F* x, F* out, u64 n) { \
    const u64 i = INDEX; \
    if (i < n) out[i] = x[i].times(F::r_squared()).reduced(); \
  } \
  extern "C" __global__ void prefix##_from_montgomery(const F* x, F* out, u64 n) { \
    const u64 i = INDEX; \
    if (i >= n) return; \
    F unit = F::zero(); \
    unit.l[0] = 1; \
    out[i] = x[i].times(unit).reduced(); \
  }

FIELD_KERNELS(fp, Fp)
FIELD_KERNELS(fr, Fr)

// What this card can do at most: rates that floors are computed from.
#include "../field/fp2_ptx.cuh"
#include "../curve/weierstrass.h"

// Rows of a product as in Accumulator, four wide multiply-adds each, four independent ones side by side.
extern "C" __global__ void __launch_bounds__(128, 4) wide_multiply_adds(u32* out, u32 factor, u32 rounds) {
  u32 x[4][8], a[8];
#pragma unroll
  for (int j = 0; j < 8; j++) a[j] = factor * (j + 1) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) x[i][j] = threadIdx.x + 8 * i + j;
#pragma unroll 1
  for (u32 round = 0; round < rounds; round++) {
#pragma unroll
    for (int repeat = 0; repeat < 4; repeat++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const u32 b = x[i][0];
        mad_pair(x[i][0], x[i][1], a[0], b, x[i][0], x[i][1]);
#pragma unroll
        for (int j = 2; j < 8; j += 2) madc_pair(x[i][j], x[i][j + 1], a[j], b, x[i][j], x[i][j + 1]);
      }
  }
  u32 sum = 0;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) sum ^= x[i][j];
  out[blockIdx.x * 128 + threadIdx.x] = sum;
}

#define CHAINS(name, F, step) \
  extern "C" __global__ void __launch_bounds__(128, 4) name(F* out, const F* in, u32 rounds) { \
    const u32 t = blockIdx.x * 128 + threadIdx.x; \
    F a = in[0], b = in[1]; \
    a.l[0] ^= threadIdx.x; \
    _Pragma("unroll 1") for (u32 round = 0; round < rounds; round++) { step; step; step; step; } \
    out[t] = a; \
  }
CHAINS(fp_products, Fp, a = a * b)
CHAINS(fr_products, Fr, a = a.times(b))
CHAINS(fp_squares, Fp, a = a.squared())

extern "C" __global__ void __launch_bounds__(128, 4) mixed_additions(Xyzz<Fp>* out, const Affine<Fp>* in, u32 rounds) {
  const u32 t = blockIdx.x * 128 + threadIdx.x;
  Xyzz<Fp> sum = Xyzz<Fp>::of(in[t % 64]);
#pragma unroll 1
  for (u32 round = 1; round <= rounds; round++) add(sum, in[(t + round) % 64]);
  out[t] = sum;
}

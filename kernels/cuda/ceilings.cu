// What this card can do at most: rates that floors are computed from.
#include "../field/fp2_ptx.cuh"
#include "../curve/weierstrass.h"

// Eight independent chains of wide multiply-adds, each with its carry: 8 · 4 · rounds of them a thread.
extern "C" __global__ void __launch_bounds__(256) wide_multiply_adds(u32* out, u32 factor, u32 rounds) {
  u32 x[8][8];
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) x[i][j] = threadIdx.x + 8 * i + j;
  u32 b = factor;
#pragma unroll 1
  for (u32 round = 0; round < rounds; round++) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
      mad_pair(x[i][0], x[i][1], x[i][1], b, x[i][0], x[i][1]);
#pragma unroll
      for (int j = 2; j < 8; j += 2) madc_pair(x[i][j], x[i][j + 1], x[i][j + 1], b, x[i][j], x[i][j + 1]);
    }
  }
  u32 sum = 0;
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) sum ^= x[i][j];
  out[blockIdx.x * 256 + threadIdx.x] = sum;
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

// Fp2 on a GPU: Karatsuba's three products without reduction, then one reduction a coordinate.
//
// 3 · 144 + 2 · 144 wide multiply-adds; two sums of products with a reduction each take 2 · 432. With factors below 2p:
// a0·b0 − a1·b1 + 4p² and (a0 + a1)(b0 + b1) − a0·b0 − a1·b1 lie below 8p², so reduced they lie below 2p.
#pragma once

#include "field_ptx.cuh"

template <class F>
struct Fp2;
FN_PRODUCT Fp2<Fp> fp2_product(Fp2<Fp> a, Fp2<Fp> b);

#include "fp2.h"

// 4p².
CONSTANT u64 fp_four_squares[12] = {
    0x9aa8000071c638e4ull, 0xf3b5ac75d8e0baacull, 0x58b0ce0d8844f3f5ull, 0x9afe47b4f9c6dd0cull,
    0xa4ba16a1c2468125ull, 0x75a18672186171ecull, 0xd4c524cc25e3bc04ull, 0x4298b3f45b7729bbull,
    0x9b967924d27a2f41ull, 0x8b72439439c11ad1ull, 0x2f49e3aa88bc97a7ull, 0x0a90de92e30d7f1dull};

FN_PRODUCT Fp2<Fp> fp2_product(Fp2<Fp> a, Fp2<Fp> b) {
  constexpr int n = Fp::words;
  Fp a_sum, b_sum;
  a_sum.l[0] = add_cc(a.c0.l[0], a.c1.l[0]);
#pragma unroll
  for (int i = 1; i < n; i++) a_sum.l[i] = addc_cc(a.c0.l[i], a.c1.l[i]);
  b_sum.l[0] = add_cc(b.c0.l[0], b.c1.l[0]);
#pragma unroll
  for (int i = 1; i < n; i++) b_sum.l[i] = addc_cc(b.c0.l[i], b.c1.l[i]);
  u32 low[2 * n], high[2 * n], cross[2 * n];
  product_wide<FpParameters>(low, a.c0.l, b.c0.l);
  product_wide<FpParameters>(high, a.c1.l, b.c1.l);
  product_wide<FpParameters>(cross, a_sum.l, b_sum.l);
  cross[0] = sub_cc(cross[0], low[0]);
#pragma unroll
  for (int i = 1; i < 2 * n; i++) cross[i] = subc_cc(cross[i], low[i]);
  cross[0] = sub_cc(cross[0], high[0]);
#pragma unroll
  for (int i = 1; i < 2 * n; i++) cross[i] = subc_cc(cross[i], high[i]);
  low[0] = add_cc(low[0], ((const u32*)fp_four_squares)[0]);
#pragma unroll
  for (int i = 1; i < 2 * n; i++) low[i] = addc_cc(low[i], ((const u32*)fp_four_squares)[i]);
  low[0] = sub_cc(low[0], high[0]);
#pragma unroll
  for (int i = 1; i < 2 * n; i++) low[i] = subc_cc(low[i], high[i]);
  Fp2<Fp> c;
  reduce_wide<FpParameters>(c.c0.l, low);
  reduce_wide<FpParameters>(c.c1.l, cross);
  return c;
}

// G1 on AVX-512 IFMA. Built with options of its own: only a CPU that has the instructions may run any of it.
#include "../field/fp2_ifma.h"

typedef Fp Coordinate;
#define ENTRY(name) g1_##name
#include "sum_entries_ifma.h"

extern "C" __attribute__((visibility("default"))) i64 g1_in_subgroup(const Point* points, u64 n, const Fp* beta,
                                                                     void* scratch) {
  return first_outside(points, n, 2, [=](const Point& p) { return Point{p.x * *beta, p.y}; }, scratch);
}

// The time of rounds · 8 products in lanes, in four independent chains.
extern "C" __attribute__((visibility("default"))) void fp_repeat_products(Fp* x, u64 rounds) {
  FpLanes value[4];
  for (FpLanes& v : value) v = FpLanes::all(limbs52<FpParameters, 8>(x[0].l));
  const FpLanes factor = FpLanes::all(limbs52<FpParameters, 8>(x[8].l));
  for (u64 i = 0; i < rounds; i++) value[i % 4] = times(value[i % 4], factor).normal();
  u64 limbs[8];
  for (int j = 0; j < 8; j++) limbs[j] = u64(_mm512_reduce_or_epi64((value[0] + value[1] + value[2] + value[3]).l[j]));
  for (int w = 0; w < 6; w++) x[7].l[w] = limbs[w];  // so that no compiler drops the loop
  x[7].l[5] = 0;
}

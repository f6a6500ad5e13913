// G2: the twisted curve over Fp2.
#include "canonical.h"

typedef Fp2<Fp> Coordinate;
#define ENTRY(name) g2_##name
#include "curve_entries.h"

#ifndef CUZKLAB_FIELD_IFMA  // g2_ifma.cpp has it
#include "../curve/subgroup.h"

// Index of the first point outside the subgroup of order r, or −1. Points must lie on the curve.
extern "C" __attribute__((visibility("default"))) i64 g2_in_subgroup(const Point* points, u64 n, const Coordinate* frobenius, void*) {
  for (u64 i = 0; i < n; i++)
    if (!in_subgroup_g2(points[i], frobenius[0], frobenius[1])) return i64(i);
  return -1;
}
#endif

// G1: the curve over Fp.
#include "canonical.h"

typedef Fp Coordinate;
#define ENTRY(name) g1_##name
#include "curve_entries.h"

#ifndef CUZKLAB_FIELD_IFMA  // g1_ifma.cpp has it
#include "../curve/subgroup.h"

// Index of the first point outside the subgroup of order r, or −1. Points must lie on the curve.
extern "C" __attribute__((visibility("default"))) i64 g1_in_subgroup(const Point* points, u64 n, const Fp* beta, void*) {
  for (u64 i = 0; i < n; i++)
    if (!in_subgroup_g1(points[i], *beta)) return i64(i);
  return -1;
}
#endif

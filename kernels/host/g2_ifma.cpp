// G2 on AVX-512 IFMA. Built with options of its own: only a CPU that has the instructions may run any of it.
#include "../field/fp2_ifma.h"

typedef Fp2<Fp> Coordinate;
#define ENTRY(name) g2_##name
#include "sum_entries_ifma.h"

extern "C" __attribute__((visibility("default"))) i64 g2_in_subgroup(const Point* points, u64 n, const Coordinate* frobenius,
                                                                     void* scratch) {
  const auto image = [=](const Point& p) {
    return Point{p.x.conjugated() * frobenius[0], p.y.conjugated() * frobenius[1]};
  };
  return first_outside(points, n, 1, image, scratch);
}

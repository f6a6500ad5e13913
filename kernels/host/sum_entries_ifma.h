// The entry points of one group that the path `ifma` has of its own, instantiated by g1_ifma.cpp and g2_ifma.cpp.
// They stand in for those of the same names in curve_entries.h.
#pragma once

#include "../msm/lockstep_ifma.h"
#include "../msm/pippenger_ifma.h"
#include "lockstep_entries.h"
#include "to_affine.h"

typedef Affine<Coordinate> Point;

extern "C" {
#pragma GCC visibility push(default)

u64 ENTRY(msm_scratch_bytes)(u64 n, u32 bits) {
  const Recoding r = recoding(bits);
  const u64 middle = buckets_of_window(r, 0), last = buckets_of_window(r, r.windows - 1);
  return LaneWindowScratch<Coordinate>::bytes(n, middle > last ? middle : last);
}

void ENTRY(msm_window)(const Point* points, const u64* scalars, u32 n, u32 bits, u32 window, void* scratch,
                       Point* out) {
  *out = to_affine(window_sum_in_lanes(points, scalars, n, recoding(bits), window, scratch));
}

u64 ENTRY(sum_scratch_bytes)() { return sizeof(LaneTree<Coordinate>) + sizeof(LanePoint<Coordinate>) + 64; }

void ENTRY(masked_sum)(const Point* points, const u64* bitmap, u64 begin, u64 end, void* scratch, Point* out) {
  LaneTree<Coordinate>& tree = *(LaneTree<Coordinate>*)((u64(scratch) + 63) & ~u64(63));
  LanePoint<Coordinate>& sum = *(LanePoint<Coordinate>*)(&tree + 1);
  sum = lane_infinity<Coordinate>();
  tree.begin();
  for (u64 i = begin; i < end;) {
    u64 word = bitmap[i / 64] >> (i % 64);
    const u64 stop = (i / 64 + 1) * 64 < end ? (i / 64 + 1) * 64 : end;
    for (; word != 0; word &= word - 1) {
      const u64 at = i + u64(__builtin_ctzll(word));
      if (at >= stop) break;
      tree.push(&sum, &points[at], false);
    }
    i = stop;
  }
  tree.finish();
  *out = of_lane_point(sum);
}

LOCKSTEP_ENTRIES(InLanes<Coordinate>)
#pragma GCC visibility pop
}

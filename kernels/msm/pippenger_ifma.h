// One window of Pippenger's method on one CPU thread, on eight lanes: the method of pippenger.h.
#pragma once

#include "buckets.h"
#include "digits.h"
#include "point_tree_ifma.h"

// Everything that a window needs, laid out in the caller's scratch.
template <class S>
struct LaneWindowScratch {
  static constexpr u32 chunks = 128;

  LaneTree<S>* tree;
  LanePoint<S>* bucket;  // buckets, then 2 · chunks sums of the reduction
  u32* end;              // of each bucket in `sorted`
  u32* sorted;           // indices of points, the sign in the top bit
  i32* digits;

  static u64 bytes(u64 points, u64 buckets) {
    return sizeof(LaneTree<S>) + (buckets + 2 * chunks) * sizeof(LanePoint<S>) +
           (buckets + 2 + 2 * points) * sizeof(u32) + 64;
  }
  LaneWindowScratch(void* memory, u64 points, u64 buckets) {
    u64 at = (u64(memory) + 63) & ~u64(63);
    tree = (LaneTree<S>*)at;
    bucket = (LanePoint<S>*)(at += sizeof(LaneTree<S>));
    end = (u32*)(at += (buckets + 2 * chunks) * sizeof(LanePoint<S>));
    sorted = end + buckets + 2;
    digits = (i32*)(sorted + points);
  }
};

// Σ (b + 1) · bucket[b]. Chunks of consecutive buckets keep running sums side by side, from their tops down. A total
// takes up the running sum of the step before, so that one batch serves both additions.
template <class S>
Xyzz<S> weighted_sum_in_chunks(LaneWindowScratch<S>& s, u32 buckets) {
  constexpr u32 chunks = LaneWindowScratch<S>::chunks;
  u32 log_length = 0;
  while ((u64(chunks) << log_length) < buckets) log_length++;
  const u32 length = 1u << log_length;
  LanePoint<S>*running = s.bucket + buckets, *total = running + chunks;
  for (u32 i = 0; i < 2 * chunks; i++) running[i] = lane_infinity<S>();
  LaneAdder<S>& adder = s.tree->adder;
  for (u32 j = length; j-- > 0;) {
    for (u32 chunk = 0; chunk < chunks; chunk++) {
      const u32 b = chunk * length + j;
      // A batch stores its last results first: a total reads its running sum before that is overwritten.
      if (b < buckets && j + 1 < length) adder.push(&running[chunk], &s.bucket[b], &running[chunk]);
      if (b < buckets && j + 1 == length) running[chunk] = s.bucket[b];
      if (j + 1 < length) adder.push(&total[chunk], &running[chunk], &total[chunk]);
    }
    adder.template flush<false>();
  }
  for (u32 chunk = 0; chunk < chunks; chunk++) adder.push(&total[chunk], &running[chunk], &total[chunk]);
  adder.template flush<false>();
  // Chunk c counted its buckets from one: c · length · running[c] is still missing.
  Xyzz<S> weighted = Xyzz<S>::infinity(), plain = Xyzz<S>::infinity();
  for (u32 chunk = chunks; chunk-- > 1;) {
    add(plain, of_lane_point(running[chunk]));
    add(weighted, plain);
  }
  for (u32 i = 0; i < log_length; i++) weighted = doubled(weighted);
  for (u32 chunk = 0; chunk < chunks; chunk++) add(weighted, of_lane_point(total[chunk]));
  return weighted;
}

template <class S>
Xyzz<S> window_sum_in_lanes(const Affine<S>* points, const u64* scalars, u32 n, const Recoding& r, u32 window,
                            void* scratch) {
  const u32 buckets = buckets_of_window(r, window);
  LaneWindowScratch<S> s(scratch, n, buckets);
  // Keys: 0 for digit zero, then b + 1 for digits b + 1 and −(b + 1).
  for (u32 key = 0; key <= buckets + 1; key++) s.end[key] = 0;
  u32* start = s.end + 1;
  for (u32 i = 0; i < n; i++) {
    const i32 d = s.digits[i] = digit(r, scalars + 4 * u64(i), window);
    start[d < 0 ? -d : d]++;
  }
  u32 place = 0;
  for (u32 key = 0; key <= buckets; key++) {
    const u32 count = start[key];
    start[key] = place;
    place += count;
  }
  // As entries move to their places, start[key] moves on to the end of its key: the start of the next.
  for (u32 i = 0; i < n; i++) {
    const i32 d = s.digits[i];
    s.sorted[start[d < 0 ? -d : d]++] = i | u32(d < 0) << 31;
  }
  s.tree->begin();
  u32 i = start[0];
  for (u32 key = 1; key <= buckets; key++) {
    if (i == start[key]) s.bucket[key - 1] = lane_infinity<S>();
    for (const u32 stop = start[key]; i < stop; i++)
      s.tree->push(&s.bucket[key - 1], &points[s.sorted[i] & 0x7fffffff], s.sorted[i] >> 31);
  }
  s.tree->finish();
  return weighted_sum_in_chunks(s, buckets);
}

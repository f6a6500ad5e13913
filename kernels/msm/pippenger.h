// One window of Pippenger's method on one CPU thread: Σ digit_i · point_i.
//
// Counting sort by |digit|, bucket sums by a tree of batched affine additions, then the weighted sum of the buckets.
#pragma once

#include "buckets.h"
#include "digits.h"
#include "point_tree.h"

// Everything that a window needs, laid out in the caller's scratch.
template <class F>
struct WindowScratch {
  static constexpr u32 lanes = 128;

  PointTree<F>* tree;
  Affine<F>* bucket;   // buckets, then 2 · lanes sums of the reduction
  u32* end;            // of each bucket in `sorted`
  u32* sorted;         // 2 · index + sign

  static u64 bytes(u64 points, u64 buckets) {
    return sizeof(PointTree<F>) + (buckets + 2 * lanes) * sizeof(Affine<F>) + (buckets + 2 + points) * sizeof(u32) + 64;
  }
  WindowScratch(void* memory, u64 buckets) {
    u64 at = (u64(memory) + 63) & ~u64(63);
    tree = (PointTree<F>*)at;
    bucket = (Affine<F>*)(at += sizeof(PointTree<F>));
    end = (u32*)(at += (buckets + 2 * lanes) * sizeof(Affine<F>));
    sorted = end + buckets + 2;
  }
};

// Σ (b + 1) · bucket[b]. Lanes of consecutive buckets keep running sums side by side, so that these too are batched
// affine additions: about 13M a bucket where a single running sum in XYZZ takes 24M.
template <class F>
Xyzz<F> weighted_sum_in_lanes(WindowScratch<F>& s, u32 buckets) {
  constexpr u32 lanes = WindowScratch<F>::lanes;
  Xyzz<F> weighted, plain;
  if (buckets < 4 * lanes) {
    weighted_sum(s.bucket, buckets, weighted, plain);
    return weighted;
  }
  u32 log_length = 0;
  while ((u64(lanes) << log_length) < buckets) log_length++;
  const u32 length = 1u << log_length;
  Affine<F>*running = s.bucket + buckets, *total = running + lanes;
  for (u32 i = 0; i < 2 * lanes; i++) running[i] = Affine<F>::infinity();
  BatchAdder<F>& adder = s.tree->adder;
  for (u32 j = length; j-- > 0;) {
    for (u32 lane = 0; lane < lanes; lane++) {
      const u32 b = lane * length + j;
      if (b < buckets) adder.push(&running[lane], &s.bucket[b], &running[lane]);
    }
    adder.flush();
    for (u32 lane = 0; lane < lanes; lane++) adder.push(&total[lane], &running[lane], &total[lane]);
    adder.flush();
  }
  // Lane l counted its buckets from one: l · length · running[l] is still missing.
  weighted_sum(running + 1, lanes - 1, weighted, plain);
  for (u32 i = 0; i < log_length; i++) weighted = doubled(weighted);
  for (u32 lane = 0; lane < lanes; lane++) add(weighted, total[lane]);
  return weighted;
}

template <class F>
Xyzz<F> window_sum(const Affine<F>* points, const u64* scalars, u32 n, const Recoding& r, u32 window, void* scratch) {
  const u32 buckets = buckets_of_window(r, window);
  WindowScratch<F> s(scratch, buckets);
  for (u32 b = 0; b < buckets + 2; b++) s.end[b] = 0;
  u32* start = s.end + 1;
  for (u32 i = 0; i < n; i++) {
    const i32 d = digit(r, scalars + 4 * u64(i), window);
    start[d < 0 ? -d : d]++;
  }
  // start[b] becomes the first place of bucket b; digit zero takes part in the sort but not in the sums.
  u32 place = 0;
  for (u32 b = 0; b <= buckets; b++) {
    const u32 count = start[b];
    start[b] = place;
    place += count;
  }
  const u32 zeros = buckets > 0 ? start[1] : n;
  for (u32 i = 0; i < n; i++) {
    const i32 d = digit(r, scalars + 4 * u64(i), window);
    s.sorted[start[d < 0 ? -d : d]++] = 2 * i + u32(d < 0);
  }
  for (u32 b = 0; b < buckets; b++) s.bucket[b] = Affine<F>::infinity();
  s.tree->begin();
  u32 i = zeros;
  for (u32 b = 0; b < buckets; b++)
    for (const u32 stop = start[b + 1]; i < stop; i++)
      s.tree->push(&s.bucket[b], &points[s.sorted[i] >> 1], s.sorted[i] & 1);
  s.tree->finish();
  return weighted_sum_in_lanes(s, buckets);
}

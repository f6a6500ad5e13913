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
  u32* end;            // of each bucket and sign in `sorted`
  u32* sorted;         // indices of points

  static u64 bytes(u64 points, u64 buckets) {
    return sizeof(PointTree<F>) + (buckets + 2 * lanes) * sizeof(Affine<F>) + (2 * buckets + 3 + points) * sizeof(u32) + 64;
  }
  WindowScratch(void* memory, u64 buckets) {
    u64 at = (u64(memory) + 63) & ~u64(63);
    tree = (PointTree<F>*)at;
    bucket = (Affine<F>*)(at += sizeof(PointTree<F>));
    end = (u32*)(at += (buckets + 2 * lanes) * sizeof(Affine<F>));
    sorted = end + 2 * buckets + 3;
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

FN u32 key_of(i32 digit) { return digit > 0 ? 2 * u32(digit) - 1 : 2 * u32(-digit); }

template <class F>
Xyzz<F> window_sum(const Affine<F>* points, const u64* scalars, u32 n, const Recoding& r, u32 window, void* scratch) {
  const u32 buckets = buckets_of_window(r, window);
  WindowScratch<F> s(scratch, buckets);
  // Keys: 0 for digit zero, then 2b + 1 and 2b + 2 for digits b + 1 and −(b + 1).
  const u32 keys = 2 * buckets + 1;
  for (u32 key = 0; key <= keys; key++) s.end[key] = 0;
  u32* start = s.end + 1;
  for (u32 i = 0; i < n; i++) start[key_of(digit(r, scalars + 4 * u64(i), window))]++;
  u32 place = 0;
  for (u32 key = 0; key < keys; key++) {
    const u32 count = start[key];
    start[key] = place;
    place += count;
  }
  // As entries move to their places, start[key] moves on to the end of its key: the start of the next.
  for (u32 i = 0; i < n; i++) s.sorted[start[key_of(digit(r, scalars + 4 * u64(i), window))]++] = i;
  for (u32 b = 0; b < buckets; b++) s.bucket[b] = Affine<F>::infinity();
  s.tree->begin();
  u32 i = start[0];
  for (u32 key = 1; key < keys; key++)
    for (const u32 stop = start[key]; i < stop; i++)
      s.tree->push(&s.bucket[(key - 1) / 2], &points[s.sorted[i]], (key & 1) == 0);
  s.tree->finish();
  return weighted_sum_in_lanes(s, buckets);
}

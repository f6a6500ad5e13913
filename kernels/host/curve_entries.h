// The C entry points of one group, instantiated by g1.cpp and g2.cpp.
//
// Callers hand in every buffer; nothing here allocates, starts threads or keeps state, so any number of threads may
// call at once. ENTRY(name) puts the group's prefix before a name.
#pragma once

#include "../msm/pippenger.h"
#include "to_affine.h"

typedef Affine<Coordinate> Point;
typedef Xyzz<Coordinate> Sum;

// |k| of `words` words, from the top.
static Sum multiple(const Point& p, const u64* k, u32 words) {
  Sum r = Sum::infinity();
  for (u32 i = 64 * words; i-- > 0;) {
    if (!r.is_infinity()) r = doubled(r);
    if (k[i / 64] >> (i % 64) & 1) add(r, p);
  }
  return r;
}

extern "C" {
#pragma GCC visibility push(default)

#ifndef CUZKLAB_FIELD_IFMA  // sum_entries_ifma.h has these
u64 ENTRY(msm_scratch_bytes)(u64 n, u32 bits) {
  const Recoding r = recoding(bits);
  const u64 middle = buckets_of_window(r, 0), last = buckets_of_window(r, r.windows - 1);
  return WindowScratch<Coordinate>::bytes(n, middle > last ? middle : last);
}

// out = Σ digit_window(scalar_i) · point_i, affine.
void ENTRY(msm_window)(const Point* points, const u64* scalars, u32 n, u32 bits, u32 window, void* scratch, Point* out) {
  *out = to_affine(window_sum(points, scalars, n, recoding(bits), window, scratch));
}

u64 ENTRY(sum_scratch_bytes)() { return sizeof(PointTree<Coordinate>) + 64; }

// out = Σ point_i over the set bits from `begin` to `end`.
void ENTRY(masked_sum)(const Point* points, const u64* bitmap, u64 begin, u64 end, void* scratch, Point* out) {
  PointTree<Coordinate>& tree = *(PointTree<Coordinate>*)((u64(scratch) + 63) & ~u64(63));
  *out = Point::infinity();
  tree.begin();
  for (u64 i = begin; i < end;) {
    u64 word = bitmap[i / 64] >> (i % 64);
    const u64 stop = (i / 64 + 1) * 64 < end ? (i / 64 + 1) * 64 : end;
    for (; word != 0; word &= word - 1) {
      const u64 at = i + u64(__builtin_ctzll(word));
      if (at >= stop) break;
      tree.push(out, &points[at], false);
    }
    i = stop;
  }
  tree.finish();
}
#endif

u32 ENTRY(msm_windows)(u32 bits) { return recoding(bits).windows; }

// sums: parts × windows, part by part. out = Σ 2^(bits · window) · sum.
void ENTRY(msm_combine)(const Point* sums, u32 parts, u32 bits, Point* out) {
  const u32 windows = recoding(bits).windows;
  Sum r = Sum::infinity();
  for (u32 w = windows; w-- > 0;) {
    horner_step(r, bits, sums[w]);
    for (u32 part = 1; part < parts; part++) add(r, sums[part * windows + w]);
  }
  *out = to_affine(r);
}

void ENTRY(sum)(const Point* points, u64 n, Point* out) {
  Sum r = Sum::infinity();
  for (u64 i = 0; i < n; i++) add(r, points[i]);
  *out = to_affine(r);
}

// table[w][m] = (m + 1) · 2^(bits · w) · base for m < 2^(bits − 1), and a last window with all its multiples.
u64 ENTRY(fixed_base_entries)(u32 bits) {
  const Recoding r = recoding(bits);
  return u64(r.windows - 1) * buckets_of_window(r, 0) + buckets_of_window(r, r.windows - 1);
}

u64 ENTRY(fixed_base_scratch_bytes)() { return sizeof(BatchAdder<Coordinate>) + 64; }

void ENTRY(fixed_base_table)(const Point* base, u32 bits, Point* table, void* scratch) {
  const Recoding r = recoding(bits);
  BatchAdder<Coordinate>& adder = *(BatchAdder<Coordinate>*)((u64(scratch) + 63) & ~u64(63));
  adder.count = 0;
  const u32 half = buckets_of_window(r, 0), last = buckets_of_window(r, r.windows - 1);
  Sum power = Sum::of(*base);
  for (u32 w = 0; w < r.windows; w++) {
    table[u64(w) * half] = to_affine(power);
    for (u32 i = 0; i < bits; i++) power = doubled(power);
  }
  // From 1 … known to known + 1 … 2 · known, in all windows at once.
  for (u32 known = 1; known < (half > last ? half : last); known *= 2) {
    for (u32 w = 0; w < r.windows; w++) {
      Point* row = table + u64(w) * half;
      const u32 count = w + 1 < r.windows ? half : last;
      for (u32 m = known; m < 2 * known && m < count; m++) adder.push(&row[known - 1], &row[m - known], &row[m]);
    }
    adder.flush();
  }
}

// out_i = scalar_i · base.
void ENTRY(fixed_base)(const Point* table, u32 bits, const u64* scalars, u64 n, Point* out, void* scratch) {
  const Recoding r = recoding(bits);
  BatchAdder<Coordinate>& adder = *(BatchAdder<Coordinate>*)((u64(scratch) + 63) & ~u64(63));
  adder.count = 0;
  const u32 half = buckets_of_window(r, 0);
  for (u64 begin = 0; begin < n; begin += BatchAdder<Coordinate>::capacity) {
    const u64 end = begin + adder.capacity < n ? begin + adder.capacity : n;
    for (u64 i = begin; i < end; i++) out[i] = Point::infinity();
    for (u32 w = 0; w < r.windows; w++) {
      const Point* row = table + u64(w) * half;
      for (u64 i = begin; i < end; i++) {
        const i32 d = digit(r, scalars + 4 * i, w);
        if (d != 0) adder.push(&out[i], &row[(d < 0 ? -d : d) - 1], &out[i], d < 0);
      }
      adder.flush();
    }
  }
}

void ENTRY(add)(const Point* p, const Point* q, Point* out) {
  Sum r = Sum::of(*p);
  add(r, *q);
  *out = to_affine(r);
}

void ENTRY(neg)(const Point* p, Point* out) { *out = p->negated_if(true); }

void ENTRY(mul)(const Point* p, const u64* k, u32 words, Point* out) { *out = to_affine(multiple(*p, k, words)); }

// Index of the first point off the curve y² = x³ + b, or −1. Coordinates above the modulus count as off.
i64 ENTRY(on_curve)(const Point* points, u64 n, const Coordinate* b) {
  for (u64 i = 0; i < n; i++) {
    const Point& p = points[i];
    if (p.is_infinity()) continue;
    if (!is_canonical(p.x) || !is_canonical(p.y)) return i64(i);
    if (!(p.y.squared() == p.x.squared() * p.x + *b)) return i64(i);
  }
  return -1;
}
#pragma GCC visibility pop
}

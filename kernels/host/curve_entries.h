// The C entry points of one group, instantiated by g1.cpp and g2.cpp.
//
// Callers hand in every buffer; nothing here allocates, starts threads or keeps state, so any number of threads may
// call at once. ENTRY(name) puts the group's prefix before a name.
#pragma once

#include "../msm/pippenger.h"
#include "encoding.h"
#include "lockstep_entries.h"
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

LOCKSTEP_ENTRIES(OneByOne<Coordinate>)
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

// out = Σ 2^shift_i · term_i; shifts ascend.
void ENTRY(sum_of_shifted)(const Sum* terms, const u32* shift, u32 count, Point* out) {
  Sum r = Sum::infinity();
  for (u32 i = count; i-- > 0;) {
    add(r, terms[i]);
    if (r.is_infinity()) continue;
    for (u32 doublings = shift[i] - (i > 0 ? shift[i - 1] : 0); doublings > 0; doublings--) r = doubled(r);
  }
  *out = to_affine(r);
}

void ENTRY(sum)(const Point* points, u64 n, Point* out) {
  Sum r = Sum::infinity();
  for (u64 i = 0; i < n; i++) add(r, points[i]);
  *out = to_affine(r);
}

// Points of a fixed base's table, and its powers 2^(bits · w) · base, one for each window.
u64 ENTRY(fixed_base_entries)(u32 bits) {
  const Recoding r = recoding(bits);
  return u64(r.windows - 1) * buckets_of_window(r, 0) + buckets_of_window(r, r.windows - 1);
}

void ENTRY(fixed_base_powers)(const Point* base, u32 bits, Point* powers) {
  const Recoding r = recoding(bits);
  Sum power = Sum::of(*base);
  for (u32 w = 0; w < r.windows; w++) {
    powers[w] = to_affine(power);
    for (u32 i = 0; i < bits; i++) power = doubled(power);
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

// out_i = the point at index_i (or i, without a list) of `data`, encoded as encoding.h says. Where one is refused, its
// position in out and the reason.
i64 ENTRY(decode)(const unsigned char* data, const u32* index, u64 n, Point* out, u32* reason) {
  for (u64 i = 0; i < n; i++) {
    const u64 at = index ? index[i] : i;
    *reason = decode(data + at * sizeof(Point), out[i]);
    if (*reason != decoded) return i64(i);
  }
  return -1;
}

void ENTRY(encode)(const Point* points, u64 n, unsigned char* out) {
  for (u64 i = 0; i < n; i++) encode(points[i], out + i * sizeof(Point));
}

// out_i = the point at index_i of `data`, which need not be aligned.
void ENTRY(gather)(const unsigned char* data, const u32* index, u64 n, Point* out) {
  constexpr u64 ahead = 16;
  for (u64 i = 0; i < n; i++) {
    if (i + ahead < n)
      for (u64 line = 0; line < sizeof(Point); line += 64)
        __builtin_prefetch(data + index[i + ahead] * sizeof(Point) + line);
    __builtin_memcpy(&out[i], data + index[i] * sizeof(Point), sizeof(Point));
  }
}
#pragma GCC visibility pop
}

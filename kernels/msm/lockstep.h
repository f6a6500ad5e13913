// Multiples of many points side by side: every step is one batch of affine additions, one for each point.
//
// The steps are written once over an adder `E`: pairs of its sums, worked off by flush(), with `of` and `point` to and
// from the callers' points. OneByOne is the scalar one, Lanes (lockstep_ifma.h) the one of AVX-512 IFMA. A chunk of
// points is small enough that its sums stay in the cache and large enough to share an inversion.
#pragma once

#include "batch_affine.h"
#include "digits.h"

template <class F>
struct OneByOne {
  typedef Affine<F> Point;
  typedef Affine<F> Sum;
  static constexpr u32 chunk = BatchAdder<F>::capacity;

  BatchAdder<F> adder;
  Sum base[chunk], sum[chunk];

  FN void begin() { adder.count = 0; }
  // *to = *p ± *q.
  FN void push(const Sum* p, const Sum* q, Sum* to, bool q_negative) { adder.push(p, q, to, q_negative); }
  FN void flush() { adder.flush(); }
  static FN void of(const Point& p, Sum& sum) { sum = p; }
  static FN Point point(const Sum& sum) { return sum; }
  static FN Sum infinity() { return Point::infinity(); }
};

// The adder in the caller's scratch.
template <class E>
FN E& adder_in(void* scratch) {
  E& e = *(E*)((u64(scratch) + 63) & ~u64(63));
  e.begin();
  return e;
}
template <class E>
constexpr u64 adder_bytes = sizeof(E) + 64;

// sum_i = |k| · base_i for the n points in e.base, k ≠ 0 the same for all.
template <class E>
FN void multiply_all(E& e, u32 n, u64 k) {
  for (u32 i = 0; i < n; i++) e.sum[i] = e.base[i];
  for (int bit = 62 - __builtin_clzll(k); bit >= 0; bit--) {
    for (u32 i = 0; i < n; i++) e.push(&e.sum[i], &e.sum[i], &e.sum[i], false);
    e.flush();
    if (!(k >> bit & 1)) continue;
    for (u32 i = 0; i < n; i++) e.push(&e.sum[i], &e.base[i], &e.sum[i], false);
    e.flush();
  }
}

// out_i = scalar_i · point_i; scalars of 128 bits, two words each.
template <class E>
void multiply_each(const typename E::Point* points, const u64* scalars, u64 n, typename E::Point* out, void* scratch) {
  E& e = adder_in<E>(scratch);
  for (u64 begin = 0; begin < n; begin += E::chunk) {
    const u32 count = u32(n - begin < E::chunk ? n - begin : E::chunk);
    for (u32 i = 0; i < count; i++) {
      E::of(points[begin + i], e.base[i]);
      e.sum[i] = E::infinity();
    }
    for (int bit = 127; bit >= 0; bit--) {
      for (u32 i = 0; i < count; i++) e.push(&e.sum[i], &e.sum[i], &e.sum[i], false);
      e.flush();
      for (u32 i = 0; i < count; i++)
        if (scalars[2 * (begin + i) + u32(bit) / 64] >> (bit % 64) & 1) e.push(&e.sum[i], &e.base[i], &e.sum[i], false);
      e.flush();
    }
    for (u32 i = 0; i < count; i++) out[begin + i] = E::point(e.sum[i]);
  }
}

// table[w][m] = (m + 1) · 2^(bits · w) · base for m < 2^(bits − 1), and a last window with all its multiples.
// `powers` holds the 2^(bits · w) · base.
template <class E>
void fixed_base_table(const typename E::Point* powers, const Recoding& r, typename E::Sum* table, void* scratch) {
  E& e = adder_in<E>(scratch);
  const u32 half = buckets_of_window(r, 0), last = buckets_of_window(r, r.windows - 1);
  for (u32 w = 0; w < r.windows; w++) E::of(powers[w], table[u64(w) * half]);
  // From 1 … known to known + 1 … 2 · known, in all windows at once.
  for (u32 known = 1; known < (half > last ? half : last); known *= 2) {
    for (u32 w = 0; w < r.windows; w++) {
      typename E::Sum* row = table + u64(w) * half;
      const u32 count = w + 1 < r.windows ? half : last;
      for (u32 m = known; m < 2 * known && m < count; m++) e.push(&row[known - 1], &row[m - known], &row[m], false);
    }
    e.flush();
  }
}

// out_i = scalar_i · base.
template <class E>
void fixed_base(const typename E::Sum* table, const Recoding& r, const u64* scalars, u64 n, typename E::Point* out,
                void* scratch) {
  E& e = adder_in<E>(scratch);
  const u32 half = buckets_of_window(r, 0);
  for (u64 begin = 0; begin < n; begin += E::chunk) {
    const u32 count = u32(n - begin < E::chunk ? n - begin : E::chunk);
    for (u32 i = 0; i < count; i++) e.sum[i] = E::infinity();
    for (u32 w = 0; w < r.windows; w++) {
      const typename E::Sum* row = table + u64(w) * half;
      for (u32 i = 0; i < count; i++) {
        const i32 d = digit(r, scalars + 4 * (begin + i), w);
        if (d != 0) e.push(&e.sum[i], &row[(d < 0 ? -d : d) - 1], &e.sum[i], d < 0);
      }
      e.flush();
    }
    for (u32 i = 0; i < count; i++) out[begin + i] = E::point(e.sum[i]);
  }
}

// Eight transforms over Fr side by side, one a lane, of a size that fits the cache.
//
// Nothing is reduced between levels. With R = 2^260, 35 times the modulus, a product of any normal factor and a twiddle
// is below twice the modulus; a level adds at most that much to its values. So they stay below 32 times the modulus for
// 16 levels, and a transform of 2^32 elements has two steps of 16.
#pragma once

#include "../field/lanes_ifma.h"
#include "butterflies.h"

typedef Limbs52<5> FrLimbs;

constexpr Words64<4> fr_power_264 = power_of_two<FrParameters>(264);

FN FrLanes fr_all(const FrLimbs& x) { return FrLanes::all(x); }

// Lanes keep the order 0, 2, 1, 3, 4, 6, 5, 7 of eight consecutive elements: half as many moves, and no harm.
FN FrLanes load_eight(const Fr* x) {
  Vector z[4], w[4];
  UNROLL for (int i = 0; i < 4; i++) z[i] = _mm512_loadu_si512((const char*)x + 64 * i);
  const Vector a = _mm512_unpacklo_epi64(z[0], z[1]), b = _mm512_unpackhi_epi64(z[0], z[1]);
  const Vector c = _mm512_unpacklo_epi64(z[2], z[3]), d = _mm512_unpackhi_epi64(z[2], z[3]);
  w[0] = _mm512_shuffle_i64x2(a, c, 0x88), w[2] = _mm512_shuffle_i64x2(a, c, 0xdd);
  w[1] = _mm512_shuffle_i64x2(b, d, 0x88), w[3] = _mm512_shuffle_i64x2(b, d, 0xdd);
  return FrLanes::of_words(w);
}
constexpr u32 element_of_lane[8] = {0, 2, 1, 3, 4, 6, 5, 7};

// Stores canonical values.
FN void store_eight(Fr* x, const FrLanes& lanes) {
  Vector w[4];
  lanes.to_words(w);
  Vector half[4];
  UNROLL for (int i = 0; i < 2; i++) {
    half[i] = _mm512_shuffle_i64x2(w[i], w[i + 2], 0x44);
    half[i + 2] = _mm512_shuffle_i64x2(w[i], w[i + 2], 0xee);
  }
  UNROLL for (int i = 0; i < 4; i++) half[i] = _mm512_shuffle_i64x2(half[i], half[i], 0xd8);
  UNROLL for (int i = 0; i < 4; i += 2) {
    _mm512_storeu_si512((char*)x + 64 * i, _mm512_unpacklo_epi64(half[i], half[i + 1]));
    _mm512_storeu_si512((char*)x + 64 * i + 64, _mm512_unpackhi_epi64(half[i], half[i + 1]));
  }
}

// From a factor in Montgomery form with R = 2^256 to one with R = 2^260.
FN FrLanes as_factor(const FrLanes& x) { return product(x, fr_all(limbs52<FrParameters, 5>(fr_power_264.l))).normal(); }

// The same for a table; n is a multiple of 8.
static __attribute__((noinline)) void to_factors(const Fr* from, FrLimbs* to, u64 n) {
  for (u64 i = 0; i < n; i += 8) {
    const FrLanes x = as_factor(load_eight(from + i));
    u64 limbs[5][8];
    for (int j = 0; j < 5; j++) _mm512_storeu_si512(limbs[j], x.l[j]);
    for (int lane = 0; lane < 8; lane++)
      for (int j = 0; j < 5; j++) to[i + element_of_lane[lane]].l[j] = limbs[j][lane];
  }
}

// Of a loose value below 34 times the modulus: the canonical one. The quotient follows from the leading 22 bits, is
// never too large, and too small by less than 1.001.
FN FrLanes far_canonical(const FrLanes& loose) {
  const FrLanes x = loose.normal();
  constexpr FrLimbs modulus = FrLanes::multiple<1>;
  constexpr u64 top = modulus.l[4] >> 30;
  const Vector none = _mm512_setzero_si512();
  const Vector quotient = _mm512_madd52hi_epu64(none, _mm512_srli_epi64(x.l[4], 30), every((u64(1) << 52) / (top + 1)));
  FrLanes r;
  UNROLL for (int i = 0; i < 5; i++) {
    Vector part = _mm512_madd52lo_epu64(none, quotient, every(modulus.l[i]));
    if (i > 0) part = _mm512_madd52hi_epu64(part, quotient, every(modulus.l[i > 0 ? i - 1 : 0]));
    r.l[i] = _mm512_sub_epi64(x.l[i], part);
  }
  return r.normal().canonical();
}

// Transforms x in place, given in bit-reversed order and canonical; leaves loose values below 32 times the modulus.
// log_size ≥ 2. twiddle as in butterflies.h.
static __attribute__((noinline)) void transform_lanes(FrLanes* x, u32 log_size, const FrLimbs* twiddle) {
  const u32 size = 1u << log_size;
  const FrLanes quarter = fr_all(twiddle[3]);
  for (u32 i = 0; i < size; i += 4) {
    const FrLanes a = x[i] + x[i + 1], b = (x[i] - x[i + 1]).plus<1>(), c = x[i + 2] + x[i + 3];
    const FrLanes d = product((x[i + 2] - x[i + 3]).plus<1>().normal(), quarter);
    x[i] = a + c, x[i + 2] = (a - c).plus<2>();
    x[i + 1] = b + d, x[i + 3] = (b - d).plus<2>();
  }
  u32 half = 4;
  for (; 4 * half <= size; half *= 4) {
    const FrLimbs *w = twiddle + half, *v = twiddle + 2 * half;
    for (u32 block = 0; block < size; block += 4 * half) {
      FrLanes *p0 = x + block, *p1 = p0 + half, *p2 = p1 + half, *p3 = p2 + half;
      for (u32 i = 0; i < half; i++) {
        const FrLanes factor = fr_all(w[i]);
        const FrLanes b = product(p1[i].normal(), factor), d = product(p3[i].normal(), factor);
        const FrLanes c0 = product((p2[i] + d).normal(), fr_all(v[i]));
        const FrLanes c1 = product((p2[i] - d).plus<2>().normal(), fr_all(v[half + i]));
        const FrLanes a0 = p0[i] + b, a1 = (p0[i] - b).plus<2>();
        p0[i] = a0 + c0, p2[i] = (a0 - c0).plus<2>();
        p1[i] = a1 + c1, p3[i] = (a1 - c1).plus<2>();
      }
    }
  }
  if (half < size) {
    const FrLimbs* w = twiddle + half;
    for (u32 i = 0; i < half; i++) {
      const FrLanes a = x[i], b = product(x[half + i].normal(), fr_all(w[i]));
      x[i] = a + b;
      x[half + i] = (a - b).plus<2>();
    }
  }
}

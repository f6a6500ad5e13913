// Points in 52-bit limbs, a vector's worth of memory for each coordinate of Fp, and how eight of them become lanes.
//
// x carries the factor 2^384, as in the points of callers, but y only 2^368. With R = 2^416 this is the scale that
// slopes times differences come out in, so x needs no conversion at all and y one product (see batch_affine_ifma.h).
#pragma once

#include "../curve/weierstrass.h"
#include "../field/fp2_ifma.h"

// What belongs to a field: its lanes, and its form in memory.
template <class S>
struct LanesOf;
template <>
struct LanesOf<Fp> {
  typedef FpLanes Type;
};
template <>
struct LanesOf<Fp2<Fp>> {
  typedef Fp2Lanes Type;
};

template <class S>
struct alignas(64) LanePoint {
  static constexpr u32 words = sizeof(S) / sizeof(Fp) * 8;
  u64 x[words], y[words];
};

constexpr Words64<6> power_368{{0, 0, 0, 0, 0, u64(1) << 48}};
constexpr Words64<6> power_400 = power_of_two<FpParameters>(400);
constexpr Words64<6> power_432 = power_of_two<FpParameters>(432);
constexpr Words64<6> power_448 = power_of_two<FpParameters>(448);

FN void limbs_of(const Fp& x, u64* limbs) {
  const Limbs52<8> r = limbs52<FpParameters, 8>(x.l);
  for (int i = 0; i < 8; i++) limbs[i] = r.l[i];
}
FN void limbs_of(const Fp2<Fp>& x, u64* limbs) {
  limbs_of(x.c0, limbs);
  limbs_of(x.c1, limbs + 8);
}

// The canonical element of normal limbs below twice the modulus.
FN void element_of(const u64* limbs, Fp& x) {
  for (int w = 0; w < 6; w++) {
    const int limb = 64 * w / 52, shift = 64 * w % 52;
    u64 word = limbs[limb] >> shift;
    if (limb + 1 < 8) word |= limbs[limb + 1] << (52 - shift);
    if (limb + 2 < 8 && 104 - shift < 64) word |= limbs[limb + 2] << (104 - shift);
    x.l[w] = word;
  }
  x = x + Fp::zero();
}
FN void element_of(const u64* limbs, Fp2<Fp>& x) {
  element_of(limbs, x.c0);
  element_of(limbs + 8, x.c1);
}

FN Fp scaled(const Fp& x, const Words64<6>& k) { return x * Fp::constant(k.l); }
FN Fp2<Fp> scaled(const Fp2<Fp>& x, const Words64<6>& k) { return {scaled(x.c0, k), scaled(x.c1, k)}; }

template <class S>
FN void to_lane_point(const Affine<S>& p, LanePoint<S>& r) {
  limbs_of(p.x, r.x);
  limbs_of(scaled(p.y, power_368), r.y);
}

template <class S>
FN Affine<S> of_lane_point(const LanePoint<S>& p) {
  Affine<S> r;
  element_of(p.x, r.x);
  element_of(p.y, r.y);
  r.y = scaled(r.y, power_400);
  return r;
}

template <class S>
FN LanePoint<S> lane_infinity() {
  LanePoint<S> r;
  for (u32 i = 0; i < r.words; i++) r.x[i] = r.y[i] = 0;
  return r;
}

// Coordinate `offset` bytes into each of eight points in 52-bit limbs.
FN void load(const void* const* point, u32 offset, FpLanes& r) {
  UNROLL for (int i = 0; i < 8; i++) r.l[i] = _mm512_load_si512((const char*)point[i] + offset);
  transpose(r.l);
}
FN void load(const void* const* point, u32 offset, Fp2Lanes& r) {
  load(point, offset, r.c0);
  load(point, offset + 64, r.c1);
}
FN void store(void* const* point, u32 offset, FpLanes r) {
  transpose(r.l);
  UNROLL for (int i = 0; i < 8; i++) _mm512_store_si512((char*)point[i] + offset, r.l[i]);
}
FN void store(void* const* point, u32 offset, const Fp2Lanes& r) {
  store(point, offset, r.c0);
  store(point, offset + 64, r.c1);
}

// The same from 64-bit words: six of them, and no byte beyond.
FN void load_words(const void* const* point, u32 offset, FpLanes& r) {
  Vector row[8];
  UNROLL for (int i = 0; i < 8; i++) row[i] = _mm512_maskz_loadu_epi64(0x3f, (const char*)point[i] + offset);
  transpose(row);
  r = FpLanes::of_words(row);
}
FN void load_words(const void* const* point, u32 offset, Fp2Lanes& r) {
  load_words(point, offset, r.c0);
  load_words(point, offset + 48, r.c1);
}

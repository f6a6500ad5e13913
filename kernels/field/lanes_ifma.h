// Eight elements of a prime field at a time, on AVX-512 IFMA: vector j holds limb j of all eight, 52 bits a limb.
//
// Montgomery form with R = 2^(52·limbs): 2^416 for Fp, 2^260 for Fr. R exceeds the modulus by 35 and 5 bits, so factors
// may be multiples of it, and products need no final subtraction. Three states of a value:
//   loose       limbs are signed and of any size below 2^62; sums and products give these;
//   normal      limbs in 0 … 2^52 − 1, as a factor must have them (the instruction ignores higher bits);
//   reduced     normal, and below 1.001 times the modulus (`reduced` takes positive values below 8 times it).
// A product of normal factors a, b is below modulus + a·b / R.
//
// Only for sources built with the options of the path `ifma`.
#pragma once

#include <immintrin.h>

#include "field_host.h"

typedef __m512i Vector;

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

constexpr u64 mask52 = (u64(1) << 52) - 1;

template <int N>
struct Limbs52 {
  u64 l[N];
};

// Limbs of 52 bits of a number given as 64-bit words.
template <class P, int N>
constexpr Limbs52<N> limbs52(const u64* words) {
  Limbs52<N> r{};
  for (int i = 0; i < N; i++) {
    const int word = 52 * i / 64, shift = 52 * i % 64;
    u64 x = words[word] >> shift;
    if (shift > 12 && word + 1 < P::limbs) x |= words[word + 1] << (64 - shift);
    r.l[i] = x & mask52;
  }
  return r;
}

// factor · modulus.
template <class P, int N>
constexpr Limbs52<N> multiple52(u64 factor) {
  Limbs52<N> r = limbs52<P, N>(P::modulus);
  u64 carry = 0;
  for (int i = 0; i < N; i++) {
    const unsigned __int128 x = (unsigned __int128)r.l[i] * factor + carry;
    r.l[i] = u64(x) & mask52;
    carry = u64(x >> 52);
  }
  return r;
}

template <int N>
struct Words64 {
  u64 l[N];
};

// 2^exponent mod modulus, for exponents from 64 · limbs up.
template <class P>
constexpr Words64<P::limbs> power_of_two(int exponent) {
  Words64<P::limbs> r{};
  for (int i = 0; i < P::limbs; i++) r.l[i] = P::one[i];
  for (int step = 64 * P::limbs; step < exponent; step++) {
    u64 carry = 0, borrow = 0;
    Words64<P::limbs> less{};
    for (int i = 0; i < P::limbs; i++) {
      const u64 x = r.l[i];
      r.l[i] = x << 1 | carry;
      carry = x >> 63;
      const unsigned __int128 d = (unsigned __int128)r.l[i] - P::modulus[i] - borrow;
      less.l[i] = u64(d);
      borrow = u64(d >> 64) & 1;
    }
    if (!borrow) r = less;
  }
  return r;
}

FN Vector every(u64 x) { return _mm512_set1_epi64(i64(x)); }

// Rows to columns of 8 × 8 words.
FN void transpose(Vector* r) {
  Vector t[8], u[8];
  UNROLL for (int i = 0; i < 8; i += 2) {
    t[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
  }
  UNROLL for (int i = 0; i < 2; i++) {
    u[i] = _mm512_shuffle_i64x2(t[i], t[i + 2], 0x88);
    u[i + 2] = _mm512_shuffle_i64x2(t[i], t[i + 2], 0xdd);
    u[i + 4] = _mm512_shuffle_i64x2(t[i + 4], t[i + 6], 0x88);
    u[i + 6] = _mm512_shuffle_i64x2(t[i + 4], t[i + 6], 0xdd);
  }
  UNROLL for (int i = 0; i < 4; i++) {
    r[i] = _mm512_shuffle_i64x2(u[i], u[i + 4], 0x88);
    r[i + 4] = _mm512_shuffle_i64x2(u[i], u[i + 4], 0xdd);
  }
}

template <class P, int N>
struct Lanes {
  typedef P Parameters;
  static constexpr int limbs = N;
  Vector l[N];

  template <int factor>
  static constexpr Limbs52<N> multiple = multiple52<P, N>(factor);

  static FN Lanes zero() {
    Lanes r;
    UNROLL for (int i = 0; i < N; i++) r.l[i] = _mm512_setzero_si512();
    return r;
  }
  // The same element in all lanes.
  static FN Lanes all(const Limbs52<N>& x) {
    Lanes r;
    UNROLL for (int i = 0; i < N; i++) r.l[i] = every(x.l[i]);
    return r;
  }
  static FN Lanes unit() {
    Lanes r = zero();
    r.l[0] = every(1);
    return r;
  }

  // Loose sums and differences.
  FN Lanes operator+(const Lanes& b) const {
    Lanes r;
    UNROLL for (int i = 0; i < N; i++) r.l[i] = _mm512_add_epi64(l[i], b.l[i]);
    return r;
  }
  FN Lanes operator-(const Lanes& b) const {
    Lanes r;
    UNROLL for (int i = 0; i < N; i++) r.l[i] = _mm512_sub_epi64(l[i], b.l[i]);
    return r;
  }
  // Loose: factor · modulus more.
  template <int factor>
  FN Lanes plus() const {
    Lanes r;
    UNROLL for (int i = 0; i < N; i++) r.l[i] = _mm512_add_epi64(l[i], every(multiple<factor>.l[i]));
    return r;
  }

  // A loose value that is not negative, made normal.
  FN Lanes normal() const {
    Lanes r;
    Vector carry = _mm512_setzero_si512();
    UNROLL for (int i = 0; i < N; i++) {
      const Vector x = _mm512_add_epi64(l[i], carry);
      carry = _mm512_srai_epi64(x, 52);
      r.l[i] = i + 1 < N ? _mm512_and_si512(x, every(mask52)) : x;
    }
    return r;
  }

  // A loose value from half the modulus to 8 times it, reduced: its quotient by the modulus follows from its top limb.
  // The estimate is short of the true quotient by less than 1.001, and never beyond it.
  FN Lanes reduced() const {
    constexpr u64 top = multiple<1>.l[N - 1];
    const Vector head = _mm512_add_epi64(_mm512_add_epi64(l[N - 1], _mm512_srai_epi64(l[N - 2], 52)), every(~u64(0)));
    const Vector quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), head, every((u64(1) << 52) / (top + 1)));
    Lanes r;
    UNROLL for (int i = 0; i < N; i++) {
      const Vector multiples =
          _mm512_setr_epi64(0, i64(multiple<1>.l[i]), i64(multiple<2>.l[i]), i64(multiple<3>.l[i]),
                            i64(multiple<4>.l[i]), i64(multiple<5>.l[i]), i64(multiple<6>.l[i]), i64(multiple<7>.l[i]));
      r.l[i] = _mm512_sub_epi64(l[i], _mm512_permutexvar_epi64(quotient, multiples));
    }
    return r.normal();
  }

  // Of a normal value below twice the modulus: the canonical one.
  FN Lanes canonical() const {
    Lanes r;
    Vector borrow = _mm512_setzero_si512();
    UNROLL for (int i = 0; i < N; i++) {
      const Vector x = _mm512_add_epi64(_mm512_sub_epi64(l[i], every(multiple<1>.l[i])), borrow);
      borrow = _mm512_srai_epi64(x, 52);
      r.l[i] = _mm512_and_si512(x, every(mask52));
    }
    return blend(r, *this, _mm512_movepi64_mask(borrow));
  }

  // b where the mask is set, otherwise a.
  static FN Lanes blend(const Lanes& a, const Lanes& b, __mmask8 mask) {
    Lanes r;
    UNROLL for (int i = 0; i < N; i++) r.l[i] = _mm512_mask_blend_epi64(mask, a.l[i], b.l[i]);
    return r;
  }

  // Where a normal value is all zeros.
  FN __mmask8 zeros() const {
    Vector any = l[0];
    UNROLL for (int i = 1; i < N; i++) any = _mm512_or_si512(any, l[i]);
    return _mm512_testn_epi64_mask(any, any);
  }
  // Where a normal value below 4 times the modulus is a multiple of it.
  FN __mmask8 multiples() const {
    return zeros() | (*this - all(multiple<1>)).zeros() | (*this - all(multiple<2>)).zeros() |
           (*this - all(multiple<3>)).zeros();
  }
  // The same with the lowest limb alone, without zero itself: set for all multiples, and for one other value in 2^50.
  FN __mmask8 perhaps_multiples() const {
    return _mm512_cmpeq_epi64_mask(l[0], every(multiple<1>.l[0])) |
           _mm512_cmpeq_epi64_mask(l[0], every(multiple<2>.l[0])) |
           _mm512_cmpeq_epi64_mask(l[0], every(multiple<3>.l[0]));
  }
  FN __mmask8 perhaps_zeros() const { return _mm512_testn_epi64_mask(l[0], l[0]); }

  // 64-bit words, one vector each, to normal limbs and back (from canonical values).
  static FN Lanes of_words(const Vector* words) {
    Lanes r;
    UNROLL for (int i = 0; i < N; i++) {
      const int word = 52 * i / 64, shift = 52 * i % 64;
      Vector x = _mm512_srli_epi64(words[word], shift);
      if (shift > 12 && word + 1 < P::limbs) x = _mm512_or_si512(x, _mm512_slli_epi64(words[word + 1], 64 - shift));
      r.l[i] = _mm512_and_si512(x, every(mask52));
    }
    return r;
  }
  FN void to_words(Vector* words) const {
    UNROLL for (int w = 0; w < P::limbs; w++) {
      const int limb = 64 * w / 52, shift = 64 * w % 52;
      Vector x = _mm512_srli_epi64(l[limb], shift);
      if (limb + 1 < N) x = _mm512_or_si512(x, _mm512_slli_epi64(l[limb + 1], 52 - shift));
      if (limb + 2 < N && 104 - shift < 64) x = _mm512_or_si512(x, _mm512_slli_epi64(l[limb + 2], 104 - shift));
      words[w] = x;
    }
  }
};

// One row of a Montgomery product: t = (t + Σ a·b_row + m·modulus) / 2^52, the m that makes the division exact.
#define IFMA_ROW_LOW(a, b) UNROLL for (int j = 0; j < N; j++) t[j] = _mm512_madd52lo_epu64(t[j], (a).l[j], b)
#define IFMA_ROW_HIGH(a, b) UNROLL for (int j = 0; j < N; j++) t[j] = _mm512_madd52hi_epu64(t[j], (a).l[j], b)
#define IFMA_ROW_MODULUS() \
  m = _mm512_madd52lo_epu64(_mm512_setzero_si512(), t[0], every(P::inverse64 & mask52)); \
  UNROLL for (int j = 0; j < N; j++) t[j] = _mm512_madd52lo_epu64(t[j], m, every(modulus.l[j])); \
  t[1] = _mm512_add_epi64(t[1], _mm512_srli_epi64(t[0], 52)); \
  UNROLL for (int j = 0; j + 1 < N; j++) t[j] = t[j + 1]; \
  t[N - 1] = _mm512_setzero_si512(); \
  UNROLL for (int j = 0; j < N; j++) t[j] = _mm512_madd52hi_epu64(t[j], m, every(modulus.l[j]))

// Normal factors, loose product.
template <class P, int N>
FN Lanes<P, N> product(const Lanes<P, N>& a, const Lanes<P, N>& b) {
  constexpr Limbs52<N> modulus = Lanes<P, N>::template multiple<1>;
  Vector t[N], m;
  UNROLL for (int j = 0; j < N; j++) t[j] = _mm512_setzero_si512();
  UNROLL for (int i = 0; i < N; i++) {
    IFMA_ROW_LOW(a, b.l[i]);
    IFMA_ROW_MODULUS();
    IFMA_ROW_HIGH(a, b.l[i]);
  }
  Lanes<P, N> r;
  UNROLL for (int j = 0; j < N; j++) r.l[j] = t[j];
  return r;
}

// a·b + c·d with one reduction; normal factors, loose result.
template <class P, int N>
FN Lanes<P, N> dot(const Lanes<P, N>& a, const Lanes<P, N>& b, const Lanes<P, N>& c, const Lanes<P, N>& d) {
  constexpr Limbs52<N> modulus = Lanes<P, N>::template multiple<1>;
  Vector t[N], m;
  UNROLL for (int j = 0; j < N; j++) t[j] = _mm512_setzero_si512();
  UNROLL for (int i = 0; i < N; i++) {
    IFMA_ROW_LOW(a, b.l[i]);
    IFMA_ROW_LOW(c, d.l[i]);
    IFMA_ROW_MODULUS();
    IFMA_ROW_HIGH(a, b.l[i]);
    IFMA_ROW_HIGH(c, d.l[i]);
  }
  Lanes<P, N> r;
  UNROLL for (int j = 0; j < N; j++) r.l[j] = t[j];
  return r;
}

// a² with every mixed product once: half of 2·N·(N − 1) instructions less. Normal factor, loose result.
template <class P, int N>
FN Lanes<P, N> square(const Lanes<P, N>& a) {
  constexpr Limbs52<N> modulus = Lanes<P, N>::template multiple<1>;
  Vector t[2 * N];
  UNROLL for (int j = 0; j < 2 * N; j++) t[j] = _mm512_setzero_si512();
  UNROLL for (int i = 0; i < N; i++) {
    UNROLL for (int j = i + 1; j < N; j++) t[i + j] = _mm512_madd52lo_epu64(t[i + j], a.l[i], a.l[j]);
    UNROLL for (int j = i + 1; j < N; j++) t[i + j + 1] = _mm512_madd52hi_epu64(t[i + j + 1], a.l[i], a.l[j]);
  }
  UNROLL for (int j = 1; j + 1 < 2 * N; j++) t[j] = _mm512_add_epi64(t[j], t[j]);
  UNROLL for (int i = 0; i < N; i++) {
    t[2 * i] = _mm512_madd52lo_epu64(t[2 * i], a.l[i], a.l[i]);
    t[2 * i + 1] = _mm512_madd52hi_epu64(t[2 * i + 1], a.l[i], a.l[i]);
  }
  UNROLL for (int i = 0; i < N; i++) {
    const Vector m = _mm512_madd52lo_epu64(_mm512_setzero_si512(), t[i], every(P::inverse64 & mask52));
    UNROLL for (int j = 0; j < N; j++) t[i + j] = _mm512_madd52lo_epu64(t[i + j], m, every(modulus.l[j]));
    t[i + 1] = _mm512_add_epi64(t[i + 1], _mm512_srli_epi64(t[i], 52));
    UNROLL for (int j = 0; j < N; j++) t[i + j + 1] = _mm512_madd52hi_epu64(t[i + j + 1], m, every(modulus.l[j]));
  }
  Lanes<P, N> r;
  UNROLL for (int j = 0; j < N; j++) r.l[j] = t[N + j];
  return r;
}

typedef Lanes<FpParameters, 8> FpLanes;
typedef Lanes<FrParameters, 5> FrLanes;

// Products fill the registers: as functions of their own they keep callers small.
static __attribute__((noinline)) FpLanes times(const FpLanes& a, const FpLanes& b) { return product(a, b); }
static __attribute__((noinline)) FpLanes squared(const FpLanes& a) { return square(a); }

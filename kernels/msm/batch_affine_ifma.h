// Affine additions in batches that share one inversion, eight at a time: the method of batch_affine.h in 52-bit limbs.
//
// Scales. Let D be a denominator as stored, I what the batch yields for it: D · I = 2^c. With x at 2^384, y and hence
// a numerator at 2^n, the slope is at 2^(n + c − 384 − 416); x3 = slope² − … asks for a slope at 2^400, and then y3 is
// at 2^368. Sums have n = 368, hence c = 832; points of callers have n = 384, c = 816, and only the y that is
// subtracted at the end is converted. The one inversion of a batch takes up c.
//
// Exceptional pairs keep their lane: a cheap test of low limbs finds all of them (and one regular pair in 2^50), then
// masks say what is what. A doubling gets its own denominator and numerator; the others have the denominator 1 and
// their result blended in.
#pragma once

#include "lane_points.h"

template <class S>
struct LaneAdder {
  typedef typename LanesOf<S>::Type F;
  typedef LanePoint<S> Sum;
  static constexpr u32 capacity = sizeof(S) == sizeof(Fp) ? 2048 : 1024;  // pairs
  static constexpr u32 groups = capacity / 8;
  static constexpr u32 coordinate_bytes = sizeof(S);
  static constexpr u32 lanes_bytes = sizeof(Sum) / 2;

  // Lanes of a group: their result is the left or the right point, or infinity, or a doubled point.
  struct Special {
    unsigned char left, right, infinite, doubled;
    FN bool any() const { return (left | right | infinite | doubled) != 0; }
  };

  u32 count;
  const void *left[capacity], *right[capacity];
  Sum* sum[capacity];
  unsigned char left_negative[capacity], right_negative[capacity];
  Special special[groups];
  F denominator[groups];
  F product[groups];  // of every other group, up to and including this one
  Sum padding[3];     // two different points and a place for their sum

  FN void begin() {
    count = 0;
    for (Sum& p : padding) p = lane_infinity<S>();
    for (int i = 0; i < 2; i++) padding[i].x[0] = padding[i].y[0] = u64(i) + 1;
  }

  // *sum = *left ± *right, both sums.
  FN void push(const Sum* p, const Sum* q, Sum* to, bool q_negative = false) {
    left[count] = p;
    right[count] = q;
    right_negative[count] = q_negative;
    sum[count] = to;
    if (++count == capacity) flush<false>();
  }

  // *sum = ± *left ± *right, both points of the caller.
  FN void push(const Affine<S>* p, bool p_negative, const Affine<S>* q, bool q_negative, Sum* to) {
    fetch<2>(p);
    fetch<2>(q);
    left[count] = p;
    right[count] = q;
    left_negative[count] = p_negative;
    right_negative[count] = q_negative;
    sum[count] = to;
    if (++count == capacity) flush<true>();
  }

  template <bool from_caller>
  __attribute__((noinline)) void flush() {
    if (count == 0) return;
    pad<from_caller>();
    const u32 used = count / 8;
    count = 0;
    for (u32 g = 0; g < used; g++) {
      if (from_caller && g + 2 < used) fetch_group(g + 2);
      denominators<from_caller>(g);
    }
    F chain[2];
    invert_chains<from_caller>(chain, used);
    for (u32 g = used; g-- > 0;) {
      if (from_caller && g >= 2) fetch_group(g - 2);
      finish<from_caller>(g, chain[g % 2]);
    }
  }

 private:
  // Points come from all over memory. When pushed they are called to L2, where a whole batch has room, and to L1 just
  // before they are read.
  template <int locality>
  static FN void fetch(const void* p) {
    for (u32 line = 0; line < 2 * coordinate_bytes; line += 64)
      __builtin_prefetch((const char*)p + line, 0, locality);
    __builtin_prefetch((const char*)p + 2 * coordinate_bytes - 1, 0, locality);
  }
  FN void fetch_group(u32 g) {
    for (u32 i = 8 * g; i < 8 * g + 8; i++) {
      fetch<3>(left[i]);
      fetch<3>(right[i]);
    }
  }

  // Fills the last group. Read as a caller's point, a sum's limbs are just another pair of numbers: nobody uses the
  // result, but the denominator is 1 or −1 either way.
  template <bool from_caller>
  FN void pad() {
    for (; count % 8 != 0; count++) {
      left[count] = &padding[0];
      right[count] = &padding[1];
      sum[count] = &padding[2];
      left_negative[count] = right_negative[count] = 0;
    }
  }

  template <bool from_caller>
  static FN void x_of(const void* const* p, F& x) {
    if (from_caller)
      load_words(p, 0, x);
    else
      load(p, 0, x);
  }

  // Loose where a sign was applied; a left sum has none.
  template <bool from_caller>
  static FN void y_of(const void* const* p, const unsigned char* negative, F& y) {
    if (from_caller)
      load_words(p, coordinate_bytes, y);
    else
      load(p, lanes_bytes, y);
    if (negative == nullptr) return;
    const Vector signs = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i*)negative));
    // A sum's y may reach twice the modulus.
    const F minus = from_caller ? (F::zero() - y).template plus<1>() : (F::zero() - y).template plus<2>();
    y = F::blend(y, minus, _mm512_test_epi64_mask(signs, signs));
  }
  template <bool from_caller>
  FN void left_y(u32 g, F& y) const {
    y_of<from_caller>(left + 8 * g, from_caller ? left_negative + 8 * g : nullptr, y);
  }
  template <bool from_caller>
  FN void right_y(u32 g, F& y) const {
    y_of<from_caller>(right + 8 * g, right_negative + 8 * g, y);
  }

  template <bool from_caller>
  FN void denominators(u32 g) {
    F p, q;
    x_of<from_caller>(left + 8 * g, p);
    x_of<from_caller>(right + 8 * g, q);
    const F d = (q - p).template plus<2>().normal();
    denominator[g] = d;
    special[g] = Special{0, 0, 0, 0};
    if (__builtin_expect(d.perhaps_multiples() | p.perhaps_zeros() | q.perhaps_zeros(), 0))
      classify<from_caller>(g, p, q);
    product[g] = g < 2 ? denominator[g] : times(product[g - 2], denominator[g]).normal();
  }

  template <bool from_caller>
  __attribute__((noinline)) void classify(u32 g, const F& p_x, const F& q_x) {
    F p_y, q_y;
    left_y<from_caller>(g, p_y);
    right_y<from_caller>(g, q_y);
    p_y = p_y.normal();
    q_y = q_y.normal();
    // A negated zero is the modulus.
    const __mmask8 p_infinite = p_x.zeros() & p_y.multiples(), q_infinite = q_x.zeros() & q_y.multiples();
    const __mmask8 finite = ~(p_infinite | q_infinite);
    const __mmask8 same_x = denominator[g].multiples() & finite;
    const __mmask8 doubled = same_x & (q_y - p_y).template plus<2>().normal().multiples() & ~p_y.multiples();
    const __mmask8 infinite = (same_x & ~doubled) | (p_infinite & q_infinite);
    special[g] = Special{(unsigned char)(q_infinite & ~p_infinite), (unsigned char)(p_infinite & ~q_infinite),
                         (unsigned char)infinite, (unsigned char)doubled};
    F d = F::blend(denominator[g], F::unit(), __mmask8(~finite | infinite));
    denominator[g] = F::blend(d, (p_y + p_y).normal(), doubled);
  }

  // In each lane, chain[i] is the inverse of the product of the groups g = i mod 2, at the scale that makes every
  // denominator times its own inverse 2^c; from one inversion for all lanes.
  template <bool from_caller>
  FN void invert_chains(F* chain, u32 used) {
    const F last = product[used - 1], other = used > 1 ? product[used - 2] : F::unit();
    const F all = used > 1 ? times(last, other).normal() : last;
    alignas(64) u64 limbs[sizeof(F) / 8];
    *(F*)limbs = all;
    S value[8], prefix[8];
    for (int lane = 0; lane < 8; lane++) {
      u64 one[sizeof(F) / 64];
      for (u32 i = 0; i < sizeof(F) / 64; i++) one[i] = limbs[8 * i + lane];
      element_of(one, value[lane]);
      prefix[lane] = lane == 0 ? value[0] : prefix[lane - 1] * value[lane];
    }
    S rest = scaled(inverse(prefix[7]), from_caller ? power_432 : power_448);
    for (int lane = 8; lane-- > 0;) {
      const S one_inverse = lane == 0 ? rest : rest * prefix[lane - 1];
      rest = rest * value[lane];
      u64 one[sizeof(F) / 64];
      limbs_of(one_inverse, one);
      for (u32 i = 0; i < sizeof(F) / 64; i++) limbs[8 * i + lane] = one[i];
    }
    const F inverted = *(F*)limbs;
    if (used == 1) {
      chain[0] = inverted;
      return;
    }
    chain[(used - 1) % 2] = times(inverted, other).normal();
    chain[used % 2] = times(inverted, last).normal();
  }

  template <bool from_caller>
  FN void finish(u32 g, F& chain) {
    F inverse_d = chain;
    if (g >= 2) {
      inverse_d = times(chain, product[g - 2]).normal();
      chain = times(chain, denominator[g]).normal();
    }
    F p_x, p_y, q_y;
    x_of<from_caller>(left + 8 * g, p_x);
    left_y<from_caller>(g, p_y);
    right_y<from_caller>(g, q_y);
    F d = denominator[g], numerator = (q_y - p_y).template plus<2>().normal();
    if (__builtin_expect(special[g].any(), 0)) numerator_of_doubled<from_caller>(g, p_x, d, numerator);
    if (from_caller) p_y = scaled(p_y.normal(), FpLanes::all(limbs52<FpParameters, 8>(power_400.l)));
    const F slope = times(numerator, inverse_d).normal();
    // q.x = p.x + d − 2 · modulus.
    const F x = (squared(slope) - p_x - p_x - d).template plus<5>().reduced();
    const F y = (times(slope, (p_x - x).template plus<2>().normal()) - p_y).template plus<2>().reduced();
    if (__builtin_expect(special[g].any(), 0))
      store_special<from_caller>(g, x, y, p_x, p_y);
    else
      store_sum(g, x, y);
  }

  FN void store_sum(u32 g, const F& x, const F& y) {
    store((void* const*)(sum + 8 * g), 0, x);
    store((void* const*)(sum + 8 * g), lanes_bytes, y);
  }

  // For doublings: 3·x² over 2·y, and a right x equal to the left.
  template <bool from_caller>
  __attribute__((noinline)) void numerator_of_doubled(u32 g, const F& p_x, F& d, F& numerator) {
    const __mmask8 doubled = special[g].doubled;
    F square = squared(p_x).normal();
    if (from_caller) square = scaled(square, FpLanes::all(limbs52<FpParameters, 8>(power_448.l))).normal();
    numerator = F::blend(numerator, (square + square + square).normal(), doubled);
    d = F::blend(d, F::zero().template plus<2>().normal(), doubled);
  }

  template <bool from_caller>
  __attribute__((noinline)) void store_special(u32 g, F x, F y, const F& p_x, const F& p_y) {
    const Special s = special[g];
    F q_x, q_y;
    x_of<from_caller>(right + 8 * g, q_x);
    right_y<from_caller>(g, q_y);
    if (from_caller) q_y = scaled(q_y.normal(), FpLanes::all(limbs52<FpParameters, 8>(power_400.l)));
    x = F::blend(F::blend(x, p_x, s.left), q_x, s.right);
    y = F::blend(F::blend(y, p_y.normal(), s.left), q_y.normal(), s.right);
    store_sum(g, F::blend(x, F::zero(), s.infinite), F::blend(y, F::zero(), s.infinite));
  }
};

// Eight elements of Fp2 at a time: the operations of field/lanes_ifma.h, coordinate by coordinate, and its products.
#pragma once

#include "fp2_host.h"
#include "lanes_ifma.h"

struct Fp2Lanes {
  FpLanes c0, c1;

  static FN Fp2Lanes zero() { return {FpLanes::zero(), FpLanes::zero()}; }
  static FN Fp2Lanes unit() { return {FpLanes::unit(), FpLanes::zero()}; }
  FN Fp2Lanes operator+(const Fp2Lanes& b) const { return {c0 + b.c0, c1 + b.c1}; }
  FN Fp2Lanes operator-(const Fp2Lanes& b) const { return {c0 - b.c0, c1 - b.c1}; }
  template <int factor>
  FN Fp2Lanes plus() const {
    return {c0.plus<factor>(), c1.plus<factor>()};
  }
  FN Fp2Lanes normal() const { return {c0.normal(), c1.normal()}; }
  FN Fp2Lanes reduced() const { return {c0.reduced(), c1.reduced()}; }
  static FN Fp2Lanes blend(const Fp2Lanes& a, const Fp2Lanes& b, __mmask8 mask) {
    return {FpLanes::blend(a.c0, b.c0, mask), FpLanes::blend(a.c1, b.c1, mask)};
  }
  FN __mmask8 zeros() const { return c0.zeros() & c1.zeros(); }
  FN __mmask8 multiples() const { return c0.multiples() & c1.multiples(); }
  FN __mmask8 perhaps_multiples() const { return c0.perhaps_multiples() & c1.perhaps_multiples(); }
  FN __mmask8 perhaps_zeros() const { return c0.perhaps_zeros() & c1.perhaps_zeros(); }
};

static __attribute__((noinline)) FpLanes dot_of(const FpLanes& a, const FpLanes& b, const FpLanes& c,
                                                const FpLanes& d) {
  return dot(a, b, c, d);
}

// Normal factors below 4 times the modulus, loose product: two coordinates with one reduction each.
static __attribute__((noinline)) Fp2Lanes times(const Fp2Lanes& a, const Fp2Lanes& b) {
  const FpLanes minus = (FpLanes::zero() - b.c1).plus<4>().normal();
  return {dot_of(a.c0, b.c0, a.c1, minus), dot_of(a.c0, b.c1, a.c1, b.c0)};
}

// (c0 + c1)(c0 − c1) + 2·c0·c1·u.
static __attribute__((noinline)) Fp2Lanes squared(const Fp2Lanes& a) {
  const FpLanes sum = (a.c0 + a.c1).normal(), difference = (a.c0 - a.c1).plus<4>().normal();
  return {times(sum, difference), times((a.c0 + a.c0).normal(), a.c1)};
}

FN Fp2Lanes scaled(const Fp2Lanes& a, const FpLanes& k) { return {times(a.c0, k), times(a.c1, k)}; }
FN FpLanes scaled(const FpLanes& a, const FpLanes& k) { return times(a, k); }

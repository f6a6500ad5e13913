// The quadratic extension Fp2 = Fp[u] / (u² + 1), over any field that keeps the list of operations in field_host.h.
#pragma once

#include "types.h"

template <class F>
struct Fp2 {
  F c0, c1;

  static FN Fp2 zero() { return {F::zero(), F::zero()}; }
  static FN Fp2 one() { return {F::one(), F::zero()}; }
  FN bool is_zero() const { return c0.is_zero() && c1.is_zero(); }
  FN bool operator==(const Fp2& b) const { return c0 == b.c0 && c1 == b.c1; }
  FN Fp2 operator+(const Fp2& b) const { return {c0 + b.c0, c1 + b.c1}; }
  FN Fp2 operator-(const Fp2& b) const { return {c0 - b.c0, c1 - b.c1}; }
  FN Fp2 doubled() const { return {c0.doubled(), c1.doubled()}; }
  FN Fp2 negated() const { return {c0.negated(), c1.negated()}; }
  FN Fp2 negated_if(bool negative) const { return {c0.negated_if(negative), c1.negated_if(negative)}; }
  FN Fp2 conjugated() const { return {c0, c1.negated()}; }
  FN Fp2 operator*(const Fp2& b) const { return fp2_product(*this, b); }
  FN Fp2 loose_times(const Fp2& b) const { return fp2_loose_product(*this, b); }
  FN Fp2 loose_minus(const Fp2& b) const { return {c0.loose_minus(b.c0), c1.loose_minus(b.c1)}; }
  FN Fp2 squared() const { return fp2_square(*this); }
};

// Karatsuba: three products. A target that can delay reductions overloads this for its own field.
template <class F>
FN Fp2<F> fp2_product(const Fp2<F>& a, const Fp2<F>& b) {
  const F t0 = a.c0 * b.c0, t1 = a.c1 * b.c1;
  const F cross = (a.c0 + a.c1) * (b.c0 + b.c1);
  return {t0 - t1, cross - t0 - t1};
}

// (c0 + c1)(c0 − c1) + 2·c0·c1·u: two products.
template <class F>
FN Fp2<F> fp2_square(const Fp2<F>& a) {
  const F product = a.c0 * a.c1;
  return {(a.c0 + a.c1) * (a.c0 - a.c1), product.doubled()};
}

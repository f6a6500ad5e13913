// Fp2 on the CPU: each coordinate of a product is a sum of two products with a single Montgomery reduction.
#pragma once

#include "field_host.h"
#include "inverse.h"

template <class F>
struct Fp2;
FN Fp2<Fp> fp2_product(const Fp2<Fp>& a, const Fp2<Fp>& b);

#include "fp2.h"

// b = (b0, b1) to (b0, −b1) with −b1 as 2·modulus − b1, for b1 up to twice the modulus.
FN Fp2<Fp> fp2_loose_conjugate(const Fp2<Fp>& b) {
  return {b.c0, Fp::constant(FpParameters::modulus).loose_minus(b.c1)};
}

FN Fp2<Fp> fp2_product(const Fp2<Fp>& a, const Fp2<Fp>& b) {
  Fp2<Fp> c;
  const Fp2<Fp> minus = fp2_loose_conjugate(b);
  field_dot<FpParameters, false, true>(c.c0.l, a.c0.l, minus.c0.l);
  field_dot<FpParameters, true, true>(c.c1.l, a.c0.l, b.c0.l);
  return c;
}

FN Fp2<Fp> fp2_loose_product(const Fp2<Fp>& a, const Fp2<Fp>& b) {
  Fp2<Fp> c;
  const Fp2<Fp> minus = fp2_loose_conjugate(b);
  field_dot<FpParameters, false, false>(c.c0.l, a.c0.l, minus.c0.l);
  field_dot<FpParameters, true, false>(c.c1.l, a.c0.l, b.c0.l);
  return c;
}

// 1/a = conj(a) / (c0² + c1²); 0 for 0.
static inline Fp2<Fp> inverse(const Fp2<Fp>& a) {
  const Fp norm = inverse(a.c0.squared() + a.c1.squared());
  return {a.c0 * norm, (a.c1 * norm).negated()};
}

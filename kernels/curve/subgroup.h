// Membership in the subgroups of order r, by an endomorphism instead of a multiplication by r.
//
// With z = −0xd201000000010000, the parameter of BLS12-381:
//   G1: P is in the subgroup iff φ(P) = −[z²]P, where φ(x, y) = (βx, y) and β³ = 1, β ≠ 1.
//   G2: P is in the subgroup iff ψ(P) = [z]P, where ψ is the untwisted Frobenius, (conj(x)·cx, conj(y)·cy).
// Source: M. Scott, "A note on group membership tests for G1, G2 and GT on BLS pairing-friendly curves",
// IACR ePrint 2021/1130, sections 3 to 5. β is the cube root that makes the first one hold for the generator.
#pragma once

#include "weierstrass.h"

// |z| · p. Only five bits below the top one are set, so long runs of Jacobian doublings pay for the changes to XYZZ,
// whose addition handles every special case.
template <class F>
FN_RARE Xyzz<F> times_z(const Xyzz<F>& p) {
  const u64 z = 0xd201000000010000ull;
  Jacobian<F> r = to_jacobian(p);
  for (int i = 62; i >= 0; i--) {
    r = doubled(r);
    if (z >> i & 1) {
      Xyzz<F> sum = to_xyzz(r);
      add(sum, p);
      r = to_jacobian(sum);
    }
  }
  return to_xyzz(r);
}

// Whether affine q and p stand for the same point.
template <class F>
FN bool same(const Xyzz<F>& p, const Affine<F>& q) {
  if (p.is_infinity() || q.is_infinity()) return p.is_infinity() && q.is_infinity();
  return q.x * p.zz == p.x && q.y * p.zzz == p.y;
}

template <class F>
FN bool in_subgroup_g1(const Affine<F>& p, const F& beta) {
  if (p.is_infinity()) return true;
  const Xyzz<F> z_squared = times_z(times_z(Xyzz<F>::of(p)));
  return same(z_squared.negated(), Affine<F>{p.x * beta, p.y});
}

template <class F2>
FN bool in_subgroup_g2(const Affine<F2>& p, const F2& cx, const F2& cy) {
  if (p.is_infinity()) return true;
  // z is negative: [z]P = −[|z|]P.
  return same(times_z(Xyzz<F2>::of(p)).negated(), Affine<F2>{p.x.conjugated() * cx, p.y.conjugated() * cy});
}

// Points of y² = x³ + b over any field F that keeps the list in field_host.h: Fp gives G1, Fp2 gives G2.
//
// No formula uses b, so one source serves both groups, every target and every curve with a = 0.
// Formulas: Explicit-Formulas Database, short Weierstrass, XYZZ (madd-2008-s, add-2008-s, dbl-2008-s-1) and
// Jacobian (dbl-2009-l). All handle doubling, inverse points and infinity.
#pragma once

#include "../field/types.h"

// Infinity is (0, 0), which lies on no curve with b ≠ 0. These are the bytes of files and of device memory.
template <class F>
struct Affine {
  F x, y;

  static FN Affine infinity() { return {F::zero(), F::zero()}; }
  FN bool is_infinity() const { return x.is_zero() && y.is_zero(); }
  FN Affine negated_if(bool negative) const { return {x, y.negated_if(negative)}; }
  FN bool operator==(const Affine& b) const { return x == b.x && y == b.y; }
};

// x = X / ZZ, y = Y / ZZZ with ZZ³ = ZZZ²; infinity has ZZ = 0. The cheapest sum without inversions: 8M + 2S mixed.
template <class F>
struct Xyzz {
  F x, y, zz, zzz;

  static FN Xyzz infinity() { return {F::zero(), F::zero(), F::zero(), F::zero()}; }
  static FN Xyzz of(const Affine<F>& p) {
    if (p.is_infinity()) return infinity();
    return {p.x, p.y, F::one(), F::one()};
  }
  FN bool is_infinity() const { return zz.is_zero(); }
  FN Xyzz negated() const { return {x, y.negated(), zz, zzz}; }
};

// 6M + 3S.
template <class F>
FN_RARE Xyzz<F> doubled(const Xyzz<F>& p) {
  const F u = p.y.doubled();
  const F v = u.squared();
  const F w = u * v;
  const F s = p.x * v;
  const F x_squared = p.x.squared();
  const F m = x_squared.doubled() + x_squared;
  Xyzz<F> r;
  r.x = m.squared() - s.doubled();
  r.y = m * (s - r.x) - w * p.y;
  r.zz = v * p.zz;
  r.zzz = w * p.zzz;
  return r;
}

// A target that can delay reductions overloads this for its own field.
template <class F>
FN F difference_of_products(const F& a, const F& b, const F& c, const F& d) {
  return a * b - c * d;
}

// The common tail of both additions: numerator r, denominator p of the slope; u, s the coordinates of one summand.
template <class F>
FN void xyzz_finish(Xyzz<F>& sum, const F& p, const F& r, const F& u, const F& s, const F& zz, const F& zzz) {
  const F pp = p.squared();
  const F ppp = p * pp;
  const F q = u * pp;
  sum.x = r.squared() - ppp - q.doubled();
  sum.y = difference_of_products(r, F(q - sum.x), s, ppp);
  sum.zz = zz * pp;
  sum.zzz = zzz * ppp;
}

// p += q: 8M + 2S.
template <class F>
FN void add(Xyzz<F>& p, const Affine<F>& q) {
  if (q.is_infinity()) return;
  if (p.is_infinity()) {
    p = Xyzz<F>::of(q);
    return;
  }
  const F difference = q.x * p.zz - p.x;
  const F r = q.y * p.zzz - p.y;
  if (difference.is_zero()) {
    p = r.is_zero() ? doubled(p) : Xyzz<F>::infinity();
    return;
  }
  xyzz_finish(p, difference, r, F(p.x), F(p.y), F(p.zz), F(p.zzz));
}

// p += q: 12M + 2S.
template <class F>
FN void add(Xyzz<F>& p, const Xyzz<F>& q) {
  if (q.is_infinity()) return;
  if (p.is_infinity()) {
    p = q;
    return;
  }
  const F u = p.x * q.zz, s = p.y * q.zzz;
  const F difference = q.x * p.zz - u;
  const F r = q.y * p.zzz - s;
  if (difference.is_zero()) {
    p = r.is_zero() ? doubled(p) : Xyzz<F>::infinity();
    return;
  }
  xyzz_finish(p, difference, r, u, s, p.zz * q.zz, p.zzz * q.zzz);
}

// The affine sum, once 1/denominator is known: 2M + 1S beside the inversion that a batch shares (3M).
// denominator = q.x − p.x for different points, 2·p.y for a doubling.
template <class F>
FN Affine<F> affine_sum(const Affine<F>& p, const F& q_x, const F& numerator, const F& inverse_denominator) {
  const F slope = numerator * inverse_denominator;
  Affine<F> r;
  r.x = slope.squared() - p.x - q_x;
  r.y = slope * (p.x - r.x) - p.y;
  return r;
}

// What a pair of affine points needs before it may enter a batch of inversions.
enum AffineCase { affine_regular, affine_doubling, affine_left, affine_right, affine_cancel };

template <class F>
FN_RARE AffineCase affine_case(const Affine<F>& p, const Affine<F>& q) {
  if (q.is_infinity()) return affine_left;
  if (p.is_infinity()) return affine_right;
  if (!(p.x == q.x)) return affine_regular;
  // y = 0 would have order two: its double is infinity, which the comparison below yields too.
  return p.y == q.y && !p.y.is_zero() ? affine_doubling : affine_cancel;
}

// x = X / Z², y = Y / Z³: the cheapest doubling (2M + 5S), for long scalar multiples. Infinity has Z = 0.
template <class F>
struct Jacobian {
  F x, y, z;
};

template <class F>
FN Jacobian<F> doubled(const Jacobian<F>& p) {
  const F a = p.x.squared(), b = p.y.squared();
  const F c = b.squared();
  const F d = ((p.x + b).squared() - a - c).doubled();
  const F e = a.doubled() + a;
  Jacobian<F> r;
  r.x = e.squared() - d.doubled();
  r.y = e * (d - r.x) - c.doubled().doubled().doubled();
  r.z = (p.y * p.z).doubled();
  return r;
}

template <class F>
FN Xyzz<F> to_xyzz(const Jacobian<F>& p) {
  const F zz = p.z.squared();
  return {p.x, p.y, zz, zz * p.z};
}

// With Z = ZZ: X/ZZ = X·ZZ / Z² and Y/ZZZ = Y·ZZZ / Z³, for ZZ³ = ZZZ².
template <class F>
FN Jacobian<F> to_jacobian(const Xyzz<F>& p) {
  return {p.x * p.zz, p.y * p.zzz, p.zz};
}

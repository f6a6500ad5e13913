// The affine point of a sum.
#pragma once

#include "../curve/weierstrass.h"

template <class F>
static Affine<F> to_affine(const Xyzz<F>& p) {
  if (p.is_infinity()) return Affine<F>::infinity();
  // With ZZ³ = ZZZ²: 1/ZZ = (ZZ/ZZZ)², so one inversion serves both.
  const F zzz = inverse(p.zzz);
  const F z = p.zz * zzz;
  return {p.x * z.squared(), p.y * zzz};
}

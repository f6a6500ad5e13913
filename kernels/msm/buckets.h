// From bucket sums to a window's sum, and from windows' sums to the result.
#pragma once

#include "../curve/weierstrass.h"

// Σ (b + 1) · bucket[b] for b = 0 … count − 1, and Σ bucket[b]: two additions a bucket, from the top down.
template <class F, class Bucket>
FN void weighted_sum(const Bucket* bucket, u32 count, Xyzz<F>& weighted, Xyzz<F>& plain) {
  weighted = Xyzz<F>::infinity();
  plain = Xyzz<F>::infinity();
  for (u32 b = count; b-- > 0;) {
    add(plain, bucket[b]);
    add(weighted, plain);
  }
}

// accumulator = accumulator · 2^bits + window: Horner's rule over the windows, the highest first.
template <class F>
FN void horner_step(Xyzz<F>& accumulator, u32 bits, const Affine<F>& window) {
  if (!accumulator.is_infinity())
    for (u32 i = 0; i < bits; i++) accumulator = doubled(accumulator);
  add(accumulator, window);
}

// Number-theoretic transforms of a size that fits the cache, decimation in time.
#pragma once

#include "../field/types.h"

// The lowest `bits` bits of i in reverse order; i < 2^bits, bits ≤ 32.
FN u32 reversed_bits(u32 i, u32 bits) {
  i = (i & 0x55555555u) << 1 | (i >> 1 & 0x55555555u);
  i = (i & 0x33333333u) << 2 | (i >> 2 & 0x33333333u);
  i = (i & 0x0f0f0f0fu) << 4 | (i >> 4 & 0x0f0f0f0fu);
  i = (i & 0x00ff00ffu) << 8 | (i >> 8 & 0x00ff00ffu);
  i = i << 16 | i >> 16;
  return bits == 0 ? 0 : i >> (32 - bits);
}

// (a, b) ← (a + w·b, a − w·b).
template <class F>
FN void butterfly(F& a, F& b, const F& w) {
  const F t = b * w;
  b = a - t;
  a = a + t;
}

// Transforms x in place, given in bit-reversed order. twiddle[h + i] = ω_{2h}^i for h = 1, 2, 4 … and i < h.
template <class F>
FN void transform_bit_reversed(F* x, u32 log_size, const F* twiddle) {
  const u32 size = 1u << log_size;
  u32 half = 1;
  if (log_size >= 2) {
    // The first two levels at once: one product for four elements, ω_4.
    const F quarter = twiddle[3];
    for (u32 i = 0; i < size; i += 4) {
      const F a = x[i] + x[i + 1], b = x[i] - x[i + 1], c = x[i + 2] + x[i + 3];
      const F d = (x[i + 2] - x[i + 3]) * quarter;
      x[i] = a + c, x[i + 2] = a - c;
      x[i + 1] = b + d, x[i + 3] = b - d;
    }
    half = 4;
  } else if (log_size == 1) {
    const F a = x[0];
    x[0] = a + x[1];
    x[1] = a - x[1];
    return;
  }
  // Then two levels at a time: half as many loads and stores as one at a time.
  for (; 4 * half <= size; half *= 4) {
    const F *w = twiddle + half, *v = twiddle + 2 * half;
    for (u32 block = 0; block < size; block += 4 * half) {
      F *p0 = x + block, *p1 = p0 + half, *p2 = p1 + half, *p3 = p2 + half;
      for (u32 i = 0; i < half; i++) {
        const F b = i ? p1[i] * w[i] : p1[i], d = i ? p3[i] * w[i] : p3[i];
        const F a0 = p0[i] + b, a1 = p0[i] - b;
        const F c0 = i ? (p2[i] + d) * v[i] : p2[i] + d, c1 = (p2[i] - d) * v[half + i];
        p0[i] = a0 + c0, p2[i] = a0 - c0;
        p1[i] = a1 + c1, p3[i] = a1 - c1;
      }
    }
  }
  if (half < size) {
    const F* w = twiddle + half;
    for (u32 i = 0; i < half; i++) butterfly(x[i], x[half + i], w[i]);
  }
}

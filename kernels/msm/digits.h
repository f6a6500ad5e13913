// Scalars as signed digits, each window on its own.
//
// A scalar k < r < 2^255 is Σ d_w · 2^(bits·w). With half = 2^(bits−1) added to every window but the last,
// k' = k + Σ half · 2^(bits·w), the plain digits of k' are d_w + half: so d_w = digit_w(k') − half lies in
// [−half, half) and no carry runs between windows. The last window keeps its digit unsigned: one sign less to recode,
// and no extra window for a carry out of 2^255.
#pragma once

#include "../field/types.h"

struct Recoding {
  u32 bits, windows;
  u64 offset[4];
};

FN Recoding recoding(u32 bits) {
  Recoding r;
  r.bits = bits;
  r.windows = (255 + bits - 1) / bits;
  for (int i = 0; i < 4; i++) r.offset[i] = 0;
  for (u32 w = 0; w + 1 < r.windows; w++) {
    const u32 position = bits * w + bits - 1;
    r.offset[position / 64] |= u64(1) << (position % 64);
  }
  return r;
}

// The highest value of the last window: r < 2^254 · 1.82, its top digit plus the carry of the offset.
FN u32 buckets_of_window(const Recoding& r, u32 window) {
  if (window + 1 < r.windows) return u32(1) << (r.bits - 1);
  const u32 shift = r.bits * window;
  const u64 top = 0x73eda753299d7d48ull;
  return u32(shift >= 192 ? top >> (shift - 192) : ~u64(0)) + 1;
}

// Digit of one window; |digit| ≤ buckets_of_window.
FN i32 digit(const Recoding& r, const u64* k, u32 window) {
  u64 sum[5];
  u64 carry = 0;
  for (int i = 0; i < 4; i++) {
    const u64 t = k[i] + r.offset[i];
    const u64 c = t < k[i];
    sum[i] = t + carry;
    carry = c | (sum[i] < t);
  }
  sum[4] = carry;
  const u32 position = r.bits * window, word = position / 64, shift = position % 64;
  u64 d = sum[word] >> shift;
  if (shift != 0) d |= sum[word + 1] << (64 - shift);
  if (window + 1 == r.windows) return i32(d);
  return i32(d & ((u64(1) << r.bits) - 1)) - i32(u32(1) << (r.bits - 1));
}

// Field arithmetic on any 64-bit CPU: 128-bit products, Montgomery reduction after each row (CIOS).
//
// Both moduli leave the top bit of the last limb free, hence a running sum never leaves limbs + 1 words and every
// result needs one conditional subtraction at most.
#pragma once

#include "types.h"

typedef unsigned __int128 u128;

// x − modulus where x ≥ modulus, else x.
template <class P>
FN void field_reduce_once(u64* x) {
  u64 y[P::limbs], borrow = 0;
  for (int i = 0; i < P::limbs; i++) {
    u128 d = u128(x[i]) - P::modulus[i] - borrow;
    y[i] = u64(d);
    borrow = u64(d >> 64) & 1;
  }
  const u64 keep = 0 - borrow;
  for (int i = 0; i < P::limbs; i++) x[i] = (x[i] & keep) | (y[i] & ~keep);
}

template <class P>
__attribute__((noinline)) void field_add(u64* r, const u64* a, const u64* b) {
  u64 carry = 0;
  for (int i = 0; i < P::limbs; i++) {
    u128 s = u128(a[i]) + b[i] + carry;
    r[i] = u64(s);
    carry = u64(s >> 64);
  }
  field_reduce_once<P>(r);
}

template <class P>
__attribute__((noinline)) void field_sub(u64* r, const u64* a, const u64* b) {
  u64 borrow = 0, carry = 0;
  for (int i = 0; i < P::limbs; i++) {
    u128 d = u128(a[i]) - b[i] - borrow;
    r[i] = u64(d);
    borrow = u64(d >> 64) & 1;
  }
  const u64 mask = 0 - borrow;
  for (int i = 0; i < P::limbs; i++) {
    u128 s = u128(r[i]) + (P::modulus[i] & mask) + carry;
    r[i] = u64(s);
    carry = u64(s >> 64);
  }
}

// t += a · b, t of limbs + 1 words.
template <class P>
FN void row_add(u64* t, const u64* a, u64 b) {
  u64 carry = 0;
  for (int j = 0; j < P::limbs; j++) {
    u128 s = u128(a[j]) * b + t[j] + carry;
    t[j] = u64(s);
    carry = u64(s >> 64);
  }
  t[P::limbs] += carry;
}

// t = (t + m · modulus) / 2^64 with the m that makes the division exact.
template <class P>
FN void row_reduce(u64* t) {
  const u64 m = t[0] * P::inverse64;
  u64 carry = u64((u128(P::modulus[0]) * m + t[0]) >> 64);
  for (int j = 1; j < P::limbs; j++) {
    u128 s = u128(P::modulus[j]) * m + t[j] + carry;
    t[j - 1] = u64(s);
    carry = u64(s >> 64);
  }
  t[P::limbs - 1] = t[P::limbs] + carry;
  t[P::limbs] = 0;
}

template <class P>
__attribute__((noinline)) void field_mul(u64* r, const u64* a, const u64* b) {
  u64 t[P::limbs + 1] = {0};
  for (int i = 0; i < P::limbs; i++) {
    row_add<P>(t, a, b[i]);
    row_reduce<P>(t);
  }
  field_reduce_once<P>(t);
  for (int i = 0; i < P::limbs; i++) r[i] = t[i];
}

// The loose forms, which a back end may leave unreduced (below twice the modulus), are the plain ones here.
template <class P>
FN void field_mul_loose(u64* r, const u64* a, const u64* b) {
  field_mul<P>(r, a, b);
}

// a − b + modulus, without looking at the borrow.
template <class P>
__attribute__((noinline)) void field_sub_loose(u64* r, const u64* a, const u64* b) {
  u64 borrow = 0, carry = 0;
  for (int i = 0; i < P::limbs; i++) {
    u128 d = u128(a[i]) - b[i] - borrow;
    borrow = u64(d >> 64) & 1;
    u128 s = u128(u64(d)) + P::modulus[i] + carry;
    r[i] = u64(s);
    carry = u64(s >> 64);
  }
}

// a0·b0 + a1·b1 with one reduction. The sum of products may be up to 8 modulus²: below 1.82 modulus at the end.
// a and b each hold two elements; `swapped` pairs a0 with b1 and a1 with b0.
template <class P, bool swapped, bool canonical>
__attribute__((noinline)) void field_dot(u64* r, const u64* a, const u64* b) {
  constexpr int n = P::limbs;
  u64 t[n + 1] = {0};
  for (int i = 0; i < n; i++) {
    row_add<P>(t, a, b[swapped ? n + i : i]);
    row_add<P>(t, a + n, b[swapped ? i : n + i]);
    row_reduce<P>(t);
  }
  field_reduce_once<P>(t);
  for (int i = 0; i < n; i++) r[i] = t[i];
}

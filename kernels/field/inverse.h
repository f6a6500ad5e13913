// Inversion in a prime field on the CPU: binary GCD with 31 steps at a time on leading and trailing words.
//
// Source: T. Pornin, "Optimized Binary GCD for Modular Inversion", IACR ePrint 2020/972, algorithm 2 (we may stop as
// soon as the value reaches zero, for nothing here is secret). About 3 µs for Fp, some 90 products; Fermat needs 450.
#pragma once

#include "field_host.h"

// r = |a·f + b·g| / 2^31 for the signed factors of one round; true where the sum was negative.
template <int N>
FN bool gcd_combine(u64* r, const u64* a, i64 f, const u64* b, i64 g) {
  typedef unsigned __int128 wide;
  const u64 f_mask = u64(f >> 63), g_mask = u64(g >> 63);
  const u64 f_abs = (u64(f) ^ f_mask) - f_mask, g_abs = (u64(g) ^ g_mask) - g_mask;
  u64 t[N + 1];
  wide fa = 0, gb = 0;
  u64 f_carry = f_mask & 1, g_carry = g_mask & 1, sum_carry = 0;
  for (int i = 0; i <= N; i++) {
    // A product's word, negated on the fly where its factor is negative (two's complement).
    fa = (i < N ? wide(a[i]) * f_abs : 0) + u64(fa >> 64);
    gb = (i < N ? wide(b[i]) * g_abs : 0) + u64(gb >> 64);
    wide x = wide(u64(fa) ^ f_mask) + f_carry, y = wide(u64(gb) ^ g_mask) + g_carry;
    f_carry = u64(x >> 64), g_carry = u64(y >> 64);
    wide s = wide(u64(x)) + u64(y) + sum_carry;
    t[i] = u64(s), sum_carry = u64(s >> 64);
  }
  const u64 negative = 0 - (t[N] >> 63);
  u64 carry = negative & 1;
  for (int i = 0; i <= N; i++) {
    wide s = wide(t[i] ^ negative) + carry;
    t[i] = u64(s), carry = u64(s >> 64);
  }
  for (int i = 0; i < N; i++) r[i] = (t[i] >> 31) | (t[i + 1] << 33);
  return negative != 0;
}

// r = (u·f + v·g) / 2^31 mod modulus.
template <class P>
FN void gcd_combine_modular(u64* r, const u64* u, i64 f, const u64* v, i64 g) {
  typedef unsigned __int128 wide;
  constexpr int n = P::limbs;
  typedef Field<P> F;
  F x = F::constant(u).negated_if(f < 0), y = F::constant(v).negated_if(g < 0);
  const u64 f_abs = f < 0 ? 0 - u64(f) : u64(f), g_abs = g < 0 ? 0 - u64(g) : u64(g);
  u64 t[n + 1];
  wide fx = 0, gy = 0;
  u64 carry = 0;
  for (int i = 0; i <= n; i++) {
    fx = (i < n ? wide(x.l[i]) * f_abs : 0) + u64(fx >> 64);
    gy = (i < n ? wide(y.l[i]) * g_abs : 0) + u64(gy >> 64);
    wide s = wide(u64(fx)) + u64(gy) + carry;
    t[i] = u64(s), carry = u64(s >> 64);
  }
  const u64 m = (t[0] * P::inverse64) & 0x7fffffff;
  wide s = 0;
  for (int i = 0; i <= n; i++) {
    s = (i < n ? wide(P::modulus[i]) * m : 0) + t[i] + u64(s >> 64);
    t[i] = u64(s);
  }
  // The factors satisfy |f| + |g| ≤ 2^31, so the quotient is below twice the modulus.
  F z;
  for (int i = 0; i < n; i++) z.l[i] = (t[i] >> 31) | (t[i + 1] << 33);
  z = z + F::zero();
  for (int i = 0; i < n; i++) r[i] = z.l[i];
}

// 1/x in Montgomery form; 0 for 0. x may be loose.
template <class P>
__attribute__((noinline)) Field<P> inverse(const Field<P>& x) {
  constexpr int n = P::limbs;
  typedef Field<P> F;
  F a = x + F::zero(), b = F::constant(P::modulus), u = F::zero(), v = F::zero();
  u.l[0] = 1;
  while (!a.is_zero()) {
    // Leading 33 and trailing 31 bits of both, from the same position.
    int top = n - 1;
    while (top > 0 && (a.l[top] | b.l[top]) == 0) top--;
    u64 xa = a.l[0], xb = b.l[0];
    if (top > 0) {
      const int shift = __builtin_clzll(a.l[top] | b.l[top]);
      u64 a_head = a.l[top], b_head = b.l[top];
      if (shift > 0) {
        a_head = a_head << shift | a.l[top - 1] >> (64 - shift);
        b_head = b_head << shift | b.l[top - 1] >> (64 - shift);
      }
      xa = (xa & 0x7fffffff) | (a_head >> 31 << 31);
      xb = (xb & 0x7fffffff) | (b_head >> 31 << 31);
    }
    i64 f0 = 1, g0 = 0, f1 = 0, g1 = 1;
    for (int i = 0; i < 31; i++) {
      // (a, b) ← (a/2, b), ((a − b)/2, b) or ((b − a)/2, a), without branches: parities are random.
      const u64 odd = 0 - (xa & 1);
      const u64 swap = odd & (0 - u64(xa < xb));
      const u64 dx = (xa ^ xb) & swap, df = u64(f0 ^ f1) & swap, dg = u64(g0 ^ g1) & swap;
      xa ^= dx, xb ^= dx, f0 ^= i64(df), f1 ^= i64(df), g0 ^= i64(dg), g1 ^= i64(dg);
      xa -= xb & odd, f0 -= i64(u64(f1) & odd), g0 -= i64(u64(g1) & odd);
      xa >>= 1, f1 *= 2, g1 *= 2;
    }
    F next_a, next_b, next_u, next_v;
    if (gcd_combine<n>(next_a.l, a.l, f0, b.l, g0)) f0 = -f0, g0 = -g0;
    if (gcd_combine<n>(next_b.l, a.l, f1, b.l, g1)) f1 = -f1, g1 = -g1;
    gcd_combine_modular<P>(next_u.l, u.l, f0, v.l, g0);
    gcd_combine_modular<P>(next_v.l, u.l, f1, v.l, g1);
    a = next_a, b = next_b, u = next_u, v = next_v;
  }
  // v = (xR)⁻¹ as an integer; a product with R³ brings R⁻¹·x⁻¹ to x⁻¹·R. For x = 0 the loop never ran and v is 0.
  return v * F::constant(P::r3);
}

// Points as Zcash and bellman encode them without compression: big-endian, plain, the coordinates of Fp2 with c1 first.
// Of the three flags in the first byte, 0x80 says compressed, 0x40 infinity, 0x20 which y: here only the second may be
// set, and keys of bellman hold no point at infinity, so none is decoded.
#pragma once

#include "canonical.h"
#include "../curve/weierstrass.h"

enum Decoding : u32 { decoded, compressed_flag, infinity_flag, sign_flag, not_below_modulus };

FN bool decode(const unsigned char* from, Fp& x) {
  for (int w = 0; w < 6; w++) {
    u64 word;
    __builtin_memcpy(&word, from + 40 - 8 * w, 8);
    x.l[w] = __builtin_bswap64(word);
  }
  const bool canonical = is_canonical(x);
  x = x * Fp::constant(FpParameters::r2);
  return canonical;
}
FN bool decode(const unsigned char* from, Fp2<Fp>& x) {
  const bool first = decode(from, x.c1);
  return decode(from + 48, x.c0) && first;
}

template <class F>
FN u32 decode(const unsigned char* from, Affine<F>& p) {
  if (from[0] & 0x80) return compressed_flag;
  if (from[0] & 0x40) return infinity_flag;
  if (from[0] & 0x20) return sign_flag;
  const bool x = decode(from, p.x), y = decode(from + sizeof(F), p.y);
  return x && y ? decoded : not_below_modulus;
}

FN void encode(const Fp& x, unsigned char* to) {
  Fp one = Fp::zero();
  one.l[0] = 1;
  const Fp plain = x * one;
  for (int w = 0; w < 6; w++) {
    const u64 word = __builtin_bswap64(plain.l[w]);
    __builtin_memcpy(to + 40 - 8 * w, &word, 8);
  }
}
FN void encode(const Fp2<Fp>& x, unsigned char* to) {
  encode(x.c1, to);
  encode(x.c0, to + 48);
}

template <class F>
FN void encode(const Affine<F>& p, unsigned char* to) {
  encode(p.x, to);
  encode(p.y, to + sizeof(F));
  if (p.is_infinity()) to[0] = 0x40;
}

// A prime field on the CPU: canonical Montgomery representatives, one struct for Fp (6 limbs) and Fr (4).
//
// What the tower and the curve formulas ask of a field, here and on a GPU alike:
//   F::zero(), F::one(), a + b, a - b, a * b, a.squared(), a.doubled(), a.negated(), a.is_zero(), a == b.
// The words below come from one back end a build: -DCUZKLAB_FIELD_ADX or the portable one. A further back end adds a
// header here and a name to FIELD_PATHS in cuzklab/backends/native.py. AVX-512 IFMA is not one of them: it has its own
// radix and works on eight elements at a time (lanes_ifma.h), beside the ADX build.
#pragma once

#include "bls12_381.h"
#include "types.h"

struct FpParameters {
  static constexpr int limbs = 6;
  static constexpr u64 modulus[6] = FP_MODULUS;
  static constexpr u64 one[6] = FP_ONE;
  static constexpr u64 r2[6] = FP_R2;
  static constexpr u64 r3[6] = FP_R3;
  static constexpr u64 inverse64 = FP_INVERSE64;
};

struct FrParameters {
  static constexpr int limbs = 4;
  static constexpr u64 modulus[4] = FR_MODULUS;
  static constexpr u64 one[4] = FR_ONE;
  static constexpr u64 r2[4] = FR_R2;
  static constexpr u64 r3[4] = FR_R3;
  static constexpr u64 inverse64 = FR_INVERSE64;
};

#ifdef CUZKLAB_FIELD_ADX
#include "field_adx.h"
#else
#include "field_portable.h"
#endif

template <class P>
struct Field {
  static constexpr int limbs = P::limbs;
  typedef P Parameters;
  u64 l[P::limbs];

  static FN Field zero() {
    Field x;
    for (int i = 0; i < limbs; i++) x.l[i] = 0;
    return x;
  }
  static FN Field one() { return constant(P::one); }
  static FN Field constant(const u64* words) {
    Field x;
    for (int i = 0; i < limbs; i++) x.l[i] = words[i];
    return x;
  }

  FN bool is_zero() const {
    u64 any = 0;
    for (int i = 0; i < limbs; i++) any |= l[i];
    return any == 0;
  }
  FN bool operator==(const Field& b) const {
    u64 differ = 0;
    for (int i = 0; i < limbs; i++) differ |= l[i] ^ b.l[i];
    return differ == 0;
  }

  FN Field operator+(const Field& b) const {
    Field x;
    field_add<P>(x.l, l, b.l);
    return x;
  }
  FN Field operator-(const Field& b) const {
    Field x;
    field_sub<P>(x.l, l, b.l);
    return x;
  }
  FN Field operator*(const Field& b) const {
    Field x;
    field_mul<P>(x.l, l, b.l);
    return x;
  }
  FN Field squared() const { return *this * *this; }
  FN Field doubled() const { return *this + *this; }
  FN Field negated() const { return zero() - *this; }

  // Loose values lie below twice the modulus. They may enter products (plain ones are canonical again) and nothing else.
  FN Field loose_times(const Field& b) const {
    Field x;
    field_mul_loose<P>(x.l, l, b.l);
    return x;
  }
  FN Field loose_minus(const Field& b) const {
    Field x;
    field_sub_loose<P>(x.l, l, b.l);
    return x;
  }

  // Negated where `negative` is set, without a branch: digits' signs are random, a branch would be mispredicted.
  FN Field negated_if(bool negative) const {
    Field minus = negated(), x;
    const u64 mask = 0 - u64(negative);
    for (int i = 0; i < limbs; i++) x.l[i] = l[i] ^ ((l[i] ^ minus.l[i]) & mask);
    return x;
  }
};

typedef Field<FpParameters> Fp;
typedef Field<FrParameters> Fr;

// Fp and Fr on a GPU: 32-bit limbs, Montgomery multiplication in two interleaved accumulators.
//
// Products of even limbs go to E, of odd limbs to O, which stands one limb higher: so every chain of carries runs over
// neighbouring lo/hi pairs, one wide multiply-add each. Dividing by 2^32 after a row swaps the two.
//
// Elements lie in [0, 2·modulus): 2^384 / p = 9.8, hence a product of factors below α·p and β·p with α·β ≤ 9.8 needs no
// correction. For Fr, 2^256 / r = 2.2: there one factor must be below r (`times`), the other may be below 2r.
// `reduced()` gives the canonical element; what leaves the device is canonical.
#pragma once

#include "bls12_381.h"
#include "carry.cuh"

// In the constant bank: as literals ptxas would split wide products.
#ifdef __CUDACC__
#define CONSTANT __constant__
#else
#define CONSTANT static const
#endif

CONSTANT u64 fp_modulus_words[6] = FP_MODULUS;
CONSTANT u64 fp_one_words[6] = FP_ONE;
CONSTANT u64 fp_r2_words[6] = FP_R2;
// 2p and 2r.
CONSTANT u64 fp_twice_words[6] = {
    0x73fdffffffff5556ull, 0x3d57fffd62a7ffffull, 0xce61a541ed61ec48ull,
    0xc8ee9709e70a257eull, 0x96374f6c869759aeull, 0x340223d472ffcd34ull};
CONSTANT u64 fr_modulus_words[4] = FR_MODULUS;
CONSTANT u64 fr_one_words[4] = FR_ONE;
CONSTANT u64 fr_r2_words[4] = FR_R2;
CONSTANT u64 fr_twice_words[4] = {
    0xfffffffe00000002ull, 0xa77b4805fffcb7fdull, 0x6673b0101343b00aull, 0xe7db4ea6533afa90ull};

// Of limbs from 2^64 up: 2^192 − 1 − high, where r = 1 − 2^32 + 2^64·(1 + high).
CONSTANT u64 fr_complement_words[4] = {
    0, ~0x53bda402fffe5bfeull, ~0x3339d80809a1d805ull, ~0x73eda753299d7d48ull};

CONSTANT u64 fr_final_words[4] = {
    0x0000000000000002ull, 0x53bda403fffe5c00ull,
    0x3339d80909a1d806ull, 0x73eda754299d7d49ull};

struct FpParameters {
  static constexpr int words = 12;
  static constexpr bool special = false;
  static FN u32 modulus(int i) { return ((const u32*)fp_modulus_words)[i]; }
  static FN u32 twice(int i) { return ((const u32*)fp_twice_words)[i]; }
  static FN u32 one(int i) { return ((const u32*)fp_one_words)[i]; }
  static FN u32 r2(int i) { return ((const u32*)fp_r2_words)[i]; }
  static constexpr u32 inverse32 = u32(FP_INVERSE64);
};

struct FrParameters {
  static constexpr int words = 8;
  // r = 1 − 2^32 + 2^64·(1 + high): two of a row's eight products are additions, see reduce_row.
  static constexpr bool special = true;
  static FN u32 modulus(int i) { return ((const u32*)fr_modulus_words)[i]; }
  static FN u32 complement(int i) { return ((const u32*)fr_complement_words)[i]; }
  // r, and 1 for each row in the limb where its missing unit ends.
  static FN u32 final_term(int i) { return ((const u32*)fr_final_words)[i]; }
  static FN u32 twice(int i) { return ((const u32*)fr_twice_words)[i]; }
  static FN u32 one(int i) { return ((const u32*)fr_one_words)[i]; }
  static FN u32 r2(int i) { return ((const u32*)fr_r2_words)[i]; }
  static constexpr u32 inverse32 = 0xffffffffu;
};

// E, O of limbs E[i]·2^(32 i) + O[i]·2^(32 (i + 1)).
template <class P>
struct Accumulator {
  static constexpr int n = P::words;
  u32 e[n], o[n];

  // = a · b for the first digit b.
  FN void first_row(const u32* a, u32 b) {
#pragma unroll
    for (int j = 0; j < n; j += 2) {
      mul_pair(e[j], e[j + 1], a[j], b);
      mul_pair(o[j], o[j + 1], a[j + 1], b);
    }
  }

  // += a · b. The sum stays below 2^(32 (n + 1)).
  FN void add_row(const u32* a, u32 b) {
    mad_pair(o[0], o[1], a[1], b, o[0], o[1]);
#pragma unroll
    for (int j = 2; j < n; j += 2) madc_pair(o[j], o[j + 1], a[j + 1], b, o[j], o[j + 1]);
    mad_pair(e[0], e[1], a[0], b, e[0], e[1]);
#pragma unroll
    for (int j = 2; j < n; j += 2) madc_pair(e[j], e[j + 1], a[j], b, e[j], e[j + 1]);
    o[n - 1] = addc(o[n - 1], 0);
  }

  // = itself / 2^32 + a · b, where limb 0 is zero.
  FN void shift_add_row(const u32* a, u32 b) {
    u32 low[n];
    // Of the sum, for what moves into the highest limb.
    const u32 sign = P::special ? u32(i32(o[n - 1]) >> 31) : 0;
    low[0] = add_cc(o[0], e[1]);
#pragma unroll
    for (int j = 1; j < n; j++) low[j] = o[j];
#pragma unroll
    for (int j = 0; j < n - 2; j += 2) madc_pair(o[j], o[j + 1], a[j + 1], b, e[j + 2], e[j + 3]);
    madc_pair(o[n - 2], o[n - 1], a[n - 1], b, 0, 0);
    mad_pair(e[0], e[1], a[0], b, low[0], low[1]);
#pragma unroll
    for (int j = 2; j < n; j += 2) madc_pair(e[j], e[j + 1], a[j], b, low[j], low[j + 1]);
    o[n - 1] = addc(o[n - 1], sign);
  }

  // ± m · modulus with the m that makes limb 0 zero: −m for Fr, whose sums are signed and start above −r.
  FN void reduce_row() {
    if constexpr (P::special) {
      // −t·r with r = 1 − 2^32 + 2^64·(1 + high) is −t + t·2^32 + t·(2^192 − 1 − high)·2^64 − t·2^256.
      const u32 t = e[0];
      mad_pair(o[2], o[3], P::complement(3), t, o[2], o[3]);
#pragma unroll
      for (int j = 4; j < n; j += 2) madc_pair(o[j], o[j + 1], P::complement(j + 1), t, o[j], o[j + 1]);
      e[1] = add_cc(e[1], t);
#pragma unroll
      for (int j = 2; j < n; j += 2) madc_pair(e[j], e[j + 1], P::complement(j), t, e[j], e[j + 1]);
      // One too little: `finish` makes up for all rows at once.
      o[n - 1] = addc(o[n - 1], ~t + hidden_zero());
    } else {
      const u32 m = e[0] * P::inverse32;
      mad_pair(o[0], o[1], P::modulus(1), m, o[0], o[1]);
#pragma unroll
      for (int j = 2; j < n; j += 2) madc_pair(o[j], o[j + 1], P::modulus(j + 1), m, o[j], o[j + 1]);
      mad_pair(e[0], e[1], P::modulus(0), m, e[0], e[1]);
#pragma unroll
      for (int j = 2; j < n; j += 2) madc_pair(e[j], e[j + 1], P::modulus(j), m, e[j], e[j + 1]);
      o[n - 1] = addc(o[n - 1], 0);
    }
  }

  // Itself / 2^32, plus r for Fr.
  FN void finish(u32* r) const {
    r[0] = add_cc(o[0], e[1]);
#pragma unroll
    for (int j = 1; j < n - 1; j++) r[j] = addc_cc(o[j], e[j + 1]);
    r[n - 1] = addc(o[n - 1], 0);
    if constexpr (P::special) {
      r[0] = add_cc(r[0], P::final_term(0));
#pragma unroll
      for (int j = 1; j < n - 1; j++) r[j] = addc_cc(r[j], P::final_term(j));
      r[n - 1] = addc(r[n - 1], P::final_term(n - 1));
    }
  }
};

// x², 2·n words, of an n-word x: products of different limbs once, doubled, then the squares. 78 wide multiply-adds of
// n = 12 where a product takes 144.
template <int n>
FN void square_wide(u32* t, const u32* x) {
  // e[k], o[k]: sums of products that start at an even or odd limb; both stand at limb k.
  u32 e[2 * n], o[2 * n];
  e[0] = e[1] = o[0] = e[2 * n - 2] = e[2 * n - 1] = o[2 * n - 1] = 0;
#pragma unroll
  for (int j = 1; j < n; j += 2) mul_pair(o[j], o[j + 1], x[0], x[j]);
#pragma unroll
  for (int j = 2; j < n; j += 2) mul_pair(e[j], e[j + 1], x[0], x[j]);
#pragma unroll
  for (int i = 1; i < n - 1; i++) {
#pragma unroll
    for (int parity = 1; parity <= 2; parity++) {
      u32* to = parity == 1 ? ((i + i + 1) % 2 ? o : e) : ((i + i + 2) % 2 ? o : e);
#pragma unroll
      for (int j = i + parity; j < n; j += 2) {
        // A pair reached for the first time: its low word holds at most a carry of the row before.
        if (j == n - 1) to[i + j + 1] = 0;
        if (j == n - 1 && i == 1) to[i + j] = 0;
        if (j == i + parity) mad_pair(to[i + j], to[i + j + 1], x[i], x[j], to[i + j], to[i + j + 1]);
        else madc_pair(to[i + j], to[i + j + 1], x[i], x[j], to[i + j], to[i + j + 1]);
        // The row ends below the last limb: its carry opens the next word.
        if (j == n - 2) to[i + j + 2] = addc(0, 0);
      }
    }
  }
  t[0] = 0;
  t[1] = o[1];
  t[2] = add_cc(e[2], o[2]);
#pragma unroll
  for (int k = 3; k < 2 * n - 1; k++) t[k] = addc_cc(e[k], o[k]);
  t[2 * n - 1] = addc(0, 0);
  t[1] = add_cc(t[1], t[1]);
#pragma unroll
  for (int k = 2; k < 2 * n - 1; k++) t[k] = addc_cc(t[k], t[k]);
  t[2 * n - 1] = addc(t[2 * n - 1], t[2 * n - 1]);
  mad_pair(t[0], t[1], x[0], x[0], t[0], t[1]);
#pragma unroll
  for (int i = 1; i < n; i++) madc_pair(t[2 * i], t[2 * i + 1], x[i], x[i], t[2 * i], t[2 * i + 1]);
}

// t = a · b, 2·n words: the rows of a Montgomery product, whose lowest word is kept instead of cancelled.
template <class P>
FN void product_wide(u32* t, const u32* a, const u32* b) {
  constexpr int n = P::words;
  Accumulator<P> rows;
  rows.first_row(a, b[0]);
  t[0] = rows.e[0];
#pragma unroll
  for (int i = 1; i < n; i++) {
    rows.shift_add_row(a, b[i]);
    t[i] = rows.e[0];
  }
  rows.finish(t + n);
}

// r = t / 2^(32 n) mod modulus of 2·n words t.
template <class P>
FN void reduce_wide(u32* r, const u32* t) {
  constexpr int n = P::words;
  u32 e[n], o[n];
#pragma unroll
  for (int j = 0; j < n; j++) e[j] = t[j], o[j] = 0;
#pragma unroll
  for (int i = 0; i < n; i++) {
    u32 low[n];
    if (i == 0) {
#pragma unroll
      for (int j = 0; j < n; j++) low[j] = e[j];
    } else {
      low[0] = add_cc(o[0], e[1]);
#pragma unroll
      for (int j = 1; j < n; j++) low[j] = o[j];
    }
    const u32 m = low[0] * P::inverse32;
    if (i == 0) {
#pragma unroll
      for (int j = 0; j < n; j += 2) mul_pair(o[j], o[j + 1], P::modulus(j + 1), m);
    } else {
#pragma unroll
      for (int j = 0; j < n - 2; j += 2) madc_pair(o[j], o[j + 1], P::modulus(j + 1), m, e[j + 2], e[j + 3]);
      madc_pair(o[n - 2], o[n - 1], P::modulus(n - 1), m, t[n - 1 + i], 0);
    }
    mad_pair(e[0], e[1], P::modulus(0), m, low[0], low[1]);
#pragma unroll
    for (int j = 2; j < n; j += 2) madc_pair(e[j], e[j + 1], P::modulus(j), m, low[j], low[j + 1]);
    o[n - 1] = addc(o[n - 1], 0);
  }
  r[0] = add_cc(o[0], e[1]);
#pragma unroll
  for (int j = 1; j < n - 1; j++) r[j] = addc_cc(o[j], e[j + 1]);
  r[n - 1] = addc(o[n - 1], t[2 * n - 1]);
}

// A factor of Fr that is known beforehand, beside its share of the modulus. Both are plain integers, so a product keeps
// the form, Montgomery's or plain, of what it multiplies.
struct alignas(16) Known {
  u32 factor[8], quotient[8];  // quotient = ⌊factor · 2^256 / r⌋
};

// Limbs 6 … 15 of a · b, from products at columns 6 and up: even columns in e, odd ones in o, both indexed by limb − 6.
// What is left out is below 2^227, an eighth of a billionth of limb 8.
FN void upper_product(u32* e, u32* o, const u32* a, const u32* b) {
  o[0] = e[8] = e[9] = o[8] = o[9] = 0;
#pragma unroll
  for (int j = 0; j < 8; j++) {
#pragma unroll
    for (int odd = 0; odd < 2; odd++) {
      u32* to = odd ? o : e;
      const int last = (j + odd) % 2 ? 7 : 6;
#pragma unroll
      for (int i = last % 2; i <= last; i += 2) {
        const int at = i + j - 6;
        if (at < 0) continue;
        // A pair reached for the first time holds at most a carry of the row before, in its low word.
        if (i == 7 && j < 2) to[at] = 0;
        if (i == 7 || j == 0) to[at + 1] = 0;
        if (j == 0) mul_pair(to[at], to[at + 1], a[i], b[j]);
        else if (at < 2) mad_pair(to[at], to[at + 1], a[i], b[j], to[at], to[at + 1]);
        else madc_pair(to[at], to[at + 1], a[i], b[j], to[at], to[at + 1]);
      }
      if (last == 6 && j > 0) to[j + 2] = addc(0, 0);
    }
  }
}

// e, o += a · b[j] · 2^(32 j) mod 2^256: even columns in e, odd ones in o, both indexed by limb. `first`: =, for j = 0.
template <bool first>
FN void lower_row(u32* e, u32* o, const u32* a, u32 b, int j) {
#pragma unroll
  for (int at = j + j % 2; at < 7; at += 2) {
    if (first) mul_pair(e[at], e[at + 1], a[at - j], b);
    else if (at < j + 2) mad_pair(e[at], e[at + 1], a[at - j], b, e[at], e[at + 1]);
    else madc_pair(e[at], e[at + 1], a[at - j], b, e[at], e[at + 1]);
  }
#pragma unroll
  for (int at = j + 1 - j % 2; at < 7; at += 2) {
    if (first) mul_pair(o[at], o[at + 1], a[at - j], b);
    else if (at < j + 2) mad_pair(o[at], o[at + 1], a[at - j], b, o[at], o[at + 1]);
    else madc_pair(o[at], o[at + 1], a[at - j], b, o[at], o[at + 1]);
  }
  if (first) o[7] = a[7] * b;
  else if (j >= 6) o[7] += a[7 - j] * b;
  else o[7] = madc_low(a[7 - j], b, o[7]);
}

// With -DCALLED_PRODUCTS=1 a product of Fp is a function call: code an order of magnitude shorter, some moves a product.
#if CALLED_PRODUCTS && defined(__CUDACC__)
#define FN_PRODUCT static __device__ __noinline__
#else
#define FN_PRODUCT FN
#endif

template <class P>
struct Field;
template <class P>
FN_PRODUCT Field<P> product(Field<P> a, Field<P> b);
template <class P>
FN_PRODUCT Field<P> square(Field<P> a);

// x − bound where x ≥ bound, else x. `bound` is a function of the limb's index.
template <class P, class Bound>
FN void subtract_once(u32* x, u32 carry, Bound bound) {
  constexpr int n = P::words;
  u32 d[n];
  d[0] = sub_cc(x[0], bound(0));
#pragma unroll
  for (int i = 1; i < n; i++) d[i] = subc_cc(x[i], bound(i));
  const u32 borrowed = subc(carry, 0);
#pragma unroll
  for (int i = 0; i < n; i++) x[i] = (borrowed >> 31) ? x[i] : d[i];
}

template <class P>
struct alignas(16) Field {
  static constexpr int words = P::words;
  typedef P Parameters;
  u32 l[P::words];

  static FN Field zero() {
    Field x;
#pragma unroll
    for (int i = 0; i < words; i++) x.l[i] = 0;
    return x;
  }
  static FN Field one() {
    Field x;
#pragma unroll
    for (int i = 0; i < words; i++) x.l[i] = P::one(i);
    return x;
  }
  static FN Field r_squared() {
    Field x;
#pragma unroll
    for (int i = 0; i < words; i++) x.l[i] = P::r2(i);
    return x;
  }

  // Both 0 and the modulus stand for zero.
  FN bool is_zero() const {
    u32 any = 0, other = 0;
#pragma unroll
    for (int i = 0; i < words; i++) any |= l[i], other |= l[i] ^ P::modulus(i);
    return any == 0 || other == 0;
  }
  FN bool operator==(const Field& b) const { return (*this - b).is_zero(); }

  FN Field operator+(const Field& b) const {
    Field x;
    x.l[0] = add_cc(l[0], b.l[0]);
#pragma unroll
    for (int i = 1; i < words; i++) x.l[i] = addc_cc(l[i], b.l[i]);
    const u32 carry = addc(0, 0);
    subtract_once<P>(x.l, carry, [](int i) { return P::twice(i); });
    return x;
  }
  FN Field operator-(const Field& b) const {
    Field x;
    x.l[0] = sub_cc(l[0], b.l[0]);
#pragma unroll
    for (int i = 1; i < words; i++) x.l[i] = subc_cc(l[i], b.l[i]);
    const u32 mask = subc(0, 0);
    x.l[0] = add_cc(x.l[0], P::twice(0) & mask);
#pragma unroll
    for (int i = 1; i < words - 1; i++) x.l[i] = addc_cc(x.l[i], P::twice(i) & mask);
    x.l[words - 1] = addc(x.l[words - 1], (P::twice(words - 1) & mask) + (P::special ? hidden_zero() : 0));
    return x;
  }
  // 2·modulus − x: in [0, 2·modulus], a factor but no summand.
  FN Field opposite() const {
    Field x;
    x.l[0] = sub_cc(P::twice(0), l[0]);
#pragma unroll
    for (int i = 1; i < words - 1; i++) x.l[i] = subc_cc(P::twice(i), l[i]);
    x.l[words - 1] = subc(P::twice(words - 1), l[words - 1]);
    return x;
  }
  FN Field doubled() const { return *this + *this; }
  FN Field negated() const { return zero() - *this; }
  FN Field negated_if(bool negative) const {
    const Field minus = negated();
    Field x;
#pragma unroll
    for (int i = 0; i < words; i++) x.l[i] = negative ? minus.l[i] : l[i];
    return x;
  }
  FN Field reduced() const {
    Field x = *this;
    subtract_once<P>(x.l, 0, [](int i) { return P::modulus(i); });
    return x;
  }

  // Montgomery product with a factor that Fr wants below r.
  FN Field times(const Field& factor) const {
    Accumulator<P> t;
    t.first_row(factor.l, l[0]);
    t.reduce_row();
#pragma unroll
    for (int i = 1; i < words; i++) {
      t.shift_add_row(factor.l, l[i]);
      t.reduce_row();
    }
    Field x;
    t.finish(x.l);
    return x;
  }
  // Product with a known factor, for any value of 256 bits: below 2r where that is below 2r. 86 wide multiply-adds and
  // 14 low ones, where a Montgomery product takes 112 wide ones (Shoup's method: the quotient is a product, too).
  FN Field times(const Known& known) const {
    static_assert(P::special, "bounds and the form of the modulus are those of r");
    u32 e[10], o[10], q[8];
    upper_product(e, o, l, known.quotient);
    add_cc(e[1], o[1]);
#pragma unroll
    for (int i = 0; i < 7; i++) q[i] = addc_cc(e[i + 2], o[i + 2]);
    q[7] = addc(e[9], o[9]);
    // x·factor − q·r mod 2^256, with −r = −1 + 2^32 + 2^64·(2^192 − 1 − ⌊r / 2^64⌋).
    lower_row<true>(e, o, l, known.factor[0], 0);
#pragma unroll
    for (int j = 1; j < 8; j++) lower_row<false>(e, o, l, known.factor[j], j);
#pragma unroll
    for (int j = 2; j < 8; j++) lower_row<false>(e, o, q, P::complement(j), j);
    o[1] = add_cc(o[1], q[0]);
#pragma unroll
    for (int i = 2; i < 7; i++) o[i] = addc_cc(o[i], q[i - 1]);
    o[7] = addc(o[7], q[6]);
    Field x;
    x.l[0] = sub_cc(e[0], q[0]);
#pragma unroll
    for (int i = 1; i < 7; i++) x.l[i] = subc_cc(e[i], q[i]);
    x.l[7] = subc(e[7], q[7]);
    x.l[1] = add_cc(x.l[1], o[1]);
#pragma unroll
    for (int i = 2; i < 7; i++) x.l[i] = addc_cc(x.l[i], o[i]);
    x.l[7] = addc(x.l[7], o[7]);
    return x;
  }
  FN Field operator*(const Field& b) const {
    if constexpr (P::special)
      return times(b.reduced());
    else
      return product(*this, b);
  }
  FN Field squared() const {
    if constexpr (P::special)
      return *this * *this;
    else
      return square(*this);
  }
};

template <class P>
FN_PRODUCT Field<P> product(Field<P> a, Field<P> b) {
  return a.times(b);
}

template <class P>
FN_PRODUCT Field<P> square(Field<P> a) {
  u32 t[2 * P::words];
  square_wide<P::words>(t, a.l);
  Field<P> x;
  reduce_wide<P>(x.l, t);
  return x;
}

typedef Field<FpParameters> Fp;
typedef Field<FrParameters> Fr;

// a·b + c·d with one reduction.
FN Fp sum_of_products(const Fp& a, const Fp& b, const Fp& c, const Fp& d) {
  Accumulator<FpParameters> t;
  t.first_row(a.l, b.l[0]);
  t.add_row(c.l, d.l[0]);
  t.reduce_row();
#pragma unroll
  for (int i = 1; i < Fp::words; i++) {
    t.shift_add_row(a.l, b.l[i]);
    t.add_row(c.l, d.l[i]);
    t.reduce_row();
  }
  Fp x;
  t.finish(x.l);
  return x;
}

// a·b − c·d with one reduction.
FN Fp difference_of_products(const Fp& a, const Fp& b, const Fp& c, const Fp& d) {
  return sum_of_products(a, b, c.opposite(), d);
}

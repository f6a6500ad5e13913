// The operations of eight lanes, one entry each, for test_lanes_ifma.py: arrays are [limb][lane], bit i of a mask is
// lane i.
#include "field/fp2_ifma.h"
#include "ntt/transform_ifma.h"

namespace {
template <class L>
FN L read(const u64* x) {
  L r;
  for (int i = 0; i < L::limbs; i++) r.l[i] = _mm512_loadu_si512(x + 8 * i);
  return r;
}
template <class L>
FN void write(u64* x, const L& r) {
  for (int i = 0; i < L::limbs; i++) _mm512_storeu_si512(x + 8 * i, r.l[i]);
}
template <class L>
FN void through_words(const u64* a, u64* out) {
  Vector words[L::Parameters::limbs];
  read<L>(a).to_words(words);
  write(out, L::of_words(words));
}
}  // namespace

#define ENTRIES(name, L) \
  void name##_product(const u64* a, const u64* b, u64* out) { write(out, product(read<L>(a), read<L>(b)).normal()); } \
  void name##_square(const u64* a, u64* out) { write(out, square(read<L>(a)).normal()); } \
  void name##_dot(const u64* a, const u64* b, const u64* c, const u64* d, u64* out) { \
    write(out, dot(read<L>(a), read<L>(b), read<L>(c), read<L>(d)).normal()); \
  } \
  void name##_normal(const u64* a, u64* out) { write(out, read<L>(a).normal()); } \
  void name##_canonical(const u64* a, u64* out) { write(out, read<L>(a).canonical()); } \
  void name##_through_words(const u64* a, u64* out) { through_words<L>(a, out); } \
  u32 name##_multiples(const u64* a) { return read<L>(a).multiples(); } \
  u32 name##_perhaps_multiples(const u64* a) { return read<L>(a).perhaps_multiples(); }

extern "C" {
#pragma GCC visibility push(default)
ENTRIES(fp, FpLanes)
ENTRIES(fr, FrLanes)
void fp_reduced(const u64* a, u64* out) { write(out, read<FpLanes>(a).reduced()); }
void fr_far_canonical(const u64* a, u64* out) { write(out, far_canonical(read<FrLanes>(a))); }
void fr_eight(const Fr* a, u64* out, Fr* back) {
  const FrLanes x = load_eight(a);
  write(out, x);
  store_eight(back, x);
}
void fp2_times(const u64* a, const u64* b, u64* out) {
  const Fp2Lanes x{read<FpLanes>(a), read<FpLanes>(a + 64)}, y{read<FpLanes>(b), read<FpLanes>(b + 64)};
  const Fp2Lanes r = times(x, y);
  write(out, r.c0.normal());
  write(out + 64, r.c1.normal());
}
void fp2_squared(const u64* a, u64* out) {
  const Fp2Lanes r = squared(Fp2Lanes{read<FpLanes>(a), read<FpLanes>(a + 64)});
  write(out, r.c0.normal());
  write(out + 64, r.c1.normal());
}
#pragma GCC visibility pop
}

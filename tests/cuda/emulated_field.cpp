// The GPU's field arithmetic with its carry flag emulated: the algorithm can be judged where there is no GPU.
#include "field/fp2_ptx.cuh"

template <class F>
static F canonical(const F& x) { return x.reduced(); }
template <>
Fp2<Fp> canonical(const Fp2<Fp>& x) { return {x.c0.reduced(), x.c1.reduced()}; }

#define ENTRIES(prefix, F) \
  void prefix##_mul(const F* a, const F* b, F* out, u64 n) { for (u64 i = 0; i < n; i++) out[i] = canonical<F>(a[i] * b[i]); } \
  void prefix##_add(const F* a, const F* b, F* out, u64 n) { for (u64 i = 0; i < n; i++) out[i] = canonical<F>(a[i] + b[i]); } \
  void prefix##_sub(const F* a, const F* b, F* out, u64 n) { for (u64 i = 0; i < n; i++) out[i] = canonical<F>(a[i] - b[i]); } \
  void prefix##_sqr(const F* a, const F*, F* out, u64 n) { for (u64 i = 0; i < n; i++) out[i] = canonical<F>(a[i].squared()); }

extern "C" {
ENTRIES(fp, Fp)
ENTRIES(fr, Fr)
ENTRIES(fp2, Fp2<Fp>)
// Without the canonical step: what chains of operations see.
void fr_times_raw(const Fr* a, const Fr* b, Fr* out, u64 n) { for (u64 i = 0; i < n; i++) out[i] = a[i].times(b[i]); }
void fr_times_known_raw(const Fr* a, const Known* b, Fr* out, u64 n) { for (u64 i = 0; i < n; i++) out[i] = a[i].times(b[i]); }
void fp_mul_raw(const Fp* a, const Fp* b, Fp* out, u64 n) { for (u64 i = 0; i < n; i++) out[i] = a[i] * b[i]; }
void fp_square_raw(const Fp* a, const Fp*, Fp* out, u64 n) { for (u64 i = 0; i < n; i++) out[i] = a[i].squared(); }
void fp_difference_of_products(const Fp* a, const Fp* b, Fp* out, u64 n) {
  for (u64 i = 0; i + 1 < n; i += 2) out[i] = difference_of_products(a[i], b[i], a[i + 1], b[i + 1]).reduced();
}
void fp_sum_of_products_raw(const Fp* a, const Fp* b, Fp* out, u64 n) {
  for (u64 i = 0; i + 1 < n; i += 2) out[i] = sum_of_products(a[i], b[i], a[i + 1], b[i + 1]);
}
}

// Every shared header in device code, over a toy field that has the operations they ask for and nothing else.
// No standard header is included: NVRTC has none.
#include "curve/subgroup.h"
#include "field/bls12_381.h"
#include "field/fp2.h"
#include "msm/buckets.h"
#include "msm/digits.h"
#include "ntt/butterflies.h"

struct Toy {
  u32 v;
  static constexpr u32 modulus = 2147483647u;
  static FN Toy zero() { return {0}; }
  static FN Toy one() { return {1}; }
  FN bool is_zero() const { return v == 0; }
  FN bool operator==(const Toy& b) const { return v == b.v; }
  FN Toy operator+(const Toy& b) const { return {u32((u64(v) + b.v) % modulus)}; }
  FN Toy operator-(const Toy& b) const { return {u32((u64(v) + modulus - b.v) % modulus)}; }
  FN Toy operator*(const Toy& b) const { return {u32(u64(v) * b.v % modulus)}; }
  FN Toy squared() const { return *this * *this; }
  FN Toy doubled() const { return *this + *this; }
  FN Toy negated() const { return zero() - *this; }
  FN Toy negated_if(bool negative) const { return negative ? negated() : *this; }
};

__constant__ u64 modulus_words[6] = FP_MODULUS;
__constant__ u64 scalar_modulus_words[4] = FR_MODULUS;

template <class F>
__device__ void every_formula(const Affine<F>* points, Xyzz<F>* out, const u64* scalar) {
  Xyzz<F> sum = Xyzz<F>::of(points[0]), weighted, plain;
  add(sum, points[1]);
  add(sum, doubled(sum));
  weighted_sum(points, 4, weighted, plain);
  add(sum, weighted);
  const Recoding r = recoding(13);
  const i32 d = digit(r, scalar, 3);
  horner_step(sum, r.bits, points[u32(d) % buckets_of_window(r, 3) % 4].negated_if(d < 0));
  const AffineCase c = affine_case(points[0], points[1]);
  if (c == affine_regular) add(sum, affine_sum(points[0], points[1].x, points[2].y, points[3].x));
  add(sum, to_xyzz(doubled(Jacobian<F>{points[0].x, points[0].y, F::one()})).negated());
  out[threadIdx.x] = sum;
}

extern "C" __global__ void g1(const Affine<Toy>* points, Xyzz<Toy>* out, const u64* scalar, bool* inside) {
  every_formula(points, out, scalar);
  *inside = in_subgroup_g1(points[0], points[1].x) && modulus_words[0] != scalar_modulus_words[0];
}

extern "C" __global__ void g2(const Affine<Fp2<Toy>>* points, Xyzz<Fp2<Toy>>* out, const u64* scalar, bool* inside) {
  every_formula(points, out, scalar);
  *inside = in_subgroup_g2(points[0], points[1].x, points[1].y);
}

extern "C" __global__ void ntt(Toy* x, const Toy* twiddle) { transform_bit_reversed(x, 6, twiddle); }

// Multiples of fixed points: row j of a table holds 2^(shift · j) · P_i, so that windows of an MSM can share buckets.
// And what brings sums back to affine points.
#define CALLED_PRODUCTS 1  // one copy of the multiply: doublings are a loop
#include "points.cuh"

namespace {

// x^(p − 2); zero for zero.
__device__ __noinline__ Fp inverse(Fp x) {
  Fp power = Fp::one();
#pragma unroll 1
  for (int bit = 380; bit >= 0; bit--) {
    power = power.squared();
    const u32 word = FpParameters::modulus(bit / 32) - (bit < 32 ? 2 : 0);  // the lowest word is above 2
    if (word >> (bit % 32) & 1) power = power * x;
  }
  return power;
}
// Conjugate over norm.
__device__ __forceinline__ Fp2<Fp> inverse(const Fp2<Fp>& x) {
  const Fp norm = inverse(x.c0.squared() + x.c1.squared());
  return {x.c0 * norm, x.c1.negated() * norm};
}

FN Fp canonical(const Fp& x) { return x.reduced(); }
FN Fp2<Fp> canonical(const Fp2<Fp>& x) { return {x.c0.reduced(), x.c1.reduced()}; }

}  // namespace

// to_i = 2^doublings · from_i, affine and canonical. A thread takes every (grid · 128)-th point and inverts their
// denominators together: `z` and `products` are scratch of n coordinates each. Grid: any.
extern "C" __global__ void __launch_bounds__(128, GROUP == 2 ? 2 : 4)
    double_points(const Point* from, u32 n, u32 doublings, Coordinate* z, Coordinate* products, Point* to) {
  const u32 first = blockIdx.x * 128 + threadIdx.x, stride = gridDim.x * 128;
  if (first >= n) return;
  Coordinate product = Coordinate::one();
#pragma unroll 1
  for (u32 i = first; i < n; i += stride) {
    const Point point = from[i];
    products[i] = product;
    if (point.is_infinity()) {
      to[i] = Point::infinity();
      z[i] = Coordinate::one();
      continue;
    }
    Jacobian<Coordinate> p = {point.x, point.y, Coordinate::one()};
#pragma unroll 1
    for (u32 k = 0; k < doublings; k++) p = doubled(p);
    to[i] = {p.x, p.y};
    z[i] = p.z;  // not zero: no point of either curve has order two
    product = product * p.z;
  }
  Coordinate inverted = inverse(product);
  const u32 last = first + (n - 1 - first) / stride * stride;
#pragma unroll 1
  for (u32 i = last;; i -= stride) {
    const Coordinate own = inverted * products[i];
    inverted = inverted * z[i];
    const Coordinate square = own.squared();
    const Point p = to[i];
    to[i] = {canonical(p.x * square), canonical(p.y * (square * own))};
    if (i == first) break;
  }
}

// to_i = sum_i, affine and canonical, as above; `products` is scratch of n coordinates. Grid: any.
extern "C" __global__ void __launch_bounds__(128, GROUP == 2 ? 2 : 4)
    to_affine(const Sum* sums, u32 n, Coordinate* products, Point* to) {
  const u32 first = blockIdx.x * 128 + threadIdx.x, stride = gridDim.x * 128;
  if (first >= n) return;
  Coordinate product = Coordinate::one();
#pragma unroll 1
  for (u32 i = first; i < n; i += stride) {
    products[i] = product;
    if (!sums[i].is_infinity()) product = product * sums[i].zzz;
  }
  Coordinate inverted = inverse(product);
  const u32 last = first + (n - 1 - first) / stride * stride;
#pragma unroll 1
  for (u32 i = last;; i -= stride) {
    const Sum sum = sums[i];
    if (sum.is_infinity()) {
      to[i] = Point::infinity();
    } else {
      const Coordinate own = inverted * products[i], by_z = own * sum.zz;  // 1 / ZZZ and ZZ / ZZZ
      inverted = inverted * sum.zzz;
      to[i] = {canonical(sum.x * by_z.squared()), canonical(sum.y * own)};
    }
    if (i == first) break;
  }
}

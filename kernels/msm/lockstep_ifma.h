// The adder of lockstep.h on AVX-512 IFMA: eight additions at a time, sums in 52-bit limbs.
#pragma once

#include "batch_affine_ifma.h"
#include "lockstep.h"

template <class S>
struct InLanes {
  typedef Affine<S> Point;
  typedef LanePoint<S> Sum;
  static constexpr u32 chunk = LaneAdder<S>::capacity;

  LaneAdder<S> adder;
  Sum base[chunk], sum[chunk];

  FN void begin() { adder.begin(); }
  FN void push(const Sum* p, const Sum* q, Sum* to, bool q_negative) { adder.push(p, q, to, q_negative); }
  FN void flush() { adder.template flush<false>(); }
  static FN void of(const Point& p, Sum& sum) { to_lane_point(p, sum); }
  static FN Point point(const Sum& sum) { return of_lane_point(sum); }
  static FN Sum infinity() { return lane_infinity<S>(); }
};

// Index of the first point outside the subgroup of order r, or −1: the tests of curve/subgroup.h. `image` is what the
// endomorphism makes of a point, `times` how often [|z|] is applied; both are then opposite.
template <class S, class Image>
i64 first_outside(const Affine<S>* points, u64 n, int times, const Image& image, void* scratch) {
  typedef InLanes<S> E;
  E& e = adder_in<E>(scratch);
  for (u64 begin = 0; begin < n; begin += E::chunk) {
    const u32 count = u32(n - begin < E::chunk ? n - begin : E::chunk);
    for (u32 i = 0; i < count; i++) E::of(points[begin + i], e.base[i]);
    for (int t = 0; t < times; t++) {
      multiply_all(e, count, 0xd201000000010000ull);
      if (t + 1 < times)
        for (u32 i = 0; i < count; i++) e.base[i] = e.sum[i];
    }
    for (u32 i = 0; i < count; i++) {
      const Affine<S>& p = points[begin + i];
      const Affine<S> product = E::point(e.sum[i]);
      if (p.is_infinity() ? !product.is_infinity() : !(product == image(p).negated_if(true))) return i64(begin + i);
    }
  }
  return -1;
}

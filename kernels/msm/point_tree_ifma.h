// Sums of many points as a balanced tree, for many buckets at once: the method of point_tree.h on eight lanes.
//
// Points arrive grouped by bucket, with their signs. They are worked off in groups of `capacity` entries, whose partial
// sums stay in the cache; a bucket cut by the end of a group goes on in the next.
#pragma once

#include "batch_affine_ifma.h"

template <class S>
struct LaneTree {
  typedef LanePoint<S> Sum;
  static constexpr u32 capacity = sizeof(S) == sizeof(Fp) ? 8192 : 2048;

  struct Segment {
    Sum* bucket;
    u32 first;   // slot of its first partial sum
    u32 length;  // partial sums
  };

  LaneAdder<S> adder;
  u32 entries, slots, segments;
  const Affine<S>* waiting;  // an entry without a partner
  bool waiting_negative;
  Sum* continued;  // the bucket that the last group ended in: it holds a sum already
  Segment segment[capacity];
  Sum slot[capacity];

  FN void begin() {
    adder.begin();
    entries = slots = segments = 0;
    waiting = nullptr;
    continued = nullptr;
  }

  // Adds ±point to a bucket. Entries of one bucket come one after the other; buckets need not be initialised.
  FN void push(Sum* bucket, const Affine<S>* point, bool negative) {
    if (segments == 0 || segment[segments - 1].bucket != bucket) {
      close();
      segment[segments++] = {bucket, slots, 0};
    }
    if (waiting) {
      adder.push(waiting, waiting_negative, point, negative, &slot[slots++]);
      segment[segments - 1].length++;
      waiting = nullptr;
    } else {
      waiting = point;
      waiting_negative = negative;
    }
    if (++entries == capacity) finish();
  }

  // Works off what was pushed; buckets then hold their sums.
  __attribute__((noinline)) void finish() {
    if (segments == 0) return;
    close();
    adder.template flush<true>();
    for (bool more = true; more;) more = halve();
    for (u32 i = 0; i < segments; i++) {
      const Segment& s = segment[i];
      if (s.bucket == continued)
        adder.push(s.bucket, &slot[s.first], s.bucket);
      else
        *s.bucket = slot[s.first];
    }
    adder.template flush<false>();
    continued = segment[segments - 1].bucket;
    entries = slots = segments = 0;
  }

 private:
  FN void close() {
    if (!waiting) return;
    to_lane_point(waiting->negated_if(waiting_negative), slot[slots++]);
    segment[segments - 1].length++;
    waiting = nullptr;
  }

  // One level: the upper half of each segment's partial sums is folded onto the lower.
  FN bool halve() {
    bool more = false;
    for (u32 i = 0; i < segments; i++) {
      Segment& s = segment[i];
      if (s.length < 2) continue;
      Sum* sums = slot + s.first;
      const u32 half = (s.length + 1) / 2;
      for (u32 k = half; k < s.length; k++) adder.push(&sums[k - half], &sums[k], &sums[k - half]);
      s.length = half;
      more |= half > 1;
    }
    adder.template flush<false>();
    return more;
  }
};

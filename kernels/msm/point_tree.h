// Sums of many points as a balanced tree of batched affine additions, for many buckets at once.
//
// Points arrive grouped by bucket. They are worked off in groups of `capacity` entries, whose partial sums stay in the
// cache; a bucket cut by the end of a group goes on in the next. So a bucket with all the points costs no more than
// many small ones, and scratch does not grow with n.
#pragma once

#include "batch_affine.h"

template <class F>
struct PointTree {
  static constexpr u32 capacity = 8192;

  struct Segment {
    Affine<F>* bucket;
    u32 first;   // slot of its first partial sum
    u32 length;  // partial sums
    bool opened; // an entry without a partner waits
  };

  BatchAdder<F> adder;
  u32 entries, slots, segments;
  const Affine<F>* waiting;
  bool waiting_negative;
  Segment segment[capacity];
  Affine<F> slot[capacity];

  FN void begin() { adder.count = entries = slots = segments = 0; }

  // Adds ±point to a bucket. Entries of one bucket come one after the other.
  FN void push(Affine<F>* bucket, const Affine<F>* point, bool negative) {
    if (segments == 0 || segment[segments - 1].bucket != bucket) {
      close();
      segment[segments++] = {bucket, slots, 0, false};
    }
    Segment& s = segment[segments - 1];
    if (s.opened) {
      adder.push(waiting, waiting_negative, point, negative, &slot[slots++]);
      s.length++;
      s.opened = false;
    } else {
      waiting = point, waiting_negative = negative;
      s.opened = true;
    }
    if (++entries == capacity) finish();
  }

  // Works off what was pushed; buckets then hold their sums.
  __attribute__((noinline)) void finish() {
    if (segments == 0) return;
    close();
    adder.flush();
    for (bool more = true; more;) more = halve();
    for (u32 i = 0; i < segments; i++) {
      Affine<F>* bucket = segment[i].bucket;
      if (bucket->is_infinity())
        *bucket = slot[segment[i].first];
      else
        adder.push(bucket, &slot[segment[i].first], bucket);  // a bucket cut by the end of a group
    }
    adder.flush();
    entries = slots = segments = 0;
  }

 private:
  FN void close() {
    if (segments == 0) return;
    Segment& s = segment[segments - 1];
    if (!s.opened) return;
    slot[slots++] = waiting->negated_if(waiting_negative);
    s.length++;
    s.opened = false;
  }

  // One level: partial sums 2k and 2k + 1 of each segment become sum k.
  FN bool halve() {
    bool more = false;
    for (u32 i = 0; i < segments; i++) {
      Segment& s = segment[i];
      if (s.length < 2) continue;
      Affine<F>* sums = slot + s.first;
      // Folding the upper half onto the lower keeps sums in place without moving any.
      const u32 half = (s.length + 1) / 2;
      for (u32 k = half; k < s.length; k++) adder.push(&sums[k - half], &sums[k], &sums[k - half]);
      s.length = half;
      more |= half > 1;
    }
    adder.flush();
    return more;
  }
};

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
    bool negative;
    bool opened;  // an entry without a partner waits
  };

  BatchAdder<F> adder;
  u32 entries, slots, segments;
  const Affine<F>* waiting;
  Segment segment[capacity];
  Affine<F> slot[capacity];

  FN void begin() { adder.count = entries = slots = segments = 0; }

  // Adds ±point to a bucket. Entries of one bucket and sign come one after the other: they are summed as they are, and
  // the sign is applied once to the sum, so that additions need no selection by random signs.
  FN void push(Affine<F>* bucket, const Affine<F>* point, bool negative) {
    if (segments == 0 || segment[segments - 1].bucket != bucket || segment[segments - 1].negative != negative) {
      close();
      segment[segments++] = {bucket, slots, 0, negative, false};
    }
    Segment& s = segment[segments - 1];
    if (s.opened) {
      adder.push(waiting, point, &slot[slots++]);
      s.length++;
      s.opened = false;
    } else {
      waiting = point;
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
    // A bucket has at most one segment of each sign here, and takes up one a flush.
    for (int negative = 0; negative < 2; negative++) {
      for (u32 i = 0; i < segments; i++) {
        const Segment& s = segment[i];
        if (s.negative == bool(negative)) adder.push(s.bucket, &slot[s.first], s.bucket, s.negative);
      }
      adder.flush();
    }
    entries = slots = segments = 0;
  }

 private:
  FN void close() {
    if (segments == 0) return;
    Segment& s = segment[segments - 1];
    if (!s.opened) return;
    slot[slots++] = *waiting;
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

// What the sort hands to the accumulation.
#pragma once

#include "../field/types.h"

// `length` entries of the sorted list from `start`; the sum goes to a bucket, or with bit 31 set to a slot of `partial`.
struct Task {
  u32 start, length, target, unused;
};

// A bucket of several tasks: one writes the bucket itself, the others `count` slots from `first`.
struct LongBucket {
  u32 bucket, first, count, unused;
};

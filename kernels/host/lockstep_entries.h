// The entry points of lockstep.h, over an adder E.
#pragma once

#include "../msm/lockstep.h"

#define LOCKSTEP_ENTRIES(...) \
  u64 ENTRY(lockstep_scratch_bytes)() { return adder_bytes<__VA_ARGS__>; } \
  u64 ENTRY(fixed_base_entry_bytes)() { return sizeof(__VA_ARGS__::Sum); } \
  void ENTRY(fixed_base_table)(const Point* powers, u32 bits, void* table, void* scratch) { \
    fixed_base_table<__VA_ARGS__>(powers, recoding(bits), (__VA_ARGS__::Sum*)table, scratch); \
  } \
  void ENTRY(fixed_base)(const void* table, u32 bits, const u64* scalars, u64 n, Point* out, void* scratch) { \
    fixed_base<__VA_ARGS__>((const __VA_ARGS__::Sum*)table, recoding(bits), scalars, n, out, scratch); \
  } \
  void ENTRY(multiply_each)(const Point* points, const u64* scalars, u64 n, Point* out, void* scratch) { \
    multiply_each<__VA_ARGS__>(points, scalars, n, out, scratch); \
  }

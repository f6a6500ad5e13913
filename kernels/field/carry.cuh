// Additions and multiply-adds with a carry flag between them: PTX on a GPU, emulated elsewhere for tests.
//
// Each asm statement is volatile, so their order stays; the compiler itself never uses the flag at PTX level.
// A lo/hi pair stands in one statement: ptxas then makes one IMAD.WIDE of it.
#pragma once

#include "types.h"

#ifdef __CUDA_ARCH__

// Zero, which ptxas cannot know (blocks have one dimension). As a third summand it keeps an addition on the pipe of
// additions: with two, ptxas often makes an IMAD.X of it, in the way of the products of Fr.
FN u32 hidden_zero() { return blockDim.z - 1; }

FN u32 add_cc(u32 a, u32 b) { u32 r; asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
FN u32 addc_cc(u32 a, u32 b) { u32 r; asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
FN u32 addc(u32 a, u32 b) { u32 r; asm volatile("addc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
FN u32 sub_cc(u32 a, u32 b) { u32 r; asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
FN u32 subc_cc(u32 a, u32 b) { u32 r; asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
FN u32 subc(u32 a, u32 b) { u32 r; asm volatile("subc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }

// (lo, hi) = a · b + (x, y), setting the flag.
FN void mad_pair(u32& lo, u32& hi, u32 a, u32 b, u32 x, u32 y) {
  asm volatile("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.cc.u32 %1, %2, %3, %5;"
               : "=&r"(lo), "=r"(hi) : "r"(a), "r"(b), "r"(x), "r"(y));
}
// The same with the flag as input.
FN void madc_pair(u32& lo, u32& hi, u32 a, u32 b, u32 x, u32 y) {
  asm volatile("madc.lo.cc.u32 %0, %2, %3, %4; madc.hi.cc.u32 %1, %2, %3, %5;"
               : "=&r"(lo), "=r"(hi) : "r"(a), "r"(b), "r"(x), "r"(y));
}
// Low half of a · b, plus x and the flag; sets none.
FN u32 madc_low(u32 a, u32 b, u32 x) {
  u32 r;
  asm volatile("madc.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(x));
  return r;
}
FN void mul_pair(u32& lo, u32& hi, u32 a, u32 b) {
#if MUL_AS_HALVES
  asm volatile("mul.lo.u32 %0, %2, %3; mul.hi.u32 %1, %2, %3;" : "=&r"(lo), "=r"(hi) : "r"(a), "r"(b));
#else
  asm("{ .reg .u64 wide; mul.wide.u32 wide, %2, %3; mov.b64 {%0, %1}, wide; }" : "=r"(lo), "=r"(hi) : "r"(a), "r"(b));
#endif
}

#else

FN u32 hidden_zero() { return 0; }

static u32 emulated_carry;

FN u32 emulated_sum(u64 a, u64 b, u32 in) {
  const u64 s = a + b + in;
  emulated_carry = u32(s >> 32);
  return u32(s);
}
FN u32 emulated_difference(u32 a, u32 b, u32 in) {
  const u64 d = u64(a) - b - in;
  emulated_carry = u32(d >> 63);
  return u32(d);
}
FN u32 add_cc(u32 a, u32 b) { return emulated_sum(a, b, 0); }
FN u32 addc_cc(u32 a, u32 b) { return emulated_sum(a, b, emulated_carry); }
FN u32 addc(u32 a, u32 b) { return a + b + emulated_carry; }
FN u32 sub_cc(u32 a, u32 b) { return emulated_difference(a, b, 0); }
FN u32 subc_cc(u32 a, u32 b) { return emulated_difference(a, b, emulated_carry); }
FN u32 subc(u32 a, u32 b) { return a - b - emulated_carry; }
FN void madc_pair(u32& lo, u32& hi, u32 a, u32 b, u32 x, u32 y) {
  const u64 product = u64(a) * b;
  lo = emulated_sum(u32(product), x, emulated_carry);
  hi = emulated_sum(product >> 32, y, emulated_carry);
}
FN void mad_pair(u32& lo, u32& hi, u32 a, u32 b, u32 x, u32 y) {
  emulated_carry = 0;
  madc_pair(lo, hi, a, b, x, y);
}
FN u32 madc_low(u32 a, u32 b, u32 x) { return a * b + x + emulated_carry; }
FN void mul_pair(u32& lo, u32& hi, u32 a, u32 b) { lo = u32(u64(a) * b), hi = u32(u64(a) * b >> 32); }

#endif

// What the CPU can do, asked before the arithmetic is built for it. Built alone, without options for a CPU.
#include "../field/types.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// Bit 0: BMI2 and ADX. Bit 1: AVX-512 F, DQ, IFMA and VL, registers saved by the system.
extern "C" __attribute__((visibility("default"))) u32 cpu_features() {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  u32 features = (b >> 8 & 1) && (b >> 19 & 1) ? 1 : 0;
  const bool avx512 = (b >> 16 & 1) && (b >> 17 & 1) && (b >> 21 & 1) && (b >> 31 & 1);
  if (avx512 && __get_cpuid(1, &a, &b, &c, &d) && (c >> 27 & 1)) {
    unsigned low, high;
    asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0xe6) == 0xe6) features |= 2;
  }
  return features;
#else
  return 0;
#endif
}

// Words and function qualifiers, so that one source compiles with g++, clang, nvcc and NVRTC (which has no headers).
#pragma once

typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define FN __host__ __device__ __forceinline__
// For branches that are almost never taken: inlined they would cost registers in the common path.
#define FN_RARE __host__ __device__ __noinline__
#else
#define FN inline __attribute__((always_inline))
#define FN_RARE inline __attribute__((noinline))
#endif

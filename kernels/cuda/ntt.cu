// One pass of a transform over Fr: 2^LOG_R-point transforms in shared memory, radix 8 in registers.
//
// A transform of n = N1·N2·N3 points reads index (n1·N2 + n2)·N3 + n3 and writes index k1 + N1·(k2 + N2·k3):
//   ntt_columns over n1, times ω_n^(k1·(n2·N3 + n3));
//   ntt_columns over n2, times ω_(N2·N3)^(k2·n3), for each k1;
//   ntt_rows over n3: reads rows, writes with stride N1·N2, so that the result is in natural order.
// A tile is 2^LOG_R rows times 2^LOG_C columns: the columns make loads and stores of whole cache lines.
// The factor after a pass comes from a table of its own, laid out like the data: a product an element, which a radix-8
// step would need anyway. Powers of a coset and 1/n are folded into those tables; only one of the three parts of
// a coset's exponent costs a product of its own (`load_scale`, `store_scale`).
//
// Elements are below 2r between passes, canonical after ntt_rows.
#include "../field/field_ptx.cuh"

#ifndef LOG_R
#define LOG_R 8
#endif
#ifndef LOG_C
#define LOG_C 2
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM (THREADS < 128 ? 4 : 512 / THREADS)
#endif

namespace {

// Called unless -DINLINE_PRODUCTS=1: a pass has some forty products, whose code would not fit the instruction cache.
#if INLINE_PRODUCTS
__device__ __forceinline__
#else
__device__ __noinline__
#endif
Fr product(Fr x, Fr factor) { return x.times(factor); }

constexpr u32 log_each = LOG_R < 3 ? LOG_R : 3;  // elements of one thread
constexpr u32 each = 1u << log_each;
constexpr u32 size = 1u << LOG_R, columns_of_tile = 1u << LOG_C;
constexpr u32 lanes = size >> log_each;  // threads of one column
#define THREADS (((1u << LOG_R) >> (LOG_R < 3 ? LOG_R : 3)) << LOG_C)

// 16-byte accesses of eight neighbouring threads fall into different banks.
constexpr u32 pitch = size + (LOG_C >= 3 ? 1 : 8 >> LOG_C);

extern __shared__ uint4 tile[];

__device__ __forceinline__ Fr load(const Fr* from) {
  Fr x;
  const uint4 low = ((const uint4*)from)[0], high = ((const uint4*)from)[1];
  x.l[0] = low.x, x.l[1] = low.y, x.l[2] = low.z, x.l[3] = low.w;
  x.l[4] = high.x, x.l[5] = high.y, x.l[6] = high.z, x.l[7] = high.w;
  return x;
}
__device__ __forceinline__ Fr load_table(const Fr* from) {
  Fr x;
  const uint4 low = __ldg((const uint4*)from), high = __ldg((const uint4*)from + 1);
  x.l[0] = low.x, x.l[1] = low.y, x.l[2] = low.z, x.l[3] = low.w;
  x.l[4] = high.x, x.l[5] = high.y, x.l[6] = high.z, x.l[7] = high.w;
  return x;
}
__device__ __forceinline__ void store(Fr* to, const Fr& x) {
  ((uint4*)to)[0] = make_uint4(x.l[0], x.l[1], x.l[2], x.l[3]);
  ((uint4*)to)[1] = make_uint4(x.l[4], x.l[5], x.l[6], x.l[7]);
}
__device__ __forceinline__ void put(u32 row, u32 column, const Fr& x) {
  const u32 at = column * pitch + row;
  tile[at] = make_uint4(x.l[0], x.l[1], x.l[2], x.l[3]);
  tile[at + (pitch << LOG_C)] = make_uint4(x.l[4], x.l[5], x.l[6], x.l[7]);
}
__device__ __forceinline__ Fr get(u32 row, u32 column) {
  const u32 at = column * pitch + row;
  const uint4 low = tile[at], high = tile[at + (pitch << LOG_C)];
  Fr x;
  x.l[0] = low.x, x.l[1] = low.y, x.l[2] = low.z, x.l[3] = low.w;
  x.l[4] = high.x, x.l[5] = high.y, x.l[6] = high.z, x.l[7] = high.w;
  return x;
}

__device__ __forceinline__ void cross(Fr& a, Fr& b) {
  const Fr sum = a + b;
  b = a - b;
  a = sum;
}

// In-place transforms of x[0], x[s], x[2s] …; frequency d lands at the bit-reversed place of d.
// roots: ω_8, ω_8², ω_8³.
__device__ __forceinline__ void transform2(Fr* x) { cross(x[0], x[1]); }
__device__ __forceinline__ void transform4(Fr* x, const Fr* roots) {
  cross(x[0], x[2]);
  cross(x[1], x[3]);
  x[3] = product(x[3], load_table(roots + 1));
  cross(x[0], x[1]);
  cross(x[2], x[3]);
}
__device__ __forceinline__ void transform8(Fr* x, const Fr* roots) {
#pragma unroll
  for (int j = 0; j < 4; j++) cross(x[j], x[j + 4]);
#pragma unroll
  for (int j = 1; j < 4; j++) x[j + 4] = product(x[j + 4], load_table(roots + j - 1));
  transform4(x, roots);
  transform4(x + 4, roots);
}
template <u32 log_radix>
__device__ __forceinline__ void transform(Fr* x, const Fr* roots) {
  if constexpr (log_radix == 3) transform8(x, roots);
  else if constexpr (log_radix == 2) transform4(x, roots);
  else if constexpr (log_radix == 1) transform2(x);
}
template <u32 bits>
__device__ __forceinline__ constexpr u32 reversed(u32 d) {
  return bits == 3 ? (d & 1) << 2 | (d & 2) | d >> 2 : bits == 2 ? (d & 1) << 1 | d >> 1 : d;
}

// Stage over blocks of 2^log_block rows: rows row0 + j·(block/radix) of a block become frequency digits.
// Factors ω_block^(row0·digit) lie at `twiddle` in the order of the rows that they go to.
template <u32 log_block>
struct Stage {
  static constexpr u32 log_radix = log_block < 3 ? log_block : 3;
  static constexpr u32 radix = 1u << log_radix, groups = each / radix, log_step = log_block - log_radix;

  static __device__ __forceinline__ u32 first_row(u32 lane, u32 group) {
    const u32 g = lane + group * lanes;
    return (g >> log_step << log_block) + (g & ((1u << log_step) - 1));
  }
  static __device__ __forceinline__ void read(Fr* x, u32 lane, u32 column) {
#pragma unroll
    for (u32 group = 0; group < groups; group++)
#pragma unroll
      for (u32 j = 0; j < radix; j++) x[group * radix + j] = get(first_row(lane, group) + (j << log_step), column);
  }
  static __device__ __forceinline__ void compute(Fr* x, const Fr* roots) {
#pragma unroll
    for (u32 group = 0; group < groups; group++) transform<log_radix>(x + group * radix, roots);
  }
  static __device__ __forceinline__ void write(Fr* x, u32 lane, u32 column, const Fr* twiddle) {
#pragma unroll
    for (u32 group = 0; group < groups; group++) {
      const u32 row = first_row(lane, group), offset = row & ((1u << log_block) - 1);
#pragma unroll
      for (u32 d = 0; d < radix; d++) {
        Fr y = x[group * radix + reversed<log_radix>(d)];
        if (d != 0) y = product(y, load_table(twiddle + offset + (d << log_step)));
        put(row + (d << log_step), column, y);
      }
    }
  }
};

// The last stage's group g stands for digits of the stages before it; their frequency, the lowest digit first.
__device__ __forceinline__ u32 frequency(u32 g) {
  if constexpr (LOG_R <= 3) return 0;
  else if constexpr (LOG_R <= 6) return g;
  else return (g >> 3) + ((g & 7) << 3);
}

// All stages. x holds the first stage's input; `emit(frequency, value)` takes the results.
// lane0, column0: the first stage's share of this thread.
template <class Emit>
__device__ __forceinline__ void run(Fr* x, u32 lane0, u32 column0, u32 lane, u32 column, const Fr* roots,
                                    const Fr* twiddle, Emit emit) {
  constexpr u32 done = LOG_R <= 3 ? 0 : LOG_R <= 6 ? 3 : 6;  // bits before the last stage
  typedef Stage<(LOG_R > 3 ? LOG_R - 3 : 0)> Second;
  typedef Stage<(LOG_R > 6 ? LOG_R - 6 : 0)> Third;
  Stage<LOG_R>::compute(x, roots);
  if constexpr (LOG_R > 3) {
    Stage<LOG_R>::write(x, lane0, column0, twiddle);
    __syncthreads();
    Second::read(x, lane, column);
    Second::compute(x, roots);
    if constexpr (LOG_R > 6) {
      Second::write(x, lane, column, twiddle + size);
      __syncthreads();
      Third::read(x, lane, column);
      Third::compute(x, roots);
    }
  }
  typedef Stage<LOG_R - done> Last;
#pragma unroll
  for (u32 group = 0; group < Last::groups; group++)
#pragma unroll
    for (u32 d = 0; d < Last::radix; d++)
      emit(frequency(lane + group * lanes) + (d << done), x[group * Last::radix + reversed<Last::log_radix>(d)]);
}

}  // namespace

// Data as [outer][2^LOG_R][inner]. Grid: outer · inner / columns_of_tile. factors: [2^LOG_R][inner].
// from == to is allowed: a tile writes where it read.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    ntt_columns(const Fr* from, Fr* to, u32 log_inner, const Fr* roots, const Fr* twiddle, const Fr* load_scale,
                const Fr* factors) {
  const u32 column = threadIdx.x & (columns_of_tile - 1), lane = threadIdx.x >> LOG_C;
  const u64 tiles = (u64(1) << log_inner) >> LOG_C;
  const u64 outer = blockIdx.x / tiles, inner = (blockIdx.x % tiles << LOG_C) + column;
  const u64 base = (outer << (LOG_R + log_inner)) + inner;
  Fr x[each];
#pragma unroll
  for (u32 j = 0; j < each; j++) {
    const u32 row = lane + j * lanes;
    x[j] = load(from + base + (u64(row) << log_inner));
    if (load_scale != nullptr) x[j] = product(x[j], load_table(load_scale + row));
  }
  run(x, lane, column, lane, column, roots, twiddle, [&](u32 k, const Fr& value) {
    store(to + base + (u64(k) << log_inner), product(value, load_table(factors + (u64(k) << log_inner) + inner)));
  });
}

// Data as [2^log_high][2^log_low][2^LOG_R] to [2^LOG_R][2^log_low][2^log_high]. Grid: 2^(log_high + log_low − LOG_C).
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    ntt_rows(const Fr* from, Fr* to, u32 log_high, u32 log_low, const Fr* roots, const Fr* twiddle,
             const Fr* load_scale, const Fr* store_scale) {
  const u32 lane0 = threadIdx.x & (lanes - 1), column0 = threadIdx.x / lanes;
  const u32 column = threadIdx.x & (columns_of_tile - 1), lane = threadIdx.x >> LOG_C;
  const u64 tiles = (u64(1) << log_high) >> LOG_C;
  const u64 low = blockIdx.x / tiles, high = blockIdx.x % tiles << LOG_C;
  const Fr* row_start = from + ((((high + column0) << log_low) + low) << LOG_R);
  Fr x[each];
#pragma unroll
  for (u32 j = 0; j < each; j++) {
    const u32 row = lane0 + j * lanes;
    x[j] = load(row_start + row);
    if (load_scale != nullptr) x[j] = product(x[j], load_table(load_scale + row));
  }
  Fr* target = to + (low << log_high) + high + column;
  run(x, lane0, column0, lane, column, roots, twiddle, [&](u32 k, const Fr& value) {
    const Fr y = store_scale != nullptr ? product(value, load_table(store_scale + k)) : value;
    store(target + (u64(k) << (log_high + log_low)), y.reduced());
  });
}

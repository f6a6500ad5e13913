// One pass of a transform over Fr: 2^LOG_R-point transforms in shared memory, radix 8 in registers.
//
// A transform of n = N1·N2·N3 points reads index (n1·N2 + n2)·N3 + n3 and writes index k1 + N1·(k2 + N2·k3):
//   ntt_columns over n1;
//   ntt_columns over n2, for each k1, of what was read times ω_n^(k1·(n2·N3 + n3));
//   ntt_rows over n3, of what was read times ω_(N2·N3)^(k2·n3): stores with stride N1·N2, so results are in order.
// A tile is 2^LOG_R rows times 2^LOG_C columns: the columns make loads and stores of whole cache lines.
// Factors come from tables laid out like the data: a product an element, which a radix-8 step would need anyway.
// Powers of a coset and 1/n are folded into them; one of three parts of a coset's exponent costs a product of its own.
//
// Every radix-8 step is "times a factor, transform", in one loop for all steps, and the factors' products are a loop of
// their own over elements in shared memory: straight-line code outgrows the instruction cache, and a called multiply
// spends a fifth of the multiplier on moving arguments.
// Elements are below 2r between passes, canonical after ntt_rows.
//
// With IN_PLACE ntt_rows leaves results where it read, so index (k1·N2 + k2)·N3 + k3 holds frequency k1 + N1·(k2 + N2·k3)
// and nothing needs a second buffer. The way back from there is the mirror image: rows, then columns over n2, then over n1,
// each but the last followed by the factors that the next one would read (FACTORS_ON_EXIT); it ends in natural order.
// With SPLIT_FACTORS they are products of two small tables' entries instead of one entry of a table as long as the data.
#include "../field/field_ptx.cuh"

#ifndef LOG_R
#define LOG_R 8
#endif
#ifndef LOG_C
#define LOG_C 2
#endif
#ifndef IN_PLACE
#define IN_PLACE 0
#endif
#ifndef FACTORS_ON_EXIT
#define FACTORS_ON_EXIT 0
#endif
#ifndef SPLIT_FACTORS
#define SPLIT_FACTORS 0
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM (THREADS < 128 ? 4 : 512 / THREADS)
#endif

// Products side by side, each a chain of dependent steps.
#ifndef FACTORS_AT_ONCE
#define FACTORS_AT_ONCE (LOG_R == 9 && !SPLIT_FACTORS ? 8 : 2)  // 2^9 has one kind of step, so code has room
#endif

namespace {

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
__device__ __forceinline__ Known load_known(const Known* from) {
  Known k;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const uint4 four = __ldg((const uint4*)from + i);
    u32* to = i < 2 ? k.factor + 4 * i : k.quotient + 4 * (i - 2);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  }
  return k;
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
__device__ __forceinline__ void transform4(Fr* x, const Known* roots) {
  cross(x[0], x[2]);
  cross(x[1], x[3]);
  x[3] = x[3].times(load_known(roots + 1));
  cross(x[0], x[1]);
  cross(x[2], x[3]);
}
__device__ __forceinline__ void transform8(Fr* x, const Known* roots) {
#pragma unroll
  for (int j = 0; j < 4; j++) cross(x[j], x[j + 4]);
#pragma unroll
  for (int j = 1; j < 4; j++) x[j + 4] = x[j + 4].times(load_known(roots + j - 1));
  transform4(x, roots);
  transform4(x + 4, roots);
}
template <u32 log_radix>
__device__ __forceinline__ void transform(Fr* x, const Known* roots) {
  if constexpr (log_radix == 3) transform8(x, roots);
  else if constexpr (log_radix == 2) transform4(x, roots);
  else if constexpr (log_radix == 1) transform2(x);
}
template <u32 bits>
__device__ __forceinline__ constexpr u32 reversed(u32 d) {
  return bits == 3 ? (d & 1) << 2 | (d & 2) | d >> 2 : bits == 2 ? (d & 1) << 1 | d >> 1 : d;
}

constexpr u32 full_steps = LOG_R / 3, tail = LOG_R % 3, steps = full_steps + (tail != 0);
// Frequency bits known before the last step.
constexpr u32 done = LOG_R <= 3 ? 0 : LOG_R <= 6 ? 3 : 6;
constexpr u32 last_log_radix = LOG_R - done, last_radix = 1u << last_log_radix;

// The row of this thread's element e before and after a step. A step takes blocks of 2^(LOG_R − 3·step) rows apart:
// rows r + j·(block / 8) become frequency digits j at the same places; digit j's rows are a block of the next step.
__device__ __forceinline__ u32 row_of(u32 step, u32 lane, u32 e) {
  if (tail != 0 && step == full_steps) {
    const u32 group = e >> tail;
    return ((lane + group * lanes) << tail) + (e & ((1u << tail) - 1));
  }
  if constexpr (LOG_R >= 3) {
    const u32 log_block = LOG_R - 3 * step, log_stride = log_block - 3;
    return (lane >> log_stride << log_block) + (lane & ((1u << log_stride) - 1)) + (e << log_stride);
  }
  return e;
}

// The last step's group g stands for the digits of the steps before it, the first digit highest.
__device__ __forceinline__ u32 frequency(u32 lane, u32 e) {
  const u32 g = lane + (e >> last_log_radix) * lanes;
  const u32 low = LOG_R <= 3 ? 0 : LOG_R <= 6 ? g : (g >> 3) + ((g & 7) << 3);
  return low + ((e & (last_radix - 1)) << done);
}

// Where the last step leaves a frequency.
__device__ __forceinline__ u32 place_of(u32 k) {
  const u32 low = k & ((1u << done) - 1), g = done == 6 ? (low >> 3) + ((low & 7) << 3) : low;
  return (g << last_log_radix) + (k >> done);
}

template <u32 log_radix>
__device__ __forceinline__ void in_order(Fr* x) {
  Fr y[each];
#pragma unroll
  for (u32 e = 0; e < each; e++) y[e] = x[(e >> log_radix << log_radix) + reversed<log_radix>(e & ((1u << log_radix) - 1))];
#pragma unroll
  for (u32 e = 0; e < each; e++) x[e] = y[e];
}

// Factors of elements by their index in the data: table[(i >> shift) & mask], and where that is split, times the entry
// of a second table for the bits above `rest` and the lowest `bits` ones.
struct Factors {
  const Fr* table;
  u32 shift, mask;
  FN const Fr* at(u32 i) const { return table + ((i >> shift) & mask); }
#if SPLIT_FACTORS
  const Fr* second;
  u32 rest, bits, second_mask;
  FN const Fr* second_at(u32 i) const {
    return second + (((i >> rest << bits) | (i & ((1u << bits) - 1))) & second_mask);
  }
#endif
};
#if SPLIT_FACTORS
#define FACTORS_PARAMETERS const Fr *factors, u32 shift, u32 mask, const Fr *second, u32 rest, u32 bits, u32 second_mask
#define FACTORS_ARGUMENT (Factors{factors, shift, mask, second, rest, bits, second_mask})
#else
#define FACTORS_PARAMETERS const Fr *factors, u32 shift, u32 mask
#define FACTORS_ARGUMENT (Factors{factors, shift, mask})
#endif

// All steps. The tile holds the input, each element put by the thread of (lane0, column0) that owns its row in step 0.
// factors: of the elements read, by from_index(e), or on exit of the results, by to_index(frequency). exit: factors by
// frequency. Either table may be null. emit(frequency, value) takes the results of (lane, column).
template <class FromIndex, class ToIndex, class Emit>
__device__ __forceinline__ void run(u32 lane0, u32 column0, u32 lane, u32 column, const Known* roots, const Known* twiddle,
                                    const Factors& factors, FromIndex from_index, ToIndex to_index, const Fr* exit,
                                    Emit emit) {
  const Fr* entry = FACTORS_ON_EXIT ? nullptr : factors.table;
  constexpr u32 last = steps == 0 ? 0 : steps - 1;
  u32 own_lane = lane0, own_column = column0;
#pragma unroll 1
  for (u32 step = 0;; step++) {
    const u32 place = step < steps ? step : last;
    if (step == 0 || step == steps) {
      const bool first = step == 0 && steps != 0;  // a single point has no powers but the zeroth
      const Fr* table = first ? entry : exit;
      if (table != nullptr) {
        const auto at = [&](u32 e) { return first ? factors.at(from_index(e)) : table + frequency(own_lane, e); };
        Fr next = load_table(at(0));
#pragma unroll FACTORS_AT_ONCE
        for (u32 e = 0; e < each; e++) {
          const Fr factor = next;
          if (e + 1 < each) next = load_table(at(e + 1));
          const u32 row = row_of(place, own_lane, e);
          Fr x = get(row, own_column).times(factor);
#if SPLIT_FACTORS
          if (first) x = x.times(load_table(factors.second_at(from_index(e))));
#endif
          put(row, own_column, x);
        }
      }
      if (step == steps) break;
    } else {
      // Twiddles of the step before: ω_block^(row·digit) at place digit·(block / 8) + row of its table.
      const Known* table = step == 1 ? twiddle : twiddle + size;
      const u32 mask = (size >> (3 * (step - 1))) - 1;
      // Digit 0 has no twiddles. It is one for all of a thread's elements unless their rows lie far apart.
      const bool alike = tail == 0 || step != full_steps || ((lanes << tail) & mask) == 0;
      if (!alike || (row_of(place, own_lane, 0) & mask) >= ((mask + 1) >> 3)) {
#pragma unroll FACTORS_AT_ONCE
        for (u32 e = 0; e < each; e++) {
          const u32 row = row_of(place, own_lane, e);
          put(row, own_column, get(row, own_column).times(load_known(table + (row & mask))));
        }
      }
    }
    Fr x[each];
#pragma unroll
    for (u32 e = 0; e < each; e++) x[e] = get(row_of(step, own_lane, e), own_column);
    if (tail != 0 && step == full_steps) {
#pragma unroll
      for (u32 group = 0; group < each >> tail; group++) transform<tail>(x + (group << tail), roots);
      in_order<tail>(x);
    } else if constexpr (LOG_R >= 3) {
      transform<3>(x, roots);
      in_order<3>(x);
    }
#pragma unroll
    for (u32 e = 0; e < each; e++) put(row_of(step, own_lane, e), own_column, x[e]);
    // After the last step a thread takes back what it put.
    if (step == 0 || step + 1 < steps) __syncthreads();
    own_lane = lane, own_column = column;
  }
#if IN_PLACE
  __syncthreads();  // results leave in the order of their frequencies, so that stores are of whole cache lines
#endif
  const auto emitted = [&](u32 e) { return IN_PLACE ? lane + e * lanes : frequency(lane, e); };
  const auto result = [&](u32 e) { return get(IN_PLACE ? place_of(emitted(e)) : row_of(last, lane, e), column); };
#if FACTORS_ON_EXIT
  Fr next = load_table(factors.at(to_index(emitted(0))));
#pragma unroll FACTORS_AT_ONCE
  for (u32 e = 0; e < each; e++) {
    const Fr factor = next;
    if (e + 1 < each) next = load_table(factors.at(to_index(emitted(e + 1))));
    Fr x = result(e).times(factor);
#if SPLIT_FACTORS
    x = x.times(load_table(factors.second_at(to_index(emitted(e)))));
#endif
    emit(emitted(e), x);
  }
#else
#pragma unroll
  for (u32 e = 0; e < each; e++) emit(emitted(e), result(e));
#endif
}

}  // namespace

// Data as [outer][2^LOG_R][inner]. Grid: outer · inner / columns_of_tile. from == to is allowed: a tile writes where it
// read. Elements at data index i are multiplied by factors[(i >> shift) & mask], on entry or on exit.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    ntt_columns(const Fr* from, Fr* to, u32 log_inner, const Known* roots, const Known* twiddle, FACTORS_PARAMETERS) {
  const u32 column = threadIdx.x & (columns_of_tile - 1), lane = threadIdx.x >> LOG_C;
  const u32 tiles = (1u << log_inner) >> LOG_C;
  const u32 outer = blockIdx.x / tiles, inner = (blockIdx.x % tiles << LOG_C) + column;
  const u32 base = (outer << (LOG_R + log_inner)) + inner;
  Fr x[each];
#pragma unroll
  for (u32 e = 0; e < each; e++) x[e] = load(from + base + (row_of(0, lane, e) << log_inner));
#pragma unroll
  for (u32 e = 0; e < each; e++) put(row_of(0, lane, e), column, x[e]);
  run(
      lane, column, lane, column, roots, twiddle, FACTORS_ARGUMENT,
      [&](u32 e) { return base + (row_of(0, lane, e) << log_inner); }, [&](u32 k) { return base + (k << log_inner); },
      nullptr, [&](u32 k, const Fr& value) { store(to + base + (k << log_inner), value); });
}

// Data as [2^log_high][2^log_low][2^LOG_R] to [2^LOG_R][2^log_low][2^log_high]. Grid: 2^(log_high + log_low − LOG_C).
// factors as above; exit[k] is a factor of frequency k. IN_PLACE: from == to, log_low is 0, results are below 2r.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    ntt_rows(const Fr* from, Fr* to, u32 log_high, u32 log_low, const Known* roots, const Known* twiddle,
             FACTORS_PARAMETERS, const Fr* exit) {
  const u32 lane0 = threadIdx.x & (lanes - 1), column0 = threadIdx.x / lanes;
  const u32 column = threadIdx.x & (columns_of_tile - 1), lane = threadIdx.x >> LOG_C;
  const u32 tiles = (1u << log_high) >> LOG_C;
  const u32 low = blockIdx.x / tiles, high = blockIdx.x % tiles << LOG_C;
  const u32 base = (((high + column0) << log_low) + low) << LOG_R;
  Fr x[each];
#pragma unroll
  for (u32 e = 0; e < each; e++) x[e] = load(from + base + row_of(0, lane0, e));
#pragma unroll
  for (u32 e = 0; e < each; e++) put(row_of(0, lane0, e), column0, x[e]);
#if IN_PLACE
  const auto target = [&](u32 k) { return ((high + column) << LOG_R) + k; };
#else
  const u32 first = (low << log_high) + high + column;
  const auto target = [&](u32 k) { return first + (k << (log_high + log_low)); };
#endif
  run(
      lane0, column0, lane, column, roots, twiddle, FACTORS_ARGUMENT, [&](u32 e) { return base + row_of(0, lane0, e); },
      target, exit,
      [&](u32 k, const Fr& value) { store(to + target(k), IN_PLACE ? value : value.reduced()); });
}

// Mixed additions, the bulk of the work: bucket sums of an MSM, masked sums, multiples of a fixed base.
//
// Four warps a scheduler hide a multiply's latency, and the loads of points, which are short beside an addition.
#include "points.cuh"

#ifndef THREADS
#define THREADS 128
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM 4
#endif

namespace {

// An odd number of 16-byte words, so that neighbouring threads use different banks.
struct alignas(16) Slot {
  Sum sum;
  u32 padding[4];
};

// A thread's running sum. In shared memory it is out of the way of G2's products, which need the registers.
#if SHARED_SUMS
#define SUM_OF_THREAD(name) \
  __shared__ Slot slots[THREADS]; \
  Sum& name = slots[threadIdx.x].sum
#else
#define SUM_OF_THREAD(name) Sum name
#endif

__device__ __forceinline__ Point signed_point(const Point* points, u32 entry) {
  return points[entry & 0x7fffffffu].negated_if(entry >> 31);
}

}  // namespace

// One task a thread. Grid: for at least totals[1] threads. `further`: buckets hold sums of earlier batches of points.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    accumulate(const Point* points, const u32* sorted, const Task* tasks, const u32* totals, u32 further, Sum* buckets,
               Sum* partial) {
  const u32 t = blockIdx.x * THREADS + threadIdx.x;
  if (t >= totals[1]) return;
  const Task task = tasks[t];
  const u32* list = sorted + task.start;
  const bool part = task.target >> 31;
  SUM_OF_THREAD(sum);
  sum = further != 0 && !part ? buckets[task.target] : Sum::infinity();
#pragma unroll 1
  for (u32 i = 0; i < task.length; i++) add(sum, signed_point(points, list[i]));
  (part ? partial + (task.target & 0x7fffffffu) : buckets + task.target)[0] = sum;
}

// sums[t]: every (grid · THREADS)-th listed point from the t-th on. total[0]: points in the list. `further`: sums hold
// those of earlier parts of the points.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    sum_listed(const Point* points, const u32* list, const u32* total, u32 further, Sum* sums) {
  const u32 n = *total, t = blockIdx.x * THREADS + threadIdx.x;
  SUM_OF_THREAD(sum);
  sum = further != 0 ? sums[t] : Sum::infinity();
#pragma unroll 1
  for (u32 i = t; i < n; i += gridDim.x * THREADS) add(sum, points[list[i]]);
  sums[t] = sum;
}

// sums[t] = scalar t times a fixed base, 16 bits at a time: entry (w << 16) + d of the table is d · 2^(16w) times the base,
// infinity for d = 0. Grid: for at least n threads.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    multiply_base(const Point* table, const unsigned short* scalars, u32 n, Sum* sums) {
  const u32 t = blockIdx.x * THREADS + threadIdx.x;
  if (t >= n) return;
  const unsigned short* digits = scalars + u64(t) * 16;
  SUM_OF_THREAD(sum);
  sum = Sum::infinity();
#pragma unroll 1
  for (u32 w = 0; w < 16; w++) add(sum, table[(w << 16) + digits[w]]);
  sums[t] = sum;
}

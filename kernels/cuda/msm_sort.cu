// From scalars to lists of point indices, one list a bucket, and tasks of similar length for the accumulation.
//
// A counting sort over all windows at once. The order inside a bucket and between buckets is free, so ranges are
// reserved with atomic counters instead of a scan over all buckets:
//   msm_digits     every digit counts itself in its bucket and keeps its rank;
//   msm_ranges     a range of the sorted list for every bucket, and a histogram of task lengths;
//   msm_scatter    every point's index to its place;
//   msm_task_bins  where tasks of each length begin, the longest first;
//   msm_tasks      the tasks: a bucket, or a part of `segment` points of a long one.
// Windows w, w + sets, w + 2·sets … share the buckets of set w mod sets: all windows have their own where sets is their
// number; with the multiples of fixed points stored, fewer sets do, and the multiple's number is part of a point's index.
#include "../msm/digits.h"
#include "tasks.h"

namespace {

constexpr u32 none = 0xffffffffu;

FN bool below_r(const u64* k) {
  const u64 r0 = 0xffffffff00000001ull, r1 = 0x53bda402fffe5bfeull, r2 = 0x3339d80809a1d805ull,
            r3 = 0x73eda753299d7d48ull;
  if (k[3] != r3) return k[3] < r3;
  if (k[2] != r2) return k[2] < r2;
  if (k[1] != r1) return k[1] < r1;
  return k[0] < r0;
}

// Exclusive sum over the block; `total` is the sum of all. Blocks of 256 threads.
__device__ __forceinline__ u32 block_offset(u32 value, u32& total) {
  // Aligned, so that no wide load takes a neighbouring variable along.
  __shared__ alignas(16) u32 warp_sum[8];
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u32 inclusive = value;
#pragma unroll
  for (u32 step = 1; step < 32; step *= 2) {
    const u32 other = __shfl_up_sync(0xffffffffu, inclusive, step);
    if (lane >= step) inclusive += other;
  }
  __syncthreads();
  if (lane == 31) warp_sum[warp] = inclusive;
  __syncthreads();
  u32 before = 0;
  total = 0;
#pragma unroll
  for (u32 i = 0; i < 8; i++) {
    if (i < warp) before += warp_sum[i];
    total += warp_sum[i];
  }
  return before + inclusive - value;
}

}  // namespace

// keys[w·n + i]: bucket inside the window, sign in bit 31; `none` for digit zero. ranks: place inside the bucket.
// first_bad: index of the first scalar that is not below r, counted from `base`, if smaller than what it holds.
extern "C" __global__ void __launch_bounds__(256)
    msm_digits(const u64* scalars, u32 n, u32 base, u32 bits, u32 sets, u32 buckets_of_set, u32* count, u32* keys,
               u32* ranks, u32* first_bad) {
  const Recoding r = recoding(bits);
  const u32 half = 1u << (bits - 1);
  for (u64 block = u64(blockIdx.x) * blockDim.x; block < n; block += u64(gridDim.x) * blockDim.x) {
    const u64 i = block + threadIdx.x;
    const bool active = i < n;
    u64 k[4] = {0, 0, 0, 0};
    if (active) {
      const ulonglong2 low = ((const ulonglong2*)scalars)[2 * i], high = ((const ulonglong2*)scalars)[2 * i + 1];
      k[0] = low.x, k[1] = low.y, k[2] = high.x, k[3] = high.y;
      if (!below_r(k)) {
        atomicMin(first_bad, base + u32(i));
        k[0] = k[1] = k[2] = k[3] = 0;
      }
    }
    // k + offset once; then the windows are plain fields of its bits.
    u64 sum[4];
    u64 carry = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const u64 t = k[j] + r.offset[j];
      const u64 c = t < k[j];
      sum[j] = t + carry;
      carry = c | (sum[j] < t);
    }
    // The sum is below 2^256: the offset's highest bit is below 2^254.
    for (u32 w = 0, set = 0; w < r.windows; w++, set = set + 1 == sets ? 0 : set + 1) {
      u64 d = sum[0] & ((u64(1) << bits) - 1);
#pragma unroll
      for (int j = 0; j < 3; j++) sum[j] = sum[j] >> bits | sum[j + 1] << (64 - bits);
      sum[3] >>= bits;
      const i32 digit = w + 1 == r.windows ? i32(d | (sum[0] << bits)) : i32(d) - i32(half);
      const u32 key = digit == 0 ? none : u32(digit < 0 ? -digit : digit) - 1;
      // One atomic for all lanes of a warp with the same digit: scalars may all be equal.
      const u32 peers = __match_any_sync(0xffffffffu, active ? key : none);
      u32 rank = 0;
      const u32 lane = threadIdx.x % 32, leader = __ffs(peers) - 1;
      if (active && key != none && lane == leader) rank = atomicAdd(count + u64(set) * buckets_of_set + key, __popc(peers));
      rank = __shfl_sync(0xffffffffu, rank, leader) + __popc(peers & ((1u << lane) - 1));
      if (active) {
        keys[u64(w) * n + i] = key == none ? none : key | (digit < 0 ? 0x80000000u : 0);
        ranks[u64(w) * n + i] = rank;
      }
    }
  }
}

// start[b]: where bucket b's list begins. bins[l]: how many tasks have l points, l ≤ segment. totals[0]: entries.
// Blocks of 256 threads, segment ≤ 1023.
extern "C" __global__ void __launch_bounds__(256)
    msm_ranges(const u32* count, u32 buckets, u32 segment, u32* start, u32* bins, u32* totals) {
  __shared__ u32 local[1024], base;
  for (u32 l = threadIdx.x; l <= segment; l += 256) local[l] = 0;
  __syncthreads();
  for (u64 block = u64(blockIdx.x) * 256; block < buckets; block += u64(gridDim.x) * 256) {
    const u64 b = block + threadIdx.x;
    const u32 length = b < buckets ? count[b] : 0;
    u32 total;
    const u32 offset = block_offset(length, total);
    if (threadIdx.x == 0) base = atomicAdd(totals, total);
    __syncthreads();
    if (b < buckets) start[b] = base + offset;
    if (length > segment) atomicAdd(&local[segment], length / segment);
    if (length % segment != 0) atomicAdd(&local[length % segment], 1);
    else if (length == segment) atomicAdd(&local[segment], 1);
  }
  __syncthreads();
  for (u32 l = threadIdx.x; l <= segment; l += 256)
    if (local[l] != 0) atomicAdd(bins + l, local[l]);
}

// Entry e = w·n + i, for point (w / sets)·stride + i. A set's list may be larger than the L2 cache, where scattered words
// then leave one by one: it is filled in `parts`, buckets key >> part_bits = 0, 1 …, each small enough to stay, by all
// windows of the set. Grid: (any, windows · parts).
extern "C" __global__ void __launch_bounds__(256)
    msm_scatter(const u32* keys, const u32* ranks, u32 n, u32 windows, u32 sets, u32 buckets_of_set, u32 stride,
                u32 parts, u32 part_bits, const u32* start, u32* sorted) {
  const bool own = sets == windows;
  const u32 w = own ? blockIdx.y / parts : blockIdx.y % windows, part = own ? blockIdx.y % parts : blockIdx.y / windows;
  const bool last_part = part + 1 == parts;
  const u32 *window_keys = keys + u64(w) * n, *window_ranks = ranks + u64(w) * n;
  const u32* set_start = start + u64(w % sets) * buckets_of_set;
  const u32 first_point = w / sets * stride;
  const auto place = [&](u32 i, u32 key) {
    const u32 bucket = key & 0x7fffffffu, at = bucket >> part_bits;
    if (key == none || (at != part && !(last_part && at > part))) return;
    sorted[set_start[bucket] + window_ranks[i]] = (first_point + i) | (key & 0x80000000u);
  };
  const u32 fours = n % 4 == 0 ? n / 4 : 0;  // else windows begin anywhere
  for (u32 i = blockIdx.x * 256 + threadIdx.x; i < fours; i += gridDim.x * 256) {
    const uint4 four = ((const uint4*)window_keys)[i];
    place(4 * i, four.x), place(4 * i + 1, four.y), place(4 * i + 2, four.z), place(4 * i + 3, four.w);
  }
  for (u32 i = 4 * fours + blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) place(i, window_keys[i]);
}

// bins[l] becomes the first place of tasks with l points, the longest first. totals[1]: tasks. One block of 1024.
extern "C" __global__ void __launch_bounds__(1024) msm_task_bins(u32* bins, u32 segment, u32* totals) {
  __shared__ u32 sum[1024];
  const u32 l = segment - threadIdx.x;  // descending
  const u32 own = threadIdx.x < segment ? bins[l] : 0;
  sum[threadIdx.x] = own;
  __syncthreads();
  for (u32 step = 1; step < 1024; step *= 2) {
    const u32 other = threadIdx.x >= step ? sum[threadIdx.x - step] : 0;
    __syncthreads();
    sum[threadIdx.x] += other;
    __syncthreads();
  }
  if (threadIdx.x < segment) bins[l] = sum[threadIdx.x] - own;
  if (threadIdx.x == 1023) totals[1] = sum[1023];
}


// totals[2]: slots, totals[3]: long buckets.
extern "C" __global__ void __launch_bounds__(256)
    msm_tasks(const u32* count, const u32* start, u32 buckets, u32 segment, u32* bins, u32* totals, Task* tasks,
              LongBucket* long_buckets) {
  __shared__ u32 local[1024], place[1024];
  for (u64 block = u64(blockIdx.x) * 256; block < buckets; block += u64(gridDim.x) * 256) {
    for (u32 l = threadIdx.x; l <= segment; l += 256) local[l] = 0;
    __syncthreads();
    const u64 b = block + threadIdx.x;
    const u32 length = b < buckets ? count[b] : 0;
    const u32 last = length == 0 ? 0 : (length - 1) % segment + 1, full = length == 0 ? 0 : (length - 1) / segment;
    u32 last_rank = 0, full_rank = 0;
    if (last != 0) last_rank = atomicAdd(&local[last], 1);
    if (full != 0) full_rank = atomicAdd(&local[segment], full);
    __syncthreads();
    for (u32 l = threadIdx.x; l <= segment; l += 256) place[l] = local[l] != 0 ? atomicAdd(bins + l, local[l]) : 0;
    __syncthreads();
    if (last != 0) {
      const u32 first = start[b];
      tasks[place[last] + last_rank] = {first + full * segment, last, u32(b), 0};
      if (full != 0) {
        const u32 slot = atomicAdd(totals + 2, full);
        long_buckets[atomicAdd(totals + 3, 1)] = {u32(b), slot, full, 0};
        for (u32 j = 0; j < full; j++)
          tasks[place[segment] + full_rank + j] = {first + j * segment, segment, (slot + j) | 0x80000000u, 0};
      }
    }
    __syncthreads();
  }
}

// The indices of the set bits of a bitmap; their order is free. Grid: any, blocks of 256. total: their number.
extern "C" __global__ void __launch_bounds__(256)
    mask_indices(const u64* bitmap, u64 n, u32* list, u32* total) {
  __shared__ u32 base;
  const u64 words = (n + 63) / 64;
  for (u64 block = u64(blockIdx.x) * 256; block < words; block += u64(gridDim.x) * 256) {
    const u64 at = block + threadIdx.x;
    u64 word = at < words ? bitmap[at] : 0;
    if (at + 1 == words && n % 64 != 0) word &= (u64(1) << (n % 64)) - 1;
    u32 all;
    const u32 offset = block_offset(__popcll(word), all);
    if (threadIdx.x == 0) base = atomicAdd(total, all);
    __syncthreads();
    u32* to = list + base + offset;
    for (; word != 0; word &= word - 1) *to++ = u32(64 * at) + __ffsll(word) - 1;
  }
}

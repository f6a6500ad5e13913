// From bucket sums to one sum a bit of each window. Full additions, a few per cent of an MSM's work.
#define CALLED_PRODUCTS 1  // one copy of the multiply: these kernels are many and short
#include "points.cuh"

namespace {

FN Fp canonical(const Fp& x) { return x.reduced(); }
FN Fp2<Fp> canonical(const Fp2<Fp>& x) { return {x.c0.reduced(), x.c1.reduced()}; }
FN Sum canonical(const Sum& p) { return {canonical(p.x), canonical(p.y), canonical(p.zz), canonical(p.zzz)}; }

// The full addition, called: where sums are few, one copy of the code serves all.
__device__ __noinline__ void add_called(Sum& p, const Sum& q) { add(p, q); }

// Sum over the block, valid in thread 0.
template <u32 threads>
__device__ void block_sum(Sum& own, Sum* shared) {
#pragma unroll 1
  for (u32 half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half && threadIdx.x < 2 * half) shared[threadIdx.x - half] = own;
    __syncthreads();
    if (threadIdx.x < half) add_called(own, shared[threadIdx.x]);
  }
}

}  // namespace

// The parts of long buckets: few by one thread, many by a block. Grid: any.
extern "C" __global__ void __launch_bounds__(128)
    merge_long(const LongBucket* long_buckets, const u32* totals, const Sum* partial, Sum* buckets) {
  __shared__ Sum shared[64];
  const u32 few = 16;
#pragma unroll 1
  for (u32 i = blockIdx.x * 128 + threadIdx.x; i < totals[3]; i += gridDim.x * 128) {
    const LongBucket l = long_buckets[i];
    if (l.count > few) continue;
    Sum sum = buckets[l.bucket];
#pragma unroll 1
    for (u32 j = 0; j < l.count; j++) add_called(sum, partial[l.first + j]);
    buckets[l.bucket] = sum;
  }
#pragma unroll 1
  for (u32 i = blockIdx.x; i < totals[3]; i += gridDim.x) {
    const LongBucket l = long_buckets[i];
    if (l.count <= few) continue;
    Sum sum = Sum::infinity();
#pragma unroll 1
    for (u32 j = threadIdx.x; j < l.count; j += 128) add_called(sum, partial[l.first + j]);
    if (threadIdx.x == 0) add_called(sum, buckets[l.bucket]);
    block_sum<128>(sum, shared);
    if (threadIdx.x == 0) buckets[l.bucket] = sum;
  }
}

// Chunks of `length` buckets b, counted from 0 in their chunk: weighted = Σ (b + 1)·bucket, plain = Σ bucket.
// Windows of `half` buckets, the last of `last` buckets; chunks of a window: ⌈buckets / length⌉.
extern "C" __global__ void __launch_bounds__(128, GROUP == 2 ? 2 : 4)
    chunk_sums(const Sum* buckets, u32 windows, u32 half, u32 last, u32 length, Sum* weighted, Sum* plain) {
  const u32 of_window = (half + length - 1) / length, of_last = (last + length - 1) / length;
  const u32 t = blockIdx.x * 128 + threadIdx.x;
  if (t >= of_window * (windows - 1) + of_last) return;
  const u32 w = t / of_window < windows - 1 ? t / of_window : windows - 1, chunk = t - w * of_window;
  const u32 size = w + 1 < windows ? half : last, begin = chunk * length;
  const u32 end = begin + length < size ? begin + length : size;
  Sum a = Sum::infinity(), b = Sum::infinity();
#pragma unroll 1
  for (u32 i = end; i-- > begin;) {
    add_called(b, buckets[u64(w) * half + i]);
    add_called(a, b);
  }
  weighted[t] = a;
  plain[t] = b;
}

// out[w][0] = Σ weighted; out[w][1 + j] = Σ plain over the window's chunks whose index has bit j; each of them in
// gridDim.z parts, which stand beside each other. Canonical.
// Then window w's sum is out[w][0] + length · Σ 2^j · out[w][1 + j]. Grid: (1 + bits, windows, parts).
extern "C" __global__ void __launch_bounds__(256, GROUP == 2 ? 1 : 2)
    bit_sums(const Sum* weighted, const Sum* plain, u32 of_window, u32 of_last, Sum* out) {
  __shared__ Sum shared[128];
  const u32 w = blockIdx.y, chunks = w + 1 < gridDim.y ? of_window : of_last;
  const Sum* from = (blockIdx.x == 0 ? weighted : plain) + u64(w) * of_window;
  Sum sum = Sum::infinity();
  // j-th index with the wanted bit set.
  const u32 bit = blockIdx.x == 0 ? 0 : blockIdx.x - 1;
#pragma unroll 1
  for (u32 j = blockIdx.z * 256 + threadIdx.x; j < chunks; j += gridDim.z * 256) {
    u32 at = j;
    if (blockIdx.x != 0) at = (j >> bit << (bit + 1)) | (1u << bit) | (j & ((1u << bit) - 1));
    if (at >= chunks) break;  // `at` grows with j
    add_called(sum, from[at]);
  }
  block_sum<256>(sum, shared);
  if (threadIdx.x == 0) out[(u64(w) * gridDim.x + blockIdx.x) * gridDim.z + blockIdx.z] = canonical(sum);
}

// out[block] = the block's share of Σ in; canonical. Grid: any.
extern "C" __global__ void __launch_bounds__(256, GROUP == 2 ? 1 : 2)
    block_sums(const Sum* in, u32 n, Sum* out) {
  __shared__ Sum shared[128];
  Sum sum = Sum::infinity();
#pragma unroll 1
  for (u32 i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) add_called(sum, in[i]);
  block_sum<256>(sum, shared);
  if (threadIdx.x == 0) out[blockIdx.x] = canonical(sum);
}

// Column sums of a sparse matrix, Σ weight of row · coefficient, as a test key's setup needs them.
//
// Entries come row after row, so columns fill up in any order. Products are added word by word to 64-bit counters, which
// hold 2^32 words without a carry; sums of integers do not depend on the order. One pass at the end reduces them.
#include "../field/field_ptx.cuh"

// sums[8·wire + j] += word j of value · weights[row] for each entry. Coefficients in Montgomery form, by entry or, where
// `number` is not null, by the entry's number; weights plain. Grid: any.
extern "C" __global__ void __launch_bounds__(256)
    column_sums(const i64* row_start, u64 rows, const u32* wire, const u32* number, const Fr* values, const Fr* weights,
                unsigned long long* sums) {
  for (u64 row = u64(blockIdx.x) * 256 + threadIdx.x; row < rows; row += u64(gridDim.x) * 256) {
    const Fr weight = weights[row];
    for (i64 e = row_start[row]; e < row_start[row + 1]; e++) {
      const Fr term = values[number != nullptr ? i64(number[e]) : e].times(weight).reduced();
      unsigned long long* to = sums + u64(wire[e]) * 8;
#pragma unroll
      for (int j = 0; j < 8; j++) atomicAdd(to + j, (unsigned long long)term.l[j]);
    }
  }
}

// out[i] = the sum of column i, plain and canonical. Grid: any.
extern "C" __global__ void __launch_bounds__(256) reduce_columns(const u64* sums, u64 n, Fr* out) {
  for (u64 i = u64(blockIdx.x) * 256 + threadIdx.x; i < n; i += u64(gridDim.x) * 256) {
    Fr low, high = Fr::zero();
    u64 carry = 0;
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const u64 word = sums[8 * i + j];
      const u64 sum = (word & 0xffffffffu) + (carry & 0xffffffffu);
      low.l[j] = u32(sum);
      carry = (sum >> 32) + (word >> 32) + (carry >> 32);
    }
    high.l[0] = u32(carry), high.l[1] = u32(carry >> 32);
    // Montgomery products with R and R²: the low 256 bits, and what stands above them.
    out[i] = (low.times(Fr::one()) + high.times(Fr::r_squared())).reduced();
  }
}

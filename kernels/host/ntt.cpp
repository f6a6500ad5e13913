// Transforms over Fr of any size: the four-step method, rows × columns elements with index = row · columns + column.
//
//   1. transform every column, multiply element (k, column) by ω^(k · column): `ntt_columns`;
//   2. transform every row, store transposed: `ntt_rows`.
// Each step's parts are independent, so threads share out columns and rows; the steps themselves are a barrier.
// Scaling by powers of a coset and by 1/n rides on the products of step 1, or on one table each (see ntt in Python).
#include "../field/field_host.h"
#include "../ntt/butterflies.h"

#ifdef CUZKLAB_FIELD_IFMA
// ntt_ifma.cpp has the steps, and calls these for what does not fill its lanes.
#define ntt_scratch_bytes ntt_scratch_bytes_one
#define ntt_columns ntt_columns_one
#define ntt_rows ntt_rows_one
#define ntt_quotient ntt_quotient_one
#endif

namespace {
// Four columns of 32 bytes are two cache lines; four twiddles advance independently of each other.
constexpr u32 width = 4;
}  // namespace

extern "C" {
#pragma GCC visibility push(default)

u64 ntt_scratch_bytes(u32 log_rows, u32 log_columns) {
  return (u64(width) << (log_rows > log_columns ? log_rows : log_columns)) * sizeof(Fr);
}

// to[k][column] = first[column] · ratio[column]^k · Σ_row ω_rows^(k · row) · scale[row] · from[row][column].
// scale may be null. twiddle is laid out as in butterflies.h.
void ntt_columns(const Fr* from, Fr* to, u32 log_rows, u32 log_columns, u64 begin, u64 end, const Fr* twiddle,
                 const Fr* first, const Fr* ratio, const Fr* scale, Fr* scratch) {
  const u64 rows = u64(1) << log_rows, columns = u64(1) << log_columns;
  for (u64 c = begin; c < end; c += width) {
    const u32 used = u32(end - c < width ? end - c : width);
    for (u64 row = 0; row < rows; row++) {
      const u64 place = reversed_bits(u32(row), log_rows);
      for (u32 i = 0; i < used; i++) {
        const Fr& x = from[row * columns + c + i];
        scratch[(u64(i) << log_rows) + place] = scale ? x * scale[row] : x;
      }
    }
    for (u32 i = 0; i < used; i++) transform_bit_reversed(scratch + (u64(i) << log_rows), log_rows, twiddle);
    Fr factor[width];
    for (u32 i = 0; i < used; i++) factor[i] = first[c + i];
    for (u64 k = 0; k < rows; k++)
      for (u32 i = 0; i < used; i++) {
        to[k * columns + c + i] = scratch[(u64(i) << log_rows) + k] * factor[i];
        factor[i] = factor[i] * ratio[c + i];
      }
  }
}

// to[k · rows + row] = scale[k] · Σ_column ω_columns^(k · column) · from[row][column]; scale may be null.
void ntt_rows(const Fr* from, Fr* to, u32 log_rows, u32 log_columns, u64 begin, u64 end, const Fr* twiddle,
              const Fr* scale, Fr* scratch) {
  const u64 rows = u64(1) << log_rows, columns = u64(1) << log_columns;
  for (u64 row = begin; row < end; row += width) {
    const u32 used = u32(end - row < width ? end - row : width);
    for (u64 c = 0; c < columns; c++) {
      const u64 place = reversed_bits(u32(c), log_columns);
      for (u32 i = 0; i < used; i++) scratch[(u64(i) << log_columns) + place] = from[(row + i) * columns + c];
    }
    for (u32 i = 0; i < used; i++) transform_bit_reversed(scratch + (u64(i) << log_columns), log_columns, twiddle);
    for (u64 k = 0; k < columns; k++)
      for (u32 i = 0; i < used; i++) {
        const Fr& x = scratch[(u64(i) << log_columns) + k];
        to[k * rows + row + i] = scale ? x * scale[k] : x;
      }
  }
}

// a_i ← scale · (a_i · b_i − c_i) as a plain integer; scale is plain, too.
void ntt_quotient(Fr* a, const Fr* b, const Fr* c, u64 begin, u64 end, const Fr* scale) {
  for (u64 i = begin; i < end; i++) a[i] = (a[i] * b[i] - c[i]) * *scale;
}
#pragma GCC visibility pop
}

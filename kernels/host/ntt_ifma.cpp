// The two steps of a transform (see ntt.cpp) on AVX-512 IFMA, eight columns or rows at a time; what is left over goes
// the other way. Built with options of its own: only a CPU that has the instructions may run any of it.
#include "../ntt/transform_ifma.h"

extern "C" {
u64 ntt_scratch_bytes_one(u32, u32);
void ntt_columns_one(const Fr*, Fr*, u32, u32, u64, u64, const Fr*, const Fr*, const Fr*, const Fr*, Fr*);
void ntt_rows_one(const Fr*, Fr*, u32, u32, u64, u64, const Fr*, const Fr*, Fr*);
void ntt_quotient_one(Fr*, const Fr*, const Fr*, u64, u64, const Fr*);
}

namespace {

// Eight elements in lanes, twiddles and scale as factors; shorter transforms would not fill the lanes of a table.
constexpr u32 least_log = 3;

struct Scratch {
  FrLanes* x;
  FrLimbs *twiddle, *scale;

  static u64 bytes(u32 log_size) { return (sizeof(FrLanes) + 2 * sizeof(FrLimbs) << log_size) + 64; }
  Scratch(void* memory, u32 log_size) {
    x = (FrLanes*)((u64(memory) + 63) & ~u64(63));
    twiddle = (FrLimbs*)(x + (u64(1) << log_size));
    scale = twiddle + (u64(1) << log_size);
  }
};

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

u64 ntt_scratch_bytes(u32 log_rows, u32 log_columns) {
  const u64 lanes = Scratch::bytes(log_rows > log_columns ? log_rows : log_columns);
  const u64 one = ntt_scratch_bytes_one(log_rows, log_columns);
  return lanes > one ? lanes : one;
}

void ntt_columns(const Fr* from, Fr* to, u32 log_rows, u32 log_columns, u64 begin, u64 end, const Fr* twiddle,
                 const Fr* first, const Fr* ratio, const Fr* scale, Fr* scratch) {
  const u64 rows = u64(1) << log_rows, columns = u64(1) << log_columns;
  u64 c = begin;
  if (log_rows >= least_log && end - begin >= 8) {
    const Scratch s(scratch, log_rows);
    to_factors(twiddle, s.twiddle, rows);
    if (scale) to_factors(scale, s.scale, rows);
    for (; c + 8 <= end; c += 8) {
      for (u64 row = 0; row < rows; row++) {
        const FrLanes x = load_eight(from + row * columns + c);
        // A scaled value is canonical again, as the first levels expect.
        s.x[reversed_bits(u32(row), log_rows)] =
            scale ? product(x, fr_all(s.scale[row])).normal().canonical() : x;
      }
      transform_lanes(s.x, log_rows, s.twiddle);
      FrLanes factor = as_factor(load_eight(first + c));
      const FrLanes step = as_factor(load_eight(ratio + c));
      for (u64 k = 0; k < rows; k++) {
        store_eight(to + k * columns + c, product(s.x[k].normal(), factor).normal().canonical());
        factor = product(factor, step).normal();
      }
    }
  }
  if (c < end) ntt_columns_one(from, to, log_rows, log_columns, c, end, twiddle, first, ratio, scale, scratch);
}

void ntt_rows(const Fr* from, Fr* to, u32 log_rows, u32 log_columns, u64 begin, u64 end, const Fr* twiddle,
              const Fr* scale, Fr* scratch) {
  const u64 rows = u64(1) << log_rows, columns = u64(1) << log_columns;
  u64 row = begin;
  if (log_columns >= least_log && end - begin >= 8) {
    const Scratch s(scratch, log_columns);
    to_factors(twiddle, s.twiddle, columns);
    if (scale) to_factors(scale, s.scale, columns);
    for (; row + 8 <= end; row += 8) {
      for (u64 c = 0; c < columns; c += 2) {
        Vector word[8];
        UNROLL for (int lane = 0; lane < 8; lane++)
          word[lane] = _mm512_loadu_si512(from + (row + element_of_lane[lane]) * columns + c);
        transpose(word);
        s.x[reversed_bits(u32(c), log_columns)] = FrLanes::of_words(word);
        s.x[reversed_bits(u32(c) + 1, log_columns)] = FrLanes::of_words(word + 4);
      }
      transform_lanes(s.x, log_columns, s.twiddle);
      for (u64 k = 0; k < columns; k++) {
        const FrLanes y = scale ? product(s.x[k].normal(), fr_all(s.scale[k])).normal().canonical()
                                : far_canonical(s.x[k]);
        store_eight(to + k * rows + row, y);
      }
    }
  }
  if (row < end) ntt_rows_one(from, to, log_rows, log_columns, row, end, twiddle, scale, scratch);
}

// With a and b at 2^256, their product is at 2^252; 2^8 · scale makes it plain, and 2^4 · scale does so with c.
void ntt_quotient(Fr* a, const Fr* b, const Fr* c, u64 begin, u64 end, const Fr* scale) {
  Fr four = scale->doubled().doubled().doubled().doubled(), eight = four;
  for (int i = 0; i < 4; i++) eight = eight.doubled();
  const FrLanes of_c = fr_all(limbs52<FrParameters, 5>(four.l)), of_product = fr_all(limbs52<FrParameters, 5>(eight.l));
  u64 i = begin;
  for (; i + 8 <= end; i += 8) {
    const FrLanes x = product(load_eight(a + i), load_eight(b + i)).normal();
    const FrLanes y = product(x, of_product) - product(load_eight(c + i), of_c);
    store_eight(a + i, far_canonical(y.plus<2>()));
  }
  if (i < end) ntt_quotient_one(a, b, c, i, end, scale);
}

// The time of rounds · 8 products in lanes, in four independent chains.
void fr_repeat_products(Fr* x, u64 rounds) {
  FrLanes value[4];
  for (FrLanes& v : value) v = FrLanes::all(limbs52<FrParameters, 5>(x[0].l));
  const FrLanes factor = FrLanes::all(limbs52<FrParameters, 5>(x[8].l));
  for (u64 i = 0; i < rounds / 4; i++)
    UNROLL for (int j = 0; j < 4; j++) value[j] = product(value[j], factor).normal();
  FrLanes sum = value[0] + value[1] + value[2] + value[3];
  for (int w = 0; w < 3; w++) x[7].l[w] = u64(_mm512_reduce_or_epi64(sum.l[w]));  // so that no compiler drops the loop
}
#pragma GCC visibility pop
}

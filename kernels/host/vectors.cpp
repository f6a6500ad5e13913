// Element-wise field arithmetic, and sparse matrix times vector.
#include "../field/inverse.h"
#include "canonical.h"

namespace {

template <class F>
F plain_one() {
  F x = F::zero();
  x.l[0] = 1;
  return x;
}

// out_i = 1 / x_i, or 0 for 0; one inversion for all. out must not overlap x.
template <class F>
void batch_inverse(const F* x, F* out, u64 n) {
  F product = F::one();
  for (u64 i = 0; i < n; i++) {
    out[i] = product;
    if (!x[i].is_zero()) product = product * x[i];
  }
  F rest = inverse(product);
  for (u64 i = n; i-- > 0;) {
    if (x[i].is_zero()) {
      out[i] = F::zero();
    } else {
      out[i] = out[i] * rest;
      rest = rest * x[i];
    }
  }
}

template <class F>
i64 first_not_canonical(const F* x, u64 n) {
  for (u64 i = 0; i < n; i++)
    if (!is_canonical(x[i])) return i64(i);
  return -1;
}

// Independent products, so that a multiply's throughput shows rather than its latency. Only their time counts.
template <class F>
void repeat_products(F* x, u64 rounds) {
  for (u64 i = 0; i < rounds; i++)
    for (int j = 0; j < 8; j++) x[j] = x[j] * x[8];
}

// Entries whose wire is asked for before it is due: some 100 ns of additions.
constexpr i64 coded_ahead = 24;

struct Record {
  u32 matrix, row, wire, words[8];

  Fr value() const {
    Fr x;
    __builtin_memcpy(x.l, words, sizeof x.l);
    return x;
  }
};

}  // namespace

// A step of 0 repeats one element.
#define FIELD_ENTRIES(prefix, F) \
  void prefix##_add(const F* a, u64 a_step, const F* b, u64 b_step, F* out, u64 n) { \
    for (u64 i = 0; i < n; i++) out[i] = a[i * a_step] + b[i * b_step]; \
  } \
  void prefix##_sub(const F* a, u64 a_step, const F* b, u64 b_step, F* out, u64 n) { \
    for (u64 i = 0; i < n; i++) out[i] = a[i * a_step] - b[i * b_step]; \
  } \
  void prefix##_mul(const F* a, u64 a_step, const F* b, u64 b_step, F* out, u64 n) { \
    for (u64 i = 0; i < n; i++) out[i] = a[i * a_step] * b[i * b_step]; \
  } \
  void prefix##_to_montgomery(const F* a, F* out, u64 n) { \
    const F r2 = F::constant(F::Parameters::r2); \
    for (u64 i = 0; i < n; i++) out[i] = a[i] * r2; \
  } \
  void prefix##_from_montgomery(const F* a, F* out, u64 n) { \
    const F unit = plain_one<F>(); \
    for (u64 i = 0; i < n; i++) out[i] = a[i] * unit; \
  } \
  void prefix##_inverse(const F* a, F* out, u64 n) { batch_inverse(a, out, n); } \
  i64 prefix##_first_not_canonical(const F* a, u64 n) { return first_not_canonical(a, n); }

extern "C" {
#pragma GCC visibility push(default)

FIELD_ENTRIES(fp, Fp)
FIELD_ENTRIES(fr, Fr)

#ifndef CUZKLAB_FIELD_IFMA  // its lanes have their own
void fp_repeat_products(Fp* x, u64 rounds) { repeat_products(x, rounds); }
void fr_repeat_products(Fr* x, u64 rounds) { repeat_products(x, rounds); }
#endif

// out_i = base^i, all in Montgomery form.
void fr_powers(const Fr* base, Fr* out, u64 n) {
  if (n == 0) return;
  out[0] = Fr::one();
  // Doubling the known part keeps the products independent of each other.
  Fr step = *base;
  for (u64 known = 1; known < n; known *= 2) {
    for (u64 i = known; i < 2 * known && i < n; i++) out[i] = out[i - known] * step;
    step = step.squared();
  }
}

// out_row = Σ value · witness[wire], each product a Montgomery product. −1, or the first row with a wire out of range.
i64 fr_sparse_product(const i64* row_start, const u32* wire, const Fr* value, const Fr* witness, u64 wires, u64 begin,
                      u64 end, Fr* out) {
  for (u64 row = begin; row < end; row++) {
    Fr sum = Fr::zero();
    for (i64 e = row_start[row]; e < row_start[row + 1]; e++) {
      if (wire[e] >= wires) return i64(row);
      const Fr& x = witness[wire[e]];
      if (!x.is_zero()) sum = sum + value[e] * x;
    }
    out[row] = sum;
  }
  return -1;
}

// The same with a coefficient of entry e of value[number[e]]; `once` holds each coefficient's product with one. Most
// wires of a circuit are bits, for which nothing is multiplied. −1, or the first row that names what is not there or a
// wire whose value is not below r.
i64 fr_coded_product(const i64* row_start, const u32* wire, const u32* number, const Fr* value, const Fr* once, u64 values,
                     const Fr* witness, u64 wires, u64 begin, u64 end, Fr* out) {
  const i64 last = row_start[end];
  for (u64 row = begin; row < end; row++) {
    Fr sum = Fr::zero();
    for (i64 e = row_start[row]; e < row_start[row + 1]; e++) {
      if (wire[e] >= wires || number[e] >= values) return i64(row);
      if (e + coded_ahead < last) __builtin_prefetch(witness + wire[e + coded_ahead], 0, 2);
      const Fr& x = witness[wire[e]];
      if ((x.l[1] | x.l[2] | x.l[3] | (x.l[0] >> 1)) == 0) {
        Fr term = once[number[e]];
        for (int i = 0; i < Fr::limbs; i++) term.l[i] &= -x.l[0];  // no branch: bits cannot be foreseen
        sum = sum + term;
      } else {
        if (!is_canonical(x)) return i64(row);
        sum = sum + value[number[e]] * x;
      }
    }
    out[row] = sum;
  }
  return -1;
}

// Records of a key's matrices, 44 bytes each and not aligned: u32 matrix (0 = A, 1 = B), u32 row, u32 wire, coefficient.
// −1, or the first record that is none for so many rows and wires; `ascending` becomes 0 where rows do not ascend.
i64 fr_check_records(const unsigned char* records, u64 n, u32 rows, u32 wires, u32* ascending) {
  u32 last = 0;
  for (u64 i = 0; i < n; i++) {
    Record r;
    __builtin_memcpy(&r, records + i * sizeof r, sizeof r);
    if (r.matrix > 1 || r.row >= rows || r.wire >= wires || !is_canonical(r.value())) return i64(i);
    if (r.row < last) *ascending = 0;
    last = r.row;
  }
  return -1;
}

// a and b += Σ coefficient · witness[wire] over the records from `begin` to `end`: Montgomery products. −1, or the first
// record that is out of range: the file that they lie in may have changed since they were checked.
i64 fr_record_products(const unsigned char* records, u64 begin, u64 end, const Fr* witness, u32 rows, u32 wires, Fr* a,
                       Fr* b) {
  for (u64 i = begin; i < end; i++) {
    Record r;
    __builtin_memcpy(&r, records + i * sizeof r, sizeof r);
    if (r.row >= rows || r.wire >= wires) return i64(i);
    Fr& sum = (r.matrix ? b : a)[r.row];
    sum = sum + r.value() * witness[r.wire];
  }
  return -1;
}
#pragma GCC visibility pop
}

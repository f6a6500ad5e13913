// Tables of a transform, and what comes after one.
#include "../field/field_ptx.cuh"

// Powers of one base in two levels: base^e = low[e mod 2^bits] · high[e >> bits]. A null `low` stands for ones.
struct Powers {
  const Fr *low, *high;
  u32 bits;
};
FN Fr power(const Powers& p, u64 e) {
  return p.high[e >> p.bits].times(p.low[e & ((u64(1) << p.bits) - 1)]).reduced();
}

// table[k][m] = root^(k·m) · row[k] · column^m. Grid: any; 2^(log_rows + log_columns) entries.
extern "C" __global__ void ntt_factors(Fr* table, u32 log_rows, u32 log_columns, const Fr* root_low,
                                       const Fr* root_high, u32 root_bits, const Fr* row, const Fr* column_low,
                                       const Fr* column_high, u32 column_bits) {
  const u64 n = u64(1) << (log_rows + log_columns);
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += u64(gridDim.x) * blockDim.x) {
    const u64 k = i >> log_columns, m = i & ((u64(1) << log_columns) - 1);
    Fr x = power(Powers{root_low, root_high, root_bits}, k * m);
    if (row != nullptr) x = x.times(row[k]).reduced();
    if (column_low != nullptr) x = x.times(power(Powers{column_low, column_high, column_bits}, m)).reduced();
    table[i] = x;
  }
}

// a_i ← a_i · b_i − c_i as a plain integer; elements below 2r.
extern "C" __global__ void ntt_quotient(Fr* a, const Fr* b, const Fr* c, u64 n) {
  const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Fr unit = Fr::zero();
  unit.l[0] = 1;
  a[i] = (a[i] * b[i] - c[i]).times(unit).reduced();
}

// The preparation of split MSMs: which scalars are 0, 1 or other; what of that concerns the points of one query; copies
// of chosen rows. All of it is bound by memory: scalars are read once, and rows are asked for before they are due.
#include "../field/types.h"

namespace {

// The bits of x at the places of `mask`, moved together at the low end.
inline u64 compress(u64 x, u64 mask) {
#if defined(__BMI2__)
  return __builtin_ia32_pext_di(x, mask);
#else
  u64 out = 0;
  for (u64 at = 0; mask; at++, mask &= mask - 1) out |= u64((x & mask & -mask) != 0) << at;
  return out;
#endif
}

inline u32 count(u64 x) {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  return u32(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56);
}

constexpr u64 line_bytes = 64, ahead_bytes = 3072;

// To the second cache, which waits for more lines at a time than the first one. Stores past the caches were slower.
inline void expect(const char* data) { __builtin_prefetch(data, 0, 2); }

template <u64 words>
i64 gather(const u64* from, u64 rows, const u32* index, u64 n, u64* out) {
  constexpr u64 row_bytes = 8 * words, ahead = ahead_bytes / row_bytes;
  for (u64 i = 0; i < n; i++) {
    if (index[i] >= rows) return i64(i);
    if (i + ahead < n) {
      const char* next = reinterpret_cast<const char*>(from) + row_bytes * index[i + ahead];
      for (u64 at = 0; at < row_bytes; at += line_bytes) expect(next + at);
      expect(next + row_bytes - 1);
    }
    const u64* row = from + words * index[i];
    for (u64 w = 0; w < words; w++) out[words * i + w] = row[w];
  }
  return -1;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

// Bitmaps of the scalars that are one and of those that are neither zero nor one, ⌈n/64⌉ words each; counts += {ones,
// others}.
void fr_classify(const u64* scalar, u64 n, u64* ones, u64* others, u64* counts) {
  u64 of_ones = 0, of_others = 0;
  for (u64 word = 0; word * 64 < n; word++) {
    const u64* k = scalar + 256 * word;
    const u64 scalars = n - word * 64 < 64 ? n - word * 64 : 64;
    u64 one = 0, other = 0;
    for (u64 i = 0; i < scalars; i++, k += 4) {
      const u64 high = k[1] | k[2] | k[3];
      one |= u64((high | (k[0] ^ 1)) == 0) << i;
      other |= u64((high | k[0] >> 1) != 0) << i;
    }
    ones[word] = one;
    others[word] = other;
    of_ones += count(one);
    of_others += count(other);
  }
  counts[0] += of_ones;
  counts[1] += of_others;
}

// Bitmaps over wires become bitmaps over a query's points, of which each wire in `density` has one: the ones, and for
// each wire in `tail` which point it has and which wire it is. The number of these.
u64 split_query(const u64* ones, const u64* tail, const u64* density, u64 words, u64* query_ones, u32* points,
                u32* wires) {
  u64 found = 0, place = 0, pending = 0;
  for (u64 word = 0; word < words; word++) {
    const u64 mask = density[word], here = count(mask);
    if (here == 0) continue;
    const u64 bits = compress(ones[word], mask);
    u64 at_wires = tail[word] & mask, at_points = compress(at_wires, mask);
    for (; at_wires; at_wires &= at_wires - 1, at_points &= at_points - 1, found++) {
      points[found] = u32(place + u64(__builtin_ctzll(at_points)));
      wires[found] = u32(word * 64 + u64(__builtin_ctzll(at_wires)));
    }
    const u64 used = place % 64;
    pending |= bits << used;
    if (used + here >= 64) {
      *query_ones++ = pending;
      pending = used ? bits >> (64 - used) : 0;
    }
    place += here;
  }
  if (place % 64) *query_ones = pending;
  return found;
}

u64 count_bits(const u64* bits, u64 words) {
  u64 total = 0;
  for (u64 word = 0; word < words; word++) total += count(bits[word]);
  return total;
}

// Rows by their indices, of 4, 12 or 24 words each. −1, or the first index that is beyond the rows.
i64 gather_rows(const u64* from, u64 rows, u64 words, const u32* index, u64 n, u64* out) {
  switch (words) {
    case 4: return gather<4>(from, rows, index, n, out);
    case 12: return gather<12>(from, rows, index, n, out);
    default: return gather<24>(from, rows, index, n, out);
  }
}

#pragma GCC visibility pop
}

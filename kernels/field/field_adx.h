// Field arithmetic on x86 with BMI2 and ADX: mulx leaves the flags alone, adcx and adox give two carry chains at once.
//
// Written as assembly because compilers do not keep two carry chains apart, and gcc spills even one. Running words live
// in registers that rotate by one a row, so the division by 2^64 of a Montgomery step costs nothing:
// after the reduction of (T0 … T5, T6) the value lies in (T1 … T6) and T0 is zero.
// Both moduli leave the top bit free, so a row's sum fits limbs + 1 words and one conditional subtraction finishes.
#pragma once

#include "types.h"

#define WORDS(pointer, n) (*(const u64(*)[n])(pointer))

// Word `offset` bytes into an operand: its first element, its second, and the other operand.
#define A0(offset) #offset "(%[a])"
#define A1(offset) "48+" #offset "(%[a])"
#define B(offset) #offset "(%[b])"

// (U, T) += source · rdx with T's carry in CF, U's in OF.
#define STEP(source, T, U) \
  "mulxq " source ", %[lo], %[hi]\n\t" \
  "adcxq %[lo], %[" #T "]\n\t" \
  "adoxq %[hi], %[" #U "]\n\t"

#define LOAD(source) "movq " source ", %%rdx\n\t"
// xor clears both carries; mov leaves them alone.
#define CLEAR_CARRIES "xorl %k[lo], %k[lo]\n\t"
#define ZERO_LO "movl $0, %k[lo]\n\t"

// T0 … T6 = a · b_word.
#define FIRST_ROW6(a, b, T0, T1, T2, T3, T4, T5, T6) \
  LOAD(b) \
  "mulxq " a(0) ", %[" #T0 "], %[" #T1 "]\n\t" \
  "mulxq " a(8) ", %[lo], %[" #T2 "]\n\t addq %[lo], %[" #T1 "]\n\t" \
  "mulxq " a(16) ", %[lo], %[" #T3 "]\n\t adcq %[lo], %[" #T2 "]\n\t" \
  "mulxq " a(24) ", %[lo], %[" #T4 "]\n\t adcq %[lo], %[" #T3 "]\n\t" \
  "mulxq " a(32) ", %[lo], %[" #T5 "]\n\t adcq %[lo], %[" #T4 "]\n\t" \
  "mulxq " a(40) ", %[lo], %[" #T6 "]\n\t adcq %[lo], %[" #T5 "]\n\t" \
  "adcq $0, %[" #T6 "]\n\t"

// T0 … T5 and a fresh top word T6, += a · b_word.
#define ROW6(a, b, T0, T1, T2, T3, T4, T5, T6) \
  LOAD(b) CLEAR_CARRIES \
  STEP(a(0), T0, T1) STEP(a(8), T1, T2) STEP(a(16), T2, T3) STEP(a(24), T3, T4) STEP(a(32), T4, T5) \
  "mulxq " a(40) ", %[lo], %[" #T6 "]\n\t adcxq %[lo], %[" #T5 "]\n\t" \
  ZERO_LO "adoxq %[lo], %[" #T6 "]\n\t adcxq %[lo], %[" #T6 "]\n\t"

// T0 … T6 += a · b_word, onto a top word already in use.
#define ROW6_AGAIN(a, b, T0, T1, T2, T3, T4, T5, T6) \
  LOAD(b) CLEAR_CARRIES \
  STEP(a(0), T0, T1) STEP(a(8), T1, T2) STEP(a(16), T2, T3) STEP(a(24), T3, T4) STEP(a(32), T4, T5) \
  STEP(a(40), T5, T6) ZERO_LO "adcxq %[lo], %[" #T6 "]\n\t"

// T0 … T6 += m · modulus with the m that makes T0 zero.
#define REDUCE6(T0, T1, T2, T3, T4, T5, T6) \
  "movabsq %[inverse], %%rdx\n\t" "imulq %[" #T0 "], %%rdx\n\t" CLEAR_CARRIES \
  STEP("0(%[p])", T0, T1) STEP("8(%[p])", T1, T2) STEP("16(%[p])", T2, T3) STEP("24(%[p])", T3, T4) \
  STEP("32(%[p])", T4, T5) STEP("40(%[p])", T5, T6) ZERO_LO "adcxq %[lo], %[" #T6 "]\n\t"

#define FIRST_ROW4(a, b, T0, T1, T2, T3, T4) \
  LOAD(b) \
  "mulxq " a(0) ", %[" #T0 "], %[" #T1 "]\n\t" \
  "mulxq " a(8) ", %[lo], %[" #T2 "]\n\t addq %[lo], %[" #T1 "]\n\t" \
  "mulxq " a(16) ", %[lo], %[" #T3 "]\n\t adcq %[lo], %[" #T2 "]\n\t" \
  "mulxq " a(24) ", %[lo], %[" #T4 "]\n\t adcq %[lo], %[" #T3 "]\n\t" \
  "adcq $0, %[" #T4 "]\n\t"

#define ROW4(a, b, T0, T1, T2, T3, T4) \
  LOAD(b) CLEAR_CARRIES \
  STEP(a(0), T0, T1) STEP(a(8), T1, T2) STEP(a(16), T2, T3) \
  "mulxq " a(24) ", %[lo], %[" #T4 "]\n\t adcxq %[lo], %[" #T3 "]\n\t" \
  ZERO_LO "adoxq %[lo], %[" #T4 "]\n\t adcxq %[lo], %[" #T4 "]\n\t"

#define REDUCE4(T0, T1, T2, T3, T4) \
  "movabsq %[inverse], %%rdx\n\t" "imulq %[" #T0 "], %%rdx\n\t" CLEAR_CARRIES \
  STEP("0(%[p])", T0, T1) STEP("8(%[p])", T1, T2) STEP("16(%[p])", T2, T3) STEP("24(%[p])", T3, T4) \
  ZERO_LO "adcxq %[lo], %[" #T4 "]\n\t"

// t − modulus where that does not borrow.
#define REDUCE_ONCE6(t0, t1, t2, t3, t4, t5, p) \
  do { \
    u64 s0, s1, s2, s3, s4, s5; \
    asm("movq %[a0], %[b0]\n\t movq %[a1], %[b1]\n\t movq %[a2], %[b2]\n\t" \
        "movq %[a3], %[b3]\n\t movq %[a4], %[b4]\n\t movq %[a5], %[b5]\n\t" \
        "subq 0(%[m]), %[b0]\n\t sbbq 8(%[m]), %[b1]\n\t sbbq 16(%[m]), %[b2]\n\t" \
        "sbbq 24(%[m]), %[b3]\n\t sbbq 32(%[m]), %[b4]\n\t sbbq 40(%[m]), %[b5]\n\t" \
        "cmovncq %[b0], %[a0]\n\t cmovncq %[b1], %[a1]\n\t cmovncq %[b2], %[a2]\n\t" \
        "cmovncq %[b3], %[a3]\n\t cmovncq %[b4], %[a4]\n\t cmovncq %[b5], %[a5]\n\t" \
        : [a0] "+&r"(t0), [a1] "+&r"(t1), [a2] "+&r"(t2), [a3] "+&r"(t3), [a4] "+&r"(t4), [a5] "+&r"(t5), \
          [b0] "=&r"(s0), [b1] "=&r"(s1), [b2] "=&r"(s2), [b3] "=&r"(s3), [b4] "=&r"(s4), [b5] "=&r"(s5) \
        : [m] "r"(p) \
        : "cc"); \
  } while (0)

#define REDUCE_ONCE4(t0, t1, t2, t3, p) \
  do { \
    u64 s0, s1, s2, s3; \
    asm("movq %[a0], %[b0]\n\t movq %[a1], %[b1]\n\t movq %[a2], %[b2]\n\t movq %[a3], %[b3]\n\t" \
        "subq 0(%[m]), %[b0]\n\t sbbq 8(%[m]), %[b1]\n\t sbbq 16(%[m]), %[b2]\n\t sbbq 24(%[m]), %[b3]\n\t" \
        "cmovncq %[b0], %[a0]\n\t cmovncq %[b1], %[a1]\n\t cmovncq %[b2], %[a2]\n\t cmovncq %[b3], %[a3]\n\t" \
        : [a0] "+&r"(t0), [a1] "+&r"(t1), [a2] "+&r"(t2), [a3] "+&r"(t3), \
          [b0] "=&r"(s0), [b1] "=&r"(s1), [b2] "=&r"(s2), [b3] "=&r"(s3) \
        : [m] "r"(p) \
        : "cc"); \
  } while (0)

// A product of six limbs uses nearly all registers: as a function of its own it leaves callers theirs.
// Not `canonical`: a result below twice the modulus, for factors below twice the modulus.
template <class P, bool canonical>
__attribute__((noinline)) void field_mul6(u64* r, const u64* a, const u64* b) {
  u64 lo, hi, t0, t1, t2, t3, t4, t5, t6;
  asm(FIRST_ROW6(A0, B(0), t0, t1, t2, t3, t4, t5, t6) REDUCE6(t0, t1, t2, t3, t4, t5, t6)
      ROW6(A0, B(8), t1, t2, t3, t4, t5, t6, t0) REDUCE6(t1, t2, t3, t4, t5, t6, t0)
      ROW6(A0, B(16), t2, t3, t4, t5, t6, t0, t1) REDUCE6(t2, t3, t4, t5, t6, t0, t1)
      ROW6(A0, B(24), t3, t4, t5, t6, t0, t1, t2) REDUCE6(t3, t4, t5, t6, t0, t1, t2)
      ROW6(A0, B(32), t4, t5, t6, t0, t1, t2, t3) REDUCE6(t4, t5, t6, t0, t1, t2, t3)
      ROW6(A0, B(40), t5, t6, t0, t1, t2, t3, t4) REDUCE6(t5, t6, t0, t1, t2, t3, t4)
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [t5] "=&r"(t5),
        [t6] "=&r"(t6), [lo] "=&r"(lo), [hi] "=&r"(hi)
      : [a] "r"(a), [b] "r"(b), "m"(WORDS(a, 6)), "m"(WORDS(b, 6)), [p] "r"(P::modulus), [inverse] "i"(P::inverse64)
      : "rdx", "cc");
  if constexpr (canonical) REDUCE_ONCE6(t6, t0, t1, t2, t3, t4, P::modulus);
  r[0] = t6, r[1] = t0, r[2] = t1, r[3] = t2, r[4] = t3, r[5] = t4;
}

template <class P>
FN void field_mul4(u64* r, const u64* a, const u64* b) {
  u64 lo, hi, t0, t1, t2, t3, t4;
  asm(FIRST_ROW4(A0, B(0), t0, t1, t2, t3, t4) REDUCE4(t0, t1, t2, t3, t4)
      ROW4(A0, B(8), t1, t2, t3, t4, t0) REDUCE4(t1, t2, t3, t4, t0)
      ROW4(A0, B(16), t2, t3, t4, t0, t1) REDUCE4(t2, t3, t4, t0, t1)
      ROW4(A0, B(24), t3, t4, t0, t1, t2) REDUCE4(t3, t4, t0, t1, t2)
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [lo] "=&r"(lo), [hi] "=&r"(hi)
      : [a] "r"(a), [b] "r"(b), "m"(WORDS(a, 4)), "m"(WORDS(b, 4)), [p] "r"(P::modulus), [inverse] "i"(P::inverse64)
      : "rdx", "cc");
  REDUCE_ONCE4(t4, t0, t1, t2, P::modulus);
  r[0] = t4, r[1] = t0, r[2] = t1, r[3] = t2;
}

template <class P>
FN void field_mul(u64* r, const u64* a, const u64* b) {
  if constexpr (P::limbs == 6)
    field_mul6<P, true>(r, a, b);
  else
    field_mul4<P>(r, a, b);
}

template <class P>
FN void field_mul_loose(u64* r, const u64* a, const u64* b) {
  field_mul6<P, false>(r, a, b);
}

// a − b + modulus, without looking at the borrow.
template <class P>
FN void field_sub_loose(u64* r, const u64* a, const u64* b) {
  u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3], t4 = a[4], t5 = a[5];
  asm("subq 0(%[b]), %[t0]\n\t sbbq 8(%[b]), %[t1]\n\t sbbq 16(%[b]), %[t2]\n\t"
      "sbbq 24(%[b]), %[t3]\n\t sbbq 32(%[b]), %[t4]\n\t sbbq 40(%[b]), %[t5]\n\t"
      "addq 0(%[p]), %[t0]\n\t adcq 8(%[p]), %[t1]\n\t adcq 16(%[p]), %[t2]\n\t"
      "adcq 24(%[p]), %[t3]\n\t adcq 32(%[p]), %[t4]\n\t adcq 40(%[p]), %[t5]\n\t"
      : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [t4] "+&r"(t4), [t5] "+&r"(t5)
      : [b] "r"(b), "m"(WORDS(b, 6)), [p] "r"(P::modulus)
      : "cc");
  r[0] = t0, r[1] = t1, r[2] = t2, r[3] = t3, r[4] = t4, r[5] = t5;
}

// a0·b0 + a1·b1 of Fp with one reduction. The sum of products may be up to 8 modulus²: below 1.82 modulus at the end.
// a and b each hold two elements; `swapped` pairs a0 with b1 and a1 with b0.
#define DOT_ROWS(FIRST, i, j, ...) FIRST(A0, B(i), __VA_ARGS__) ROW6_AGAIN(A1, B(j), __VA_ARGS__) REDUCE6(__VA_ARGS__)
#define DOT(i0, i1, i2, i3, i4, i5, j0, j1, j2, j3, j4, j5) \
  asm(DOT_ROWS(FIRST_ROW6, i0, j0, t0, t1, t2, t3, t4, t5, t6) \
      DOT_ROWS(ROW6, i1, j1, t1, t2, t3, t4, t5, t6, t0) \
      DOT_ROWS(ROW6, i2, j2, t2, t3, t4, t5, t6, t0, t1) \
      DOT_ROWS(ROW6, i3, j3, t3, t4, t5, t6, t0, t1, t2) \
      DOT_ROWS(ROW6, i4, j4, t4, t5, t6, t0, t1, t2, t3) \
      DOT_ROWS(ROW6, i5, j5, t5, t6, t0, t1, t2, t3, t4) \
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [t5] "=&r"(t5), \
        [t6] "=&r"(t6), [lo] "=&r"(lo), [hi] "=&r"(hi) \
      : [a] "r"(a), [b] "r"(b), "m"(WORDS(a, 12)), "m"(WORDS(b, 12)), [p] "r"(P::modulus), \
        [inverse] "i"(P::inverse64) \
      : "rdx", "cc")

template <class P, bool swapped, bool canonical>
__attribute__((noinline)) void field_dot(u64* r, const u64* a, const u64* b) {
  static_assert(P::limbs == 6, "the tower is over Fp");
  u64 lo, hi, t0, t1, t2, t3, t4, t5, t6;
  if constexpr (swapped)
    DOT(48, 56, 64, 72, 80, 88, 0, 8, 16, 24, 32, 40);
  else
    DOT(0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88);
  if constexpr (canonical) REDUCE_ONCE6(t6, t0, t1, t2, t3, t4, P::modulus);
  r[0] = t6, r[1] = t0, r[2] = t1, r[3] = t2, r[4] = t3, r[5] = t4;
}

template <class P>
FN void field_add(u64* r, const u64* a, const u64* b) {
  if constexpr (P::limbs == 6) {
    u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3], t4 = a[4], t5 = a[5];
    asm("addq 0(%[b]), %[t0]\n\t adcq 8(%[b]), %[t1]\n\t adcq 16(%[b]), %[t2]\n\t"
        "adcq 24(%[b]), %[t3]\n\t adcq 32(%[b]), %[t4]\n\t adcq 40(%[b]), %[t5]\n\t"
        : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [t4] "+&r"(t4), [t5] "+&r"(t5)
        : [b] "r"(b), "m"(WORDS(b, 6))
        : "cc");
    REDUCE_ONCE6(t0, t1, t2, t3, t4, t5, P::modulus);
    r[0] = t0, r[1] = t1, r[2] = t2, r[3] = t3, r[4] = t4, r[5] = t5;
  } else {
    u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3];
    asm("addq 0(%[b]), %[t0]\n\t adcq 8(%[b]), %[t1]\n\t adcq 16(%[b]), %[t2]\n\t adcq 24(%[b]), %[t3]\n\t"
        : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3)
        : [b] "r"(b), "m"(WORDS(b, 4))
        : "cc");
    REDUCE_ONCE4(t0, t1, t2, t3, P::modulus);
    r[0] = t0, r[1] = t1, r[2] = t2, r[3] = t3;
  }
}

template <class P>
FN void field_sub(u64* r, const u64* a, const u64* b) {
  u64 borrow;
  if constexpr (P::limbs == 6) {
    u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3], t4 = a[4], t5 = a[5];
    asm("subq 0(%[b]), %[t0]\n\t sbbq 8(%[b]), %[t1]\n\t sbbq 16(%[b]), %[t2]\n\t"
        "sbbq 24(%[b]), %[t3]\n\t sbbq 32(%[b]), %[t4]\n\t sbbq 40(%[b]), %[t5]\n\t"
        "sbbq %[borrow], %[borrow]\n\t"
        : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [t4] "+&r"(t4), [t5] "+&r"(t5),
          [borrow] "=&r"(borrow)
        : [b] "r"(b), "m"(WORDS(b, 6))
        : "cc");
    const u64* p = P::modulus;
    asm("addq %[s0], %[t0]\n\t adcq %[s1], %[t1]\n\t adcq %[s2], %[t2]\n\t"
        "adcq %[s3], %[t3]\n\t adcq %[s4], %[t4]\n\t adcq %[s5], %[t5]\n\t"
        : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [t4] "+&r"(t4), [t5] "+&r"(t5)
        : [s0] "r"(p[0] & borrow), [s1] "r"(p[1] & borrow), [s2] "r"(p[2] & borrow), [s3] "r"(p[3] & borrow),
          [s4] "r"(p[4] & borrow), [s5] "r"(p[5] & borrow)
        : "cc");
    r[0] = t0, r[1] = t1, r[2] = t2, r[3] = t3, r[4] = t4, r[5] = t5;
  } else {
    u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3];
    asm("subq 0(%[b]), %[t0]\n\t sbbq 8(%[b]), %[t1]\n\t sbbq 16(%[b]), %[t2]\n\t sbbq 24(%[b]), %[t3]\n\t"
        "sbbq %[borrow], %[borrow]\n\t"
        : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [borrow] "=&r"(borrow)
        : [b] "r"(b), "m"(WORDS(b, 4))
        : "cc");
    const u64* p = P::modulus;
    asm("addq %[s0], %[t0]\n\t adcq %[s1], %[t1]\n\t adcq %[s2], %[t2]\n\t adcq %[s3], %[t3]\n\t"
        : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3)
        : [s0] "r"(p[0] & borrow), [s1] "r"(p[1] & borrow), [s2] "r"(p[2] & borrow), [s3] "r"(p[3] & borrow)
        : "cc");
    r[0] = t0, r[1] = t1, r[2] = t2, r[3] = t3;
  }
}

#undef A0
#undef A1
#undef B
#undef STEP
#undef LOAD
#undef DOT

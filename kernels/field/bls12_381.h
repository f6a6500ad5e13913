// The two prime fields of BLS12-381 and their Montgomery constants, 64-bit limbs, little end first.
//
// The numbers follow from the modulus alone: one = R, r2 = R², r3 = R³ (mod modulus) with R = 2^(64·limbs), and
// inverse64 = −modulus⁻¹ mod 2^64. tests/kernels recomputes every one of them.
// Values are macros of initialisers, so that each target can place them where it reads them fastest: the host as
// memory operands of mulx, a GPU in its constant bank (as literals ptxas would split wide products).
#pragma once

#define FP_MODULUS { \
    0xb9feffffffffaaabull, 0x1eabfffeb153ffffull, 0x6730d2a0f6b0f624ull, \
    0x64774b84f38512bfull, 0x4b1ba7b6434bacd7ull, 0x1a0111ea397fe69aull}
#define FP_ONE { \
    0x760900000002fffdull, 0xebf4000bc40c0002ull, 0x5f48985753c758baull, \
    0x77ce585370525745ull, 0x5c071a97a256ec6dull, 0x15f65ec3fa80e493ull}
#define FP_R2 { \
    0xf4df1f341c341746ull, 0x0a76e6a609d104f1ull, 0x8de5476c4c95b6d5ull, \
    0x67eb88a9939d83c0ull, 0x9a793e85b519952dull, 0x11988fe592cae3aaull}
#define FP_R3 { \
    0xed48ac6bd94ca1e0ull, 0x315f831e03a7adf8ull, 0x9a53352a615e29ddull, \
    0x34c04e5e921e1761ull, 0x2512d43565724728ull, 0x0aa6346091755d4dull}
#define FP_INVERSE64 0x89f3fffcfffcfffdull

#define FR_MODULUS { \
    0xffffffff00000001ull, 0x53bda402fffe5bfeull, \
    0x3339d80809a1d805ull, 0x73eda753299d7d48ull}
#define FR_ONE { \
    0x00000001fffffffeull, 0x5884b7fa00034802ull, \
    0x998c4fefecbc4ff5ull, 0x1824b159acc5056full}
#define FR_R2 { \
    0xc999e990f3f29c6dull, 0x2b6cedcb87925c23ull, \
    0x05d314967254398full, 0x0748d9d99f59ff11ull}
#define FR_R3 { \
    0xc62c1807439b73afull, 0x1b3e0d188cf06990ull, \
    0x73d13c71c7b5f418ull, 0x6e2a5bb9c8db33e9ull}
#define FR_INVERSE64 0xfffffffeffffffffull


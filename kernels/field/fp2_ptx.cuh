// Fp2 on a GPU: each coordinate of a product is a sum of two products with a single Montgomery reduction.
//
// 2 · 432 wide multiply-adds, where Karatsuba's three products take 3 · 288 and more additions and registers.
#pragma once

#include "field_ptx.cuh"

template <class F>
struct Fp2;
FN_PRODUCT Fp2<Fp> fp2_product(Fp2<Fp> a, Fp2<Fp> b);

#include "fp2.h"

FN_PRODUCT Fp2<Fp> fp2_product(Fp2<Fp> a, Fp2<Fp> b) {
  return {sum_of_products(a.c0, b.c0, a.c1, b.c1.opposite()), sum_of_products(a.c0, b.c1, a.c1, b.c0)};
}

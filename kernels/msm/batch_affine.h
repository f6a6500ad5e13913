// Affine additions in batches that share one inversion (Montgomery's trick): 5M + 1S an addition instead of 8M + 2S.
//
// Callers push independent pairs; a batch is worked off when full or on flush(). A result must not be read, nor used in
// a further pair, before the flush. Exceptional pairs (infinity, equal or opposite points) never enter the product.
#pragma once

#include "../curve/weierstrass.h"

template <class F>
struct AffinePair {
  const Affine<F>*left, *right;
  Affine<F>* sum;
  bool right_negative;
};

template <class F>
struct BatchAdder {
  // 1024 pairs and their products fill about 400 KiB for G1: inside L2; an inversion costs 0.09 M a pair.
  static constexpr u32 capacity = 1024;
  // Independent products: one chain would wait for each multiply's latency.
  static constexpr u32 chains = 4;

  u32 count;
  AffinePair<F> pair[capacity];
  F denominator[capacity];
  F product[capacity];  // of its chain, up to and including this pair

  // *sum = *left ± *right.
  FN void push(const Affine<F>* left, const Affine<F>* right, Affine<F>* sum, bool right_negative = false) {
    // Points come from all over memory; the batch is worked off later, when they have arrived.
    fetch(left);
    fetch(right);
    pair[count++] = {left, right, sum, right_negative};
    if (count == capacity) flush();
  }

  __attribute__((noinline)) void flush() {
    const u32 regular = collect();
    count = 0;
    if (regular == 0) return;
    F chain[chains];
    invert_chains(chain, regular);
    u32 i = regular;
    for (; i % 2 != 0; i--) finish_one(i - 1, chain);
    for (; i != 0; i -= 2) finish_two(i - 1, chain);
  }

 private:
  static constexpr u32 ahead = 6;  // pairs: a batch lies in L2, this brings it to L1 in time

  static FN void fetch(const Affine<F>* p) {
    for (u32 line = 0; line < sizeof(Affine<F>); line += 64) __builtin_prefetch((const char*)p + line);
    __builtin_prefetch((const char*)(p + 1) - 1);
  }

  // Denominators and running products of the pairs that need an inversion, moved to the front; their number.
  FN u32 collect() {
    u32 regular = 0;
    for (u32 i = 0; i < count; i++) {
      if (i + ahead < count) {
        fetch(pair[i + ahead].left);
        fetch(pair[i + ahead].right);
      }
      AffinePair<F> p = pair[i];
      F d = p.right->x.loose_minus(p.left->x);
      if (p.left->x == p.right->x || p.left->x.is_zero() || p.right->x.is_zero()) {
        if (settle(p, d)) continue;
      }
      pair[regular] = p;
      denominator[regular] = d;
      product[regular] = regular < chains ? d : product[regular - chains].loose_times(d);
      regular++;
    }
    return regular;
  }

  // True where the sum is known at once. A doubling gets its denominator and a null `right` as its mark.
  static __attribute__((noinline)) bool settle(AffinePair<F>& p, F& d) {
    const Affine<F> left = *p.left, right = p.right->negated_if(p.right_negative);
    switch (affine_case(left, right)) {
      case affine_left: *p.sum = left; return true;
      case affine_right: *p.sum = right; return true;
      case affine_cancel: *p.sum = Affine<F>::infinity(); return true;
      case affine_doubling:
        d = left.y.doubled();
        p.right = nullptr;
        return false;
      default: return false;
    }
  }

  // chain[c] = 1 / (product of chain c), from one inversion.
  FN void invert_chains(F* chain, u32 regular) {
    const u32 used = regular < chains ? regular : chains;
    F prefix[chains];
    for (u32 c = 0; c < used; c++) {
      // The last pair of chain c.
      const F& last = product[regular - 1 - (regular - 1 - c) % chains];
      prefix[c] = c == 0 ? last : prefix[c - 1] * last;
    }
    F rest = inverse(prefix[used - 1]);
    for (u32 c = used - 1; c > 0; c--) {
      chain[c] = rest * prefix[c - 1];
      rest = rest * product[regular - 1 - (regular - 1 - c) % chains];
    }
    chain[0] = rest;
  }

  FN F inverse_of(u32 i, F* chain) {
    F& c = chain[i % chains];
    if (i < chains) return c;
    const F r = c.loose_times(product[i - chains]);
    c = c.loose_times(denominator[i]);
    return r;
  }

  FN void operands(const AffinePair<F>& p, Affine<F>& left, F& right_x, F& numerator) {
    left = *p.left;
    if (p.right == nullptr) {
      right_x = left.x;
      const F square = left.x.squared();
      numerator = square.doubled() + square;
    } else {
      right_x = p.right->x;
      numerator = p.right_negative ? p.right->y.negated().loose_minus(left.y) : p.right->y.loose_minus(left.y);
    }
  }

  FN void finish_one(u32 i, F* chain) {
    Affine<F> left;
    F right_x, numerator;
    operands(pair[i], left, right_x, numerator);
    *pair[i].sum = affine_sum(left, right_x, numerator, inverse_of(i, chain));
  }

  // Pairs i and i − 1, step by step side by side: neither waits for its own last product.
  FN void finish_two(u32 i, F* chain) {
    for (u32 j = 0; j < 2 && i >= j + ahead; j++) {
      fetch(pair[i - j - ahead].left);
      if (pair[i - j - ahead].right != nullptr) fetch(pair[i - j - ahead].right);
    }
    Affine<F> p, q;
    F p_x, q_x, p_numerator, q_numerator;
    operands(pair[i], p, p_x, p_numerator);
    operands(pair[i - 1], q, q_x, q_numerator);
    const F p_inverse = inverse_of(i, chain), q_inverse = inverse_of(i - 1, chain);
    const F p_slope = p_numerator * p_inverse, q_slope = q_numerator * q_inverse;
    const F p_square = p_slope.squared(), q_square = q_slope.squared();
    Affine<F> a, b;
    a.x = p_square - p.x - p_x;
    b.x = q_square - q.x - q_x;
    a.y = p_slope * p.x.loose_minus(a.x) - p.y;
    b.y = q_slope * q.x.loose_minus(b.x) - q.y;
    *pair[i].sum = a;
    *pair[i - 1].sum = b;
  }
};

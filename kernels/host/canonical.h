// Whether words from outside are below the modulus: arithmetic takes that for granted.
#pragma once

#include "../field/fp2_host.h"

template <class P>
FN bool is_canonical(const Field<P>& x) {
  for (int i = P::limbs; i-- > 0;)
    if (x.l[i] != P::modulus[i]) return x.l[i] < P::modulus[i];
  return false;
}

FN bool is_canonical(const Fp2<Fp>& x) { return is_canonical(x.c0) && is_canonical(x.c1); }

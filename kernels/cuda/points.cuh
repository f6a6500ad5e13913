// What the kernels on points share. -DGROUP=1 for G1, 2 for G2.
#pragma once

#include "../field/fp2_ptx.cuh"
#include "../curve/weierstrass.h"
#include "tasks.h"

#if GROUP == 2
typedef Fp2<Fp> Coordinate;
#else
typedef Fp Coordinate;
#endif
typedef Affine<Coordinate> Point;
typedef Xyzz<Coordinate> Sum;

// G2 on AVX-512 IFMA. Built with options of its own: only a CPU that has the instructions may run any of it.
#include "../field/fp2_ifma.h"

typedef Fp2<Fp> Coordinate;
#define ENTRY(name) g2_##name
#include "sum_entries_ifma.h"

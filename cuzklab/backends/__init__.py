"""Where stages execute.

`native` compiles the C++ of `kernels/` on first use, whose functions `entry_points` declares; `host` is that code's
Python surface: numpy arrays in, numpy arrays out, on CPU threads; `cuda` is the same surface on a GPU. `backend` is
what the stages of a proof need of either, `choose` finds which is in force; `device` is what a live run needs of a
device, `emulated` one on the CPU.
`limbs` turns Python integers into arrays and back, `bls12_381` holds the curve's constants, `peers` reaches other
implementations that the benches and tests compare with, `registry` names what the benches have, `bench` measures,
`roofline` sets that beside what the machine can do, `trial` tries a change of a kernel.
"""

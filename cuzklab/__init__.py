"""A performance lab for GPU Groth16 proving pipelines.

A locking and memory design is a short generator program (a *policy*). The lab checks it over every interleaving,
simulates it at production scale, runs it with real kernels and real proofs, and writes a post-mortem from the trace.

Rooms, from the inside out: `units` and `stages` (sizes, times, the table of stages), `policies` (effects and the
designs that speak them), `trace` (what is recorded), `backends` and `prover` (real Groth16), the three interpreters
`check`, `simulate` and `live`, then `analysis`, `report`, and the command line `cli`.
"""

__version__ = "0.1.0"

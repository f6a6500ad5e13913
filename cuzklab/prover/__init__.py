"""Groth16 over BLS12-381: circuits, keys, the proving stages, verification.

`model` holds the plain data that the rest exchanges. `files/` reads and writes circom and snarkjs formats.
`builder`, `hash_circuit` and `porep_shaped` (with its counts in `porep_counts`) make circuits; `constraints` evaluates
them on a witness, `shape` and `statistics` measure them. `setup` makes test keys; `stages` holds the proving stages as
separate functions, which `prove` strings together; `verify` checks proofs with an existing pairing library.
"""

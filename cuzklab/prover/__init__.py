"""Groth16 over BLS12-381: circuits, keys, the proving stages, verification.

`model` holds the plain data that the rest exchanges. `files/` reads and writes the formats of circom, snarkjs and
bellman. `builder`, `hash_circuit` and `porep_shaped` (from `porep_counts`, `porep_layout`, `porep_rows`) make circuits;
`constraints` evaluates them on a witness, `shape` and `statistics` measure them. `setup` makes test keys of both
dialects; `keys` maps keys from files, `roots` tells the dialects' orders of rows apart, `keycheck` looks at every
point, `density` says which wires a query has points for. `stages` holds the proving stages as separate functions, which
`prove` strings together; `streaming` adds up points that stay in a file. `verify` and `verify_many` check proofs with
an existing pairing library (`pairing`). `bench` measures all of it beside snarkjs (`snarkjs_peer`).
"""

"""Circuit, witness, key and proof files for BLS12-381, of circom and snarkjs and of bellman.

`container` reads and writes the sections that `.r1cs`, `.wtns` and `.zkey` share; `r1cs`, `wtns` and `zkey` hold one
format each; `strict_json` reads JSON without trusting it, `proof_json` and `vk_json` hold the documents that snarkjs
exchanges, `proof_lines` many proofs a file. `params` holds bellman's keys, `proof_bytes` its compressed proofs.
`fields` knows the fields by their primes.

Readers take nothing on trust: every count is compared with the bytes that are there before anything is allocated.
What is wrong is raised as `BadInput`, one line that says where and what to do. Writers leave a whole file or none.
"""

from cuzklab.prover.files.params import read_bellman_vk, read_params, write_bellman_vk, write_params
from cuzklab.prover.files.proof_bytes import (
    NoProof,
    proof_from_bytes,
    proof_to_bytes,
    read_proof_bytes,
    write_proof_bytes,
)
from cuzklab.prover.files.proof_json import (
    read_proof,
    read_public,
    read_publics,
    write_proof,
    write_public,
    write_publics,
)
from cuzklab.prover.files.proof_lines import read_proof_lines, write_proof_lines
from cuzklab.prover.files.r1cs import R1csHeader, read_r1cs, read_r1cs_header, write_r1cs
from cuzklab.prover.files.vk_json import read_key_or_vk, read_vk, write_vk
from cuzklab.prover.files.wtns import read_witness, write_witness
from cuzklab.prover.files.zkey import read_zkey, read_zkey_vk, write_zkey

__all__ = [
    "NoProof",
    "R1csHeader",
    "proof_from_bytes",
    "proof_to_bytes",
    "read_bellman_vk",
    "read_key_or_vk",
    "read_params",
    "read_proof",
    "read_proof_bytes",
    "read_proof_lines",
    "read_public",
    "read_publics",
    "read_r1cs",
    "read_r1cs_header",
    "read_vk",
    "read_witness",
    "read_zkey",
    "read_zkey_vk",
    "write_bellman_vk",
    "write_params",
    "write_proof",
    "write_proof_bytes",
    "write_proof_lines",
    "write_public",
    "write_publics",
    "write_r1cs",
    "write_vk",
    "write_witness",
    "write_zkey",
]

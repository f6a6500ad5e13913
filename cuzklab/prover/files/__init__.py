"""Circuit, witness, key and proof files of circom and snarkjs, for BLS12-381.

`container` reads and writes the sections that `.r1cs`, `.wtns` and `.zkey` share; `r1cs`, `wtns` and `zkey` hold one
format each; `strict_json` reads JSON without trusting it, `proof_json` and `vk_json` hold the documents that snarkjs
exchanges. `elements` converts numbers to limbs and back and knows the fields by their primes.

Readers take nothing on trust: every count is compared with the bytes that are there before anything is allocated.
What is wrong is raised as `BadInput`, one line that says where and what to do. Writers leave a whole file or none.
"""

from cuzklab.prover.files.proof_json import read_proof, read_public, write_proof, write_public
from cuzklab.prover.files.r1cs import R1csHeader, read_r1cs, read_r1cs_header, write_r1cs
from cuzklab.prover.files.vk_json import read_key_or_vk, read_vk, write_vk
from cuzklab.prover.files.wtns import read_witness, write_witness
from cuzklab.prover.files.zkey import read_zkey, read_zkey_vk, write_zkey

__all__ = [
    "R1csHeader",
    "read_key_or_vk",
    "read_proof",
    "read_public",
    "read_r1cs",
    "read_r1cs_header",
    "read_vk",
    "read_witness",
    "read_zkey",
    "read_zkey_vk",
    "write_proof",
    "write_public",
    "write_r1cs",
    "write_vk",
    "write_witness",
    "write_zkey",
]

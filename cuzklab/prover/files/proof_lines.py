"""Many proofs in one file: JSON Lines, on each line what `snarkjs.groth16.fullProve` returns.

That is an object with `proof`, as in a proof's own file, and `publicSignals`, its public values.
"""

import json
import os
from collections.abc import Iterable, Iterator

import numpy as np

from cuzklab.atomic import atomic_write
from cuzklab.errors import BadInput
from cuzklab.prover.files.container import open_regular, printable
from cuzklab.prover.files.proof_json import proof_document, proof_of, public_document, public_of
from cuzklab.prover.files.strict_json import Document
from cuzklab.prover.model import Proof

_MAXIMUM_LINE_BYTES = 64 << 20


def read_proof_lines(path: str | os.PathLike) -> Iterator[tuple[int, Proof, np.ndarray]]:
    """Read proofs with their public values, one after the other.

    Yields
    ------
    line : int
        From 1; empty lines are passed over.
    proof : Proof
    public : (n, 4) uint64

    Raises
    ------
    BadInput
        A line that is not such an object, or longer than 64 MiB; no line at all.
    """
    file, number, found = printable(path), 0, False
    with open_regular(path) as handle:
        while line := handle.readline(_MAXIMUM_LINE_BYTES + 1):
            number += 1
            if len(line) > _MAXIMUM_LINE_BYTES:
                raise BadInput(
                    f"{file}: line {number} is longer than {_MAXIMUM_LINE_BYTES} bytes; write one proof a line"
                )
            if not line.strip():
                continue
            found = True
            document = Document.of_bytes(f"{file}: line {number}", line)
            public = public_of(document, document.field("publicSignals"), "publicSignals")
            yield number, proof_of(document.part(document.field("proof"), "proof")), public
    if not found:
        raise BadInput(f"{file}: holds no proof; write one a line, as an object with proof and publicSignals")


def write_proof_lines(path: str | os.PathLike, proofs: Iterable[tuple[Proof, np.ndarray]]) -> None:
    """Write proofs with their public values, (n, 4) uint64."""
    with atomic_write(path, "w") as file:
        for proof, public in proofs:
            value = {"proof": proof_document(proof), "publicSignals": public_document(public)}
            file.write(json.dumps(value, separators=(",", ":")) + "\n")

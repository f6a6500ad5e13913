"""Proofs and public values as JSON, the way snarkjs writes and reads them."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from cuzklab.atomic import atomic_write
from cuzklab.backends.limbs import ints_to_limbs, limbs_to_ints
from cuzklab.prover.files.strict_json import Document, dump, g1_json, g2_json
from cuzklab.prover.model import Proof

_MAXIMUM_PROOF_BYTES = 64 << 10
_MAXIMUM_PUBLIC_BYTES = 64 << 20


def read_proof(path: str | os.PathLike) -> Proof:
    """Read a proof. Whether its points lie on the curve is for `verify` to say.

    Raises
    ------
    BadInput
        Not JSON of this shape, another protocol or curve, a number that is not canonical or not below the modulus.
    """
    return proof_of(Document(path, _MAXIMUM_PROOF_BYTES))


def proof_of(document: Document) -> Proof:
    """The proof in a document."""
    document.require_groth16()
    return Proof(
        document.g1(document.field("pi_a"), "pi_a"),
        document.g2(document.field("pi_b"), "pi_b"),
        document.g1(document.field("pi_c"), "pi_c"),
    )


def proof_document(proof: Proof) -> dict:
    """What `write_proof` writes."""
    return {
        "pi_a": g1_json(proof.a),
        "pi_b": g2_json(proof.b),
        "pi_c": g1_json(proof.c),
        "protocol": "groth16",
        "curve": "bls12381",
    }


def write_proof(path: str | os.PathLike, proof: Proof) -> None:
    """Write a proof as `snarkjs groth16 prove` does, byte for byte."""
    with atomic_write(path, "w") as file:
        file.write(dump(proof_document(proof)))


def read_public(path: str | os.PathLike) -> np.ndarray:
    """Read public values, at most about 800,000.

    Returns
    -------
    (n, 4) uint64
        Plain integers below 2^256. Whether they are below r is for `verify` to say: a proof with other values is
        invalid, not unreadable.

    Raises
    ------
    BadInput
        Not a list of canonical decimal strings.
    """
    document = Document(path, _MAXIMUM_PUBLIC_BYTES)
    return public_of(document, document.root, "")


def public_of(document: Document, value: Any, where: str) -> np.ndarray:
    """The public values in a list of a document."""
    values = [
        document.integer(item, f"{where}[{i}]", 1 << 256, "2^256")
        for i, item in enumerate(document.items(value, where))
    ]
    return ints_to_limbs(values, 4)


def read_publics(path: str | os.PathLike) -> list[np.ndarray]:
    """Read the public values of several proofs: a list of lists. One proof's list is taken, too."""
    document = Document(path, _MAXIMUM_PUBLIC_BYTES)
    items = document.items(document.root, "")
    if not any(isinstance(item, list) for item in items):
        return [public_of(document, items, "")]
    return [public_of(document, item, f"[{i}]") for i, item in enumerate(items)]


def public_document(public: np.ndarray) -> list[str]:
    """What `write_public` writes."""
    return [str(value) for value in limbs_to_ints(public)]


def write_public(path: str | os.PathLike, public: np.ndarray) -> None:
    """Write public values, (n, 4) uint64 plain (wires 1 … public of a witness), as snarkjs does."""
    with atomic_write(path, "w") as file:
        file.write(dump(public_document(public)))


def write_publics(path: str | os.PathLike, publics: Sequence[np.ndarray]) -> None:
    """Write the public values of several proofs as a list of lists."""
    with atomic_write(path, "w") as file:
        file.write(dump([public_document(public) for public in publics]))

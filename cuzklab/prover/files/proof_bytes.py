"""Proofs of bellman and Filecoin: A, B, C compressed, 192 bytes, any number of them one after the other.

A compressed point is its x, big-endian and plain, 48 bytes in G1, 96 in G2 with c1 first. The first byte carries three
flags: 0x80 compressed, always set; 0x40 infinity, which no proof holds; 0x20 set where y is the larger of y and −y
(in Fp2: by c1, or by c0 where c1 is 0).
"""

import os
from collections.abc import Sequence

import numpy as np
from py_arkworks_bls12381 import G1Point, G2Point

from cuzklab.atomic import atomic_write
from cuzklab.backends.bls12_381 import FP_MODULUS
from cuzklab.backends.limbs import coordinates_to_limbs, limbs_to_coordinates
from cuzklab.errors import BadInput
from cuzklab.prover.files.container import open_regular, printable
from cuzklab.prover.model import Proof

PROOF_BYTES = 192
_POINTS = (("A", 0, 48), ("B", 48, 96), ("C", 144, 48))
_MAXIMUM_FILE_BYTES = 1 << 30


class NoProof(ValueError):
    """Bytes that are no compressed proof: the message says which point and why."""


def proof_to_bytes(proof: Proof) -> bytes:
    """A proof as 192 bytes.

    Raises
    ------
    ValueError
        A point is at infinity, which this form does not hold.
    """
    return b"".join(map(_compressed, (proof.a, proof.b, proof.c)))


def proof_from_bytes(raw: bytes) -> Proof:
    """The proof in 192 bytes. That its points lie in their subgroups is for `verify` to say.

    Raises
    ------
    NoProof
        Not 192 bytes, a missing or wrong flag, a coordinate that is not below the modulus, an x of no point.
    """
    if len(raw) != PROOF_BYTES:
        raise NoProof(f"{len(raw)} bytes, a compressed proof has {PROOF_BYTES}")
    return Proof(*(_decompressed(raw[at : at + size], name) for name, at, size in _POINTS))


def read_proof_bytes(path: str | os.PathLike) -> list[bytes]:
    """Read a file of compressed proofs, at most about five million; `proof_from_bytes` decodes each.

    Raises
    ------
    BadInput
        The size is no multiple of 192 bytes, or nothing.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MAXIMUM_FILE_BYTES:
            raise BadInput(f"{printable(path)}: larger than {_MAXIMUM_FILE_BYTES} bytes; split the file")
        raw = file.read()
    if not raw or len(raw) % PROOF_BYTES:
        raise BadInput(
            f"{printable(path)}: {len(raw)} bytes, compressed proofs have {PROOF_BYTES} each; the file is cut short, "
            "or holds something else"
        )
    return [raw[at : at + PROOF_BYTES] for at in range(0, len(raw), PROOF_BYTES)]


def write_proof_bytes(path: str | os.PathLike, proofs: Sequence[Proof]) -> None:
    """Write proofs one after the other, as Filecoin joins those of a sector's partitions."""
    with atomic_write(path) as file:
        for proof in proofs:
            file.write(proof_to_bytes(proof))


def _compressed(point: np.ndarray) -> bytes:
    if not point.any():
        raise ValueError("a point of the proof is at infinity, which the compressed form of proofs does not hold")
    numbers = limbs_to_coordinates(point)
    x, y = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
    raw = bytearray(b"".join(number.to_bytes(48, "big") for number in reversed(x)))
    raw[0] |= 0x80 | (0x20 if _is_larger(y) else 0)
    return bytes(raw)


def _is_larger(y: Sequence[int]) -> bool:
    """Whether y is larger than −y, by its highest coordinate that is not 0."""
    highest = next((number for number in reversed(y) if number), 0)
    return 2 * highest > FP_MODULUS


def _decompressed(raw: bytes, name: str) -> np.ndarray:
    if not raw[0] & 0x80:
        raise NoProof(f"point {name} of the proof is not marked as compressed")
    if raw[0] & 0x40:
        raise NoProof(f"point {name} of the proof is at infinity")
    plain = bytes([raw[0] & 0x1F]) + raw[1:]
    if any(int.from_bytes(plain[at : at + 48], "big") >= FP_MODULUS for at in range(0, len(plain), 48)):
        raise NoProof(f"point {name} of the proof has a coordinate that is not below the modulus")
    kind = G1Point if len(raw) == 48 else G2Point
    try:
        point = kind.from_compressed_bytes_unchecked(raw)
    except ValueError:
        raise NoProof(f"point {name} of the proof: its x is that of no point on the curve") from None
    found = bytes(point.to_xy_bytes_le())
    limbs = coordinates_to_limbs(int.from_bytes(found[at : at + 48], "little") for at in range(0, len(found), 48))
    # The library's own idea of flags and order does not matter: what comes back must be what went in.
    if _compressed(limbs) != raw:
        raise NoProof(f"point {name} of the proof is not encoded in the canonical way")
    return limbs

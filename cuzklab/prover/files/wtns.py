"""Witness files (`.wtns`): the value of each wire."""

import os
import struct

import numpy as np

from cuzklab.atomic import atomic_write
from cuzklab.backends.bls12_381 import FR_MODULUS
from cuzklab.prover.files.container import read_container, require_section, write_container
from cuzklab.prover.files.fields import FR_BYTES, first_not_below

_NAMES = {1: "header", 2: "values"}
_MAGIC, _VERSION = b"wtns", 2


def read_witness(path: str | os.PathLike) -> np.ndarray:
    """Read a circom or snarkjs witness.

    Parameters
    ----------
    path : path
        A `.wtns` file of version 2, also inside an `.xz` (up to 4 GiB unpacked).

    Returns
    -------
    (wires, 4) uint64
        Plain integers below r; the first is 1.

    Raises
    ------
    BadInput
        Not such a file, another field, sizes that do not agree, a value that is not below r, a first value other
        than 1.
    """
    sections = read_container(path, _MAGIC, _VERSION, _NAMES, packed=True)
    header = require_section(sections, 1, _NAMES, path)
    at = header.require_prime(0, FR_MODULUS, FR_BYTES, "compile the circuit with --prime bls12381")
    header.require(at + 4, "a modulus and a count")
    count = header.u32(at)
    values = require_section(sections, 2, _NAMES, path)
    values.require(count * FR_BYTES, f"{count} values")
    # Copied: 32 bytes a wire, and the file seldom puts them on a multiple of 8.
    witness = values.array("<u8", (count, 4)).copy()
    bad = first_not_below(witness, FR_MODULUS)
    if bad >= 0:
        raise values.bad(f"value {bad} is not below r", "compute the witness again", bad * FR_BYTES)
    if count == 0 or witness[0].tolist() != [1, 0, 0, 0]:
        raise values.bad("value 0, the constant one, is not 1", "compute the witness again")
    return witness


def write_witness(path: str | os.PathLike, witness: np.ndarray) -> None:
    """Write a witness, (wires, 4) uint64, plain integers below r, as circom and snarkjs do."""
    witness = np.ascontiguousarray(witness, dtype="<u8")
    if witness.ndim != 2 or witness.shape[1] != 4:
        raise ValueError(f"a witness has shape (wires, 4), not {witness.shape}")
    header = struct.pack("<I", FR_BYTES) + FR_MODULUS.to_bytes(FR_BYTES, "little") + struct.pack("<I", len(witness))
    with atomic_write(path) as file:
        write_container(file, _MAGIC, _VERSION, [(1, len(header), [header]), (2, witness.nbytes, [witness])])

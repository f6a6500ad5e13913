"""Verification keys as JSON, the way snarkjs writes and reads them."""

import os

import numpy as np

from cuzklab.atomic import atomic_write
from cuzklab.prover.files.container import open_regular
from cuzklab.prover.files.params import read_bellman_vk
from cuzklab.prover.files.strict_json import Document, dump, g1_json, g2_json, shown
from cuzklab.prover.files.zkey import read_zkey_vk
from cuzklab.prover.model import VerifyingKey

_MAXIMUM_BYTES = 256 << 20


def read_vk(path: str | os.PathLike) -> VerifyingKey:
    """Read a verification key. `vk_alphabeta_12`, which follows from the rest, is not looked at.

    Raises
    ------
    BadInput
        Not JSON of this shape, another protocol or curve, a number that is not canonical or not below the modulus,
        IC of another length than nPublic + 1.
    """
    document = Document(path, _MAXIMUM_BYTES)
    document.require_groth16()
    public, ic = document.field("nPublic"), document.items(document.field("IC"), "IC")
    if isinstance(public, bool) or not isinstance(public, int) or not 0 <= public == len(ic) - 1:
        raise document.bad("nPublic", f"{shown(public)}, but IC has {len(ic)} points, one more than public values")
    return VerifyingKey(
        document.g1(document.field("vk_alpha_1"), "vk_alpha_1"),
        document.g2(document.field("vk_beta_2"), "vk_beta_2"),
        document.g2(document.field("vk_gamma_2"), "vk_gamma_2"),
        document.g2(document.field("vk_delta_2"), "vk_delta_2"),
        np.stack([document.g1(point, f"IC[{i}]") for i, point in enumerate(ic)]),
    )


def vk_document(vk: VerifyingKey) -> dict:
    """What `write_vk` writes: all that snarkjs reads when it verifies.

    `vk_alphabeta_12`, the pairing of alpha and beta that snarkjs adds, is left out: no verifier reads it.
    """
    return {
        "protocol": "groth16",
        "curve": "bls12381",
        "nPublic": len(vk.ic) - 1,
        "vk_alpha_1": g1_json(vk.alpha_g1),
        "vk_beta_2": g2_json(vk.beta_g2),
        "vk_gamma_2": g2_json(vk.gamma_g2),
        "vk_delta_2": g2_json(vk.delta_g2),
        "IC": [g1_json(point) for point in vk.ic],
    }


def write_vk(path: str | os.PathLike, vk: VerifyingKey) -> None:
    """Write a verification key for `snarkjs groth16 verify` and `read_vk`."""
    with atomic_write(path, "w") as file:
        file.write(dump(vk_document(vk)))


def read_key_or_vk(path: str | os.PathLike) -> VerifyingKey:
    """Read what a verifier needs, whichever the file is: a verification key (JSON, `.vk`) or a proving key (`.zkey`,
    `.params`)."""
    with open_regular(path) as file:
        start = file.read(64)
    if start[:4] == b"zkey":
        return read_zkey_vk(path)
    # An encoded point is no text; a file that is too short for one is left to the reader of JSON.
    is_text = all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in start)
    return read_vk(path) if is_text else read_bellman_vk(path)

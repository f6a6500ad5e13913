"""Constraint systems evaluated with Python's integers, row by row: what the library's own evaluation is judged by."""

import itertools

import numpy as np

from cuzklab.prover.model import ConstraintSystem, SparseMatrix

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


def integers(limbs) -> list[int]:
    """The integers in an (n, limbs) uint64 array."""
    raw, width = limbs.tobytes(), 8 * limbs.shape[1]
    return [int.from_bytes(raw[at : at + width], "little") for at in range(0, len(raw), width)]


def limbs(values: list[int]):
    return np.frombuffer(b"".join(v.to_bytes(32, "little") for v in values), np.uint64).reshape(-1, 4).copy()


def products(matrix: SparseMatrix, witness: list[int]) -> list[int]:
    """matrix · witness mod r."""
    values, wires, starts = integers(matrix.value), matrix.wire.tolist(), matrix.row_start.tolist()
    return [
        sum(values[k] * witness[wires[k]] for k in range(start, end)) % R for start, end in itertools.pairwise(starts)
    ]


def unsatisfied(system: ConstraintSystem, witness) -> list[int]:
    """Numbers of the constraints that a witness, (wires, 4) uint64 or integers, does not satisfy."""
    values = witness if isinstance(witness, list) else integers(witness)
    a, b, c = (products(matrix, values) for matrix in (system.a, system.b, system.c))
    return [i for i, (x, y, z) in enumerate(zip(a, b, c, strict=True)) if (x * y - z) % R]

"""Evaluation of constraints on a witness.

Coefficients that are stored multiplied by R² (R = 2^256) and multiplied in Montgomery's way by plain witness values
give Montgomery form at once: v·R² · w / R = v·w·R. Keys hold them so; `compiled` makes them from a constraint system.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cuzklab.backends import host
from cuzklab.errors import BadInput
from cuzklab.prover.files.fields import first_not_below
from cuzklab.prover.model import ConstraintSystem, ProvingKey, SparseMatrix


@dataclass(frozen=True)
class CompiledConstraints:
    """Matrices ready for evaluation: coefficients times R².

    Attributes
    ----------
    a, b : SparseMatrix
        The constraints' rows; A may have one more for each public wire, as keys do.
    c : SparseMatrix or None
        None where only a key is known, which does not hold it: C·w is then taken to be (A·w) ∘ (B·w).
    """

    a: SparseMatrix
    b: SparseMatrix
    c: SparseMatrix | None

    @property
    def rows(self) -> int:
        return max(self.a.rows, self.b.rows, self.c.rows if self.c else 0)

    @property
    def nonzeros(self) -> int:
        return self.a.nonzeros + self.b.nonzeros + (self.c.nonzeros if self.c else 0)


@dataclass(frozen=True)
class Evaluations:
    """a = A·w, b = B·w, c = C·w, each (rows, 4) uint64 in Montgomery form."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.a.nbytes + self.b.nbytes + self.c.nbytes


def compiled(source: ConstraintSystem | ProvingKey) -> CompiledConstraints:
    """The matrices of a constraint system with a key's extra rows, or those of a key, ready for evaluation."""
    if isinstance(source, ProvingKey):
        return CompiledConstraints(source.a, source.b, None)
    a, b, c = (_times_r_squared(matrix) for matrix in (with_public_rows(source), source.b, source.c))
    return CompiledConstraints(a, b, c)


def with_public_rows(system: ConstraintSystem) -> SparseMatrix:
    """A with a row 1 · wire more for the constant one and each public wire, so that no polynomial of theirs is zero."""
    count = 1 + system.public
    one = host.ints_to_limbs([1], limbs=4)
    return SparseMatrix(
        np.concatenate((system.a.row_start, system.a.nonzeros + np.arange(1, count + 1))),
        np.concatenate((system.a.wire, np.arange(count, dtype=np.uint32))),
        np.concatenate((system.a.value, np.repeat(one, count, axis=0))),
    )


def _times_r_squared(matrix: SparseMatrix) -> SparseMatrix:
    return replace(matrix, value=host.fr_to_montgomery(host.fr_to_montgomery(matrix.value)))


def evaluate(
    constraints: CompiledConstraints,
    witness: np.ndarray,
    *,
    threads: int | None = None,
    empty: Callable[..., np.ndarray] | None = None,
) -> Evaluations:
    """The three vectors of a witness, shape (wires, 4), plain; missing rows of a matrix count as zero.

    `empty` (rows, 4) makes the arrays that the vectors lie in, where that matters.
    """

    def placed(values: np.ndarray) -> np.ndarray:
        if empty is None and len(values) == constraints.rows:
            return values
        target = (empty or _empty)(constraints.rows, 4)
        target[: len(values)] = values
        target[len(values) :] = 0
        return target

    def product(matrix: SparseMatrix) -> np.ndarray:
        return placed(host.spmv(matrix.row_start, matrix.wire, matrix.value, witness, threads=threads))

    a, b = product(constraints.a), product(constraints.b)
    return Evaluations(a, b, product(constraints.c) if constraints.c else placed(host.fr_mul(a, b)))


def _empty(*shape: int) -> np.ndarray:
    return np.empty(shape, np.uint64)


def check_witness_form(witness: np.ndarray, wires: int) -> None:
    """Refuse a witness that is none for a circuit of so many wires, whatever the constraints say.

    Raises
    ------
    BadInput
        Wrong number of values, a first value other than 1, a value that is not below r.
    """
    if witness.shape != (wires, 4):
        raise BadInput(f"witness: {len(witness)} values for a circuit of {wires} wires; it belongs to another circuit")
    if witness[0].tolist() != [1, 0, 0, 0]:
        raise BadInput("witness: value 0 must be the constant 1")
    wrong = first_not_below(witness, host.FR_MODULUS)
    if wrong >= 0:
        raise BadInput(f"witness: value {wrong} is not below the scalar field's prime")


def check_witness(system: ConstraintSystem, witness: np.ndarray, *, threads: int | None = None) -> None:
    """Make sure that a witness satisfies all constraints.

    Raises
    ------
    BadInput
        It does not; the message names the first constraint that does not hold, counted from 0.
    """
    check_witness_form(witness, system.wires)
    values = evaluate(compiled(system), witness, threads=threads)
    wrong = np.flatnonzero((host.fr_mul(values.a, values.b) != values.c).any(axis=1))
    if len(wrong):
        others = f" ({len(wrong)} do not)" if len(wrong) > 1 else ""
        raise BadInput(f"witness: constraint {wrong[0]} of {system.constraints} does not hold{others}")

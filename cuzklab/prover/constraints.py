"""Evaluation of constraints on a witness.

Coefficients that are stored multiplied by R² (R = 2^256) and multiplied in Montgomery's way by plain witness values
give Montgomery form at once: v·R² · w / R = v·w·R. Keys hold them so; `compiled` makes them from a constraint system.
"""

import bisect
import itertools
from dataclasses import dataclass, replace

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.host.parallel import ranges, run_ranges, thread_count
from cuzklab.backends.native import load
from cuzklab.errors import BadInput
from cuzklab.prover.files.fields import first_not_below
from cuzklab.prover.model import ConstraintSystem, ProvingKey, SparseMatrix

_RECORD = np.dtype([("matrix", "<u4"), ("row", "<u4"), ("wire", "<u4"), ("value", "<u8", (4,))])


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
class MappedConstraints:
    """The matrices of a key as its mapped file holds them: records, evaluated where they lie.

    Attributes
    ----------
    records : (nonzeros, 44) uint8
        u32 matrix (0 = A, 1 = B), u32 row, u32 wire, 32-byte coefficient times R²; checked by the file's reader.
    rows : int
    ascending : bool
        Records are in order of rows, as snarkjs writes them, so that threads may share them.
    """

    records: np.ndarray
    rows: int
    ascending: bool

    @property
    def nonzeros(self) -> int:
        return len(self.records)

    def entries_of_b(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row, wire and coefficient (times R²) of every entry of B, copied."""
        records = self.records.view(_RECORD).reshape(-1)
        mine = np.flatnonzero(records["matrix"] == 1)
        return records["row"][mine], records["wire"][mine], records["value"][mine]

    def add_products(self, witness: np.ndarray, a: np.ndarray, b: np.ndarray, threads: int | None) -> None:
        """Add A·w to `a` and B·w to `b`, (rows, 4) each."""
        native = load().library

        def work(begin: int, end: int) -> None:
            native.fr_record_products(
                self.records.ctypes.data, begin, end, witness.ctypes.data, a.ctypes.data, b.ctypes.data
            )

        threads = thread_count(threads) if self.ascending else 1
        row = self.records.view(_RECORD).reshape(-1)["row"]
        # A row's records stay together: two threads must not add to one row.
        cuts = {bisect.bisect_left(row, row[first]) for first, _ in ranges(len(row), 4 * threads) if first}
        edges = sorted({0, len(row), *cuts}) if threads > 1 else [0, len(row)]
        run_ranges(work, itertools.pairwise(edges), threads)


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


def densities(system: ConstraintSystem) -> tuple[np.ndarray, np.ndarray]:
    """The wires that A's and B's queries have points for in bellman's keys, ascending, uint32.

    Those are the wires with a coefficient that is not zero; A has all public wires, because of the extra rows.
    """

    def occurring(matrix: SparseMatrix) -> np.ndarray:
        occurs = np.zeros(system.wires, bool)
        occurs[matrix.wire[matrix.value.any(axis=1)]] = True
        return occurs

    in_a, in_b = occurring(system.a), occurring(system.b)
    in_a[: 1 + system.public] = True
    return np.flatnonzero(in_a).astype(np.uint32), np.flatnonzero(in_b).astype(np.uint32)


def _times_r_squared(matrix: SparseMatrix) -> SparseMatrix:
    return replace(matrix, value=host.fr_to_montgomery(host.fr_to_montgomery(matrix.value)))


def evaluate(
    constraints: CompiledConstraints | MappedConstraints,
    witness: np.ndarray,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> Evaluations:
    """The three vectors of a witness, shape (wires, 4), plain; missing rows of a matrix count as zero.

    With `out`, three arrays of at least `rows` rows, they are written there, zeros below them; the result has views.
    """
    rows = constraints.rows
    if out is None:
        out = tuple(np.empty((rows, 4), np.uint64) for _ in range(3))
    a, b, c = (array[:rows] for array in out)
    if isinstance(constraints, MappedConstraints):
        a[:], b[:] = 0, 0
        constraints.add_products(witness, a, b, threads)
        host.fr_mul(a, b, out=c)
    else:
        for matrix, vector in ((constraints.a, a), (constraints.b, b), (constraints.c, c)):
            if matrix is None:
                host.fr_mul(a, b, out=c)
                continue
            vector[matrix.rows :] = 0
            host.spmv(
                matrix.row_start, matrix.wire, matrix.value, witness, out=vector[: matrix.rows], threads=threads
            )  # fmt: skip
    for array in out:
        array[rows:] = 0
    return Evaluations(a, b, c)


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

"""Evaluation of constraints on a witness.

Coefficients that are stored multiplied by R² (R = 2^256) and multiplied in Montgomery's way by plain witness values
give Montgomery form at once: v·R² · w / R = v·w·R. Keys hold them so; `compiled` makes them from a constraint system.
"""

import bisect
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.host.parallel import ranges, run_ranges, thread_count
from cuzklab.backends.native import load
from cuzklab.errors import BadInput
from cuzklab.prover.files.fields import first_not_below
from cuzklab.prover.model import CodedMatrix, ConstraintSystem, Matrix, ProvingKey, SparseMatrix

_RECORD = np.dtype([("matrix", "<u4"), ("row", "<u4"), ("wire", "<u4"), ("value", "<u8", (4,))])


Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Row, wire and coefficient of entries of a matrix."""


class Constraints(Protocol):
    """What synthesis evaluates, in whatever form it lies in memory or in a file."""

    @property
    def rows(self) -> int: ...

    @property
    def nonzeros(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def evaluate(self, witness: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, threads: int | None) -> None:
        """Write A·w, B·w and C·w in Montgomery form, (rows, 4) each, for a plain witness."""
        ...

    def entries_of_b(self) -> Entries:
        """All entries of B; coefficients may carry one factor, the same for all."""
        ...


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

    a: Matrix
    b: Matrix
    c: Matrix | None

    @property
    def rows(self) -> int:
        return max(self.a.rows, self.b.rows, self.c.rows if self.c else 0)

    @property
    def nonzeros(self) -> int:
        return self.a.nonzeros + self.b.nonzeros + (self.c.nonzeros if self.c else 0)

    @property
    def nbytes(self) -> int:
        return self.a.nbytes + self.b.nbytes + (self.c.nbytes if self.c else 0)

    def evaluate(self, witness: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, threads: int | None) -> None:
        _product(self.a, witness, a, threads)
        _product(self.b, witness, b, threads)
        if self.c is None:
            host.fr_mul(a, b, out=c)
        else:
            _product(self.c, witness, c, threads)

    def entries_of_b(self) -> Entries:
        return _entries(self.b)


@dataclass(frozen=True)
class CircuitConstraints:
    """A constraint system as it is, with a key's extra rows.

    There is no second copy of the matrices: where they have a coefficient an entry, the witness is multiplied by R²,
    not these.
    """

    system: ConstraintSystem

    @property
    def rows(self) -> int:
        return self.system.constraints + 1 + self.system.public

    @property
    def nonzeros(self) -> int:
        return sum(matrix.nonzeros for matrix in (self.system.a, self.system.b, self.system.c)) + 1 + self.system.public

    @property
    def nbytes(self) -> int:
        return sum(matrix.nbytes for matrix in (self.system.a, self.system.b, self.system.c))

    def evaluate(self, witness: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, threads: int | None) -> None:
        system, scaled = self.system, None
        a[system.constraints :] = host.fr_to_montgomery(witness[: 1 + system.public])
        for matrix, out in ((system.a, a[: system.a.rows]), (system.b, b), (system.c, c)):
            if isinstance(matrix, CodedMatrix):
                _product(matrix.with_coefficients(_times_r_squared), witness, out, threads)
                continue
            if scaled is None:
                scaled = host.fr_to_montgomery(host.fr_to_montgomery(witness))
            _product(matrix, scaled, out, threads)

    def entries_of_b(self) -> Entries:
        return _entries(self.system.b)


def _product(matrix: Matrix, witness: np.ndarray, out: np.ndarray, threads: int | None) -> None:
    """matrix · witness to the first rows of `out`, zeros below."""
    out[matrix.rows :] = 0
    if isinstance(matrix, CodedMatrix):
        host.spmv_coded(
            matrix.row_start,
            matrix.wire,
            matrix.number,
            matrix.values,
            witness,
            out=out[: matrix.rows],
            threads=threads,
        )
        return
    host.spmv(matrix.row_start, matrix.wire, matrix.value, witness, out=out[: matrix.rows], threads=threads)


def _entries(matrix: Matrix) -> Entries:
    return np.repeat(np.arange(matrix.rows), np.diff(matrix.row_start)), matrix.wire, matrix.value


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

    @property
    def nbytes(self) -> int:
        return self.records.nbytes

    def evaluate(self, witness: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, threads: int | None) -> None:
        a[:], b[:] = 0, 0
        native = load().library

        def work(begin: int, end: int) -> None:
            bad = native.fr_record_products(
                self.records.ctypes.data, begin, end, witness.ctypes.data, len(a), len(witness), a.ctypes.data,
                b.ctypes.data,
            )  # fmt: skip
            if bad >= 0:
                raise BadInput(
                    f"key: record {bad} of its coefficients has changed since the key was opened; open it anew"
                )

        threads = thread_count(threads) if self.ascending else 1
        row = self.records.view(_RECORD).reshape(-1)["row"]
        # A row's records stay together: two threads must not add to one row.
        cuts = {bisect.bisect_left(row, row[first]) for first, _ in ranges(len(row), 4 * threads) if first}
        edges = sorted({0, len(row), *cuts}) if threads > 1 else [0, len(row)]
        run_ranges(work, itertools.pairwise(edges), threads)
        host.fr_mul(a, b, out=c)

    def entries_of_b(self) -> Entries:
        records = self.records.view(_RECORD).reshape(-1)
        mine = np.flatnonzero(records["matrix"] == 1)
        return records["row"][mine], records["wire"][mine], records["value"][mine]


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
    a, b, c = (matrix.with_coefficients(_times_r_squared) for matrix in (with_public_rows(source), source.b, source.c))
    return CompiledConstraints(a, b, c)


def with_public_rows(system: ConstraintSystem) -> Matrix:
    """A with a row 1 · wire more for the constant one and each public wire, so that no polynomial of theirs is zero."""
    count, a = 1 + system.public, system.a
    one = host.ints_to_limbs([1], limbs=4)
    row_start = np.concatenate((a.row_start, a.nonzeros + np.arange(1, count + 1)))
    wire = np.concatenate((a.wire, np.arange(count, dtype=np.uint32)))
    if isinstance(a, CodedMatrix):
        number = np.concatenate((a.number, np.full(count, len(a.values), np.uint32)))
        return CodedMatrix(row_start, wire, number, np.concatenate((a.values, one)))
    return SparseMatrix(row_start, wire, np.concatenate((a.value, np.repeat(one, count, axis=0))))


def densities(system: ConstraintSystem) -> tuple[np.ndarray, np.ndarray]:
    """The wires that A's and B's queries have points for in bellman's keys, ascending, uint32.

    Those are the wires with a coefficient that is not zero; A has all public wires, because of the extra rows.
    """

    def occurring(matrix: Matrix) -> np.ndarray:
        occurs = np.zeros(system.wires, bool)
        occurs[matrix.wire[matrix.value.any(axis=1)]] = True
        return occurs

    in_a, in_b = occurring(system.a), occurring(system.b)
    in_a[: 1 + system.public] = True
    return np.flatnonzero(in_a).astype(np.uint32), np.flatnonzero(in_b).astype(np.uint32)


def _times_r_squared(values: np.ndarray) -> np.ndarray:
    return host.fr_to_montgomery(host.fr_to_montgomery(values))


def evaluate(
    constraints: Constraints,
    witness: np.ndarray,
    *,
    out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    empty: Callable[..., np.ndarray] | None = None,
    threads: int | None = None,
) -> Evaluations:
    """The three vectors of a witness, shape (wires, 4), plain; missing rows of a matrix count as zero.

    With `out`, three arrays of at least `rows` rows, they are written there, zeros below them; the result has views.
    Without, `empty` (rows, 4) makes the arrays that they lie in, where that matters.
    """
    rows = constraints.rows
    if out is None:
        out = tuple((empty or _empty)(rows, 4) for _ in range(3))
    a, b, c = (array[:rows] for array in out)
    constraints.evaluate(witness, a, b, c, threads)
    for array in out:
        array[rows:] = 0
    return Evaluations(a, b, c)


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

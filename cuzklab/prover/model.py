"""The plain data of Groth16: constraint systems, witnesses, keys and proofs.

Arrays are C-contiguous and little-endian. A field element of Fr is 4 limbs of 64 bits, of Fp 6; a G1 point is x‖y
(12 limbs), a G2 point x.c0‖x.c1‖y.c0‖y.c1 (24 limbs), affine, in Montgomery form (R = 2^384), infinity all zeros:
the bytes of snarkjs files. Scalars are plain integers below r unless a name ends in ``_montgomery``.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Literal, Protocol

import numpy as np

Group = Literal["g1", "g2"]
Dialect = Literal["snarkjs", "bellman"]
"""Whose files and conventions: which root of unity orders the rows, and which basis the H query has."""


class Points(Protocol):
    """Points that lie in a mapped file, in whatever form; they become an array a piece at a time."""

    @property
    def group(self) -> Group: ...

    def __len__(self) -> int: ...

    def take(self, indices: np.ndarray, out: np.ndarray) -> None:
        """Write points `indices`, (m,) uint32, to `out`, (m, 12) or (m, 24) uint64 in Montgomery form.

        Called by several threads at once. Raises BadInput for what is no point's encoding.
        """
        ...

    def bad(self, index: int, what: str) -> Exception:
        """The error for something wrong with a point of this index."""
        ...


@dataclass(frozen=True)
class CompressedRows:
    """Which entries of a matrix are not zero.

    Attributes
    ----------
    row_start : (rows + 1,) int64
        Row i holds the entries row_start[i] … row_start[i + 1] − 1.
    wire : (nonzeros,) uint32
        Column of an entry.
    """

    row_start: np.ndarray
    wire: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.row_start) - 1

    @property
    def nonzeros(self) -> int:
        return len(self.wire)

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""
        return sum(getattr(self, array.name).nbytes for array in fields(self))


@dataclass(frozen=True)
class SparseMatrix(CompressedRows):
    """A matrix over Fr in compressed rows.

    Attributes
    ----------
    value : (nonzeros, 4) uint64
        The coefficient of an entry, plain.
    """

    value: np.ndarray

    def with_coefficients(self, change: Callable[[np.ndarray], np.ndarray]) -> "SparseMatrix":
        """The matrix with other coefficients: `change` takes and gives (m, 4), element by element."""
        return replace(self, value=change(self.value))


@dataclass(frozen=True)
class CodedMatrix(CompressedRows):
    """A sparse matrix of few different coefficients: an entry has a number, which a table gives a value.

    Attributes
    ----------
    number : (nonzeros,) uint32
    values : (m, 4) uint64
        Coefficients by their number, plain.
    """

    number: np.ndarray
    values: np.ndarray

    @property
    def value(self) -> np.ndarray:
        """The coefficient of each entry, as a `SparseMatrix` holds it; made anew each time."""
        return self.values[self.number]

    def plain(self) -> SparseMatrix:
        """The same matrix with a coefficient for each entry."""
        return SparseMatrix(self.row_start, self.wire, self.value)

    def with_coefficients(self, change: Callable[[np.ndarray], np.ndarray]) -> "CodedMatrix":
        """As `SparseMatrix.with_coefficients`."""
        return replace(self, values=change(self.values))


Matrix = SparseMatrix | CodedMatrix


@dataclass(frozen=True)
class ConstraintSystem:
    """A rank-1 constraint system: (A·w) ∘ (B·w) = C·w for a witness w with w[0] = 1.

    Wires are ordered as in circom: the constant one, public outputs, public inputs, private wires.
    """

    wires: int
    public_outputs: int
    public_inputs: int
    a: Matrix
    b: Matrix
    c: Matrix

    @property
    def constraints(self) -> int:
        return self.a.rows

    @property
    def public(self) -> int:
        """Public wires, the constant one not counted."""
        return self.public_outputs + self.public_inputs

    @property
    def domain(self) -> int:
        """The smallest power of two that holds the constraints and one row for each of the 1 + public wires."""
        return 1 << max(self.constraints + self.public, 1).bit_length()


@dataclass(frozen=True)
class VerifyingKey:
    """What a verifier needs. `ic` has one G1 point for the constant one and one for each public wire."""

    alpha_g1: np.ndarray
    beta_g2: np.ndarray
    gamma_g2: np.ndarray
    delta_g2: np.ndarray
    ic: np.ndarray


@dataclass(frozen=True)
class ProvingKey:
    """A Groth16 proving key in the snarkjs dialect.

    The root of unity is 5^((r−1)/2^32); the H query is the Lagrange basis of the doubled domain on its odd points, so
    the prover neither divides by the vanishing polynomial nor transforms back.

    Attributes
    ----------
    wires, public, domain : int
        All wires; public wires without the constant one; rows of the evaluation domain.
    beta_g1, delta_g1 : (12,) uint64
    vk : VerifyingKey
    a, b : SparseMatrix
        Constraint matrices with `domain`-many rows or fewer; A has 1 + public extra rows, one for each public wire.
        Coefficients are stored multiplied by R² (R = 2^256), so that a Montgomery product with a plain witness value
        comes out in Montgomery form.
    a_query, b_g1_query : (wires, 12) uint64
    b_g2_query : (wires, 24) uint64
    l_query : (wires − public − 1, 12) uint64
        Private wires only (snarkjs calls it C).
    h_query : (domain, 12) uint64
    test_only : bool
        The trapdoor is known: whoever has the seed can forge proofs.
    """

    wires: int
    public: int
    domain: int
    beta_g1: np.ndarray
    delta_g1: np.ndarray
    vk: VerifyingKey
    a: SparseMatrix
    b: SparseMatrix
    a_query: np.ndarray
    b_g1_query: np.ndarray
    b_g2_query: np.ndarray
    l_query: np.ndarray
    h_query: np.ndarray
    test_only: bool = False


@dataclass(frozen=True)
class BellmanKey:
    """A Groth16 proving key in the dialect of bellman: Zcash's, bellperson's and Filecoin's `.params`.

    The root of unity is 7^((r−1)/2^32), the H query τ^i·Z(τ)/δ in the monomial basis, so the prover divides by the
    vanishing polynomial. The file knows neither the constraints nor which wires its points belong to: both come from
    the circuit, whose densities (`constraints.densities`) say which wires A and B have.

    Attributes
    ----------
    beta_g1, delta_g1 : (12,) uint64
    vk : VerifyingKey
        With a γ of its own.
    h : n − 1 points of G1
        n is the domain.
    l : points of G1
        One for each private wire.
    a : points of G1
        The constant one, the public wires, then private wires that occur in A.
    b_g1, b_g2 : points of G1 and G2
        Wires that occur in B, in the same order.
    test_only : bool
        The trapdoor is known: whoever has the seed can forge proofs.

    The arrays are (n, 12) or (n, 24) uint64 or, from a mapped file, `Points`.
    """

    beta_g1: np.ndarray
    delta_g1: np.ndarray
    vk: VerifyingKey
    h: "np.ndarray | Points"
    l: "np.ndarray | Points"
    a: "np.ndarray | Points"
    b_g1: "np.ndarray | Points"
    b_g2: "np.ndarray | Points"
    test_only: bool = False


@dataclass(frozen=True)
class Proof:
    """One Groth16 proof: affine points, Montgomery form."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

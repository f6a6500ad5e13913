"""What a test key is computed with: sums of columns, a Lagrange basis, multiples of the generators.

`HOST_KEYS` does it on the CPU, `cuda.keys` on a GPU, on arrays of their own kind. Points and indices of wires always
come back as numpy arrays; all results are the same bytes on either.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.limbs import ints_to_limbs


class Entries(Protocol):
    """A sparse matrix over Fr in compressed rows, plain; see `prover.model`.

    One of few different coefficients has `number` and `values` beside or instead of `value`.
    """

    row_start: np.ndarray
    wire: np.ndarray

    @property
    def rows(self) -> int: ...

    @property
    def value(self) -> np.ndarray: ...


class KeyArithmetic(Protocol):
    """Field elements are plain, (n, 4) uint64, of the backend's own kind of arrays."""

    def lagrange_basis(self, tau: int, domain: int, *, root: int, factor: int = 1, threads: int | None = None) -> Any:
        """factor · L_i(τ) for the powers of the domain's root of unity, (domain, 4).

        L_i(τ) = 1/n · Σ_j τ^j · ω^(−ij), so the basis is the inverse transform of the powers of τ.
        """

    def column_sums(self, matrix: Entries, wires: int, weights: Any, *, threads: int | None = None) -> Any:
        """Σ_i weights[i] · matrix[i, j] for each wire j, (wires, 4)."""

    def combination(self, terms: Sequence[tuple[int, Any]]) -> Any:
        """Σ factor · elements."""

    def nonzero(self, elements: Any) -> np.ndarray:
        """Indices of the elements other than zero, uint32, ascending."""

    def take(self, elements: Any, indices: np.ndarray) -> Any:
        """Elements by their indices."""

    def multiples(self, group: str, scalars: Any, *, threads: int | None = None) -> np.ndarray:
        """Each scalar times the generator of group "g1" or "g2": (n, 12) or (n, 24), affine, Montgomery form."""


class HostKeyArithmetic:
    """The CPU."""

    def lagrange_basis(
        self, tau: int, domain: int, *, root: int, factor: int = 1, threads: int | None = None
    ) -> np.ndarray:
        powers = host.fr_powers(tau, domain)
        host.ntt(powers, inverse=True, root=root, threads=threads)
        if factor == 1:
            return host.fr_from_montgomery(powers)
        return host.fr_mul(powers, ints_to_limbs([factor % host.FR_MODULUS], 4))

    def column_sums(
        self, matrix: Entries, wires: int, weights: np.ndarray, *, threads: int | None = None
    ) -> np.ndarray:
        order = np.argsort(matrix.wire, kind="stable")
        column_start = np.concatenate(([0], np.cumsum(np.bincount(matrix.wire, minlength=wires))))
        row = np.repeat(np.arange(matrix.rows, dtype=np.uint32), np.diff(matrix.row_start))[order]
        value = host.fr_to_montgomery(matrix.value[order])
        return host.spmv(column_start, row, value, weights, threads=threads)

    def combination(self, terms: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
        scaled = [_scale(elements, factor) if factor != 1 else elements for factor, elements in terms]
        total = scaled[0]
        for more in scaled[1:]:
            total = host.fr_add(total, more)
        return total

    def nonzero(self, elements: np.ndarray) -> np.ndarray:
        return np.flatnonzero(elements.any(axis=1)).astype(np.uint32)

    def take(self, elements: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return host.gather(elements, indices)

    def multiples(self, group: str, scalars: np.ndarray, *, threads: int | None = None) -> np.ndarray:
        return (host.fixed_base_g1 if group == "g1" else host.fixed_base_g2)(scalars, threads=threads)


def _scale(values: np.ndarray, factor: int) -> np.ndarray:
    """All values times a factor; plain."""
    return host.fr_mul(values, host.fr_to_montgomery(ints_to_limbs([factor], limbs=4)))


HOST_KEYS: KeyArithmetic = HostKeyArithmetic()

"""Which root of unity orders a key's rows: the one thing that no key file states.

snarkjs's files number the rows of the domain by powers of 5^((r−1)/2^32), bellman's by powers of 7^((r−1)/2^32). Both
generate the same subgroup, so a key made with one looks like any other key and makes proofs that are not valid with
the other.

The test uses two columns of B, which a key has in G2: v(τ) = Σ c_i·L_i(τ) over the few rows i of a column. With ω the
root, n·L_i(τ) = Z(τ)·ω^i / (τ − ω^i). So n·v(τ)·P(τ) = Z(τ)·N(τ), where P = Π (X − ω^i) over the column's rows and
N = Σ c_i·ω^i·P / (X − ω^i) are known polynomials. For two columns, v_1·P_1·N_2 = v_2·P_2·N_1 at τ. The H query yields
the powers T, τT, τ²T … in G1 that both sides need, and one pairing of each side with the two points of B compares
them. With the wrong root the sides differ, but for the accidents of a random τ.

* bellman: h_k = τ^k·Z(τ)/δ are such powers.
* snarkjs: H_i = M_i(τ)/δ for odd powers x_i of the doubled domain's root, and M_i is x_i·(X^2n − 1) / (2n·(X − x_i)).
  For the first m of them, Σ q(x_i) / (x_i · Π_j≠i (x_i − x_j)) · H_i = q(τ)·T, for any q of degree below m
  (Lagrange's formula), with one T for all q. A ceremony of 2^k powers lacks τ^(2n−1) in a key of n = 2^k, and snarkjs
  then leaves out that term of M_i, x_i·τ^(2n−1) / 2n. In the sum it has the factor Σ q(x_i) / Π_j≠i (x_i − x_j), which
  is 0 for degrees below m − 1: so one point more than coefficients serves both.
"""

from collections.abc import Callable, Iterable

import numpy as np

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import BELLMAN_ROOT, FR_MODULUS, SNARKJS_ROOT, TWO_ADICITY
from cuzklab.errors import BadInput
from cuzklab.prover.model import Dialect
from cuzklab.prover.pairing import pairing_product_is_one
from cuzklab.prover.stages import DenseKey
from cuzklab.prover.streaming import read

_ROOTS = {"snarkjs": SNARKJS_ROOT, "bellman": BELLMAN_ROOT}
_MAXIMUM_ROWS = 64

Column = dict[int, int]
"""Row → coefficient, up to one factor for the whole column's key."""


def check_snarkjs_root(key: DenseKey, where: str) -> None:
    """Refuse a snarkjs key whose rows are in bellman's order.

    A key whose columns of B are all too long to test is let pass: only its proofs tell, and none leaves unverified.

    Raises
    ------
    BadInput
    """
    _check(key, "snarkjs", where, "a .zkey must be made for 5^((r-1)/2^32): make it from the circuit with snarkjs")


def check_bellman_root(key: DenseKey, where: str) -> None:
    """Refuse a bellman key whose rows are in snarkjs's order, as `check_snarkjs_root` does."""
    _check(key, "bellman", where, "a .params must be made for 7^((r-1)/2^32): make it from the circuit with bellman")


def _check(key: DenseKey, dialect: Dialect, where: str, todo: str) -> None:
    other: Dialect = "bellman" if dialect == "snarkjs" else "snarkjs"
    if order_of_rows(key, dialect) is not False:
        return
    if order_of_rows(key, other):
        raise BadInput(
            f"{where}: its rows are in the order of {other}'s root of unity, though its form is {dialect}'s; proofs "
            f"made with it would not be valid; {todo}"
        )
    raise BadInput(
        f"{where}: its points of B are not those of its constraints; it is damaged, or made for another circuit"
    )


def order_of_rows(key: DenseKey, dialect: Dialect) -> bool | None:
    """Whether a key's rows are in the order of a dialect's root; None where no two columns of B are short enough.

    `key.dialect` says in which form the H query is, whatever the root.
    """
    columns = _short_columns(key)
    if columns is None:
        return None
    (first, rows), (second, other_rows) = columns
    omega = pow(_ROOTS[dialect], 1 << (TWO_ADICITY - _log2(key.domain)), FR_MODULUS)
    vanishing, numerator = _column_polynomials(rows, omega)
    other_vanishing, other_numerator = _column_polynomials(other_rows, omega)
    left, right = _product(vanishing, other_numerator), _product(other_vanishing, numerator)
    at_tau = _evaluator(key, max(len(left), len(right)), dialect)
    if at_tau is None:
        return None
    b_left, b_right = (read(key.b_g2.points, at, at + 1)[0] for at in (first, second))
    try:
        return pairing_product_is_one([at_tau(left), host.neg_g1(at_tau(right))], [b_left, b_right])
    except BadInput:
        raise
    except ValueError:
        return False  # a point that is none: not on the curve, or not below the modulus


def _evaluator(key: DenseKey, terms: int, dialect: Dialect) -> Callable[[list[int]], np.ndarray] | None:
    """What maps a polynomial of so many coefficients to its value at τ times a point of G1 that is always the same."""
    used = terms if key.dialect == "bellman" else terms + 1
    if used > len(key.h):
        return None
    points = np.ascontiguousarray(read(key.h, 0, used))
    if points.ctypes.data % 8:
        points = points.copy()
    if key.dialect == "bellman":
        return lambda q: host.msm_g1(points[: len(q)], host.ints_to_limbs(q, 4), threads=1)
    w = pow(_ROOTS[dialect], 1 << (TWO_ADICITY - 1 - _log2(key.domain)), FR_MODULUS)
    x = [pow(w, 2 * i + 1, FR_MODULUS) for i in range(used)]
    weights = []
    for i, x_i in enumerate(x):
        below = x_i
        for j, x_j in enumerate(x):
            if j != i:
                below = below * (x_i - x_j) % FR_MODULUS
        weights.append(pow(below, -1, FR_MODULUS))

    def at_tau(q: list[int]) -> np.ndarray:
        scalars = [_value(q, x_i) * weight % FR_MODULUS for x_i, weight in zip(x, weights)]
        return host.msm_g1(points, host.ints_to_limbs(scalars, 4), threads=1)

    return at_tau


def _short_columns(key: DenseKey) -> list[tuple[int, Column]] | None:
    """Two of the shortest columns of B that differ in their rows: place of their point in the query, and entries."""
    row, wire, value = key.constraints.entries_of_b()
    wires = key.b_g2.wires
    lengths = np.bincount(wire, minlength=key.wires)[wires]
    usable = np.flatnonzero((lengths > 0) & (lengths <= _MAXIMUM_ROWS))
    found: list[tuple[int, Column]] = []
    for place in usable[np.argsort(lengths[usable], kind="stable")][:64]:
        mine = np.flatnonzero(wire == wires[place])
        column: Column = {}
        for i, coefficient in zip(row[mine].tolist(), host.limbs_to_ints(value[mine])):
            column[i] = (column.get(i, 0) + coefficient) % FR_MODULUS
        column = {i: coefficient for i, coefficient in column.items() if coefficient}
        if column and (not found or set(found[0][1]) != set(column)):
            found.append((int(place), column))
        if len(found) == 2:
            return found
    return None


def _column_polynomials(column: Column, omega: int) -> tuple[list[int], list[int]]:
    """Π (X − ω^i) over the rows, and Σ c_i·ω^i·Π_j≠i (X − ω^j); coefficients, lowest first."""
    points = {i: pow(omega, i, FR_MODULUS) for i in column}
    numerator = [0] * len(column)
    for i, coefficient in column.items():
        others = _vanishing(x for j, x in points.items() if j != i)
        factor = coefficient * points[i] % FR_MODULUS
        numerator = [(a + factor * b) % FR_MODULUS for a, b in zip(numerator, others, strict=True)]
    return _vanishing(points.values()), numerator


def _vanishing(points: Iterable[int]) -> list[int]:
    product = [1]
    for x in points:
        product = _product(product, [-x % FR_MODULUS, 1])
    return product


def _product(p: list[int], q: list[int]) -> list[int]:
    out = [0] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            out[i + j] = (out[i + j] + a * b) % FR_MODULUS
    return out


def _value(p: list[int], x: int) -> int:
    result = 0
    for coefficient in reversed(p):
        result = (result * x + coefficient) % FR_MODULUS
    return result


def _log2(domain: int) -> int:
    return domain.bit_length() - 1

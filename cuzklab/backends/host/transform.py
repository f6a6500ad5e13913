"""Number-theoretic transforms over Fr, and the quotient polynomial built from them."""

import functools

import numpy as np

from cuzklab.backends.bls12_381 import BELLMAN_COSET, BELLMAN_ROOT, FR_MODULUS, SNARKJS_ROOT, TWO_ADICITY
from cuzklab.backends.host.field import _canonical, fr_constant, fr_mul, fr_powers
from cuzklab.backends.host.parallel import ranges, run, run_ranges, thread_count
from cuzklab.backends.limbs import checked, ints_to_limbs
from cuzklab.backends.native import load


@functools.lru_cache(maxsize=64)
def _twiddles(root: int, log_size: int) -> np.ndarray:
    """Powers of the 2^log_size-th root as the kernel wants them: entry h + i is ω_2h^i for h = 1, 2, 4 …, i < h."""
    size = 1 << log_size
    omega = pow(root, 1 << (TWO_ADICITY - log_size), FR_MODULUS)
    powers = fr_powers(omega, max(size // 2, 1))
    table = np.zeros((max(size, 2), 4), np.uint64)
    half = 1
    while half < size:
        table[half : 2 * half] = powers[:: size // (2 * half)]
        half *= 2
    table.flags.writeable = False
    return table


@functools.lru_cache(maxsize=16)
def _scaled_powers(base: int, n: int, factor: int) -> np.ndarray:
    """factor · base^i in Montgomery form for i < n."""
    powers = fr_powers(base, n)
    if factor != 1:
        powers = fr_mul(powers, fr_constant(factor))
    powers.flags.writeable = False
    return powers


def _log2_length(values: np.ndarray) -> int:
    n = len(values)
    if n == 0 or n & (n - 1) or n > 1 << TWO_ADICITY:
        raise ValueError(f"values: a transform needs a power of two up to 2^{TWO_ADICITY} elements, got {n}")
    return n.bit_length() - 1


def ntt(
    values: np.ndarray,
    *,
    inverse: bool = False,
    coset: int | None = None,
    root: int = SNARKJS_ROOT,
    threads: int | None = None,
) -> None:
    """Transforms `values` in place: coefficients to evaluations at the powers of ω, or back.

    Parameters
    ----------
    values : (n, 4) uint64
        Montgomery form, n a power of two; natural order before and after.
    inverse : bool
        From evaluations to coefficients, divided by n.
    coset : int, optional
        g: evaluations are at g·ω^i. Coefficient i is multiplied by g^i before a forward transform and divided by it
        after an inverse one.
    root : int
        Generator of the subgroup of order 2^32; ω = root^(2^32 / n).
    threads : int, optional

    Raises
    ------
    ValueError
        Length, type or layout; an element not below r; a coset of zero; a root of another order.
    """
    _canonical("fr", "values", values)
    if pow(root, 1 << (TWO_ADICITY - 1), FR_MODULUS) != FR_MODULUS - 1:
        raise ValueError(f"root: {root} has not the order 2^{TWO_ADICITY}")
    if coset is not None and coset % FR_MODULUS == 0:
        raise ValueError("coset: zero")
    if not values.flags.writeable:
        raise ValueError("values: read-only, but the transform works in place")
    _transform(values, np.empty_like(values), inverse, coset, root, thread_count(threads))


def _transform(
    values: np.ndarray, spare: np.ndarray, inverse: bool, coset: int | None, root: int, threads: int
) -> None:
    """`ntt` on checked input, with a second buffer of the same size."""
    log_n = _log2_length(values)
    log_rows = log_n // 2
    log_columns = log_n - log_rows
    rows, columns = 1 << log_rows, 1 << log_columns
    # With index i = row · columns + column, i's power of the coset is a product of a row's and a column's power, and
    # the row's power of the output likewise: each rides on a product that is done anyway, or costs one table.
    g = 1 if coset is None else coset % FR_MODULUS
    if inverse:
        root, g = pow(root, -1, FR_MODULUS), pow(g, -1, FR_MODULUS)
    omega = pow(root, 1 << (TWO_ADICITY - log_n), FR_MODULUS)
    before, after = (1, g) if inverse else (g, 1)
    first = _scaled_powers(before, columns, pow(1 << log_n, -1, FR_MODULUS) if inverse else 1)
    ratio = _scaled_powers(omega, columns, after)
    scale_in = None if before == 1 else _scaled_powers(pow(before, columns, FR_MODULUS), rows, 1)
    scale_out = None if after == 1 else _scaled_powers(pow(after, rows, FR_MODULUS), columns, 1)
    row_twiddles, column_twiddles = _twiddles(root, log_columns), _twiddles(root, log_rows)
    library = load().library
    scratch_bytes = library.ntt_scratch_bytes(log_rows, log_columns)

    def address(table: np.ndarray | None) -> int | None:
        return None if table is None else table.ctypes.data

    def column_step(begin: int, end: int, scratch: np.ndarray) -> None:
        library.ntt_columns(
            values.ctypes.data, spare.ctypes.data, log_rows, log_columns, begin, end, address(column_twiddles),
            address(first), address(ratio), address(scale_in), scratch.ctypes.data,
        )  # fmt: skip

    def row_step(begin: int, end: int, scratch: np.ndarray) -> None:
        library.ntt_rows(
            spare.ctypes.data, values.ctypes.data, log_rows, log_columns, begin, end, address(row_twiddles),
            address(scale_out), scratch.ctypes.data,
        )  # fmt: skip

    # More pieces than threads, so that a thread which lost its core does not hold up the others.
    pieces = 1 if threads == 1 else 4 * threads
    for step, count in ((column_step, columns), (row_step, rows)):
        run(step, ranges(count, pieces, multiple=8), threads, lambda: np.empty(scratch_bytes, np.uint8))


def h_polynomial(a: np.ndarray, b: np.ndarray, c: np.ndarray, *, threads: int | None = None) -> np.ndarray:
    """The scalars of snarkjs's H query: p_i = a_i·b_i − c_i on the odd powers of the 2n-th root of unity.

    Parameters
    ----------
    a, b, c : (n, 4) uint64
        Evaluations on the n-th roots of unity (root 5^((r−1)/2^32)), Montgomery form; overwritten.
    threads : int, optional

    Returns
    -------
    (n, 4) uint64
        Plain integers; the same memory as `a`.

    Raises
    ------
    ValueError
        Lengths that differ or are no power of two up to 2^31.
    """
    n = len(a)
    _check_evaluations(a, b, c)
    if n > 1 << (TWO_ADICITY - 1):
        raise ValueError(f"a: the doubled domain of {n} rows has no root of unity")
    odd = pow(SNARKJS_ROOT, 1 << (TWO_ADICITY - 1 - _log2_length(a)), FR_MODULUS)
    threads, spare = thread_count(threads), np.empty_like(a)
    for x in (a, b, c):
        _transform(x, spare, True, None, SNARKJS_ROOT, threads)
        _transform(x, spare, False, odd, SNARKJS_ROOT, threads)
    _quotient(a, b, c, 1, threads)
    return a


def h_coefficients(a: np.ndarray, b: np.ndarray, c: np.ndarray, *, threads: int | None = None) -> np.ndarray:
    """The scalars of bellman's H query: the coefficients of (A·B − C) / (X^n − 1), lowest first.

    The division is by a constant on the coset of 7, so this takes seven transforms.

    Parameters
    ----------
    a, b, c : (n, 4) uint64
        Evaluations on the n-th roots of unity (root 7^((r−1)/2^32)), Montgomery form; overwritten.
    threads : int, optional

    Returns
    -------
    (n, 4) uint64
        Plain integers; the same memory as `a`. The last one is zero: the query has n − 1 points.

    Raises
    ------
    ValueError
        Lengths that differ or are no power of two up to 2^32.
    """
    _check_evaluations(a, b, c)
    n, threads, spare = len(a), thread_count(threads), np.empty_like(a)
    _log2_length(a)
    for x in (a, b, c):
        _transform(x, spare, True, None, BELLMAN_ROOT, threads)
        _transform(x, spare, False, BELLMAN_COSET, BELLMAN_ROOT, threads)
    vanishing = pow(BELLMAN_COSET, n, FR_MODULUS) - 1
    _quotient(a, b, c, pow(vanishing, -1, FR_MODULUS), threads)
    # The transform is linear, so plain values give plain coefficients.
    _transform(a, spare, True, BELLMAN_COSET, BELLMAN_ROOT, threads)
    return a


def _check_evaluations(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    for name, x in (("a", a), ("b", b), ("c", c)):
        checked(name, x, np.uint64, len(a), 4)
        _canonical("fr", name, x)
        if not x.flags.writeable:
            raise ValueError(f"{name}: read-only, but the transform works in place")


def _quotient(a: np.ndarray, b: np.ndarray, c: np.ndarray, scale: int, threads: int) -> None:
    """a ← scale · (a ∘ b − c), plain."""
    library, factor = load().library, ints_to_limbs([scale], 4)
    run_ranges(
        lambda begin, end: library.ntt_quotient(
            a.ctypes.data, b.ctypes.data, c.ctypes.data, begin, end, factor.ctypes.data
        ),
        ranges(len(a), threads),
        threads,
    )

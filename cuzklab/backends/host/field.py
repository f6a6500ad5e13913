"""Element-wise arithmetic of Fr and Fp, and sparse matrix times vector."""

import itertools
from collections.abc import Callable

import numpy as np

from cuzklab.backends.bls12_381 import FP_MODULUS, FP_R, FR_MODULUS, FR_R
from cuzklab.backends.host.parallel import run_ranges, thread_count
from cuzklab.backends.limbs import checked, ints_to_limbs
from cuzklab.backends.native import load

_LIMBS = {"fr": 4, "fp": 6}


def _canonical(field: str, name: str, x: np.ndarray) -> np.ndarray:
    """`x`, if it is an array of elements below the modulus."""
    checked(name, x, np.uint64, None, _LIMBS[field])
    bad = getattr(load().library, f"{field}_first_not_canonical")(x.ctypes.data, len(x))
    if bad >= 0:
        raise ValueError(f"{name}: element {bad} is not below the modulus")
    return x


def _unary(field: str, operation: str, x: np.ndarray) -> np.ndarray:
    _canonical(field, "x", x)
    out = np.empty_like(x)
    getattr(load().library, f"{field}_{operation}")(x.ctypes.data, out.ctypes.data, len(x))
    return out


def _repeated(field: str, name: str, x: np.ndarray, rows: int) -> tuple[np.ndarray, int]:
    """`x` and the step from one element to the next: 0 where a single element stands for all rows."""
    if isinstance(x, np.ndarray) and x.shape == (rows, _LIMBS[field]) and rows > 1 and x.strides[0] == 0:
        x = x[:1]  # numpy.broadcast_to: one element, however often
    if isinstance(x, np.ndarray) and x.ndim == 1:
        x = x[None]
    _canonical(field, name, x)
    if len(x) not in (1, rows):
        raise ValueError(f"{name}: {len(x)} elements against {rows}")
    return x, int(len(x) == rows and rows > 1)


def _binary(field: str, operation: str, a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    rows = max(len(x) if isinstance(x, np.ndarray) and x.ndim == 2 else 1 for x in (a, b))
    if any(isinstance(x, np.ndarray) and x.ndim == 2 and len(x) == 0 for x in (a, b)):
        rows = 0
    a, a_step = _repeated(field, "a", a, rows)
    b, b_step = _repeated(field, "b", b, rows)
    if out is None:
        out = np.empty((rows, _LIMBS[field]), np.uint64)
    checked("out", out, np.uint64, rows, _LIMBS[field])
    function = getattr(load().library, f"{field}_{operation}")
    function(a.ctypes.data, a_step, b.ctypes.data, b_step, out.ctypes.data, rows)
    return out


def fr_to_montgomery(x: np.ndarray) -> np.ndarray:
    """x · 2^256 of plain elements (n, 4), as a new array."""
    return _unary("fr", "to_montgomery", x)


def fr_from_montgomery(x: np.ndarray) -> np.ndarray:
    """x · 2^−256: plain elements (n, 4) of Montgomery ones, as a new array."""
    return _unary("fr", "from_montgomery", x)


def fr_add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b of elements (n, 4); either may be a single element, (4,) or (1, 4), that goes with all of the other."""
    return _binary("fr", "add", a, b)


def fr_sub(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a − b; shapes as in `fr_add`."""
    return _binary("fr", "sub", a, b)


def fr_mul(a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """Montgomery product a · b · 2^−256; shapes as in `fr_add`. `out` may be one of the factors."""
    return _binary("fr", "mul", a, b, out)


def fr_inverse(x: np.ndarray) -> np.ndarray:
    """1/x of Montgomery elements (n, 4), in Montgomery form, by one inversion for all; 0 for 0."""
    return _unary("fr", "inverse", x)


def fr_powers(base: int, n: int) -> np.ndarray:
    """base^0 … base^(n−1) in Montgomery form, (n, 4), for a plain integer base."""
    out = np.empty((n, 4), np.uint64)
    start = ints_to_limbs([base % FR_MODULUS * FR_R % FR_MODULUS], 4)
    load().library.fr_powers(start.ctypes.data, out.ctypes.data, n)
    return out


def fr_constant(value: int) -> np.ndarray:
    """A plain integer as one Montgomery element, (1, 4)."""
    return ints_to_limbs([value % FR_MODULUS * FR_R % FR_MODULUS], 4)


def fp_constant(value: int) -> np.ndarray:
    """A plain integer as one Montgomery element of Fp, (1, 6)."""
    return ints_to_limbs([value % FP_MODULUS * FP_R % FP_MODULUS], 6)


def fp_to_montgomery(x: np.ndarray) -> np.ndarray:
    """x · 2^384 of plain elements (n, 6), as a new array."""
    return _unary("fp", "to_montgomery", x)


def fp_from_montgomery(x: np.ndarray) -> np.ndarray:
    """x · 2^−384: plain elements (n, 6) of Montgomery ones, as a new array."""
    return _unary("fp", "from_montgomery", x)


def fp_add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b of elements (n, 6); either may be a single one."""
    return _binary("fp", "add", a, b)


def fp_sub(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a − b; shapes as in `fp_add`."""
    return _binary("fp", "sub", a, b)


def fp_mul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Montgomery product a · b · 2^−384; shapes as in `fp_add`."""
    return _binary("fp", "mul", a, b)


def fp_inverse(x: np.ndarray) -> np.ndarray:
    """1/x of Montgomery elements (n, 6), in Montgomery form; 0 for 0."""
    return _unary("fp", "inverse", x)


def spmv(
    row_start: np.ndarray,
    wire: np.ndarray,
    value: np.ndarray,
    witness: np.ndarray,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Σ value · witness[wire] · 2^−256 for each row of a sparse matrix.

    Each product is a Montgomery product: coefficients multiplied by R² and a plain witness, as in zkey files, give
    rows in Montgomery form; plain coefficients and a Montgomery witness give plain rows.

    Parameters
    ----------
    row_start : (rows + 1,) int64
    wire : (nonzeros,) uint32
    value : (nonzeros, 4) uint64
    witness : (wires, 4) uint64
    out : (rows, 4) uint64, optional
        Where to write; a new array otherwise.

    Returns
    -------
    (rows, 4) uint64

    Raises
    ------
    ValueError
        Row starts that do not ascend from 0 to the number of nonzeros, or a wire that the witness lacks.
    """
    checked("value", value, np.uint64, len(wire), 4)
    _canonical("fr", "value", value)
    _canonical("fr", "witness", witness)

    def rows(begin: int, end: int, out: np.ndarray) -> None:
        bad = load().library.fr_sparse_product(
            row_start.ctypes.data, wire.ctypes.data, value.ctypes.data, witness.ctypes.data, len(witness), begin, end,
            out.ctypes.data,
        )  # fmt: skip
        if bad >= 0:
            raise ValueError(f"wire: row {bad} names a wire beyond the {len(witness)} of the witness")

    return _sparse_product(row_start, wire, rows, out, thread_count(threads))


def spmv_coded(
    row_start: np.ndarray,
    wire: np.ndarray,
    number: np.ndarray,
    values: np.ndarray,
    witness: np.ndarray,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """`spmv` of coefficients values[number]: a fifth of the memory, and no product where the witness is 0 or 1.

    Parameters
    ----------
    number : (nonzeros,) uint32
    values : (m, 4) uint64
        The others as in `spmv`, as is the result. What is refused, too, and a number from m on; but only wires that
        some row has are looked at.
    """
    checked("number", number, np.uint32, len(wire))
    checked("witness", witness, np.uint64, None, 4)
    _canonical("fr", "values", values)
    once = _binary("fr", "mul", values, ints_to_limbs([1], 4))

    def rows(begin: int, end: int, out: np.ndarray) -> None:
        bad = load().library.fr_coded_product(
            row_start.ctypes.data, wire.ctypes.data, number.ctypes.data, values.ctypes.data, once.ctypes.data,
            len(values), witness.ctypes.data, len(witness), begin, end, out.ctypes.data,
        )  # fmt: skip
        if bad >= 0:
            entries = slice(row_start[bad], row_start[bad + 1])
            if (wire[entries] >= len(witness)).any():
                raise ValueError(f"wire: row {bad} names a wire beyond the {len(witness)} of the witness")
            if (number[entries] >= len(values)).any():
                raise ValueError(f"number: row {bad} names a coefficient beyond the {len(values)} there are")
            raise ValueError(f"witness: row {bad} has a wire whose value is not below the modulus")

    return _sparse_product(row_start, wire, rows, out, thread_count(threads))


def _sparse_product(
    row_start: np.ndarray,
    wire: np.ndarray,
    some_rows: Callable[[int, int, np.ndarray], None],
    out: np.ndarray | None,
    threads: int,
) -> np.ndarray:
    """`spmv` by a function that writes the rows from a first to before a last one."""
    checked("row_start", row_start, np.int64, None)
    checked("wire", wire, np.uint32, None)
    nonzeros, rows = len(wire), len(row_start) - 1
    if rows < 0 or row_start[0] != 0 or row_start[-1] != nonzeros or (row_start[1:] < row_start[:-1]).any():
        raise ValueError(f"row_start: must ascend from 0 to the number of nonzeros, {nonzeros}")
    if out is None:
        out = np.empty((rows, 4), np.uint64)
    checked("out", out, np.uint64, rows, 4)
    # Cut where the nonzeros are, not the rows: a few rows may hold most of them.
    parts = 4 * threads
    cuts = np.searchsorted(row_start, [nonzeros * i // parts for i in range(1, parts)])
    edges = sorted({0, rows, *(min(int(cut), rows) for cut in cuts)})
    run_ranges(lambda begin, end: some_rows(begin, end, out), itertools.pairwise(edges), threads)
    return out

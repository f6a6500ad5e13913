"""The H polynomial on the GPU: transforms in place, to reversed digits and back.

A transform there leaves frequencies where its passes have them, with the digits of their index reversed; the one back
takes them from there and ends in natural order. So neither needs a second buffer, and the quotient's six transforms
take the memory of their three vectors and some tables. From 2^25 points on, the table of a factor an element is split
in two small ones, which costs one product more an element in one pass of three.
"""

import functools
from typing import Any

import numpy as np
import nvtx

from cuzklab.backends.bls12_381 import BELLMAN_COSET, BELLMAN_ROOT, FR_MODULUS, SNARKJS_ROOT, TWO_ADICITY
from cuzklab.backends.cuda import arrivals, observe
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import DOMAIN, blocks, cupy, device_array, launch, refusing_in_one_line
from cuzklab.backends.cuda.transform import (
    MOST_LOG2,
    TABLES,
    Factors,
    Pass,
    Plan,
    factors_between,
    log2_length,
    plan,
    roots_of_eight,
    row_factors,
    run_plan,
    shapes_of,
    twiddles_of,
    unit,
)
from cuzklab.backends.cuda.transform import release_tables as release_plans

# A table of as many factors takes half a GiB a plan.
_LARGEST_TABLE_LOG2 = 24


def units() -> list[Unit]:
    """Every unit that the quotient can need."""
    needed: dict[Unit, None] = {TABLES: None}
    for log_n in range(MOST_LOG2 + 1):
        *columns, rows = shapes_of(log_n)
        split = log_n > _LARGEST_TABLE_LOG2
        needed[unit(*rows, in_place=True)] = needed[unit(*rows, in_place=True, on_exit=bool(columns))] = None
        for shape in columns[:1]:
            needed[unit(*shape)] = None
        for shape in columns[1:]:
            needed[unit(*shape, split=split)] = needed[unit(*shape, split=split, on_exit=True)] = None
    return list(needed)


def _factors(omega: int, log_rows: int, rest: int, row: Any = None) -> Factors:
    """Factors ω^(k·m) · row[k] for digit k and the `rest` bits m below it, in one table or split."""
    if log_rows + rest <= _LARGEST_TABLE_LOG2:
        return Factors(factors_between(omega, log_rows, rest, row))
    bits = rest // 2
    above = factors_between(pow(omega, 1 << bits, FR_MODULUS), log_rows, rest - bits, row)
    return Factors(above, bits, factors_between(omega, log_rows, bits), rest, bits)


@functools.lru_cache(maxsize=4)
def _there_and_back(device: int, log_n: int, root: int, shift: int) -> tuple[Plan, Plan]:
    """Values to coefficients, coefficient i times shift^i, in reversed digits; and from there to values.

    The way there is over the highest digit of the index first, the way back over the lowest; between the passes over
    two digits lie the same factors, of inverse roots, on either.
    """
    omega = pow(root, 1 << (TWO_ADICITY - log_n), FR_MODULUS)
    inverse = pow(omega, -1, FR_MODULUS)
    there, back = [], []
    done, rest, to_there, from_back = 0, log_n, None, None
    for log_rows, columns in shapes_of(log_n):
        rest -= log_rows
        row = row_factors(shift, done, log_rows, 1 if there else pow(1 << log_n, -1, FR_MODULUS))
        step = 1 << (log_n - log_rows)
        twiddles = [twiddles_of(pow(each, step, FR_MODULUS), log_rows) for each in (inverse, omega)]
        last = rest == 0
        there.append(Pass(log_rows, columns, twiddles[0], to_there, row if last else None, in_place=last))
        on_exit = from_back is not None
        back.append(Pass(log_rows, columns, twiddles[1], from_back, in_place=last, on_exit=on_exit))
        if not last:
            to_there = _factors(pow(inverse, 1 << done, FR_MODULUS), log_rows, rest, row)
            from_back = _factors(pow(omega, 1 << done, FR_MODULUS), log_rows, rest)
        done += log_rows
    back.reverse()
    return Plan(roots_of_eight(pow(root, -1, FR_MODULUS)), tuple(there)), Plan(roots_of_eight(root), tuple(back))


def there_and_back(log_n: int, *, root: int = SNARKJS_ROOT, shift: int = 1) -> tuple[Plan, Plan]:
    """The two plans, built if need be."""
    return _there_and_back(cupy().cuda.Device().id, log_n, root, shift)


def run_in_place(chosen: Plan, values: Any, *, back: bool = False) -> None:
    """Transform `values` (n, 4) on the device in place, in the current stream; elements stay below 2r."""
    log_n = log2_length("values", values)
    rest, steps = log_n, []
    for step in reversed(chosen.passes) if back else chosen.passes:
        rest -= step.log_rows
        steps.append((step, rest))
    for step, rest in reversed(steps) if back else steps:
        tables = (chosen.roots, *step.tables)
        grid = 1 << (log_n - step.log_rows - step.log_columns_of_tile)
        if step.in_place:
            kernel, more = "ntt_rows", (np.uint32(log_n - step.log_rows), np.uint32(0), *tables, step.exit)
        else:
            kernel, more = "ntt_columns", (np.uint32(rest), *tables)
        launch(step.unit, kernel, grid, step.threads, (values, values, *more), step.shared_bytes)


def release_tables() -> None:
    """Forget all plans, those of `transform` too, so that their device memory can be used for something else."""
    _there_and_back.cache_clear()
    release_plans()


def _evaluated_elsewhere(there: Any, back: Any, vectors: list[Any]) -> None:
    """a, b and c on the shifted roots of unity, each as soon as it is there, and a·b − c in a's place."""
    n = len(vectors[0])
    with observe.consecutive():
        for x in vectors:
            arrivals.needed(x)
            run_in_place(there, x)
            run_in_place(back, x, back=True)
        launch(TABLES, "ntt_quotient", blocks(n, 256), 256, (*vectors, np.uint64(n)))


@refusing_in_one_line
def h_polynomial(a: Any, b: Any, c: Any) -> Any:
    """The scalars of snarkjs's H query, as `host.h_polynomial`: plain integers, in the memory of `a`.

    Parameters
    ----------
    a, b, c : (n, 4) uint64, of numpy or CuPy
        Evaluations on the n-th roots of unity, Montgomery form; overwritten where they lie on the device.

    Raises
    ------
    ValueError
        Lengths that differ or are no power of two up to 2^27.
    """
    on_device = [device_array(name, x, np.uint64, len(a), 4) for name, x in zip("abc", (a, b, c))]
    log_n = log2_length("a", on_device[0])
    odd = pow(SNARKJS_ROOT, 1 << (TWO_ADICITY - 1 - log_n), FR_MODULUS)
    with nvtx.annotate("h_polynomial", domain=DOMAIN):
        # Coefficient i times odd^i: the shift of the coset rides on the inverse transform.
        there, back = there_and_back(log_n, shift=odd)
        _evaluated_elsewhere(there, back, on_device)
    if isinstance(a, np.ndarray):
        a[...] = cupy().asnumpy(on_device[0])
    return a


@refusing_in_one_line
def h_coefficients(a: Any, b: Any, c: Any) -> Any:
    """The scalars of bellman's H query, as `host.h_coefficients`: plain integers, in the memory of `a`.

    Parameters
    ----------
    a, b, c : (n, 4) uint64, of numpy or CuPy
        Evaluations on the n-th roots of unity of bellman, Montgomery form; overwritten where they lie on the device.

    Raises
    ------
    ValueError
        Lengths that differ or are no power of two up to 2^27.
    """
    on_device = [device_array(name, x, np.uint64, len(a), 4) for name, x in zip("abc", (a, b, c))]
    log_n = log2_length("a", on_device[0])
    vanishing = pow(BELLMAN_COSET, 1 << log_n, FR_MODULUS) - 1
    with nvtx.annotate("h_coefficients", domain=DOMAIN):
        there, back = there_and_back(log_n, root=BELLMAN_ROOT, shift=BELLMAN_COSET)
        _evaluated_elsewhere(there, back, on_device)
        to_coefficients = plan(
            log_n, inverse=True, coset=BELLMAN_COSET, root=BELLMAN_ROOT, scale=pow(vanishing, -1, FR_MODULUS)
        )
        run_plan(to_coefficients, on_device[0], on_device[1])
    if isinstance(a, np.ndarray):
        a[...] = cupy().asnumpy(on_device[0])
    return a

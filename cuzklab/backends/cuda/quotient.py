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
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import DOMAIN, blocks, cupy, device_array, launch, refusing_in_one_line
from cuzklab.backends.cuda.transform import (
    MOST_LOG2,
    TABLES,
    Entry,
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
    needed = {TABLES: None}
    for log_n in range(MOST_LOG2 + 1):
        shapes = shapes_of(log_n)
        split = log_n > _LARGEST_TABLE_LOG2
        needed |= {unit(*shapes[-1], in_place=True): None, **{unit(*shape): None for shape in shapes[:-1]}}
        if split:
            needed |= {unit(*shape, split=True): None for shape in shapes[:2]}
    return list(needed)


def _entry(omega: int, log_rows: int, rest: int, row: Any = None) -> Entry:
    """Factors ω^(k·m) · row[k] for digit k and the `rest` bits m below it, in one table or split."""
    if log_rows + rest <= _LARGEST_TABLE_LOG2:
        return Entry(factors_between(omega, log_rows, rest, row))
    bits = rest // 2
    above = factors_between(pow(omega, 1 << bits, FR_MODULUS), log_rows, rest - bits, row)
    return Entry(above, bits, factors_between(omega, log_rows, bits), rest, bits)


@functools.lru_cache(maxsize=4)
def _there_and_back(device: int, log_n: int, root: int, shift: int) -> tuple[Plan, Plan]:
    """Values to coefficients, coefficient i times shift^i, in reversed digits; and from there to values.

    Pass t of the way there is over digit t of the index, the highest first, and of the way back the other way round.
    """
    omega = pow(root, 1 << (TWO_ADICITY - log_n), FR_MODULUS)
    inverse = pow(omega, -1, FR_MODULUS)
    there, back = [], []
    done, rest, entry = 0, log_n, None
    for log_rows, columns in shapes_of(log_n):
        rest -= log_rows
        row = row_factors(shift, done, log_rows, 1 if there else pow(1 << log_n, -1, FR_MODULUS))
        ways = [twiddles_of(pow(each, 1 << (log_n - log_rows), FR_MODULUS), log_rows) for each in (inverse, omega)]
        if rest == 0:
            there.append(Pass(log_rows, columns, ways[0], entry, row, in_place=True))
            back.append(Pass(log_rows, columns, ways[1], None, in_place=True))
        else:
            there.append(Pass(log_rows, columns, ways[0], entry))
            back.append(Pass(log_rows, columns, ways[1], _entry(pow(omega, 1 << done, FR_MODULUS), log_rows, rest)))
            entry = _entry(pow(inverse, 1 << done, FR_MODULUS), log_rows, rest, row)
        done += log_rows
    return Plan(roots_of_eight(pow(root, -1, FR_MODULUS)), tuple(there)), Plan(roots_of_eight(root), tuple(back))


def there_and_back(log_n: int, *, root: int = SNARKJS_ROOT, shift: int = 1) -> tuple[Plan, Plan]:
    """The two plans, built if need be; the second one's first pass is its last element."""
    return _there_and_back(cupy().cuda.Device().id, log_n, root, shift)


def run_in_place(chosen: Plan, values: Any, *, back: bool = False) -> None:
    """Transform `values` (n, 4) on the device in place, in the current stream; elements stay below 2r."""
    log_n = log2_length("values", values)
    rest, steps = log_n, []
    for step in chosen.passes:
        rest -= step.log_rows
        steps.append((step, rest))
    for step, rest in reversed(steps) if back else steps:
        tables = (chosen.roots, *step.tables)
        grid = 1 << (log_n - step.log_rows - step.log_columns_of_tile)
        if step.in_place:
            arguments = (values, values, np.uint32(log_n - step.log_rows), np.uint32(0), *tables, step.exit)
            launch(step.unit, "ntt_rows", grid, step.threads, arguments, step.shared_bytes)
        else:
            launch(step.unit, "ntt_columns", grid, step.threads, (values, values, np.uint32(rest), *tables),
                   step.shared_bytes)  # fmt: skip


def release_tables() -> None:
    """Forget all plans, those of `transform` too, so that their device memory can be used for something else."""
    _there_and_back.cache_clear()
    release_plans()


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
        for x in on_device:
            run_in_place(there, x)
            run_in_place(back, x, back=True)
        arguments = (*on_device, np.uint64(1 << log_n))
        launch(TABLES, "ntt_quotient", blocks(1 << log_n, 256), 256, arguments)
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
        for x in on_device:
            run_in_place(there, x)
            run_in_place(back, x, back=True)
        launch(TABLES, "ntt_quotient", blocks(1 << log_n, 256), 256, (*on_device, np.uint64(1 << log_n)))
        to_coefficients = plan(
            log_n, inverse=True, coset=BELLMAN_COSET, root=BELLMAN_ROOT, scale=pow(vanishing, -1, FR_MODULUS)
        )
        run_plan(to_coefficients, on_device[0], on_device[1])
    if isinstance(a, np.ndarray):
        a[...] = cupy().asnumpy(on_device[0])
    return a

"""Number-theoretic transforms over Fr on the GPU, and the quotient polynomial built from them.

A transform of n points is one, two or three passes of at most 2^9 points each (see `kernels/cuda/ntt.cu`). What depends
on n, the root and the coset alone is a `Plan`: small tables of a pass, and before each pass but the first a table with
one factor an element. Plans are kept on the device; the first table has n elements, `release_tables` gives them back.
"""

import functools
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import nvtx

from cuzklab.backends.bls12_381 import BELLMAN_COSET, BELLMAN_ROOT, FR_MODULUS, FR_R, SNARKJS_ROOT, TWO_ADICITY
from cuzklab.backends.cuda import arrivals, field
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import DOMAIN, blocks, cupy, device_array, launch, refusing_in_one_line
from cuzklab.backends.limbs import ints_to_limbs

MOST_LOG2 = 27
_PASS_LOG2 = 9
_TILE_LOG2 = 10
_TABLES = Unit("ntt_tables.cu")


@dataclass(frozen=True, eq=False)
class Pass:
    """One kernel launch of a plan: 2^log_rows-point transforms, and its tables on the device (None where all ones).

    Attributes
    ----------
    entry, entry_shift : array or None, int
        The element at index i of what the pass reads is multiplied by entry[(i >> entry_shift) mod len(entry)].
    exit : array or None
        Frequency k of the pass is multiplied by exit[k]; the last pass only.
    """

    log_rows: int
    log_columns_of_tile: int
    twiddles: Any
    entry: Any
    entry_shift: int
    exit: Any

    @functools.cached_property
    def unit(self) -> Unit:
        return Unit("ntt.cu", (("LOG_R", self.log_rows), ("LOG_C", self.log_columns_of_tile)))

    @functools.cached_property
    def threads(self) -> int:
        return 1 << (self.log_rows - min(self.log_rows, 3) + self.log_columns_of_tile)

    @functools.cached_property
    def shared_bytes(self) -> int:
        columns = self.log_columns_of_tile
        pitch = (1 << self.log_rows) + (1 if columns >= 3 else 8 >> columns)
        return 32 * (pitch << columns)

    @functools.cached_property
    def tables(self) -> tuple[Any, ...]:
        """Arguments of both kernels that do not depend on the data."""
        mask = 0 if self.entry is None else len(self.entry) - 1
        return self.twiddles, self.entry, np.uint32(self.entry_shift), np.uint32(mask)


@dataclass(frozen=True, eq=False)
class Plan:
    """All of a transform but its data."""

    roots: Any
    passes: tuple[Pass, ...]


def _eighths(log_rows: int) -> int:
    """Products of one pass for eight elements: inside radix-8 steps and between them."""
    steps, rest = divmod(log_rows, 3)
    return 12 * steps - (7 if rest == 0 else 0) + (2 if rest == 2 else 0)


@functools.cache
def pass_sizes(log_n: int) -> tuple[int, ...]:
    """log2 of the points of each pass, first to last: the fewest passes, then the fewest products, then most equal."""
    count = max(1, -(-log_n // _PASS_LOG2))
    cuts = [
        cut
        for cut in itertools.product(range(_PASS_LOG2, -1, -1), repeat=count)
        if sum(cut) == log_n and sorted(cut, reverse=True) == list(cut) and (count == 1 or min(cut) >= 4)
    ]
    return min(cuts, key=lambda cut: (sum(map(_eighths, cut)), max(cut)))


def tile_columns(log_rows: int, log_available: int) -> int:
    """log2 of the columns of a tile: whole cache lines, a thousand elements or two."""
    return min(max(_TILE_LOG2 - log_rows, 2), log_available)


def units() -> list[Unit]:
    """Every unit that a transform of any size can need."""
    needed = {_TABLES: None}
    for log_n in range(MOST_LOG2 + 1):
        for log_rows, columns in _shapes(log_n):
            needed[Unit("ntt.cu", (("LOG_R", log_rows), ("LOG_C", columns)))] = None
    return list(needed)


def _shapes(log_n: int, sizes: tuple[int, ...] | None = None) -> list[tuple[int, int]]:
    sizes = sizes or pass_sizes(log_n)
    rest, shapes = log_n, []
    for log_rows in sizes[:-1]:
        rest -= log_rows
        shapes.append((log_rows, tile_columns(log_rows, rest)))
    shapes.append((sizes[-1], tile_columns(sizes[-1], sizes[0] if len(sizes) > 1 else 0)))
    return shapes


def _elements(values: list[int]):
    return cupy().asarray(ints_to_limbs((x * FR_R % FR_MODULUS for x in values), 4))


def _known(values: list[int]):
    """Factors as kernels multiply by them fastest: plain, each beside its share of the modulus."""
    quotients = ((x << 256) // FR_MODULUS for x in values)
    return cupy().asarray(np.hstack([ints_to_limbs(values, 4), ints_to_limbs(quotients, 4)]))


def _powers(base: int, count: int, factor: int = 1) -> list[int]:
    out = []
    for _ in range(count):
        out.append(factor)
        factor = factor * base % FR_MODULUS
    return out


def _two_level(base: int, log_count: int) -> tuple[Any, Any, int]:
    """base^e for e < 2^log_count as low[e mod 2^bits] · high[e >> bits]."""
    bits = (log_count + 1) // 2
    high = _powers(pow(base, 1 << bits, FR_MODULUS), 1 << (log_count - bits))
    return _elements(_powers(base, 1 << bits)), _elements(high), bits


def _twiddles(omega: int, log_rows: int):
    """Factors between the radix-8 stages of one pass: entry d·step + row of a block is ω_block^(row·d)."""
    values = []
    for log_block in range(log_rows, 3, -3):
        step = 1 << (log_block - 3)
        root = pow(omega, 1 << (log_rows - log_block), FR_MODULUS)
        for d in range(8):
            values += _powers(pow(root, d, FR_MODULUS), step)
    return _known(values or [1])


@functools.lru_cache(maxsize=8)
def _plan(
    device: int, log_n: int, root: int, before: int, after: int, scale: int, sizes: tuple[int, ...] | None
) -> Plan:
    """Coefficient i times before^i, transform, value k times scale · after^k."""
    sizes = sizes or pass_sizes(log_n)
    shapes = _shapes(log_n, sizes)
    omega = pow(root, 1 << (TWO_ADICITY - log_n), FR_MODULUS)
    passes = []
    done, rest = 0, log_n
    # Coefficients' powers: the part of the first digit is a table of its own, the rest is folded into the next entry.
    entry, entry_shift = None, log_n - sizes[0]
    if before != 1:
        entry = _elements(_powers(pow(before, 1 << entry_shift, FR_MODULUS), 1 << sizes[0]))
    for position, (log_rows, columns) in enumerate(shapes):
        rest -= log_rows
        first, last = position == 0, position == len(sizes) - 1
        row_base, scaled = pow(after, 1 << done, FR_MODULUS), scale if first else 1
        row = _elements(_powers(row_base, 1 << log_rows, scaled)) if row_base != 1 or scaled != 1 else None
        twiddles = _twiddles(pow(omega, 1 << (log_n - log_rows), FR_MODULUS), log_rows)
        passes.append(Pass(log_rows, columns, twiddles, entry, entry_shift, row if last else None))
        if not last:
            column = _two_level(before, rest) if first and before != 1 else (None, None, 0)
            low, high, bits = _two_level(pow(omega, 1 << done, FR_MODULUS), log_rows + rest)
            entry, entry_shift = cupy().empty((1 << (log_rows + rest), 4), np.uint64), 0
            arguments = (
                entry, np.uint32(log_rows), np.uint32(rest), low, high, np.uint32(bits), row,
                column[0], column[1], np.uint32(column[2]),
            )  # fmt: skip
            launch(_TABLES, "ntt_factors", blocks(len(entry), 256, 4096), 256, arguments)
        done += log_rows
    eighth = pow(root, 1 << (TWO_ADICITY - 3), FR_MODULUS)
    return Plan(_known(_powers(eighth, 4)[1:]), tuple(passes))


def release_tables() -> None:
    """Forget all plans, so that their device memory can be used for something else."""
    _plan.cache_clear()


def plan(
    log_n: int,
    *,
    inverse: bool = False,
    coset: int | None = None,
    root: int = SNARKJS_ROOT,
    after: int = 1,
    passes: tuple[int, ...] | None = None,
) -> Plan:
    """The tables of a transform, built if need be.

    Parameters as in `ntt`; `after`^k is a further factor of value k, `passes` overrides `pass_sizes`: one to three of
    at most 9, the first the largest, each from 4 where there are several.
    """
    if passes is not None and (
        sum(passes) != log_n
        or not 1 <= len(passes) <= 3
        or max(passes) > min(passes[0], _PASS_LOG2)
        or (len(passes) > 1 and min(passes) < 4)
    ):
        raise ValueError(f"passes: {passes} do not make a transform of 2^{log_n} points")
    g = 1 if coset is None else coset % FR_MODULUS
    scale = pow(1 << log_n, -1, FR_MODULUS) if inverse else 1
    if inverse:
        root, before, after = pow(root, -1, FR_MODULUS), 1, pow(g, -1, FR_MODULUS) * after % FR_MODULUS
    else:
        before = g
    return _plan(cupy().cuda.Device().id, log_n, root, before, after, scale, passes)


def run_plan(chosen: Plan, values: Any, spare: Any) -> None:
    """Transform `values` (n, 4) on the device in place, in the current stream; `spare` is as large."""
    passes = chosen.passes
    log_n = sum(step.log_rows for step in passes)
    rest, source = log_n, values
    log_high = passes[0].log_rows if len(passes) > 1 else 0
    for step in passes:
        rest -= step.log_rows
        tables = (chosen.roots, *step.tables)
        grid = 1 << (log_n - step.log_rows - step.log_columns_of_tile)
        if step is not passes[-1]:
            arguments = (source, spare, np.uint32(rest), *tables)
            launch(step.unit, "ntt_columns", grid, step.threads, arguments, step.shared_bytes)
            source = spare
        else:
            log_low = log_n - log_high - step.log_rows
            arguments = (source, values, np.uint32(log_high), np.uint32(log_low), *tables, step.exit)
            launch(step.unit, "ntt_rows", grid, step.threads, arguments, step.shared_bytes)


def _log2_length(name: str, values: Any, most: int = MOST_LOG2) -> int:
    n = len(values)
    if n == 0 or n & (n - 1) or n > 1 << most:
        raise ValueError(f"{name}: a transform on the GPU needs a power of two up to 2^{most} elements, got {n}")
    return n.bit_length() - 1


@refusing_in_one_line
def ntt(values: Any, *, inverse: bool = False, coset: int | None = None, root: int = SNARKJS_ROOT) -> None:
    """Transforms `values` in place, as `host.ntt` does; numpy arrays are copied to the device and back.

    Parameters
    ----------
    values : (n, 4) uint64, of numpy or CuPy
        Montgomery form, elements below r, n a power of two up to 2^27; natural order before and after.
    inverse : bool
    coset : int, optional
    root : int
        As in `host.ntt`.

    Raises
    ------
    ValueError
        Length, type or layout; a coset of zero; a root of another order.
    """
    if pow(root, 1 << (TWO_ADICITY - 1), FR_MODULUS) != FR_MODULUS - 1:
        raise ValueError(f"root: {root} has not the order 2^{TWO_ADICITY}")
    if coset is not None and coset % FR_MODULUS == 0:
        raise ValueError("coset: zero")
    on_device = device_array("values", values, np.uint64, None, 4)
    log_n = _log2_length("values", on_device)
    with nvtx.annotate("ntt", domain=DOMAIN):
        run_plan(plan(log_n, inverse=inverse, coset=coset, root=root), on_device, cupy().empty_like(on_device))
    if isinstance(values, np.ndarray):
        values[...] = cupy().asnumpy(on_device)


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
    log_n = _log2_length("a", on_device[0])
    odd = pow(SNARKJS_ROOT, 1 << (TWO_ADICITY - 1 - log_n), FR_MODULUS)
    with nvtx.annotate("h_polynomial", domain=DOMAIN):
        spare = cupy().empty_like(on_device[0])
        # Coefficient i times odd^i: the shift of the coset rides on the inverse transform.
        back, forth = plan(log_n, inverse=True, after=odd), plan(log_n)
        for x in on_device:
            arrivals.needed(x)
            run_plan(back, x, spare)
            run_plan(forth, x, spare)
        arguments = (*on_device, np.uint64(1 << log_n))
        launch(_TABLES, "ntt_quotient", blocks(1 << log_n, 256), 256, arguments)
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
    n = 1 << _log2_length("a", on_device[0])
    inverse = pow(pow(BELLMAN_COSET, n, FR_MODULUS) - 1, -1, FR_MODULUS)
    with nvtx.annotate("h_coefficients", domain=DOMAIN):
        for x in on_device:
            arrivals.needed(x)
            ntt(x, inverse=True, root=BELLMAN_ROOT)
            ntt(x, coset=BELLMAN_COSET, root=BELLMAN_ROOT)
        quotient = field.fr_sub(field.fr_mul(on_device[0], on_device[1]), on_device[2])
        # A factor that is not in Montgomery form takes the product out of it; the transform is linear.
        factor = cupy().asarray(ints_to_limbs([inverse], 4))
        on_device[0][...] = field.fr_mul(quotient, cupy().ascontiguousarray(cupy().broadcast_to(factor, (n, 4))))
        ntt(on_device[0], inverse=True, coset=BELLMAN_COSET, root=BELLMAN_ROOT)
    if isinstance(a, np.ndarray):
        a[...] = cupy().asnumpy(on_device[0])
    return a

"""Number-theoretic transforms over Fr on the GPU.

A transform of n points is one, two or three passes of at most 2^9 points each (see `kernels/cuda/ntt.cu`). What depends
on n, the root and the coset alone is a `Plan`: small tables of a pass, and before each pass but the first a table with
one factor an element. Plans are kept on the device; the first table has n elements, `release_tables` gives them back.
`quotient` has transforms that need no second buffer and smaller tables, and the quotient polynomial built from them.
"""

import functools
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import nvtx

from cuzklab.backends.bls12_381 import FR_MODULUS, FR_R, SNARKJS_ROOT, TWO_ADICITY
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.launch import DOMAIN, blocks, cupy, device_array, launch, refusing_in_one_line
from cuzklab.backends.limbs import ints_to_limbs

MOST_LOG2 = 27
_PASS_LOG2 = 9
_TILE_LOG2 = 10
TABLES = Unit("ntt_tables.cu")


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of elements by their index: the one at index i is multiplied by table[(i >> shift) mod len(table)].

    Where that table would be large, it is split: `table` is then indexed by all but the lowest `split_bits` bits, and
    the factor's other part is split[(i >> split_rest) · 2^split_bits + i mod 2^split_bits], modulo its length.
    """

    table: Any
    shift: int = 0
    split: Any = None
    split_rest: int = 0
    split_bits: int = 0


@dataclass(frozen=True, eq=False)
class Pass:
    """One kernel launch of a plan: 2^log_rows-point transforms, and its tables on the device (None where all ones).

    Attributes
    ----------
    factors : Factors or None
        Of what the pass reads, or, with `on_exit`, of what it writes.
    exit : array or None
        Frequency k of the pass is multiplied by exit[k]; a pass over rows only.
    in_place : bool
        Of a pass over rows: results stay where they were read.
    """

    log_rows: int
    log_columns_of_tile: int
    twiddles: Any
    factors: Factors | None
    exit: Any = None
    in_place: bool = False
    on_exit: bool = False

    @functools.cached_property
    def unit(self) -> Unit:
        split = self.factors is not None and self.factors.split_bits > 0
        return unit(self.log_rows, self.log_columns_of_tile, in_place=self.in_place, on_exit=self.on_exit, split=split)

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
        if (factors := self.factors) is None:
            return self.twiddles, None, np.uint32(0), np.uint32(0)
        mask = np.uint32(len(factors.table) - 1)
        whole = self.twiddles, factors.table, np.uint32(factors.shift), mask
        if not factors.split_bits:
            return whole
        split_mask = np.uint32(len(factors.split) - 1)
        return (*whole, factors.split, np.uint32(factors.split_rest), np.uint32(factors.split_bits), split_mask)


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


def unit(
    log_rows: int, log_columns: int, *, in_place: bool = False, on_exit: bool = False, split: bool = False
) -> Unit:
    """The unit of a pass."""
    more = (("IN_PLACE", in_place), ("FACTORS_ON_EXIT", on_exit), ("SPLIT_FACTORS", split))
    return Unit(
        "ntt.cu", (("LOG_R", log_rows), ("LOG_C", log_columns), *((name, 1) for name, wanted in more if wanted))
    )


def units() -> list[Unit]:
    """Every unit that a transform of any size can need."""
    needed = {TABLES: None}
    for log_n in range(MOST_LOG2 + 1):
        for log_rows, columns in shapes_of(log_n):
            needed[unit(log_rows, columns)] = None
    return list(needed)


def shapes_of(log_n: int, sizes: tuple[int, ...] | None = None) -> list[tuple[int, int]]:
    """log2 of rows and of a tile's columns of each pass."""
    sizes = sizes or pass_sizes(log_n)
    rest, shapes = log_n, []
    for log_rows in sizes[:-1]:
        rest -= log_rows
        shapes.append((log_rows, tile_columns(log_rows, rest)))
    shapes.append((sizes[-1], tile_columns(sizes[-1], sizes[0] if len(sizes) > 1 else 0)))
    return shapes


def elements(values: list[int]):
    return cupy().asarray(ints_to_limbs((x * FR_R % FR_MODULUS for x in values), 4))


def known(values: list[int]):
    """Factors as kernels multiply by them fastest: plain, each beside its share of the modulus."""
    quotients = ((x << 256) // FR_MODULUS for x in values)
    return cupy().asarray(np.hstack([ints_to_limbs(values, 4), ints_to_limbs(quotients, 4)]))


def powers(base: int, count: int, factor: int = 1) -> list[int]:
    out = []
    for _ in range(count):
        out.append(factor)
        factor = factor * base % FR_MODULUS
    return out


def two_level(base: int, log_count: int) -> tuple[Any, Any, int]:
    """base^e for e < 2^log_count as low[e mod 2^bits] · high[e >> bits]."""
    bits = (log_count + 1) // 2
    high = powers(pow(base, 1 << bits, FR_MODULUS), 1 << (log_count - bits))
    return elements(powers(base, 1 << bits)), elements(high), bits


def twiddles_of(omega: int, log_rows: int):
    """Factors between the radix-8 stages of one pass: entry d·step + row of a block is ω_block^(row·d)."""
    values = []
    for log_block in range(log_rows, 3, -3):
        step = 1 << (log_block - 3)
        root = pow(omega, 1 << (log_rows - log_block), FR_MODULUS)
        for d in range(8):
            values += powers(pow(root, d, FR_MODULUS), step)
    return known(values or [1])


def factors_between(
    omega: int, log_rows: int, rest: int, row: Any = None, column: tuple[Any, Any, int] = (None, None, 0)
) -> Any:
    """Table [k][m] of ω^(k·m) · row[k] · column^m for k < 2^log_rows, m < 2^rest, on the device."""
    low, high, bits = two_level(omega, log_rows + rest)
    table = cupy().empty((1 << (log_rows + rest), 4), np.uint64)
    arguments = (
        table, np.uint32(log_rows), np.uint32(rest), low, high, np.uint32(bits), row,
        column[0], column[1], np.uint32(column[2]),
    )  # fmt: skip
    launch(TABLES, "ntt_factors", blocks(len(table), 256, 4096), 256, arguments)
    return table


@functools.lru_cache(maxsize=8)
def _plan(
    device: int, log_n: int, root: int, before: int, after: int, scale: int, sizes: tuple[int, ...] | None
) -> Plan:
    """Coefficient i times before^i, transform, value k times scale · after^k."""
    sizes = sizes or pass_sizes(log_n)
    omega = pow(root, 1 << (TWO_ADICITY - log_n), FR_MODULUS)
    passes = []
    done, rest = 0, log_n
    # Coefficients' powers: the part of the first digit is a table of its own, the rest is folded into the next entry.
    entry, shift = None, log_n - sizes[0]
    if before != 1:
        entry = Factors(elements(powers(pow(before, 1 << shift, FR_MODULUS), 1 << sizes[0])), shift)
    for position, (log_rows, columns) in enumerate(shapes_of(log_n, sizes)):
        rest -= log_rows
        first, last = position == 0, position == len(sizes) - 1
        row = row_factors(after, done, log_rows, scale if first else 1)
        twiddles = twiddles_of(pow(omega, 1 << (log_n - log_rows), FR_MODULUS), log_rows)
        passes.append(Pass(log_rows, columns, twiddles, entry, row if last else None))
        if not last:
            column = two_level(before, rest) if first and before != 1 else (None, None, 0)
            entry = Factors(factors_between(pow(omega, 1 << done, FR_MODULUS), log_rows, rest, row, column))
        done += log_rows
    return Plan(roots_of_eight(root), tuple(passes))


def row_factors(after: int, done: int, log_rows: int, scale: int = 1) -> Any:
    """scale · after^(k · 2^done) for each frequency k of a pass, None where all are one."""
    base = pow(after, 1 << done, FR_MODULUS)
    return elements(powers(base, 1 << log_rows, scale)) if base != 1 or scale != 1 else None


def roots_of_eight(root: int) -> Any:
    """ω_8, ω_8² and ω_8³ of a root of order 2^32."""
    return known(powers(pow(root, 1 << (TWO_ADICITY - 3), FR_MODULUS), 4)[1:])


def release_tables() -> None:
    """Forget these plans, so that their device memory can be used for something else."""
    _plan.cache_clear()


def plan(
    log_n: int,
    *,
    inverse: bool = False,
    coset: int | None = None,
    root: int = SNARKJS_ROOT,
    after: int = 1,
    scale: int = 1,
    passes: tuple[int, ...] | None = None,
) -> Plan:
    """The tables of a transform, built if need be.

    Parameters as in `ntt`; `scale` · `after`^k is a further factor of value k, `passes` overrides `pass_sizes`: one to
    three of at most 9, the first the largest, each from 4 where there are several.
    """
    if passes is not None and (
        sum(passes) != log_n
        or not 1 <= len(passes) <= 3
        or max(passes) > min(passes[0], _PASS_LOG2)
        or (len(passes) > 1 and min(passes) < 4)
    ):
        raise ValueError(f"passes: {passes} do not make a transform of 2^{log_n} points")
    g = 1 if coset is None else coset % FR_MODULUS
    scale = scale * pow(1 << log_n, -1, FR_MODULUS) % FR_MODULUS if inverse else scale
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


def log2_length(name: str, values: Any, most: int = MOST_LOG2) -> int:
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
    log_n = log2_length("values", on_device)
    with nvtx.annotate("ntt", domain=DOMAIN):
        run_plan(plan(log_n, inverse=inverse, coset=coset, root=root), on_device, cupy().empty_like(on_device))
    if isinstance(values, np.ndarray):
        values[...] = cupy().asnumpy(on_device)

"""Sums of many points: multi-scalar multiplication, masked sums, and multiples of a fixed base."""

import functools

import numpy as np

from cuzklab.backends.host.field import _canonical
from cuzklab.backends.host.parallel import ranges, run, thread_count
from cuzklab.backends.host.points import (
    G1_GENERATOR,
    G2_GENERATOR,
    LIMBS,
    _checked_point,
    checked_points,
    lockstep_scratch,
)
from cuzklab.backends.limbs import aligned_bytes, checked
from cuzklab.backends.native import load

_SCALAR_BITS = 255
# A thread works off this many points at a time, so that its lists stay below 2^31 and scratch stays small.
_CHUNK_POINTS = 1 << 22


def window_bits(points: int) -> int:
    """Bits of a Pippenger window for so many points on one thread.

    Chosen by counting field products: an addition in a batch costs 6, a bucket about 13, for each window.
    """

    def products(bits: int) -> int:
        return -(-_SCALAR_BITS // bits) * (6 * points + 13 * (1 << (bits - 1)))

    return min(range(3, 18), key=products)


def _fixed_base_bits(scalars: int) -> int:
    """Bits of a fixed-base window: an addition for each scalar and window, and for each entry of the table."""

    def additions(bits: int) -> int:
        return -(-_SCALAR_BITS // bits) * (scalars + (1 << (bits - 1)))

    return min(range(3, 15), key=additions)


def _msm(group: str, points: np.ndarray, scalars: np.ndarray, threads: int | None) -> np.ndarray:
    checked_points(group, "points", points)
    checked("scalars", scalars, np.uint64, len(points), 4)
    _canonical("fr", "scalars", scalars)  # a digit beyond r's would address a bucket that is not there
    library, threads = load().library, thread_count(threads)
    n, width = len(points), LIMBS[group]
    out = np.zeros(width, np.uint64)
    if n == 0:
        return out
    # One task is one window of one part of the points. Windows alone share out evenly among few threads; with more,
    # points are split too, at the price of one more bucket reduction.
    bits = window_bits(min(n, _CHUNK_POINTS))
    windows = getattr(library, f"{group}_msm_windows")(bits)
    parts = max(-(-n // _CHUNK_POINTS), 1)
    while threads > 1 and parts * windows < 3 * threads and n // (parts + 1) >= 1024:
        parts += 1
        bits = window_bits(n // parts)
        windows = getattr(library, f"{group}_msm_windows")(bits)
    pieces = ranges(n, parts)
    scratch_bytes = getattr(library, f"{group}_msm_scratch_bytes")(max(b - a for a, b in pieces), bits)
    sums = np.zeros((len(pieces), windows, width), np.uint64)
    window_sum = getattr(library, f"{group}_msm_window")

    def work(part: int, window: int, scratch: np.ndarray) -> None:
        begin, end = pieces[part]
        window_sum(
            points.ctypes.data + 8 * width * begin, scalars.ctypes.data + 32 * begin, end - begin, bits, window,
            scratch.ctypes.data, sums.ctypes.data + 8 * width * (part * windows + window),
        )  # fmt: skip

    tasks = [(part, window) for part in range(len(pieces)) for window in range(windows)]
    run(work, tasks, threads, lambda: np.empty(scratch_bytes, np.uint8))
    getattr(library, f"{group}_msm_combine")(sums.ctypes.data, len(pieces), bits, out.ctypes.data)
    return out


def msm_g1(points: np.ndarray, scalars: np.ndarray, *, threads: int | None = None) -> np.ndarray:
    """Σ scalar_i · point_i in G1, by Pippenger's method with batched affine additions.

    Points may repeat, cancel, be infinity, or lie outside the subgroup: scalars count as integers.

    Parameters
    ----------
    points : (n, 12) uint64
        Affine, Montgomery form. They must lie on the curve; this is not checked.
    scalars : (n, 4) uint64
        Plain integers below r.
    threads : int, optional

    Returns
    -------
    (12,) uint64
        Affine; infinity for n = 0.

    Raises
    ------
    ValueError
        Type, shape or layout; a scalar not below r.
    """
    return _msm("g1", points, scalars, threads)


def msm_g2(points: np.ndarray, scalars: np.ndarray, *, threads: int | None = None) -> np.ndarray:
    """Σ scalar_i · point_i in G2: points (n, 24), result (24,); otherwise as `msm_g1`."""
    return _msm("g2", points, scalars, threads)


def _masked_sum(group: str, points: np.ndarray, bitmap: np.ndarray, threads: int | None) -> np.ndarray:
    checked_points(group, "points", points)
    n, width = len(points), LIMBS[group]
    checked("bitmap", bitmap, np.uint64, -(-n // 64))
    library, threads = load().library, thread_count(threads)
    pieces = ranges(n, threads if n >= 4096 * threads else 1, multiple=64)
    partial, out = np.zeros((len(pieces), width), np.uint64), np.zeros(width, np.uint64)
    masked_sum = getattr(library, f"{group}_masked_sum")

    def work(part: int, scratch: np.ndarray) -> None:
        to = partial.ctypes.data + 8 * width * part
        masked_sum(points.ctypes.data, bitmap.ctypes.data, *pieces[part], scratch.ctypes.data, to)

    scratch_bytes = getattr(library, f"{group}_sum_scratch_bytes")()
    run(work, [(part,) for part in range(len(pieces))], threads, lambda: np.empty(scratch_bytes, np.uint8))
    getattr(library, f"{group}_sum")(partial.ctypes.data, len(pieces), out.ctypes.data)
    return out


def masked_sum_g1(points: np.ndarray, bitmap: np.ndarray, *, threads: int | None = None) -> np.ndarray:
    """Σ point_i over the set bits of a bitmap, in G1.

    Parameters
    ----------
    points : (n, 12) uint64
    bitmap : (⌈n / 64⌉,) uint64
        Bit i of word i // 64; bits from n on are ignored.
    threads : int, optional

    Returns
    -------
    (12,) uint64
        Affine.
    """
    return _masked_sum("g1", points, bitmap, threads)


def masked_sum_g2(points: np.ndarray, bitmap: np.ndarray, *, threads: int | None = None) -> np.ndarray:
    """Σ point_i over the set bits of a bitmap, in G2: points (n, 24), result (24,); otherwise as `masked_sum_g1`."""
    return _masked_sum("g2", points, bitmap, threads)


@functools.lru_cache(maxsize=8)
def _table(group: str, base: bytes, bits: int, library_path: str) -> np.ndarray:
    """All multiples of the windows' powers of a base; kept, for a setup multiplies the generator many times."""
    library = load().library
    point = np.frombuffer(base, np.uint64)
    powers = np.empty((getattr(library, f"{group}_msm_windows")(bits), LIMBS[group]), np.uint64)
    getattr(library, f"{group}_fixed_base_powers")(point.ctypes.data, bits, powers.ctypes.data)
    # In the adder's own form, so only the native code can read it.
    entries = getattr(library, f"{group}_fixed_base_entries")(bits)
    table = aligned_bytes(entries * getattr(library, f"{group}_fixed_base_entry_bytes")())
    scratch = lockstep_scratch(group)
    getattr(library, f"{group}_fixed_base_table")(powers.ctypes.data, bits, table.ctypes.data, scratch.ctypes.data)
    table.flags.writeable = False
    return table


def _fixed_base(group: str, scalars: np.ndarray, base: np.ndarray, threads: int | None) -> np.ndarray:
    _canonical("fr", "scalars", scalars)
    _checked_point(group, "base", base)
    native, threads, width = load(), thread_count(threads), LIMBS[group]
    bits = _fixed_base_bits(len(scalars))
    table = _table(group, base.tobytes(), bits, str(native.path))
    out = np.empty((len(scalars), width), np.uint64)
    fixed_base = getattr(native.library, f"{group}_fixed_base")

    def work(begin: int, end: int, scratch: np.ndarray) -> None:
        fixed_base(
            table.ctypes.data, bits, scalars.ctypes.data + 32 * begin, end - begin,
            out.ctypes.data + 8 * width * begin, scratch.ctypes.data,
        )  # fmt: skip

    pieces = ranges(len(scalars), 4 * threads if threads > 1 else 1, multiple=1024)
    run(work, pieces, threads, lambda: lockstep_scratch(group))
    return out


def fixed_base_g1(scalars: np.ndarray, *, base: np.ndarray | None = None, threads: int | None = None) -> np.ndarray:
    """scalar_i · base in G1, from a table of the base's multiples.

    Parameters
    ----------
    scalars : (n, 4) uint64
        Plain integers below r.
    base : (12,) uint64, optional
        Default: the generator.
    threads : int, optional

    Returns
    -------
    (n, 12) uint64
        Affine.
    """
    return _fixed_base("g1", scalars, G1_GENERATOR if base is None else base, threads)


def fixed_base_g2(scalars: np.ndarray, *, base: np.ndarray | None = None, threads: int | None = None) -> np.ndarray:
    """scalar_i · base in G2: base (24,), result (n, 24); otherwise as `fixed_base_g1`."""
    return _fixed_base("g2", scalars, G2_GENERATOR if base is None else base, threads)


def _multiply_each(group: str, points: np.ndarray, scalars: np.ndarray, threads: int | None) -> np.ndarray:
    checked_points(group, "points", points)
    checked("scalars", scalars, np.uint64, len(points), 2)
    multiply, width, threads = getattr(load().library, f"{group}_multiply_each"), LIMBS[group], thread_count(threads)
    out = np.empty_like(points)

    def work(begin: int, end: int, scratch: np.ndarray) -> None:
        multiply(
            points.ctypes.data + 8 * width * begin, scalars.ctypes.data + 16 * begin, end - begin,
            out.ctypes.data + 8 * width * begin, scratch.ctypes.data,
        )  # fmt: skip

    run(work, ranges(len(points), threads, multiple=256), threads, lambda: lockstep_scratch(group))
    return out


def multiply_each_g1(points: np.ndarray, scalars: np.ndarray, *, threads: int | None = None) -> np.ndarray:
    """scalar_i · point_i, one by one and not added up, with scalars of 128 bits.

    Parameters
    ----------
    points : (n, 12) uint64
        On the curve; this is not checked.
    scalars : (n, 2) uint64
        Plain integers below 2^128.
    threads : int, optional

    Returns
    -------
    (n, 12) uint64
        Affine.
    """
    return _multiply_each("g1", points, scalars, threads)


def multiply_each_g2(points: np.ndarray, scalars: np.ndarray, *, threads: int | None = None) -> np.ndarray:
    """scalar_i · point_i in G2: points and result (n, 24); otherwise as `multiply_each_g1`."""
    return _multiply_each("g2", points, scalars, threads)

"""How sums and transforms are cut up: arithmetic on the host alone."""

import numpy as np
import pytest

from cuzklab.backends import host
from cuzklab.backends.bls12_381 import FR_MODULUS
from cuzklab.backends.cuda import backend, bench, buckets, msm, quotient, transform
from cuzklab.backends.cuda import multiples as store
from cuzklab.backends.host.field import fp_constant


@pytest.mark.parametrize("log_n", range(transform.MOST_LOG2 + 1))
def test_passes_multiply_to_the_size_and_fit_a_tile(log_n):
    sizes = transform.pass_sizes(log_n)
    assert sum(sizes) == log_n
    assert max(sizes) <= 9 and len(sizes) == max(1, -(-log_n // 9))
    rest = log_n
    for log_rows, columns in transform.shapes_of(log_n)[:-1]:
        rest -= log_rows
        assert columns <= rest
    log_rows, columns = transform.shapes_of(log_n)[-1]
    assert columns <= (sizes[0] if len(sizes) > 1 else 0)
    assert all(32 << (rows + cols) <= 64 << 10 for rows, cols in transform.shapes_of(log_n))


@pytest.mark.parametrize("bits", range(2, 23))
def test_windows_cover_every_scalar(bits):
    cut = buckets.shape(1000, bits)
    assert (cut.windows - 1) * bits < 255 <= cut.windows * bits
    # The highest digit: what is left above the last position, plus the carry of the recoding's offset.
    offset = sum(1 << (bits * w + bits - 1) for w in range(cut.windows - 1))
    assert (FR_MODULUS - 1 + offset) >> (bits * (cut.windows - 1)) <= cut.last
    assert cut.half == 1 << (bits - 1)


@pytest.mark.parametrize("points", [1, 2, 1000, 1 << 16, 1 << 20, (1 << 24) + 1, 1 << 26, 1 << 28])
def test_limits_of_the_kernels_hold(points):
    cut = buckets.shape(points, msm.window_bits(points), min(points, msm._BATCH_POINTS))
    assert 1 <= cut.segment <= 1023
    assert cut.buckets < 1 << 31
    assert min(points, msm._BATCH_POINTS) * cut.windows < 1 << 32
    assert cut.chunk & (cut.chunk - 1) == 0


@pytest.mark.parametrize("log_n", range(5, 28))
@pytest.mark.parametrize("most_gib", [0.25, 1, 4, 12])
def test_sums_within_a_budget(log_n, most_gib):
    """Whatever the size, a quarter of a GiB suffices; a card of 16 GiB with d_a and d_bc on it leaves four."""
    n, most = 1 << log_n, int(most_gib * (1 << 30))
    bits, size = backend.batch_within(most, n, 96)
    assert buckets.scratch_bytes("g1", buckets.shape(n, bits, size), size, 96) <= most
    usual = backend.batch_within(None, n, 96)
    assert bits <= usual[0] and size <= usual[1]
    if most_gib >= 4:
        assert (bits, size) == usual


@pytest.mark.parametrize("bits", range(2, 27))
@pytest.mark.parametrize("multiples", [1, 2, 3, 7, 200])
def test_sets_of_buckets_take_every_digit_of_their_windows(bits, multiples):
    cut = buckets.shape(5000, bits, 2048, min(multiples, -(-255 // bits)))
    stored = -(-cut.windows // cut.sets)
    assert stored <= multiples and (cut.sets - 1) * stored < cut.windows <= cut.sets * stored
    offset = sum(1 << (bits * w + bits - 1) for w in range(cut.windows - 1))
    top = (FR_MODULUS - 1 + offset) >> (bits * (cut.windows - 1))
    assert 1 << (bits - 1) <= cut.half and top <= cut.last
    assert cut.sets == cut.windows or cut.half == cut.last
    assert 1 <= cut.segment <= 1023


@pytest.mark.parametrize("log_n", range(28))
def test_indices_reach_every_stored_multiple(log_n):
    assert store.table_bytes("g1", 1 << log_n) // 96 < 1 << 31
    cut = buckets.shape(1 << log_n, msm.window_bits(1 << log_n, store.WINDOW_BITS), store._BATCH_POINTS, 32)
    assert (cut.sets, cut.buckets < 1 << 31) == (1, True)


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_the_host_joins_the_windows(group):
    """XYZZ sums with Z = 1, infinity among them, shifts in any order and twice the same."""
    base, multiply = getattr(host, f"{group.upper()}_GENERATOR"), getattr(host, f"mul_{group}")
    factors, shifts = [3, 0, 5, 7, 11], [200, 7, 0, 7, 63]
    one = fp_constant(1).reshape(-1)
    unit = one if group == "g1" else np.concatenate([one, np.zeros(6, np.uint64)])
    terms = np.zeros((len(factors), 2 * len(base)), np.uint64)
    for term, factor in zip(terms, factors):
        if factor:
            term[:] = np.concatenate([multiply(base, factor), unit, unit])
    got = buckets.host_sum(group, terms, np.array(shifts, np.uint32))
    assert (got == multiply(base, sum(factor << shift for factor, shift in zip(factors, shifts)))).all()


@pytest.mark.parametrize("log_n", range(transform.MOST_LOG2 + 1))
def test_tables_of_a_quotient_are_at_most_half_a_gib(log_n):
    """Rows have the small tables, which are never split: the kernel of a split table is of columns."""
    *columns, _ = transform.shapes_of(log_n)
    digits, rest = [rows for rows, _ in columns], log_n
    for position, rows in enumerate(digits):
        rest -= rows
        split = rows + rest > quotient._LARGEST_TABLE_LOG2
        assert not split or position < len(digits) - 1
        assert (rows + rest if not split else rows + rest - rest // 2) <= 24


def test_floors_follow_from_counts():
    assert bench.floor_ms("ntt", 10, 93e3) == 1024 * 4
    assert bench.floor_ms("masked_sum_g1", 10, 1e3) == 512 * (8 * 294 + 2 * 231)
    best = min(-(-255 // c) * (1024 * 2814 + (1 << c) * 3990) for c in range(4, 26))
    assert bench.floor_ms("msm_g1", 10, 1e3) == best
    shared = min(-(-255 // c) * 1024 * 2814 + (1 << c) * 3990 for c in range(4, 26))
    assert bench.floor_ms("fixed_msm_g1", 10, 1e3) == shared < best


@pytest.mark.parametrize("kernel", bench.KERNELS)
def test_every_kernel_has_work_and_bytes(kernel):
    for log_n in (4, 16, 27):
        wide, moved = bench.work_of(kernel, log_n)
        assert wide > 0 and moved > 0

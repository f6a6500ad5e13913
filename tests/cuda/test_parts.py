"""Arrays in parts: where they are cut, that each part is there when it is used, and what watches the kernels."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzklab.backends import host
from cuzklab.backends.cuda import arena, arrivals, backend, buckets, launch, msm, observe, parts
from cuzklab.backends.host.field import fp_constant
from cuzklab.backends.limbs import ints_to_limbs
from tests.cuda_live import software_cupy


@given(st.integers(1, 1 << 28), st.integers(1 << 10, 1 << 22))
def test_parts_cover_everything_once(n, size):
    for cut in (parts.equal, parts.growing, parts.shrinking):
        edges = cut(n, size // 64 * 64)
        assert [begin for begin, _ in edges] == [0, *(end for _, end in edges[:-1])] and edges[-1][1] == n
        assert all(0 < end - begin <= size for begin, end in edges)
    assert all(begin % 64 == 0 for begin, _ in parts.shrinking(n, size // 64 * 64))


def test_an_msm_begins_with_small_parts_and_a_masked_sum_ends_with_them():
    def lengths(edges):
        return [end - begin for begin, end in edges]

    bits, size = backend.batch_within(None, 1 << 22, 96)
    three = lengths(parts.growing(1 << 22, size))
    assert bits == 17 and len(three) == 3 and size - 3 < max(three) <= size
    assert all(abs(second / first - 3.5) < 0.01 for first, second in itertools.pairwise(three))
    most = backend.batch_within(None, 1 << 27, 96)[1]
    assert [length / most for length in lengths(parts.growing(1 << 27, most))[1:3]] == pytest.approx([1 / 3.5, 1], 1e-5)
    assert lengths(parts.shrinking(1 << 22, 1 << 19))[-4:] == [1 << 19, 1 << 18, 1 << 17, 1 << 17]
    assert lengths(parts.shrinking(1 << 16, 1 << 18)) == [1 << 16]
    assert lengths(parts.shrinking(100, 1 << 18)) == [100]


class Waits(software_cupy.Stream):
    waited: list = []  # noqa: RUF012

    def wait_event(self, event):
        assert event.recorded
        Waits.waited.append((self, event))


@pytest.fixture
def software(monkeypatch):
    """CuPy played by software; kernels are only noted: name, copies of what they were given, and how they are cut."""
    launched = []

    def note(unit, kernel, grid, block, arguments, shared_bytes=0):
        launched.append((kernel, [np.array(it) for it in arguments], grid, block))
        if (seen := observe.watching()) is not None:
            observe.after_kernel(seen, kernel, observe.before_kernel(seen), 0)

    for module in (arena, backend, buckets, msm, parts):
        monkeypatch.setattr(module, "cupy", lambda: software_cupy)
        if hasattr(module, "launch"):
            monkeypatch.setattr(module, "launch", note)
        if hasattr(module, "multiprocessors"):
            monkeypatch.setattr(module, "multiprocessors", lambda: 132)
    monkeypatch.setattr(launch, "cupy", lambda: software_cupy)
    monkeypatch.setattr(software_cupy.cuda, "Stream", Waits)
    monkeypatch.setattr(Waits, "waited", [])
    main = Waits()
    with main:
        yield launched


@pytest.mark.parametrize("n, size", [(1000, 1000), (5000, 600), (777, 64)])
@pytest.mark.parametrize("scalars_there", [False, True])
def test_an_msm_takes_each_part_of_its_points_when_it_is_there(software, n, size, scalars_there):
    points = np.random.default_rng(n).integers(0, 1 << 60, (n, 12), dtype=np.uint64)
    scalars = np.arange(4 * n, dtype=np.uint64).reshape(n, 4)
    given = scalars
    if scalars_there:
        given = software_cupy.empty((n, 4), np.uint64)
        given[...] = scalars
    edges, cut = parts.growing(n, size), buckets.shape(n, 10, size)
    copying = parts.batches(edges, points, given)
    terms, shifts = buckets.terms_of("g1", cut, size, copying)
    assert len(terms) == len(shifts) + 1 and terms[-1].view(np.uint32)[0] == buckets.NONE_BAD
    digits = [arguments for kernel, arguments, *_ in software if kernel == "msm_digits"]
    sums = [arguments for kernel, arguments, *_ in software if kernel == "accumulate"]
    assert len(digits) == len(sums) == len(edges)
    for (begin, end), ours, theirs in zip(edges, digits, sums):
        assert (ours[0] == scalars[begin:end]).all() and (theirs[0] == points[begin:end]).all()
        assert not ours[6].any() and ours[9].view(np.uint32)[0] == buckets.NONE_BAD
        assert theirs[4] == (begin > 0)
    assert [kernel for kernel, *_ in software[-2:]] == ["chunk_sums", "bit_sums"]
    assert not arrivals._coming.events  # everything that was announced was waited for


@pytest.mark.parametrize("group, width", [("g1", 12), ("g2", 24)])
@pytest.mark.parametrize("n", [1, 64, 1000, 300_000])
def test_a_masked_sum_sees_each_part_of_its_points_with_its_bits(software, monkeypatch, group, width, n):
    monkeypatch.setattr(backend, "_LEAST_SLICE", 1 << 10)
    monkeypatch.setattr(parts, "_LEAST_TAIL", 1 << 7)
    monkeypatch.setattr(msm, "to_add", lambda group, sums: lambda: np.array(sums))
    points = np.random.default_rng(n).integers(0, 1 << 60, (n, width), dtype=np.uint64)
    bitmap = np.arange(-(-n // 64), dtype=np.uint64)
    sums = getattr(backend.CudaBackend, f"masked_sum_{group}").__wrapped__(backend.CudaBackend(), points, bitmap)
    assert 1 <= len(sums) <= 128
    begin = 0
    for (kernel, masks, *_), (other, listed, *_) in zip(software[:-1:2], software[1::2]):
        assert (kernel, other) == ("mask_indices", "sum_listed")
        count = int(masks[1])
        assert (listed[0] == points[begin : begin + count]).all()
        used = -(-count // 8)
        assert masks[0].tobytes()[:used] == bitmap[begin // 64 :].tobytes()[:used] and not masks[3].any()
        assert listed[3] == (begin > 0)
        begin += count
    assert begin == n and software[-1][0] == "block_sums"
    assert not arrivals._coming.events


def test_consecutive_kernels_share_the_event_between_them(software):
    events = observe.Events(software_cupy.cuda, 4)
    with observe.observed(events, software_cupy.cuda.get_current_stream()) as seen:
        for name in "ab":
            observe.after_kernel(seen, name, observe.before_kernel(seen), 0)
        with observe.consecutive():
            for name in "cde":
                observe.after_kernel(seen, name, observe.before_kernel(seen), 0)
        observe.after_kernel(seen, "f", observe.before_kernel(seen), 0)
    a, b, c, d, e, f = seen.kernels
    assert (d[1], e[1]) == (c[2], d[2])
    assert len({id(event) for _, start, end, _ in (a, b, c, e, f) for event in (start, end)}) == 10
    taken = list(seen.taken)
    assert len(taken) == len({id(event) for event in taken}) == 10
    seen.forget()
    assert {id(events.take()) for _ in range(10)} == {id(event) for event in taken}


def test_sums_left_for_the_host_are_added_up_there(software):
    one = fp_constant(1).reshape(-1)
    points = host.fixed_base_g1(ints_to_limbs(range(1, 67), 4))
    sums = software_cupy.empty((66, 24), np.uint64)
    sums[:, :12], sums[:, 12:18], sums[:, 18:] = points, one, one
    assert (msm.to_add("g1", sums)() == host.mul_g1(host.G1_GENERATOR, 66 * 67 // 2)).all()

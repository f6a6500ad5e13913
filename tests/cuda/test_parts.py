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


def launched(seen, name):
    observe.after_kernel(seen, name, observe.before_kernel(seen), 0)


def test_consecutive_kernels_share_the_event_between_them(software):
    events = observe.Events(software_cupy.cuda, 4)
    with observe.observed(events, software_cupy.cuda.get_current_stream()) as seen:
        for name in "ab":
            launched(seen, name)
        with observe.consecutive():
            for name in "cde":
                launched(seen, name)
        launched(seen, "f")
    a, b, c, d, e, f = seen.kernels
    assert (d[1], e[1]) == ((c[2],), (d[2],))
    assert len({id(event) for _, (start,), end, _ in (a, b, c, e, f) for event in (start, end)}) == 10
    taken = list(seen.taken)
    assert len(taken) == len({id(event) for event in taken}) == 10
    seen.forget()
    assert {id(events.take()) for _ in range(10)} == {id(event) for event in taken}


def test_a_kernel_that_waits_for_a_copy_begins_after_it_and_one_after_anything_else_has_its_own_event(software):
    stream, copies = software_cupy.cuda.get_current_stream(), software_cupy.cuda.Stream()
    array = software_cupy.empty((8,), np.uint64)
    with observe.observed(observe.Events(software_cupy.cuda), stream) as seen, observe.consecutive():
        launched(seen, "a")
        there = observe.end_copy(64, copies, observe.begin_copy(copies), needed=True)
        arrivals.announce(array, there, stream, observed=True)
        arrivals.needed(array)
        arrivals.needed(array)  # it is there: nothing more to wait for
        launched(seen, "b")
        launched(seen, "c")
        arena.clear(array, array)
        launched(seen, "d")
        arrivals.announce(array, software_cupy.cuda.Event(disable_timing=True), stream)
        stream.record(arrivals._coming.events[array.data.ptr][0])
        arrivals.needed(array)  # an event whose time nobody can ask for
        launched(seen, "e")
    a, b, c, d, e = seen.kernels
    assert b[1] == (a[2], there) and c[1] == (b[2],)
    own = [start for (start,) in (a[1], d[1], e[1])]
    assert len({id(event) for event in [*own, *(kernel[2] for kernel in seen.kernels)]}) == 8


def test_a_wait_before_the_first_kernel_leaves_it_an_event_of_its_own(software):
    stream = software_cupy.cuda.get_current_stream()
    with observe.observed(observe.Events(software_cupy.cuda), stream) as seen, observe.consecutive():
        observe.waits(object())
        launched(seen, "a")
    ((_, (start,), end, _),) = seen.kernels
    assert seen.taken == [start, end]


def test_copies_of_a_stream_share_the_event_before_them_and_those_that_are_waited_for_cost_nothing(software):
    events = observe.Events(software_cupy.cuda)
    one, other = software_cupy.cuda.Stream(), software_cupy.cuda.Stream()
    with observe.observed(events, one) as seen:
        for size, stream, needed in ((1, one, True), (2, other, False), (3, one, True)):
            observe.end_copy(size, stream, observe.begin_copy(stream), needed=needed)
    first, second, third = seen.copies
    assert [size for size, _, _ in seen.copies] == [1, 2, 3]
    assert first[1] is third[1] and second[1] is not first[1]
    assert len({id(event) for event in seen.taken}) == len(seen.taken) == 5
    seen.forget()
    assert events.watching == 3 and not seen.needed and not seen.copying


def test_nothing_is_recorded_of_copies_that_nobody_watches(software):
    stream = software_cupy.cuda.Stream()
    assert observe.begin_copy(stream) is None and observe.end_copy(8, stream, None, needed=True) is None


def test_a_watched_sum_costs_an_event_a_kernel(software, monkeypatch):
    monkeypatch.setattr(backend, "_LEAST_SLICE", 1 << 10)
    monkeypatch.setattr(parts, "_LEAST_TAIL", 1 << 7)
    monkeypatch.setattr(msm, "to_add", lambda group, sums: lambda: np.array(sums))
    points, bitmap = np.zeros((10_000, 12), np.uint64), np.zeros(157, np.uint64)
    with observe.observed(observe.Events(software_cupy.cuda), software_cupy.cuda.get_current_stream()) as seen:
        backend.CudaBackend.masked_sum_g1.__wrapped__(backend.CudaBackend(), points, bitmap)
    names = [name for name, *_ in seen.kernels]
    assert names == [*["mask_indices", "sum_listed"] * (len(names) // 2), "block_sums"]
    of_points = [there for size, _, there in seen.copies if size % 96 == 0]
    assert [before[1] for name, before, *_ in seen.kernels if name == "sum_listed"] == of_points
    assert [before[0] for _, before, *_ in seen.kernels[1:]] == [end for _, _, end, _ in seen.kernels[:-1]]
    # One before the first kernel, one before the first copy of each of two streams, one after each of all.
    assert len(seen.taken) == 1 + len(seen.kernels) + 2 + len(seen.copies) and seen.needed == len(of_points)


def test_kernels_of_a_watched_msm_begin_after_what_lies_before_them(software):
    """Each part's sort begins after zeroes are set, which take an event; all else when the kernel before has ended."""
    n, size = 5000, 1200
    points, scalars, edges = np.zeros((n, 12), np.uint64), np.zeros((n, 4), np.uint64), parts.growing(n, size)
    with observe.observed(observe.Events(software_cupy.cuda), software_cupy.cuda.get_current_stream()) as seen:
        buckets.terms_of("g1", buckets.shape(n, 10, size), size, parts.batches(edges, points, scalars))
    before = [(name, events[0], events[1:]) for name, events, *_ in seen.kernels]
    ends = [end for _, _, end, _ in seen.kernels]
    of_points = [there for _, _, there in seen.copies[1::2]]  # after the scalars of the same part
    assert len(edges) == len(of_points) == 6 and len(seen.kernels) == 7 * 6 + 2
    assert [more for name, _, more in before if name == "accumulate"] == [(there,) for there in of_points]
    assert not any(more for name, _, more in before if name != "accumulate")
    own = {name for (name, first, _), last in zip(before, [None, *ends]) if first is not last}
    assert own == {"msm_digits"} and not {id(first) for name, first, _ in before if name in own} & set(map(id, ends))
    # One before each part's sort, one after each kernel, one before the first copy, one after each of all.
    assert len(seen.taken) == len(edges) + len(seen.kernels) + 1 + len(seen.copies)


def test_sums_left_for_the_host_are_added_up_there(software):
    one = fp_constant(1).reshape(-1)
    points = host.fixed_base_g1(ints_to_limbs(range(1, 67), 4))
    sums = software_cupy.empty((66, 24), np.uint64)
    sums[:, :12], sums[:, 12:18], sums[:, 18:] = points, one, one
    assert (msm.to_add("g1", sums)() == host.mul_g1(host.G1_GENERATOR, 66 * 67 // 2)).all()

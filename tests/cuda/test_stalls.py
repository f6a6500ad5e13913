"""What calls of the host take from the kernels of other streams: the arithmetic anywhere, the measurement on a GPU."""

import pytest

from cuzklab.backends.cuda import host_calls, stalls
from cuzklab.backends.cuda.launch import cupy
from cuzklab.cli.stall_bench import sizes_of
from cuzklab.errors import BadInput
from tests.cuda_live import software_cupy

KERNELS = [(0, 10), (12, 20), (50, 60), (61, 70)]


def test_busy_time_is_what_lies_between_two_moments():
    assert stalls.busy_ns(KERNELS, 0, 70) == 10 + 8 + 10 + 9
    assert stalls.busy_ns(KERNELS, 5, 55) == 5 + 8 + 5
    assert stalls.busy_ns(KERNELS, 20, 50) == 0
    assert stalls.busy_ns([], 0, 10) == 0


def test_the_longest_gap_counts_whole_where_the_call_touches_it():
    assert stalls.longest_gap_ns(KERNELS, 0, 15) == 2
    assert stalls.longest_gap_ns(KERNELS, 30, 31) == 30
    assert stalls.longest_gap_ns(KERNELS, 51, 59) == 0
    assert stalls.longest_gap_ns(KERNELS[:1], 0, 100) == 0


def test_the_longest_launch():
    assert stalls.longest_ns(KERNELS, 0, 100) == 10
    assert stalls.longest_ns(KERNELS, 13, 19) == 8
    assert stalls.longest_ns(KERNELS, 20, 50) == 0


def test_a_launch_that_is_held_up_is_no_time_of_its_kernel():
    assert stalls.placed([(0, 10), (10, 20), (20, 330)]) == [(0, 10), (10, 20), (320, 330)]
    assert stalls.placed([(0, 4), (4, 14), (14, 24)]) == [(0, 4), (4, 14), (14, 24)]
    assert stalls.placed([]) == []


def test_sizes_are_read_or_refused_in_one_line():
    assert sizes_of("1,4,11.65") == [1.0, 4.0, 11.65]
    for bad in ("", "x", "0", "-1", "65", "1;2"):
        with pytest.raises(BadInput, match="write sizes in GiB"):
            sizes_of(bad)


@pytest.mark.gpu
def test_kernels_go_on_beside_a_launch_and_not_beside_a_full_stop():
    rows = stalls.measure((0.05,), repeats=1)
    assert {row.queue for row in rows} == {stalls.SHALLOW.name, stalls.DEEP.name}
    assert {"cudaHostRegister", "cudaHostUnregister", "cudaMalloc", "cudaFree", "pageable copy"} <= {
        row.name for row in rows
    }
    for row in rows:
        assert row.call_ms > 0 and row.alone_ms > 0
        assert 0 <= row.kernel_share < 1.2, row


@pytest.mark.gpu
def test_work_goes_on_beside_nothing():
    from cuzklab.backends.cuda.harness import Inputs, work_for

    work, _ = work_for("msm_g1", 1 << 14, Inputs())
    alone, none = stalls.throughput_beside(work, None, 0.2)
    assert alone > 5 and none == 0


def test_nothing_stays_page_locked_that_is_gone():
    """A lock that outlives its memory makes copies fail from whatever lies at those addresses later."""
    locked = software_cupy.runtime.locked
    before = set(locked)
    pair = host_calls.copying(software_cupy, 1 << 16)
    pair.do()
    pair.undo()
    assert len(set(locked) - before) == 1
    del pair
    assert set(locked) == before


@pytest.mark.gpu
def test_nothing_stays_page_locked_on_the_gpu(monkeypatch):
    runtime = cupy().cuda.runtime
    locked, register, unregister = set(), runtime.hostRegister, runtime.hostUnregister
    monkeypatch.setattr(runtime, "hostRegister", lambda at, *rest: (register(at, *rest), locked.add(at)))
    monkeypatch.setattr(runtime, "hostUnregister", lambda at: (unregister(at), locked.discard(at)))
    for pair in host_calls.pairs((0.01,)):
        pair.do()
        pair.undo()
    del pair
    assert not locked

"""Figures from tables, against numbers worked out by hand and against the definition of a union."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzklab.trace import Counter, Kernel, Recorder, RunInfo, Span, VramEvent, write_run
from cuzklab.trace.metrics import CALL, FAILED, HOST_MEMORY, PROVED, figures, steady_interval, union_length

S = 10**9


def _recorder() -> Recorder:
    """Four proofs of two partitions on one device; the fifth proof failed in one partition."""
    recorder = Recorder()
    recorder.add(Span(0, 10 * S, "synthesis", "cpu", proof=0, partition="p0.0"))
    for proof, (first, second) in enumerate([(12, 14), (16, 18), (19, 21), (23, 30)]):
        recorder.add(Span((first - 2) * S, first * S, PROVED, CALL, proof=proof, device=0))
        recorder.add(Span((second - 2) * S, second * S, PROVED, CALL, proof=proof, device=0))
    recorder.add(Span(30 * S, 32 * S, PROVED, CALL, proof=4, device=0))
    recorder.add(Span(32 * S, 40 * S, FAILED, CALL, proof=4, device=0))
    recorder.add(Kernel(10 * S, 20 * S, "ntt_h", device=0))
    recorder.add(Kernel(15 * S, 22 * S, "h_msm", device=0))
    recorder.add(VramEvent(11 * S, "alloc", "d_a", 4, 0, 4, 16))
    recorder.add(VramEvent(12 * S, "alloc", "d_bc", 8, 0, 12, 16))
    recorder.add(VramEvent(12 * S, "free", "d_bc", 8, 0, 4, 16))
    recorder.add(Counter(0, HOST_MEMORY, 70.0))
    recorder.add(Counter(5 * S, HOST_MEMORY, 85.0))
    recorder.add(Counter(6 * S, "queue synthesised", 900.0))
    return recorder


def _check(found):
    assert found.completed == (0, 1, 2, 3)
    assert found.wall_s == 40.0
    assert found.batch_average_s == 10.0
    assert found.steady_interval_s == 3.0  # 18 to 21
    assert found.prove_time_s == 4.0
    assert (found.peak_vram_bytes, found.peak_host_bytes) == (12, 85)
    assert found.kernel_occupancy == 12 / 40
    # calls: 10-14, 14-18, 17-21, 21-23, 28-40
    assert found.call_occupancy == (13 + 12) / 40
    assert found.reasons == {}


def test_known_figures_from_a_recorder_and_from_a_stored_run(tmp_path):
    _check(figures(_recorder(), 2))
    _check(figures(write_run(tmp_path / "run", RunInfo("simulated", "t"), _recorder()), 2))


def test_what_is_not_there_is_none_with_a_reason():
    found = figures(Recorder(), 2)
    assert list(found.known()) == []
    assert found.reasons["batch_average_s"] == "no proof was completed"
    assert found.reasons["steady_interval_s"] == "0 completed proofs; a steady interval needs 4"
    assert found.reasons["kernel_occupancy"] == "the run has no record of kernels"


def test_known_yields_the_kinds_of_the_figures():
    assert ("steady_interval_s", "steady_interval", 3.0) in list(figures(_recorder(), 2).known())


@pytest.mark.parametrize(
    ("completions", "expected"),
    [([0, 1, 2], None), ([0, 10, 13, 90], 3.0), ([0, 1, 3, 7, 50], 3.0), ([0, 9, 10, 12, 14, 16, 17, 90], 2.0)],
)
def test_steady_interval_is_the_mean_of_the_middle_half(completions, expected):
    assert steady_interval(np.array(completions)) == expected


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12))
def test_union_length_counts_each_covered_unit_once(intervals):
    starts = np.array([start for start, _ in intervals], np.int64)
    ends = np.array([start + length for start, length in intervals], np.int64)
    covered = {unit for start, length in intervals for unit in range(start, start + length)}
    assert union_length(starts, ends) == len(covered)

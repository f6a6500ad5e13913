"""Ranges on the GPU, with exact numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.analysis import projection
from cuzklab.analysis.kernel_names import short_name
from cuzklab.trace import ApiCall, Kernel, Recorder, RunInfo, Span, Transfer, write_run
from cuzklab.trace.nesting import nesting


def recorded(folder, *rows):
    recorder = Recorder(clock=lambda: 0)
    for row in rows:
        recorder.add(row)
    return write_run(folder / "run", RunInfo("imported", "projection"), recorder)


def span(start, end, name, thread="t1", style="push_pop"):
    return Span(start, end, name, "range", 1, thread, style=style)


def launch(at, end, correlation, thread="t1", process=1):
    return ApiCall(at, end, "cudaLaunchKernel", "runtime", process, thread, correlation)


def kernel(start, end, correlation, process=1):
    return Kernel(start, end, "k", "7", 0, None, process=process, correlation=correlation)


def test_span_busy_gap_and_queue(tmp_path):
    run = recorded(
        tmp_path,
        span(0, 100, "outer"), span(10, 40, "inner"), span(50, 60, "idle"), span(0, 100, "elsewhere", "t2"),
        launch(11, 15, 1), launch(20, 25, 2), launch(70, 75, 3), launch(200, 205, 4),
        kernel(30, 50, 1), kernel(40, 70, 2), kernel(90, 100, 3), kernel(300, 310, 4), kernel(400, 410, 99),
        Transfer(72, 80, 70, 8, "h2d", True, process=1, correlation=3),
    )  # fmt: skip
    found = projection.projected(run).set_index("range")
    assert list(found.index) == ["outer", "inner"]
    assert found.loc["outer", ["operations", "gpu_start_ns", "gpu_end_ns", "span_ns", "busy_ns", "gap_ns", "work_ns",
                               "queue_total_ns", "queue_max_ns", "depth", "children"]].tolist() == [
        4, 30, 100, 70, 40 + 8 + 10, 12, 20 + 30 + 8 + 10, 15 + 15 + 0 + 15, 15, 0, 1,
    ]  # fmt: skip
    assert found.loc["inner", ["operations", "span_ns", "busy_ns", "gap_ns", "work_ns"]].tolist() == [2, 40, 40, 0, 50]
    left = projection.outside(run)
    assert left[["thread", "operations", "work_ns"]].values.tolist() == [["", 1, 10], ["t1", 1, 10]]
    by_name = projection.by_name(run).set_index("range")
    assert by_name.loc["outer", ["count", "operations", "span_total_ns"]].tolist() == [1, 4, 70]
    assert by_name.loc["outer", "queue_mean_ns"] == pytest.approx(45 / 4)


def test_a_run_without_ranges_or_without_work(tmp_path):
    assert projection.projected(recorded(tmp_path, kernel(1, 2, 1))).empty
    assert projection.by_name(recorded(tmp_path, span(1, 2, "x"))).empty
    assert projection.outside(recorded(tmp_path)).empty


intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=14)


@settings(max_examples=20)
@given(ranges=intervals, work=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=12))
def test_busy_time_is_the_union_of_what_a_range_launched(ranges, work, tmp_path_factory):
    rows = [span(start, start + length, f"r{number}") for number, (start, length) in enumerate(ranges)]
    for number, (at, length) in enumerate(work, 1):
        rows += [launch(at, at + 1, number), kernel(at + number, at + number + length, number)]
    run = recorded(tmp_path_factory.mktemp("p"), *rows)
    found = projection.projected(run).set_index("range")
    for number, (start, length) in enumerate(ranges):
        owned = [(at + place, at + place + extent) for place, (at, extent) in enumerate(work, 1)
                 if start <= at < start + length]  # fmt: skip
        if not owned:
            assert f"r{number}" not in found.index
            continue
        moments = {moment for first, last in owned for moment in range(first, last)}
        row = found.loc[f"r{number}"]
        assert row["operations"] == len(owned)
        assert row["busy_ns"] == len(moments)
        assert row["span_ns"] == max(last for _, last in owned) - min(first for first, _ in owned)


@given(ranges=intervals)
def test_nesting_agrees_with_looking_at_every_pair(ranges):
    starts = np.array([start for start, _ in ranges], np.int64)
    ends = np.array([start + length for start, length in ranges], np.int64)
    stack = nesting(starts, ends)
    for row, parent in enumerate(stack.parent.tolist()):
        around = [other for other in range(len(ranges)) if other != row and starts[other] <= starts[row]
                  and ends[other] >= ends[row] and ends[other] > starts[row]
                  and (starts[other], -ends[other], other) < (starts[row], -ends[row], row)]  # fmt: skip
        if parent < 0:
            assert not around
        else:
            assert parent in around
            assert stack.depth[row] == stack.depth[parent] + 1
    moments = np.arange(45)
    for moment, inside in zip(moments, stack.innermost(moments), strict=True):
        under_way = [row for row in range(len(ranges)) if starts[row] <= moment < ends[row]]
        assert (inside in under_way) if under_way else inside == -1


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("void cub::DeviceReduce<Policy<double>, (int)3>::Kernel<4>(T1, T2)", "cub::DeviceReduce::Kernel"),
        ("void cub::CUB_200600_500_NS::Scan<int>(int*)", "cub::Scan"),
        ("ntt_kernel", "ntt_kernel"),
        ("void msm::(anonymous namespace)::sum(int*)", "msm::sum"),
        ("<>", "<>"),
    ],
)
def test_short_names_of_kernels(long, short):
    assert short_name(long) == short

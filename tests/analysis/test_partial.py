"""Runs with any of their tables absent: every table and every finding still comes out, and says what it lacks."""

import itertools

import pandas as pd
import pytest

from cuzklab.analysis import Case, calls, find_all, frames, locks, occupancy, overlap, stages, vram
from cuzklab.trace import TABLES, Recorder, RunInfo, write_run
from cuzklab.units import GiB
from tests.analysis.example import conditions, device, phase9_like, phase10_out_of_memory, phase10_roomy

TABLE_FUNCTIONS = (
    frames.timeline, frames.device_work, frames.cpu_work, locks.uses, locks.contention, locks.waited_for, vram.steps,
    vram.allocations, vram.peaks, vram.peak_holdings, vram.failed_requests, vram.failed_holdings, vram.leaks,
    overlap.stage_overlap, overlap.hidden, occupancy.occupancy, occupancy.idle_pieces, occupancy.idle, calls.calls,
    stages.stage_times, stages.inflation,
)  # fmt: skip


def without(folder, run, tables):
    """A copy of a run that lacks some tables."""
    from cuzklab.trace import load_run

    recorder = Recorder(clock=lambda: 0)
    for table, row_class in TABLES.items():
        if table not in tables:
            for row in run.table(table).astype(object).where(lambda frame: frame.notna(), None).to_dict("records"):
                recorder.add(row_class(**row))
    info = load_run(run.path).info
    return write_run(folder / f"{run.name}-without-{'-'.join(tables)}", info, recorder, not_captured=tuple(tables))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return phase9_like(folder), phase10_out_of_memory(folder), phase10_roomy(folder)


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    info = RunInfo("live", "empty", policy="phase9", conditions=conditions(), devices=device(16 * GiB))
    return write_run(tmp_path_factory.mktemp("empty") / "run", info, Recorder(clock=lambda: 0))


@pytest.mark.parametrize("function", TABLE_FUNCTIONS, ids=lambda function: f"{function.__module__}.{function.__name__}")
def test_an_empty_run_gives_tables_without_rows_but_of_the_same_columns_and_types(function, empty, whole):
    nothing = function(empty)
    assert nothing.empty
    for run in whole:
        something = function(run)
        if len(something):
            assert list(nothing.columns) == list(something.columns)
            kinds = [
                (
                    column,
                    pd.api.types.is_numeric_dtype(nothing[column]),
                    pd.api.types.is_numeric_dtype(something[column]),
                )
                for column in nothing
            ]
            assert all(left == right for _, left, right in kinds), kinds


@pytest.mark.parametrize("tables", [(table,) for table in TABLES] + list(itertools.combinations(("spans", "kernels",
                         "locks", "waits", "vram"), 2)) + [tuple(TABLES)], ids="-".join)  # fmt: skip
def test_findings_of_partial_runs(tables, whole, tmp_path):
    runs = tuple(without(tmp_path, run, tables) for run in whole)
    for run in runs:
        for function in TABLE_FUNCTIONS:
            function(run)
    found = find_all(Case("phase10_ordered", "phase9", runs))
    assert {"ran_out_of_memory", "baseline_completed"} <= {one.id for one in found}
    told = " ".join(one.claim for one in found)
    if {"spans", "kernels"} <= set(tables):
        assert "kernels (not captured)" in told
    if "vram" in tables:
        assert "vram (not captured)" in told


def test_a_run_without_rows_for_a_candidate_and_a_baseline(empty):
    assert find_all(Case("phase9", "phase9", (empty,)))

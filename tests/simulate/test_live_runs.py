"""Calibration to live runs: recorded by hand here, real ones in the slow suite."""

import shutil
from collections import defaultdict
from dataclasses import replace

import pandas as pd
import pyarrow.parquet as pq
import pytest

from cuzklab.errors import BadInput
from cuzklab.live import run_live
from cuzklab.profiles import load_hardware, scaled_workload
from cuzklab.simulate import simulate
from cuzklab.simulate.fit import fit
from cuzklab.simulate.live_runs import (
    LOCK_WAIT,
    problem_of_runs,
    run_figures,
    simulate_run,
    simulation_figures,
    stage_rates,
    transfer_constants,
    without_load,
)
from cuzklab.trace import RunInfo, load_run, write_run
from cuzklab.units import GiB


def as_live(folder, policy, workers, hardware):
    """A simulation, stored as if it had been live: its stage times are known exactly."""
    found = simulate(
        policy, hardware, scaled_workload(12, 4), proofs=1, in_flight=1, gpu_workers=workers, synthesis_workers=2,
        lookahead=4, vram_bytes=hardware.device.vram_bytes, seed=5,
    )  # fmt: skip
    assert found.outcome == "ok", found.explanation
    metrics = tuple(metric.to_json() for metric in found.metrics.values())
    conditions = {**found.conditions, "gt": 1, "hardware": "emulated"}
    info = RunInfo(
        origin="live", title="", outcome="ok", policy=policy, conditions=conditions, devices=found.devices,
        metrics=metrics,
    )  # fmt: skip
    return write_run(folder, info, found.recorder)


@pytest.fixture
def quiet_machine():
    """Enough cores, no memory contention, no spread: stages last what they last alone."""
    emulated = load_hardware("emulated")
    return replace(
        emulated,
        host=replace(emulated.host, cores=16),
        device=replace(emulated.device, vram_bytes=2 << 20, margin_bytes=1 << 14),
        spread=replace(emulated.spread, values={"synthesis": 1e-9}),
        memory_share=replace(emulated.memory_share, values={}),
    )


def test_a_stage_of_many_kernels_lasts_from_the_first_to_the_last(tmp_path, quiet_machine):
    """As on a GPU: kernels have names of their own, and say which stage launched them."""
    whole = as_live(tmp_path / "whole", "phase9", 2, quiet_machine)
    table = pq.read_table(whole.path / "kernels.parquet").to_pandas()
    middle = (table["start"] + table["end"]) // 2
    halves = [table.assign(end=middle - 1, name="first"), table.assign(start=middle, name="second")]
    shutil.copytree(whole.path, tmp_path / "halves")
    pd.concat(halves).to_parquet(tmp_path / "halves" / "kernels.parquet", index=False)
    shape = scaled_workload(12, 4).shape
    halves, rates = (stage_rates([run], shape, quiet_machine) for run in (load_run(tmp_path / "halves"), whole))
    assert halves.pop("ntt_h") == pytest.approx(rates.pop("ntt_h"), rel=1e-6)  # without the 1 ns between its kernels
    assert halves == rates


def test_stage_times_and_copies_are_measured_in_the_runs(tmp_path, quiet_machine):
    runs = [as_live(tmp_path / policy, policy, 2, quiet_machine) for policy in ("phase8", "phase9")]
    shape = scaled_workload(12, 4).shape
    found = stage_rates(runs, shape, quiet_machine)
    for stage in ("synthesis", "prep_msm", "ntt_h", "h_msm", "tail_msm", "b_g2_msm", "epilogue"):
        assert found[stage] == pytest.approx(quiet_machine.rate(stage), rel=1e-3), stage
    copies = transfer_constants(runs, shape)
    for name in ("pin_s_per_byte", "unpin_s_per_byte", "pageable_bytes_per_s", "pinned_bytes_per_s"):
        assert copies[f"transfer.{name}"] == pytest.approx(quiet_machine.constant(f"transfer.{name}"), rel=1e-3), name


def test_runs_that_were_not_fitted_are_predicted_where_the_truth_is_known(tmp_path, quiet_machine, monkeypatch):
    monkeypatch.setattr("cuzklab.simulate.live_runs.load_hardware", lambda name: quiet_machine)
    keys = [("phase8", 1), ("phase9", 2), ("phase8", 2), ("phase9", 1)]
    runs = [as_live(tmp_path / f"{policy}-{workers}", policy, workers, quiet_machine) for policy, workers in keys]
    problem, words = problem_of_runs([run.path for run in runs[:2]])
    assert words == "2 live runs" and len(problem.targets) == 3  # two batch averages, and one wait for a lock
    for run in runs[2:]:
        measured, predicted = run_figures(run), simulation_figures(simulate_run(run, problem.hardware, 0))
        assert predicted["batch_average_s"] == pytest.approx(measured["batch_average_s"], rel=0.02)
        assert predicted[LOCK_WAIT] == pytest.approx(measured[LOCK_WAIT], rel=0.05, abs=0.01)


def test_a_rate_that_was_measured_under_load_is_not_slowed_twice(tmp_path, quiet_machine):
    """With 3 syntheses of 4 threads on few cores, stages are simulated as long as they were."""
    crowded = quiet_machine.with_constants({"host.cores": 2})
    run = as_live(tmp_path / "crowded", "phase9", 2, crowded)
    measured = stage_rates([run], scaled_workload(12, 4).shape, crowded)
    loaded = crowded.with_constants({f"rates.{stage}": rate for stage, rate in measured.items()})
    alone = without_load(loaded, [run])
    for stage in ("synthesis", "prep_msm"):
        assert alone.constant(f"rates.{stage}") == pytest.approx(crowded.rate(stage), rel=0.05), stage


@pytest.mark.slow
@pytest.mark.parametrize(("slower_link", "repeats"), [(12, 1), (1, 5)], ids=["bound by the link", "by computing"])
def test_throughput_and_lock_waits_of_live_runs_that_were_not_fitted_are_predicted(tmp_path, slower_link, repeats):
    """On a link so slow that what the machine does besides matters little, and on one that hardly counts.

    There the other work of the machine does: of several runs of each kind, in turns, the median one is taken.
    """
    emulated = load_hardware("emulated")
    link = emulated.transfer
    slow = replace(
        emulated,
        transfer=replace(
            link,
            pinned_bytes_per_s=link.pinned_bytes_per_s / slower_link,
            pageable_bytes_per_s=link.pageable_bytes_per_s / slower_link,
            pin_s_per_byte=link.pin_s_per_byte * slower_link,
            unpin_s_per_byte=link.unpin_s_per_byte * slower_link,
        ),
    )
    found = defaultdict(list)
    for number in range(repeats):
        for policy, workers in (("phase8", 1), ("phase9", 2), ("phase8", 2), ("phase9", 1)):
            result = run_live(
                policy, 12, proofs=1, partitions=4, gpu_workers=workers, synthesis_workers=2, lookahead=4,
                vram_bytes=48 * GiB, hardware=slow,
            )  # fmt: skip
            assert result.outcome == "ok"
            found[policy, workers].append(result.write(tmp_path / f"{policy}-{workers}-{number}"))
    runs = {
        key: sorted(ones, key=lambda run: run_figures(run)["batch_average_s"])[repeats // 2]
        for key, ones in found.items()
    }
    problem, _ = problem_of_runs([runs["phase8", 1].path, runs["phase9", 2].path])
    best = fit(problem, seeds=(0, 1), iterations=3, replicates=0).members[0]
    machine = problem.hardware.with_constants(best)
    for key in (("phase8", 2), ("phase9", 1)):
        measured = run_figures(runs[key])
        predicted = simulation_figures(simulate_run(runs[key], machine, 0))
        assert predicted["batch_average_s"] == pytest.approx(measured["batch_average_s"], rel=0.1), key
        if measured[LOCK_WAIT] > 0.05 * measured["wall_s"]:
            assert predicted[LOCK_WAIT] == pytest.approx(measured[LOCK_WAIT], rel=0.1), key


def test_runs_that_cannot_be_calibrated_to_are_refused(tmp_path):
    stored = simulate(
        "phase9", "emulated", scaled_workload(12, 2), proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=1,
        vram_bytes=32 * GiB,
    ).to_run(tmp_path / "run")  # fmt: skip
    with pytest.raises(BadInput, match="a simulated run; only live ones"):
        problem_of_runs([stored.path])

"""Stored live runs beside simulations of them: what is a prediction, what a repetition, and how far off."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cuzklab.cli import app
from cuzklab.errors import BadInput
from cuzklab.profiles import Calibration, load_hardware, scaled_workload
from cuzklab.simulate import simulate
from cuzklab.simulate.live_runs import identity_of_run, simulate_run
from cuzklab.simulate.validate_runs import find_runs, other_machine, summary, validate_runs
from cuzklab.trace import RunInfo, load_run, write_run
from cuzklab.units import GiB


def live(folder, policy="phase8", workers=2, slower=1.0, outcome="ok", created="", gpus=1):
    """A simulation stored as a live run whose batch average is another one by a factor."""
    found = simulate(
        policy, "emulated", scaled_workload(12, 2), proofs=2, in_flight=2, gpu_workers=workers, synthesis_workers=2,
        lookahead=4, vram_bytes=48 * GiB, seed=0, gpus=gpus,
    )  # fmt: skip
    metrics = [metric.to_json() for metric in found.metrics.values()]
    for metric in metrics:
        metric["value"] *= slower if metric["kind"] == "batch_average" else 1
    conditions = {**found.conditions, "gt": 1}
    info = RunInfo("live", "", outcome, "", policy, conditions, found.devices, metrics=tuple(metrics), created=created)
    return write_run(folder, info, found.recorder)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    for name, slower in (("r1", 0.5), ("r2", 2.0), ("r3", 2.0)):
        live(place / "a" / f"phase8-{name}", slower=slower)
    live(place / "b" / "phase9-r1", policy="phase9", slower=1.25)
    live(place / "b" / "phase7-r1", policy="phase7", workers=1, outcome="device_oom")
    return place


@pytest.fixture
def fitted_to_r1(store):
    """The machine that the runs were made with, fitted to one of them."""
    fitted = identity_of_run(load_run(store / "a" / "phase8-r1"))
    calibration = Calibration("by hand", (), ((),), 0.05, 0.05, (), (fitted,))
    return replace(load_hardware("emulated"), calibration=calibration)


def test_predictions_and_repetitions_are_told_apart(store, fitted_to_r1):
    kinds = {kind.words.split(",")[0]: kind for kind in validate_runs([store], fitted_to_r1, seeds=(0,))}
    assert kinds["phase8"].use == "repetition" and kinds["phase8"].runs == ("phase8-r2", "phase8-r3")
    assert kinds["phase8"].fitted == ("phase8-r1",)
    assert kinds["phase9"].use == "prediction"
    # Each run is its own simulation but for the factor: both errors are known.
    assert kinds["phase8"].figures["batch_average_s"].error == pytest.approx(-0.5)
    assert kinds["phase9"].figures["batch_average_s"].error == pytest.approx(1 / 1.25 - 1)
    assert kinds["phase9"].figures["peak_vram_bytes"].error == 0
    assert kinds["phase8"].met("batch_average_s") is False and kinds["phase8"].met("lock_wait_s") is True
    low, high = kinds["phase9"].figures["batch_average_s"].interval
    assert low < kinds["phase9"].figures["batch_average_s"].simulated < high


@pytest.mark.parametrize(
    ("cores", "backend", "words"),
    [
        (16, "cuda", ""),
        (2, "cuda", "2 cores, not 16"),
        (16, "host", "kernels on the CPU, not on a GPU"),
        (2, "host", "2 cores, not 16; kernels on the CPU, not on a GPU"),
        (None, None, ""),  # not known
    ],
)
def test_runs_of_another_machine_than_the_profiles_are_told(store, cores, backend, words):
    run = load_run(store / "b" / "phase9-r1")
    machine = {"cores": cores} if cores else {}
    conditions = {**run.info.conditions, **({"backend": backend} if backend else {})}
    elsewhere = replace(run, info=replace(run.info, machine=machine, conditions=conditions))
    assert other_machine(elsewhere, load_hardware("h200-16core-live")) == words


def test_the_command_says_that_errors_are_of_the_machines_too(store):
    place = store.parent / "elsewhere"
    run = live(place / "phase9-r1", policy="phase9")
    info = json.loads((run.path / "run.json").read_text())
    info["machine"] = {**info["machine"], "cores": 3}
    (run.path / "run.json").write_text(json.dumps(info))
    command = ["validate", str(place), "--hardware", "emulated", "--seeds", "1"]
    done = CliRunner().invoke(app, command)
    cores = load_hardware("emulated").host.hardware_threads
    assert done.exit_code == 0
    assert f"a machine other than emulated (3 cores, not {cores})" in " ".join(done.output.split())
    (kind,) = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)["kinds"]
    assert kind["elsewhere"] == f"3 cores, not {cores}"


def test_a_run_that_did_not_end_well_has_outcomes_instead_of_figures(store, fitted_to_r1):
    (kind,) = [one for one in validate_runs([store / "b"], fitted_to_r1, seeds=(0,)) if "phase7" in one.words]
    assert kind.figures == {} and kind.outcomes == ("device_oom",) and kind.simulated_outcomes == ("ok",)


def test_the_summary_counts_by_use(store, fitted_to_r1):
    lines = {(one["use"], one["figure"]): one for one in summary(validate_runs([store], fitted_to_r1, seeds=(0,)))}
    assert lines["prediction", "batch_average_s"]["kinds"] == 1
    assert lines["prediction", "batch_average_s"]["within"] == 0
    assert lines["repetition", "batch_average_s"]["largest_error"] == pytest.approx(0.5)
    assert lines["repetition", "peak_vram_bytes"]["within"] == 1


def test_what_was_measured_is_expected_within_the_interval_or_among_the_seeds(store, fitted_to_r1):
    kinds = {one.words.split(",")[0]: one for one in validate_runs([store], fitted_to_r1, seeds=(0, 1, 2))}
    average = kinds["phase8"].figures["batch_average_s"]
    low, high = average.range
    assert low <= average.simulated <= high and not average.expected  # the runs are half as fast
    assert kinds["phase8"].figures["peak_vram_bytes"].expected
    assert replace(average, measured=(2 * high, high)).expected
    assert replace(average, measured=(average.interval[1],), range=(low, low)).expected
    lines = {(one["use"], one["figure"]): one["expected"] for one in summary(list(kinds.values()))}
    assert lines["repetition", "batch_average_s"] == 0 and lines["repetition", "peak_vram_bytes"] == 1


def test_seeds_that_do_not_end_as_the_runs_did_are_told_and_left_out(store, monkeypatch):
    """Where the order of two threads decides, one seed runs out of memory and another does not."""

    def drawn(run, hardware, seed):
        found = simulate_run(run, hardware, seed)
        return replace(found, outcome="device_oom", metrics={}) if seed in (1, 3) else found

    monkeypatch.setattr("cuzklab.simulate.validate_runs.simulate_run", drawn)
    kinds = {one.words.split(",")[0]: one for one in validate_runs([store], load_hardware("emulated"), seeds=range(5))}
    assert kinds["phase9"].figures["batch_average_s"].error == pytest.approx(1 / 1.25 - 1, rel=0.1)
    assert kinds["phase9"].shown and kinds["phase7"].figures == {} and kinds["phase7"].shown
    shown = CliRunner().invoke(app, ["validate", str(store), "--hardware", "emulated", "--seeds", "5"])
    assert "measured ok; simulated ok 3×, device_oom 2×" in shown.output
    assert "failures that some seed shows: 1 of 1" in shown.output


def test_where_no_run_ended_well_there_are_outcomes_and_no_table(tmp_path):
    live(tmp_path / "phase7-r1", policy="phase7", workers=1, outcome="device_oom")
    command = ["validate", str(tmp_path), "--hardware", "emulated", "--seeds", "1"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0 and "errors: simulated over measured" not in shown.output
    assert "measured device_oom; simulated ok" in shown.output
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert found["summary"] == [] and [one["figures"] for one in found["kinds"]] == [{}]


def test_all_runs_of_a_kind_may_be_fitted(store, fitted_to_r1):
    names = [load_run(store / "a" / f"phase8-r{n}") for n in (1, 2, 3)]
    machine = replace(
        fitted_to_r1, calibration=replace(fitted_to_r1.calibration, runs=tuple(map(identity_of_run, names)))
    )
    (kind,) = validate_runs([store / "a"], machine, seeds=(0,))
    assert kind.use == "fit" and len(kind.runs) == 3


def test_the_table_and_its_json(store):
    shown = CliRunner().invoke(app, ["validate", str(store), "--hardware", "emulated", "--seeds", "1"])
    assert shown.exit_code == 0, shown.output
    assert "SIMULATION on emulated" in shown.output and "prediction" in shown.output
    assert "measured device_oom; simulated ok" in shown.output
    found = CliRunner().invoke(app, ["validate", str(store), "--hardware", "emulated", "--seeds", "1", "--json"])
    answer = json.loads(found.stdout)
    assert {line["use"] for line in answer["summary"]} == {"prediction"}
    assert len(answer["kinds"]) == 3


def test_a_folder_without_runs_and_a_simulated_run_are_refused(tmp_path, store):
    with pytest.raises(BadInput, match="neither a stored run nor a folder with some in it"):
        find_runs([tmp_path])
    assert find_runs([store / "a", store / "a" / "phase8-r1"]) == [store / "a" / f"phase8-r{n}" for n in (1, 2, 3)]
    simulate(
        "phase9", "emulated", scaled_workload(12, 2), proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=1,
        vram_bytes=32 * GiB,
    ).to_run(tmp_path / "run")  # fmt: skip
    with pytest.raises(BadInput, match="a simulated run"):
        validate_runs([tmp_path], load_hardware("emulated"))


def tampered(folder, store, change):
    """A stored live run with another run.json."""
    run = shutil.copytree(store / "a" / "phase8-r1", folder / "tampered")
    record = json.loads((run / "run.json").read_text())
    change(record)
    (run / "run.json").write_text(json.dumps(record))
    return run


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["conditions"].update(gt="x"), "condition gt is 'x'; it must be a whole number from 1"),
        (lambda record: record["conditions"].update(gt=0), "condition gt is 0"),
        (lambda record: record["conditions"].update(gw=[1]), "condition gw is"),
        (lambda record: record["conditions"].update(c="2"), "condition c is '2'"),
        (lambda record: record["conditions"].update(vram_bytes=True), "condition vram_bytes is True"),
        (lambda record: record["conditions"].update(vram_equivalent_bytes="a"), "condition vram_equivalent_bytes is"),
        (lambda record: record["conditions"].update(urgent="window-post after 1"), "urgent proofs"),
        (lambda record: record.update(conditions=[]), "conditions"),
        (lambda record: record.update(devices=[]), "margin_bytes"),
        (lambda record: record["devices"][0].pop("margin_bytes"), "margin_bytes"),
        (lambda record: record["devices"][0].update(margin_bytes=-1), "margin_bytes"),
        (lambda record: record.update(metrics=[]), "batch_average"),
        (lambda record: record["metrics"][0].update(value=float("nan")), "metric"),
        (lambda record: [metric.update(value=0) for metric in record["metrics"]], "metric"),
        (lambda record: record.update(policy="mine"), "policy mine"),
        (lambda record: record.update(policy=["phase8"]), "policy"),
    ],
)
def test_a_run_json_that_cannot_be_simulated_is_refused_in_one_line(change, message, store, tmp_path):
    run = tampered(tmp_path, store, change)
    with pytest.raises(BadInput) as refused:
        validate_runs([run], load_hardware("emulated"), seeds=(0,))
    assert message in str(refused.value) and "tampered" in str(refused.value) and "\n" not in str(refused.value)


def test_no_code_is_run_that_a_run_json_names(store, tmp_path):
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    run = tampered(tmp_path, store, lambda record: record.update(policy=str(tmp_path / "mine.py")))
    with pytest.raises(BadInput, match="policy"):
        validate_runs([run], load_hardware("emulated"), seeds=(0,))
    assert not (tmp_path / "ran").exists()


def test_a_run_on_two_devices_is_simulated_on_two(tmp_path):
    live(tmp_path / "two", gpus=2)
    (kind,) = validate_runs([tmp_path], load_hardware("emulated"), seeds=(0,))
    assert kind.figures["batch_average_s"].error == 0


def test_runs_that_are_being_written_are_left_out_and_none_counts_twice(tmp_path, store, monkeypatch):
    shutil.copytree(store / "b" / "phase9-r1", tmp_path / "runs" / ".phase9-r2.part")
    run = shutil.copytree(store / "b" / "phase9-r1", tmp_path / "runs" / "phase9-r1")
    monkeypatch.chdir(tmp_path)
    assert find_runs([Path("runs"), run]) == [Path("runs/phase9-r1")]

"""Grids: the shipped ones can be made, names are told apart, and what a grid made serves the phases' reports."""

import pytest

from cuzklab import experiment, grid
from cuzklab.analysis import partition_times
from cuzklab.errors import BadInput
from cuzklab.trace import Recorder, RunInfo, write_run


@pytest.mark.parametrize("name", grid.names())
def test_a_shipped_grid_has_runs_of_different_names_in_rounds(name):
    runs = grid.runs_of(grid.load(name), "cuda")
    assert len({step.name for step in runs}) == len(runs) > 10
    assert [step.repeat for step in runs] == sorted(step.repeat for step in runs)


def test_what_the_grid_made_serves_every_phases_report():
    whole = grid.load("h200")
    made = {step.key for step in grid.runs_of(whole, "cuda")}
    shared = ("log2_domain", "proofs", "partitions", "synthesis_workers", "threads", "repeats")
    parameters = {name: whole.parameters[name] for name in shared}
    for phase in experiment.names():
        live = [step for step in experiment.steps(experiment.load(phase, parameters), "cuda") if step.do == "live"]
        assert live and {step.label for step in live if step.key not in made} == set(), phase


def test_a_grid_makes_live_runs_only(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        'title = "t"\n[parameters]\n[[step]]\ndo = "check"\npolicy = "phase9"\nworkers = 1\nvram = "1GiB"\n'
    )
    with pytest.raises(BadInput, match=r"step 1: a grid makes live runs"):
        grid.load(str(file))


def test_a_file_called_as_a_shipped_policy_has_runs_of_its_own(tmp_path):
    own, file = tmp_path / "phase9.py", tmp_path / "own.toml"
    own.write_text("")
    file.write_text(
        'title = "t"\n[parameters]\nlog2_domain = 8\nproofs = 1\npartitions = 1\nseed = 1\n'
        f'[[step]]\ndo = "live"\npolicy = ["phase9", "{own}"]\nworkers = 1\nvram = "20000GiB"\n'
    )
    shipped, mine = (step.name for step in grid.runs_of(grid.load(str(file)), "host"))
    assert (shipped, mine) == ("phase9-gw1-pw1-20000G-2p8-r1", "phase9-phase9.py-gw1-pw1-20000G-2p8-r1")


def test_a_grid_goes_on_where_it_stopped_and_starts_nothing_after_its_time(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        'title = "t"\n[parameters]\nlog2_domain = 8\nproofs = 1\npartitions = 1\nseed = 1\n'
        '[[step]]\ndo = "live"\npolicy = ["phase8", "phase9"]\nworkers = 1\nvram = "20000GiB"\n'
    )
    todo = grid.runs_of(grid.load(str(file)), "host")
    times = iter((0.0, 0.0, 5.0))
    first, left = grid.make(todo, tmp_path / "out", stop_after_s=1.0, clock=lambda: next(times))
    assert first.run is not None and first.run.info.outcome == "ok" and left.run is None
    again, second = grid.make(todo, tmp_path / "out")
    assert again.run is not None and again.run.info.created == first.run.info.created
    assert second.run is not None and second.run.info.outcome == "ok"


def test_a_run_that_no_partition_came_to_the_device_in_has_a_row_of_its_own(tmp_path):
    recorder = Recorder()
    run = write_run(tmp_path / "run", RunInfo(origin="live", title="t", outcome="deadlock"), recorder)
    assert partition_times.of_run(run) == {}

"""Calibration end to end at a small scale: published rows in, a profile out that can be loaded and is better."""

import json

import pytest
from typer.testing import CliRunner

from cuzklab.cli import app
from cuzklab.errors import BadInput
from cuzklab.profiles import Calibration, load_hardware
from cuzklab.profiles.write import with_values, write_calibrated
from cuzklab.simulate import calibrate, load_published, simulate
from cuzklab.simulate.calibrate import FREE_CONSTANTS, problem_of_rows

HARDWARE = "rtx5070ti-7995wx"
ROW = """
[[row]]
policy = "phase12"
kind = "batch_average"
value = {value}
conditions = {{ c = 1, j = 1, pw = {pw}, gw = 1 }}
fit = true
"""


@pytest.fixture
def rows_file(tmp_path):
    """Rows that a simulation of another machine gave: twice as sensitive to others' memory traffic."""
    other = load_hardware(HARDWARE)
    other = other.with_constants({"host.memory_efficiency": other.host.memory_efficiency / 2})
    text = f'title = "t"\nsource = "s"\nhardware = "{HARDWARE}"\nworkload = "porep-32g"\n'
    for pw in (1, 10):
        found = simulate("phase12", other, "porep-32g", proofs=1, in_flight=1, gpu_workers=1, synthesis_workers=pw)
        text += ROW.format(value=found.metrics["batch_average_s"].value, pw=pw)
    file = tmp_path / "rows.toml"
    file.write_text(text)
    return file


def test_a_profile_is_fitted_written_and_better(rows_file, tmp_path):
    place = tmp_path / "mine.toml"
    found = calibrate([rows_file], place=place, default_folder=tmp_path, seeds=(0,), iterations=2, replicates=2)
    written, before = load_hardware(place), load_hardware(HARDWARE)
    assert written.calibrated and written.calibration.constants == tuple(one.name for one in FREE_CONSTANTS)
    fitted = written.host.memory_efficiency / before.host.memory_efficiency
    assert fitted < 0.9
    assert "host.cache_pressure" in written.calibration.unidentified
    assert written.calibration.member(0)["host.memory_efficiency"] == pytest.approx(written.host.memory_efficiency)
    assert max(abs(left) for left in found.fit.residuals) < 0.05
    text = place.read_text()
    assert "# nonzeros" in text and text.count("\n[calibration]") == 1
    lines = found.constant_rows()
    assert {line["constant"]: line["identified"] for line in lines}["host.cache_pressure"].startswith("NO")
    assert json.dumps(found.to_json())


def test_only_rows_marked_for_it_are_fitted():
    problem = problem_of_rows(load_published())
    assert len(problem.targets) == sum(row.fit for row in load_published())
    with pytest.raises(BadInput, match="no row is marked"):
        problem_of_rows([row for row in load_published() if not row.fit])


def test_command_line_refuses_what_cannot_be_calibrated_to(tmp_path):
    for arguments, message in (
        (["--calibrate", str(tmp_path / "absent.toml")], "absent.toml: No such file"),
        (["--calibrate", str(tmp_path)], "run.json"),
        (["phase9", "phase8"], "simulate takes one policy, not 2"),
        (["phase9", "--seeds", "0"], "seeds is 0"),
        ([], "simulate takes one policy, not 0"),
    ):
        result = CliRunner().invoke(app, ["simulate", *arguments])
        assert result.exit_code != 0 and message in str(result.exception), result.output


def test_a_constant_that_does_not_stand_in_the_file_cannot_be_set(tmp_path):
    with pytest.raises(BadInput, match=r"field host\.colour does not stand there"):
        with_values("[host]\ncores = 1\n", {"host.colour": 2.0}, "x.toml")
    assert (
        with_values("[host]\na = 1  # why\n[b]\na = 2\n", {"host.a": 3.5}, "x")
        == "[host]\na = 3.5  # why\n[b]\na = 2\n"
    )
    prose = '[host]\nsource = """as measured;\n[b] says more."""\ncores = 1\n[b]\ncores = 2\n'
    assert with_values(prose, {"host.cores": 3.0}, "x") == prose.replace("cores = 1", "cores = 3.0")
    added = with_values("[host]\ncores = 1\n\n[spread]\nprep_msm = 1\n", {"host.wakeup_penalty": 2.0}, "x")
    assert added == "[host]\ncores = 1\nwakeup_penalty = 2.0\n\n[spread]\nprep_msm = 1\n"
    with pytest.raises(BadInput, match=r"field launch\.ntt_h does not stand there"):
        with_values("[host]\ncores = 1\n", {"launch.ntt_h": 2.0}, "x.toml")
    bad = Calibration("s", ("host.memory_efficiency",), ((7.0,),), 0.1, 0.1, ())
    with pytest.raises(BadInput, match=r"host\.memory_efficiency"):
        write_calibrated(HARDWARE, tmp_path / "x.toml", {"host.memory_efficiency": 7.0}, bad)
    assert not (tmp_path / "x.toml").exists()

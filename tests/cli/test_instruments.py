"""`bench instruments` measures and judges; `runs recover` makes a run of what a crash left."""

import json

import pytest
from typer.testing import CliRunner

from cuzklab.cli import app
from cuzklab.trace.recorders import Recording
from cuzklab.trace.recorders.spans import span_of


def test_costs_are_measured_and_judged():
    done = CliRunner().invoke(
        app,
        [
            "bench",
            "instruments",
            "--rounds",
            "3",
            "--loops",
            "100",
            "--events",
            "4000",
            "--runs",
            "1",
            "--log2-domain",
            "9",
            "--json",
        ],
    )
    found = json.loads(done.stdout)
    assert done.exit_code == (0 if found["within"] else 1)
    by_name = {row["operation"]: row for row in found["rows"]}
    assert {"lock round trip", "span, kept", "allocation and free"} <= set(by_name)
    for row in found["rows"]:
        assert {"added_ns", "added_with_draining_ns"} <= set(row)  # how large they are is no matter of a test
        assert row["within"] == (row["bound_ns"] is None or row["added_ns"] <= row["bound_ns"])
    volume = found["volume"]
    assert (volume["rows"], volume["lost"]) == ({"spans": 2400, "locks": 1200, "vram": 400}, {})
    assert 0 < volume["base_bytes"] <= volume["peak_bytes"]
    assert found["run"]["rows"]["spans"] > 0 and found["run"]["share"] > 0


def test_a_crashed_recording_is_recovered(tmp_path):
    recording = Recording(spill=tmp_path / "spill")
    with recording, span_of(recording)("it"):
        pass
    done = CliRunner().invoke(app, ["runs", "recover", str(tmp_path / "spill"), "-o", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["availability"]["spans"]["rows"] == 1


def test_what_is_no_recording_is_refused(tmp_path):
    done = CliRunner().invoke(app, ["runs", "recover", str(tmp_path), "-o", str(tmp_path / "run")])
    assert done.exit_code != 0 and not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="not the folder of a recording"):
        raise done.exception

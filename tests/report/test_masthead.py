"""What a page says of itself: its kind, and the machine of its runs where that is another than the report's."""

from dataclasses import replace

import pytest

from cuzklab import __version__
from cuzklab.report.masthead import kind_of, machine_of, note_of
from cuzklab.trace import Recorder, RunInfo, write_run

HERE = {"processor": "Ryzen 7", "cores": 8, "memory_bytes": 2**35, "system": "Linux 6.1"}
SERVER = {"processor": "Xeon 8480", "cores": 56, "memory_bytes": 2**40, "system": "Linux 5.15"}


def record(*runs):
    return {
        "created": "2030-01-02T03:04:05+00:00", "machine": HERE,
        "runs": [{"origin": origin, "machine": machine} for origin, machine in runs],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("origins", "kind"),
    [(("check", "live", "simulated"), "post-mortem"), (("imported",), "post-mortem"),
     (("check", "simulated"), "simulation"), (("check",), "report"), ((), "report")],
)  # fmt: skip
def test_the_kind_follows_from_the_runs(origins, kind):
    assert kind_of(record(*((origin, HERE) for origin in origins))) == kind


def test_runs_of_this_machine_are_not_said_to_be_of_another():
    note = note_of(record(("live", HERE | {"system": "Linux 6.2"}), ("simulated", SERVER)))
    assert note.startswith("2030-01-02 03:04:05 UTC · ")
    assert note.endswith(f"cuzklab {__version__} · Ryzen 7, 8 cores")
    assert note_of(record()).endswith(f"cuzklab {__version__} · Ryzen 7, 8 cores")
    assert note_of(record(("live", HERE | {"gpus": "H200"}))).endswith(f"{__version__} · Ryzen 7, 8 cores, H200")


def test_the_machine_of_the_runs_is_named_where_it_is_another():
    note = note_of(record(("live", SERVER | {"gpus": "H200"}), ("live", SERVER | {"gpus": "H200"}), ("check", HERE)))
    assert note.endswith(" · report made on Ryzen 7, 8 cores · runs from Xeon 8480, 56 cores, H200")
    assert note_of(record(("imported", {}))).endswith(" · runs from a machine that is not known")
    both = note_of(record(("imported", {"gpus": "RTX 4090"}), ("live", HERE)))
    assert both.endswith(" · report made on Ryzen 7, 8 cores · runs from RTX 4090; Ryzen 7, 8 cores")


def test_gpus_are_named_only_where_they_were_used(tmp_path):
    info = RunInfo(
        "live", "x", conditions={"backend": "cuda"}, machine=SERVER,
        devices=({"index": 0, "name": "H200"}, {"index": 1, "name": "H200"}),
    )  # fmt: skip
    assert machine_of(write_run(tmp_path / "cuda", info, Recorder())) == SERVER | {"gpus": "H200"}
    assert machine_of(write_run(tmp_path / "imported", RunInfo("imported", "y"), Recorder())) == {}
    emulated = replace(info, conditions={"backend": "host"})
    assert machine_of(write_run(tmp_path / "host", emulated, Recorder())) == SERVER

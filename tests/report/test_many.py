"""Many reports: grids, what is resumed, what is taken from other reports, the command line."""

import json
from pathlib import Path

import pytest

from cuzklab.errors import BadInput
from cuzklab.report import many, notebooks
from cuzklab.report.notebook import parameters_of
from cuzklab.report.overview import Made, as_table, write_overview
from cuzklab.report.subjects import run_parameters
from tests.cli.command import cuzklab
from tests.report.hostile import EVIL

CONCLUDE = """
from pathlib import Path
from cuzklab.report.postmortem import write_record
if workers == 9:
    raise ValueError("nine")
verdict = {"decision": "keep", "sentence": f"{workers} on {vram}", "because": [], "would_change": ""}
write_record({"verdict": verdict, "findings": [], "runs": []}, Path("."), {})
"""


def test_a_grid_is_made_resumed_and_listed(small_notebook, tmp_path):
    notebook, out = small_notebook(CONCLUDE), tmp_path / "out"
    made = many.make_grid(notebook, out, {"workers": "1,9", "vram": "16GiB"}, processes=1)
    assert [(one.folder, one.decision) for one in made] == [("small-workers-1", "keep"), ("small-workers-9", "failed")]
    assert made[0].sentence == "1 on 16GiB"
    assert "raised ValueError: nine" in made[1].sentence
    assert made[1].failed
    page = (out / many.INDEX).read_text()
    assert 'href="small-workers-1/small.html"' in page
    assert [row["decision"] for row in json.loads((out / many.TABLE).read_text())] == ["keep", "failed"]
    made_at = (out / made[0].html).stat().st_mtime_ns
    again = many.make_grid(notebook, out, {"workers": "1", "vram": "16GiB"}, processes=1)
    assert (again[0].resumed, again[0].sentence) == (True, "1 on 16GiB") or again[0].folder != made[0].folder
    assert (out / made[0].html).stat().st_mtime_ns == made_at


def test_a_bad_point_stops_a_grid_before_it_starts(small_notebook, tmp_path):
    with pytest.raises(BadInput, match="parameter workers must be int, not 'two'"):
        many.make_grid(small_notebook("1"), tmp_path / "out", {"workers": "1,two"})
    with pytest.raises(BadInput, match="has no parameter 'colour'"):
        many.make_grid(small_notebook("1"), tmp_path / "out", {"colour": "red"})
    with pytest.raises(BadInput, match=r"16,384 reports; a sweep makes at most 10,000"):
        values = ",".join(map(str, range(128)))
        many.make_grid(small_notebook("1"), tmp_path / "out", {"workers": values, "plain": values})
    assert not (tmp_path / "out").exists()


def test_a_parameter_that_is_a_list_takes_semicolons():
    cards = parameters_of(notebooks()["capacity"])["cards"]
    assert many._values("16GiB,24GiB; 48GiB", cards) == ["16GiB,24GiB", "48GiB"]
    assert many._values("16GiB, 24GiB,16GiB", None) == ["16GiB", "24GiB"]


def test_folders_say_which_point_they_are_of():
    assert many._folder("phase10", {"vram": "16 GiB", "workers": "3"}, 0) == "phase10-vram-16_GiB-workers-3"
    assert many._folder("x", {"out": "../" * 80}, 6) == "x-7"
    assert "/" not in many._folder("x", {"run": "../../etc/passwd"}, 0)


def test_every_report_is_quick_where_it_can_be():
    for name, path in notebooks().items():
        known = parameters_of(path)
        quick = many.quick_parameters(known)
        assert set(quick) <= set(known)
        if name.startswith("phase"):
            assert quick == {"proofs": "1", "partitions": "2", "repeats": "1", "simulated_proofs": "5"}
    assert run_parameters(parameters_of(notebooks()["compare"])) == ("candidate_run", "baseline_run")


def test_runs_are_taken_from_reports_that_are_there(tmp_path):
    runs = [
        {"path": "runs/a", "policy": "new", "origin": "simulated", "outcome": "ok"},
        {"path": "runs/b", "policy": "old", "origin": "simulated", "outcome": "device_oom"},
        {"path": "runs/c", "policy": "old", "origin": "simulated", "outcome": "ok"},
        {"path": "runs/d", "policy": "new", "origin": "live", "outcome": "ok"},
    ]
    (tmp_path / "phase9").mkdir()
    record = {"candidate": "new", "baseline": "old", "runs": runs}
    (tmp_path / "phase9" / "verdict.json").write_text(json.dumps(record))
    found = many._stored_runs(parameters_of(notebooks()["compare"]), tmp_path, {})
    assert {name: Path(path).name for name, path in found.items()} == {"candidate_run": "a", "baseline_run": "c"}
    found = many._stored_runs(parameters_of(notebooks()["capture"]), tmp_path, {})
    assert {name: Path(path).name for name, path in found.items()} == {"run": "d"}


def test_names_stay_text_on_the_index_page(tmp_path):
    made = [Made(EVIL, EVIL, {"a": EVIL}, EVIL, EVIL, f"{EVIL}/x.html"), Made("b", "b", {"a": "1"}, "keep", "fine")]
    page = write_overview(tmp_path / "index.html", "All", made).read_text()
    assert "<img" not in page
    assert '<p class="kicker">cuzklab · index</p>' in page
    assert list(as_table(made)["decision"]) == [EVIL, "keep"]


def test_the_command_line_knows_one_all_and_sweep():
    shown = cuzklab("report", "--help").out
    assert all(word in shown for word in ("EXPERIMENT", "all", "sweep", "--json", "--deadline"))
    assert "Values of a" in cuzklab("report", "sweep", "--help").out
    assert "--quick" in cuzklab("report", "all", "--help").out
    assert "Name of a report" in cuzklab("report", "phase10", "--help").out
    bad = cuzklab("report", "phase99")
    assert (bad.status, bad.out) == (2, "")
    assert "no report 'phase99'" in bad.err
    bad = cuzklab("report", "sweep", "phase10", "-p", "workers=2,x", "-o", "/nonexistent/x")
    assert bad.status == 2
    assert "parameter workers must be int" in bad.err

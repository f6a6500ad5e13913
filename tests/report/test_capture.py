"""The post-mortem of a recording: what it needs, what it shows, what it admits."""

import json
import re
from html import unescape

import pytest

from cuzklab.errors import BadInput
from cuzklab.ingest import import_file
from cuzklab.report import write_report
from cuzklab.report.html import export_html
from cuzklab.report.notebook import Parameter
from cuzklab.report.subjects import with_runs
from cuzklab.trace import Recorder, RunInfo, write_run
from tests.cli.command import cuzklab
from tests.ingest.showing import notebook_shows
from tests.ingest.test_oracle import CAPTURES
from tests.report.test_report import cut_on_paper, looked_at

IN_A_BROWSER = ("2025.3_cupy_power_iteration_nvtx", "h200_three_workers_one_lock_2025.3")


@pytest.fixture
def stored(tmp_path):
    return write_run(tmp_path / "runs" / "one", RunInfo("imported", "one"), Recorder())


def parameter(name: str, type_name: str = "str", default: object = "") -> Parameter:
    return Parameter(name, type_name, default, "directory of a run")


def test_a_run_is_checked_before_anything_starts(stored, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = {name: parameter(name) for name in ("run", "old_runs", "title")}
    given = {"run": "runs/one", "old_runs": "runs/one, runs/one", "title": "x"}
    path = str(stored.path.resolve())
    assert with_runs("n", known, given) == {"run": path, "old_runs": f"{path},{path}", "title": "x"}
    with pytest.raises(BadInput, match="say which: -p run=DIRECTORY"):
        with_runs("n", {"run": parameter("run")}, {})
    with pytest.raises(BadInput, match=r"parameter run: .*not a run"):
        with_runs("n", {"run": parameter("run")}, {"run": str(tmp_path)})
    assert with_runs("n", {"runs": parameter("runs", "int", 3)}, {}) == {}


@pytest.mark.parametrize("arguments", [(), ("-p", "run=nowhere"), ("-p", "run="), ("-p", "other=1")])
def test_without_a_run_the_command_says_so_at_once(tmp_path, arguments):
    done = cuzklab("report", "capture", *arguments, "-o", tmp_path / "out")
    assert done.status == 2
    assert done.err.strip().count("\n") == 0
    assert not (tmp_path / "out").exists()


def text_of(shown: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", shown)).split())


def test_an_empty_recording_has_a_report_too(stored, tmp_path):
    text = text_of(notebook_shows(stored.path, tmp_path))
    assert "This recording holds nothing that a post-mortem could be made of." in text
    record = json.loads((tmp_path / "verdict.json").read_text())
    assert record["verdict"]["decision"] == "described"


def test_three_workers_one_lock_in_words(shared_data, tmp_path):
    run = import_file(shared_data / "nsys" / "h200_three_workers_one_lock_2025.3.sqlite", tmp_path / "run")
    text = text_of(notebook_shows(run.path, tmp_path / "out"))
    for words in (
        "Threads waited 183 ms for the lock gpu",
        "2 of 9 requests for the lock gpu found it held; threads waited 183 ms for it altogether",
        "most of it python3 507 for python3 506 (135 ms)",
        "cuzk:lock:gpu hold push_pop 9 250",
        "which request for device memory failed no 0 a failed request leaves no event",
        "how much was copied, when, and whether from pinned memory none 0 CUDA events were captured, and there were",
        "7 allocations at an address that was still live",
    ):
        assert words in text, words
    record = json.loads((tmp_path / "out" / "verdict.json").read_text())
    assert record["figures"][0]["value"] == "183 ms"
    assert {found["id"] for found in record["findings"]} >= {"lock_waits", "device_use", "range_on_gpu", "memory_peak"}


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_every_capture_has_a_report_that_admits_what_it_lacks(shared_data, tmp_path, name):
    run = import_file(shared_data / "nsys" / f"{name}.sqlite", tmp_path / "run")
    text = text_of(notebook_shows(run.path, tmp_path / "out"))
    for table, entry in run.availability.items():
        if entry["state"] in ("not captured", "lost"):
            assert f"no 0 {entry['reason']}" in text, table
    record = json.loads((tmp_path / "out" / "verdict.json").read_text())
    assert [one for one in record["findings"] if one["aspect"] != "coverage"]


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_A_BROWSER)
def test_the_page_in_a_browser(shared_data, tmp_path, name):
    run = import_file(shared_data / "nsys" / f"{name}.sqlite", tmp_path / "run")
    written = write_report("capture", tmp_path / "out", {"run": str(run.path)})
    assert export_html(written.notebook, tmp_path / "again.html").stat().st_size < 6 << 20
    *screens, paper = looked_at(written.html, timeout_s=110)
    assert cut_on_paper(paper) == []
    for view in (*screens, paper):
        assert view["errors"] == view["requests"] == []
        assert view["injected"] == 0
    for view in screens:
        assert view["overflowing"] == []
        assert view["pageWidth"] == view["viewWidth"]

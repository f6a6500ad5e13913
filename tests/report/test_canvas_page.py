"""The canvas on the page of a report: only for runs that a figure of bars cannot show, under the page's policy."""

import json
import os
import re
import subprocess

import nbformat
import pytest

from cuzklab.report import show
from cuzklab.report.canvas import picture_of, scripts
from cuzklab.report.html import EMBEDS_TIMELINE, PLOTLY, export_html
from tests.analysis.example import phase9_like
from tests.conftest import ROOT
from tests.report.hostile import EVIL, hostile_run
from tests.workbench.browser import need_chromium
from tests.workbench.large import large_run


def outputs(run, monkeypatch):
    """What `show.timeline` displays: data and metadata."""
    shown = []
    monkeypatch.setattr("cuzklab.report.display.display", lambda data, **more: shown.append((data, more)))
    show.timeline(run)
    return [(data, more.get("metadata", {})) for data, more in shown if isinstance(data, dict)]


def page_of(folder, data, metadata):
    cell = nbformat.v4.new_code_cell("show.timeline(run)")
    cell.outputs = [nbformat.v4.new_output("display_data", data, metadata=metadata)]
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Large"), cell])
    nbformat.write(document, folder / "it.ipynb")
    return export_html(folder / "it.ipynb", folder / "it.html")


def seen_in_chromium(page):
    chromium = need_chromium()
    done = subprocess.run(
        ["node", str(ROOT / "tests/js/frame_check.mjs"), str(page)], capture_output=True, text=True, timeout=90,
        env=os.environ | {"CUZKLAB_CHROMIUM": chromium},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_a_small_run_stays_a_figure(tmp_path, monkeypatch):
    ((data, metadata),) = outputs(phase9_like(tmp_path), monkeypatch)
    assert PLOTLY in data and EMBEDS_TIMELINE not in metadata


def test_a_large_run_is_a_canvas_under_the_pages_policy(tmp_path, monkeypatch):
    monkeypatch.setattr("cuzklab.report.display.MOST_BARS", 8_000)
    run = large_run(tmp_path / "run", 12_000)
    ((data, metadata),) = outputs(run, monkeypatch)
    assert metadata == {EMBEDS_TIMELINE: True}
    assert "spans" in data["text/plain"] and "are merged into" in data["text/plain"]
    page = page_of(tmp_path, data, metadata)
    seen = seen_in_chromium(page)
    assert (seen["requests"], seen["errors"]) == ([], [])
    assert 0 < seen["spans"] <= 8_000 and "are merged into" in seen["text"]
    assert seen["tall"] <= seen["view"], "the frame is too low for what is in it"


@pytest.mark.slow
def test_names_stay_data_in_a_page(tmp_path):
    picture = picture_of(hostile_run(tmp_path))
    assert "<img" not in scripts.frame(picture) and "</script><" not in scripts.frame(picture)
    page = page_of(tmp_path, {"text/html": scripts.frame(picture)}, {EMBEDS_TIMELINE: True})
    seen = seen_in_chromium(page)
    assert (seen["requests"], seen["errors"], seen["title"]) == ([], [], "Large")
    assert "img" not in seen["elements"] and EVIL.partition("/")[0] in seen["text"]


def test_a_page_without_a_canvas_does_not_allow_its_script(tmp_path):
    page = page_of(tmp_path, {"text/plain": "nothing"}, {}).read_text()
    assert not any(digest.strip("'") in page for digest in scripts.script_hashes())


@pytest.mark.parametrize("entry", ["widget", "page"])
def test_the_joined_script_imports_nothing(entry):
    script = scripts.script(entry)
    assert not re.search(r"^\s*import\b", script, re.MULTILINE)
    assert len(re.findall(r"^export ", script, re.MULTILINE)) == (1 if entry == "widget" else 0)

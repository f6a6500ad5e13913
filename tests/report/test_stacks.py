"""The flame view in a page: one file, constant scripts, names that cannot escape, damage told."""

import json
import os
import re
import shutil
import subprocess

import nbformat
import pytest
from pyinstrument import Profiler

from cuzklab.errors import BadInput
from cuzklab.report import stacks
from cuzklab.report.html import EMBEDS_STACKS, export_html
from cuzklab.report.show import stacks as show_stacks
from cuzklab.trace import Recorder, RunInfo, write_run
from tests.conftest import ROOT

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def session():
    """A real session, with a function whose name ends scripts and begins elements."""
    busy: dict = {}
    exec("def busy():\n for _ in range(200):\n  sum(range(20000))", busy)
    function = busy["busy"]
    function.__code__ = function.__code__.replace(co_name=HOSTILE, co_qualname=HOSTILE)
    profiler = Profiler(interval=0.0005, async_mode="disabled")
    with profiler:
        function()
    return profiler.last_session.to_json()


def test_names_stay_data(session):
    page = stacks.document({HOSTILE: session})
    assert HOSTILE not in page and "<img" not in page
    data = re.search(r'<script type="application/json" id="stages">(.*?)</script>', page).group(1)
    assert list(json.loads(data)) == [HOSTILE]
    assert HOSTILE not in stacks.frame({HOSTILE: session})


def test_nothing_is_fetched_and_only_constant_scripts_run(session):
    page = stacks.document({"synthesis": session})
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", page)
    assert "fonts.googleapis" not in page
    for hashed in stacks.script_hashes():
        assert hashed.replace("'", "&#x27;") in page
    assert stacks.script_hashes() == stacks.script_hashes()


@pytest.mark.parametrize(
    "sessions", [{}, [], {"a": {}}, {"a": None}, {"a": {"frame_records": 3}}, {"a": {"frame_records": [[["x"], "y"]]}}]
)
def test_damage_is_one_line(sessions):
    with pytest.raises(BadInput) as refused:
        stacks.frame(sessions)
    assert "\n" not in str(refused.value)


def run_with(tmp_path, attachment):
    attachments = {"profile.json": attachment} if attachment else {}
    return write_run(tmp_path / "run", RunInfo("live", "mine"), Recorder(), attachments=attachments)


@pytest.mark.parametrize("attachment", [None, "{", "[]", '{"a": 1}'])
def test_a_run_without_readable_stacks_says_so(tmp_path, attachment, monkeypatch):
    shown = []
    monkeypatch.setattr("cuzklab.report.display.text", shown.append)
    show_stacks(run_with(tmp_path, attachment))
    assert len(shown) == 1 and ("were not sampled" in shown[0] or "not readable" in shown[0])


def test_a_browser_shows_the_stages_and_asks_for_nothing(session, tmp_path, monkeypatch):
    node, chromium = shutil.which("node"), os.environ.get("CUZKLAB_CHROMIUM", shutil.which("chromium"))
    modules = os.environ.get("CUZKLAB_NODE_MODULES")
    if not (node and chromium and modules):
        message = "needs node, chromium, and playwright-core in $CUZKLAB_NODE_MODULES"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    shown = []
    monkeypatch.setattr("cuzklab.report.show.sampled.show", lambda data, **more: shown.append((data, more)))
    show_stacks(run_with(tmp_path, json.dumps({"synthesis": session, HOSTILE: session})))
    ((data, more),) = shown
    assert more["metadata"] == {EMBEDS_STACKS: True}
    cell = nbformat.v4.new_code_cell("show.stacks(run)")
    cell.outputs = [nbformat.v4.new_output("display_data", data, metadata=more["metadata"])]
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Stacks"), cell])
    nbformat.write(document, tmp_path / "it.ipynb")
    page = export_html(tmp_path / "it.ipynb", tmp_path / "it.html")
    done = subprocess.run(
        [node, str(ROOT / "tests/js/stacks_check.mjs"), str(page)], capture_output=True, text=True, timeout=90,
        env=os.environ | {"CUZKLAB_CHROMIUM": chromium},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert (seen["requests"], seen["errors"], seen["injected"]) == ([], [], 0)
    assert seen["stages"] == ["synthesis", HOSTILE]
    assert HOSTILE in seen["text"] and HOSTILE in seen["other"]


def test_a_page_without_stacks_allows_no_further_script(tmp_path):
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Plain")]), tmp_path / "it.ipynb")
    page = export_html(tmp_path / "it.ipynb", tmp_path / "it.html").read_text()
    assert not any(hashed.replace("'", "&#39;") in page or hashed in page for hashed in stacks.script_hashes())

"""A whole report: its record, its claims, and what a reader sees in a browser with the network cut."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from cuzklab.report.html import PLOTLY, export_html
from tests.report.hostile import EVIL

SCRIPT = Path(__file__).resolve().parents[1] / "js" / "report_check.mjs"


def test_the_record_is_the_verdict(report):
    record = json.loads(report.written.verdict_file.read_text())
    assert record["verdict"]["decision"] == report.written.verdict["decision"] == "revert"
    assert record["candidate"] == "phase10_ordered"
    assert record["parameters"]["workers"] == 3
    assert len(record["findings"]) == len(report.written.findings)
    assert {"design_infeasible_here", "overlap_already_achieved"} <= {found["id"] for found in record["findings"]}
    assert [figure["value"] for figure in record["figures"][:2]] == ["8.00 GiB", "95 %"]
    assert [run["path"] for run in record["runs"]] == [f"runs/{run.name}" for run in report.runs]
    assert report.written.runs == tuple(run.path.resolve() for run in report.runs)


def test_only_whole_files_are_left(report):
    left = sorted(path.name for path in report.out.iterdir())
    assert left == ["phase10.html", "phase10.ipynb", "runs", "verdict.json"]


def test_the_page_is_small_and_carries_everything(report):
    page = report.written.html.read_text()
    assert len(page) < 6 << 20
    assert page.count('id="plotly-bundle"') == 1
    assert '<p class="kicker">cuzklab · post-mortem</p>' in page
    assert "default-src 'none'" in html.unescape(page)
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=[\"']?(https?:)?//", page)
    assert "</script><img" not in page
    assert "<img src=" not in page


def test_claims_stand_in_the_text(report):
    text = re.sub(r"<[^>]+>", " ", report.written.html.read_text().split("<main", 1)[1].split("plotly-bundle")[0])
    text = " ".join(html.unescape(text).split())
    for claim in (
        "Verdict: revert",
        "Revert phase10_ordered on 16.0 GiB",
        "95 % of the time of b_g2_msm is hidden behind kernels, 70 % behind those of another worker; 5 % is exposed",
        "Test keys",
        "These are predictions of a model, not measurements",
        "What would change it",
    ):
        assert claim in text


def test_figures_and_hidden_code_come_from_the_notebook(report):
    document = nbformat.read(report.written.notebook, as_version=4)
    figures = [
        output
        for cell in document.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if PLOTLY in output.get("data", {})
    ]
    page = report.written.html.read_text()
    assert page.count('class="plot"') == len(figures) > 15
    assert page.count('<script type="application/json" data-figure=') == len(figures)
    assert "def prove_partition" in re.sub(r"<[^>]+>", "", page)


def test_names_in_any_output_stay_text(tmp_path):
    figure = {"data": [{"type": "bar", "x": [1], "name": EVIL}], "layout": {"title": {"text": EVIL}, "height": 300}}
    cell = nbformat.v4.new_code_cell(f"# {EVIL}", execution_count=1)
    cell.outputs = [
        nbformat.v4.new_output("display_data", {PLOTLY: figure}),
        nbformat.v4.new_output("stream", name="stdout", text=EVIL),
        nbformat.v4.new_output("display_data", {"text/plain": EVIL}),
        nbformat.v4.new_output("display_data", {"text/markdown": EVIL}),
        nbformat.v4.new_output("error", ename=EVIL, evalue=EVIL, traceback=[EVIL]),
    ]
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# {EVIL}\n\n## {EVIL}\n\n{EVIL}"), cell])
    nbformat.write(document, tmp_path / "evil.ipynb")
    page = export_html(tmp_path / "evil.ipynb", tmp_path / "evil.html", note=EVIL).read_text()
    assert "<img" not in page
    assert "</script><" not in page.replace("</script></figure>", "")


def looked_at(*pages: Path, dark: bool = True, timeout_s: float = 110) -> list[dict]:
    """What one browser shows of each page at desktop width, in the dark, and on a phone: a view each."""
    needed = [shutil.which("node"), os.environ.get("CUZKLAB_CHROMIUM", shutil.which("chromium"))]
    modules = os.environ.get("CUZKLAB_NODE_MODULES")
    folders = [Path(modules)] if modules else [parent / "node_modules" for parent in SCRIPT.parents]
    needed.append(next((folder for folder in folders if (folder / "playwright-core").is_dir()), None))
    if not all(needed):
        message = "needs node, chromium, and playwright-core in node_modules above, or in $CUZKLAB_NODE_MODULES"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    done = subprocess.run(
        ["node", str(SCRIPT), *map(str, pages), *([] if dark else ["--no-dark"])],
        capture_output=True, text=True, timeout=timeout_s,
        env=os.environ | {"CUZKLAB_CHROMIUM": str(needed[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def cut_on_paper(view: dict) -> list[str]:
    """Tables and text wider than a printed page; figures are drawn anew for it, which only a printer asks for."""
    return [cut for cut in view["overflowing"] if cut.startswith(("table", "td", "th", "tr", "pre"))]


@pytest.fixture(scope="module")
def seen(report):
    return {view["view"]: view for view in looked_at(report.written.html)}


@pytest.mark.parametrize("view", ["desktop", "dark", "phone"])
def test_a_browser_shows_every_figure_and_asks_for_nothing(seen, view):
    page = seen[view]
    assert page["requests"] == []
    assert page["errors"] == []
    assert page["injected"] == 0
    assert page["title"] == "Phase 10: two locks instead of one"
    assert page["expected"] == len(page["figures"]) > 15
    for figure in page["figures"]:
        assert figure["marks"] > 0, figure
        assert figure["width"] > 250, figure
        assert figure["height"] > 100, figure
        assert figure["cut"] == [], figure
    assert page["overflowing"] == []
    assert page["unreachable"] == []  # what scrolls sideways can be reached by keys
    assert page["pageWidth"] <= page["viewWidth"]


def test_no_table_is_cut_on_paper(seen):
    assert cut_on_paper(seen["print"]) == []

"""The notebooks of the workbench run from beginning to end, and need no display."""

import os
import shutil

import papermill
import pytest

from cuzklab.resources import folder
from cuzklab.workbench.design import Design, simulated
from cuzklab.workbench.second_look import checked, limits
from tests.conftest import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tour", "workbench"])
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))))
    place = shutil.copy(folder("notebooks") / f"{name}.ipynb", tmp_path)
    done = papermill.execute_notebook(place, tmp_path / "done.ipynb", cwd=tmp_path, progress_bar=False)
    shown = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    views = [output for output in shown if "application/vnd.jupyter.widget-view+json" in output.get("data", {})]
    assert len(views) == {"tour": 4, "workbench": 5}[name]
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"phase9", "phase12"}


def test_what_the_tour_says_of_designs_is_so():
    text = (folder("notebooks") / "tour.ipynb").read_text()
    assert "phase10_ordered" in text and "from 24 GiB on" in text and "phase10_reservation" in text
    turned = {"pw": 16, "link_gb_per_s": 12.0}  # as the first step leaves the sliders
    verdicts = {
        (policy, vram_gib): checked(Design(policy=policy, vram_gib=vram_gib, **turned), lambda: False)["verdict"]
        for policy, vram_gib in [
            ("phase10_ordered", 16.0), ("phase10_ordered", 23.5), ("phase10_ordered", 24.0),
            ("phase10_reservation", 16.0), ("phase9", 16.0),
        ]
    }  # fmt: skip
    assert list(verdicts.values()) == ["unsafe", "unsafe", "safe", "safe", "safe"], verdicts
    assert simulated(Design(policy="phase10_ordered", **turned)).outcome == "ok"
    assert limits(simulated(Design(**turned)))["sentence"].startswith("Copies")

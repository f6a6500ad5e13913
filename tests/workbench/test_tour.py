"""The notebooks of the workbench run from beginning to end, and need no display."""

import os
import shutil

import papermill
import pytest

from cuzklab.resources import folder
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

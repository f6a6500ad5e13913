"""Notebooks: parameters are refused before anything starts; what fails is said in one line and kept."""

import os

import nbformat
import pytest

from cuzklab import experiment, resources
from cuzklab.errors import BadInput
from cuzklab.report import NotebookFailed, notebooks, write_report
from cuzklab.report.notebook import checked_parameters, parameters_of, run_notebook


def test_parameters_are_those_of_the_tagged_cell(small_notebook):
    found = parameters_of(small_notebook())
    assert {name: (one.type_name, one.default) for name, one in found.items()} == {
        "workers": ("int", 2), "vram": ("str", "16GiB"), "ratio": ("float", 1.5), "quick": ("bool", False),
        "plain": ("int", 3),
    }  # fmt: skip
    assert found["workers"].help == "GPU workers"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"workers": "3"}, {"workers": 3}),
        ({"quick": "yes", "ratio": 2}, {"quick": True, "ratio": 2.0}),
        ({"quick": "0", "vram": "48GiB"}, {"quick": False, "vram": "48GiB"}),
        ({"ratio": "1e-3"}, {"ratio": 1e-3}),
    ],
)
def test_values_are_converted_to_the_declared_type(small_notebook, given, expected):
    checked = checked_parameters(small_notebook(), given)
    assert checked == expected
    assert [type(value) for value in checked.values()] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"worker": 3}, "no parameter 'worker'; it has: workers, vram, ratio, quick, plain"),
        ({"workers": "three"}, "workers must be int, not 'three' (GPU workers)"),
        ({"workers": 2.5}, "workers must be int, not 2.5"),
        ({"workers": True}, "workers must be int, not True"),
        ({"vram": 16}, "vram must be str, not 16"),
        ({"quick": "perhaps"}, "quick must be bool, not 'perhaps'"),
        ({"quick": 1}, "quick must be bool, not 1"),
    ],
)
def test_bad_parameters_are_refused_before_the_start(small_notebook, tmp_path, given, said):
    notebook = small_notebook("raise SystemExit('started')")
    with pytest.raises(BadInput) as refused:
        write_report(notebook, tmp_path / "out", given)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_unknown_reports_and_damaged_notebooks_are_refused(tmp_path):
    with pytest.raises(BadInput, match=r"no report 'phase99'; there are: .*kernels, .*phase10"):
        write_report("phase99", tmp_path)
    with pytest.raises(BadInput, match="no such notebook"):
        write_report(tmp_path / "none.ipynb", tmp_path)
    damaged = tmp_path / "damaged.ipynb"
    damaged.write_text('{"cells": [')
    with pytest.raises(BadInput, match="not a notebook"):
        write_report(damaged, tmp_path)


def test_a_cell_that_raises_is_named_and_the_notebook_kept(small_notebook, tmp_path):
    notebook = small_notebook(
        f"print('5 % of it'); import os; assert os.getppid() == {os.getpid()}",
        "raise KeyError('a\\nb')",
        "print('after')",
    )
    lines: list[str] = []
    with pytest.raises(NotebookFailed) as failed:
        run_notebook(notebook, tmp_path / "{out}" / "small.ipynb", {"workers": 5}, progress=lines.append)
    assert failed.value.kind == "cell"
    assert "under “Its heading”) raised KeyError" in str(failed.value)
    assert "\n" not in str(failed.value)
    assert lines == ["5 % of it"]
    kept = failed.value.kept
    assert kept == tmp_path / "{out}" / "small.failed.ipynb"
    document = nbformat.read(kept, as_version=4)
    cell = document.cells[failed.value.cell - 1]
    assert cell.source.startswith("raise KeyError")
    assert cell.outputs[-1].ename == "KeyError"
    assert document.cells[failed.value.cell].outputs == []
    assert [path.name for path in kept.parent.iterdir()] == ["small.failed.ipynb"]


def test_a_killed_kernel_is_a_failure_with_its_cell(small_notebook, tmp_path):
    notebook = small_notebook("1 + 1", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "2 + 2")
    with pytest.raises(NotebookFailed, match=r"cell 4 .* ended the Python process") as failed:
        run_notebook(notebook, tmp_path / "out" / "small.ipynb", {})
    assert (failed.value.kind, failed.value.cell) == ("kernel", 4)
    assert nbformat.read(failed.value.kept, as_version=4).cells[2].outputs[0]["data"]["text/plain"] == "2"


def test_the_deadline_ends_the_whole_run(small_notebook, tmp_path):
    notebook = small_notebook("while True: pass")
    with pytest.raises(NotebookFailed, match=r"cell 3 .* when the 4 s for the report were up") as failed:
        run_notebook(notebook, tmp_path / "out" / "small.ipynb", {}, deadline_s=4)
    assert failed.value.kind == "deadline"


def test_a_notebook_without_a_verdict_has_failed(small_notebook, tmp_path):
    with pytest.raises(NotebookFailed, match="left no verdict"):
        write_report(small_notebook("1"), tmp_path / "out", {})
    assert not (tmp_path / "out" / "verdict.json").exists()
    assert not (tmp_path / "out" / "small.html").exists()


def test_shipped_notebooks_are_stripped_and_documented():
    assert "phase10" in notebooks()
    assert "workbench" not in notebooks(), "has no parameters and no verdict: no report"
    for path in notebooks().values():
        document = nbformat.read(path, as_version=4)
        assert document.metadata.kernelspec == {"name": "python3", "display_name": "Python 3", "language": "python"}
        code = [cell for cell in document.cells if cell.cell_type == "code"]
        assert all(not cell.outputs and cell.execution_count is None for cell in code)
        assert all(parameter.help for parameter in parameters_of(path).values())


def test_a_notebook_declares_the_parameters_of_its_experiment():
    experiments = {path.stem for path in (resources.folder("lab") / "experiments").glob("*.toml")}
    assert experiments
    for path in notebooks().values():
        if path.stem not in experiments:  # the kernels' notebook makes no runs of a design
            continue
        stated = dict(experiment.load(path.stem).parameters)
        declared = {name: parameter.default for name, parameter in parameters_of(path).items()}
        assert declared.pop("out") == f"reports/{path.stem}"
        assert declared == stated

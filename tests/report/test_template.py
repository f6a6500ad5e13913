"""The phases' notebooks are what the template makes of their experiments, and nothing else."""

import nbformat
import pytest

from cuzklab import experiment, resources
from cuzklab.errors import BadInput
from cuzklab.report.notebook import parameters_of
from cuzklab.report.template import experiments, phase_notebook

SKELETON = ("The designs", "The hypothesis", "Setup", "Timeline", "Device memory", "Locks", "Attribution", "Findings",
            "Verdict, and what would change it", "Provenance")  # fmt: skip


def test_there_is_one_for_each_phase():
    assert {path.stem for path in experiments()} >= {f"phase{number}" for number in range(7, 13)}


@pytest.mark.parametrize("path", experiments(), ids=lambda path: path.stem)
def test_a_notebook_is_what_the_template_makes(path):
    stored = nbformat.read(resources.folder("notebooks") / f"{path.stem}.ipynb", as_version=4)
    assert stored == phase_notebook(path), "run python -m cuzklab.report.template"
    headings = [
        cell.source.splitlines()[0].removeprefix("## ") for cell in stored.cells if cell.source.startswith("## ")
    ]
    assert [heading for heading in headings if heading in SKELETON] == list(SKELETON)


@pytest.mark.parametrize("path", experiments(), ids=lambda path: path.stem)
def test_an_experiment_checks_and_compares_both_designs(path):
    stated = experiment.load(path.stem)
    steps = list(experiment.steps(stated))
    assert len({step.label for step in steps}) == len(steps)
    for kind in ("check", "simulate"):
        told = {step.values["policy"] for step in steps if step.do == kind}
        assert stated.candidate in told
    assert stated.baseline in {step.values["policy"] for step in steps if step.do == "simulate"}
    # What compared runs must share; see `analysis.compare.MUST_MATCH`.
    for name in ("proofs", "hardware", "workload"):
        assert len({step.values[name] for step in steps if step.do == "simulate"}) == 1
    assert all(one.help for one in parameters_of(resources.folder("notebooks") / f"{path.stem}.ipynb").values())


def test_an_experiment_that_lacks_something_is_refused(tmp_path):
    (tmp_path / "lacking.toml").write_text('title = "x"\nquestion = "y"\n[parameters]\n')
    with pytest.raises(BadInput, match=r"lacking\.toml: hypothesis is missing"):
        phase_notebook(tmp_path / "lacking.toml")

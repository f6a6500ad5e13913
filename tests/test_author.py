"""A design written in a cell: checked, simulated and run; what is wrong with it is shown at its line."""

import json
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from cuzklab import author, policies
from cuzklab.author import DesignError
from cuzklab.report import NotebookFailed, write_report
from cuzklab.report.notebook import parameters_of, run_notebook
from tests.conftest import ROOT

NOTEBOOK = ROOT / "notebooks" / "author.ipynb"

DESIGN = '''"""One lock: everything inside it."""
from cuzklab.policies.effects import Acquire, Alloc, Free, Release
from cuzklab.policies.model import program


@program
def prove_partition(p, gpu):
    yield Acquire(gpu.lock)
    buffer = yield Alloc(gpu, "x", p.sizes.d_a, p)
    yield Free(buffer)
    yield Release(gpu.lock)
'''


def cell(source):
    """The notebook's own way: the first line of the cell is the magic."""
    return author.define("mine", source, lines_before=1)


def test_the_magic_defines_a_policy_of_that_name(tmp_path):
    shell = InteractiveShell()
    assert author.begin(tmp_path, shell) == tmp_path
    shell.run_cell_magic("policy", "mine", DESIGN)
    policy = shell.user_ns["mine"]
    assert (policy.name, policy.title) == ("mine", "One lock: everything inside it.")
    checked = author.check(policy, workers=2, partitions=1, vram="8GiB", out=tmp_path)
    assert (checked.result.verdict, checked.result.complete, checked.run.info.origin) == ("safe", True, "check")


def test_lines_are_those_of_the_cell(tmp_path):
    policy = cell(DESIGN.replace("    yield Release(gpu.lock)\n", ""))
    result = author.check(policy, workers=2, partitions=1, vram="8GiB", out=tmp_path).result
    (finding,) = [finding for finding in result.findings if finding.kind != "leak" or finding.wait_for]
    assert finding.where == "cell mine:9"  # the lock is asked for in the ninth line, counted from the magic
    assert author._excerpt(finding.where).splitlines()[3] == "→  9      yield Acquire(gpu.lock)"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("yield Free(buffer)", "yield Free(", 11, "SyntaxError"),
        ("import program", "import programme", 4, "ImportError: cannot import name 'programme'"),
        ("yield Free(buffer)", "yield Free(other)", 11, "NameError: name 'other' is not defined"),
        ("yield Free(buffer)", "yield 3", 11, "yields 3, which is no effect"),
        ("yield Free(buffer)", "while True: pass", 11, "runs on without yielding"),
    ],
)
def test_what_is_wrong_is_shown_at_its_line(old, new, line, message, tmp_path):
    with pytest.raises(DesignError) as error:
        author.check(cell(DESIGN.replace(old, new)), workers=1, partitions=1, vram="8GiB", out=tmp_path)
    text = str(error.value)
    assert message in text.splitlines()[0] and f"cell mine:{line}" in text.splitlines()[0]
    (marked,) = [words for words in text.splitlines() if words.startswith("→")]
    assert marked.split()[1] == str(line) and new.split()[0] in marked
    assert error.value._render_traceback_() == text.splitlines()


@pytest.mark.parametrize("name", ["", "two words", "phase9"])
def test_a_policy_needs_a_name_of_its_own(name):
    with pytest.raises(DesignError, match="%%policy"):
        author.define(name, DESIGN)


def test_a_design_without_a_program_is_told_so():
    with pytest.raises(DesignError, match=r"cell mine: defines no function prove_partition"):
        cell('"""Nothing."""\n')


def test_how_much_memory_it_needs():
    intervals = author.memory(cell(DESIGN), workers=2, partitions=1, span="3GiB:8GiB")
    assert [(one.from_bytes >> 30, one.verdict) for one in intervals] == [(3, "unsafe"), (4, "safe")]


def test_a_design_is_kept_as_a_file_that_is_the_same(tmp_path):
    path = author.save(cell(DESIGN), tmp_path / "mine.py")
    assert path.read_text() == DESIGN
    assert policies.load(path).intent == "One lock: everything inside it."
    with pytest.raises(author.BadInput, match="phase9 was not written in a cell"):
        author.save(policies.load("phase9"), tmp_path / "other.py")


def test_a_file_called_as_a_shipped_policy_is_the_baseline_of_its_own_runs(tmp_path):
    own = tmp_path / "phase8.py"
    own.write_text(Path(policies.load("phase8").module.__file__).read_text())
    design = policies.load("phase9")
    conditions = {"hardware": "rtx5070ti-7995wx", "workload": "porep-32g", "proofs": 3, "workers": 2, "vram": "24GiB"}
    runs = author.simulate([design, str(own)], out=tmp_path, **conditions)
    author.conclude(design, str(own), runs, vram="24GiB", out=tmp_path, parameters={})
    record = json.loads((tmp_path / "verdict.json").read_text())
    assert (record["candidate"], record["baseline"]) == ("phase9", "phase8 (phase8.py)")
    assert "gain_over_baseline" in {finding["id"] for finding in record["findings"]}
    author.check(policies.load(own), workers=1, partitions=1, vram="24GiB", out=tmp_path)
    stored = {path.name for path in (tmp_path / "runs").iterdir()}
    assert stored == {"simulate-phase9", "simulate-phase8-phase8.py", "check-phase8-phase8.py"}


def test_the_notebook_declares_its_parameters():
    parameters = parameters_of(NOTEBOOK)
    assert {"workers", "partitions", "vram", "hardware", "workload", "log2_domain"} <= set(parameters)
    assert all(parameter.help for parameter in parameters.values())


SMALL = {"log2_domain": 10, "live_partitions": 2, "proofs": 1, "vram": "80GiB"}


@pytest.mark.slow
def test_the_authors_notebook_is_a_report(tmp_path):
    report = write_report("author", tmp_path, SMALL)
    stored = {path.name for path in (tmp_path / "runs").iterdir()}
    assert stored == {"check-slots", "simulate-slots", "simulate-phase9", "live-slots", "live-phase9"}
    assert report.findings and report.verdict["decision"] in ("keep", "revert", "tune", "undecided")


@pytest.mark.slow
def test_a_design_that_is_unsafe_is_shown_with_its_counterexample(tmp_path):
    report = write_report("author", tmp_path, {**SMALL, "vram": "11GiB"})
    assert report.verdict["decision"] != "keep"
    page = report.html.read_text()
    assert "It happened by real threads on an emulated device" in page and "It happened in virtual time" in page


@pytest.mark.slow
def test_an_error_in_the_cell_ends_the_notebook_with_its_line(tmp_path):
    broken = tmp_path / "broken.ipynb"
    broken.write_text(NOTEBOOK.read_text().replace("yield Free(d_bc)", "yield Free(d_abc)"))
    with pytest.raises(NotebookFailed, match=r"NameError: name 'd_abc' is not defined") as failure:
        run_notebook(broken, tmp_path / "out.ipynb", SMALL)
    assert "cell slots:29" in str(failure.value)

"""One report of runs whose truth is known, made once: papermill and a kernel take seconds."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from cuzklab.report import write_report
from tests.analysis.example import example_case, phase9_like, phase10_roomy
from tests.report.hostile import hostile_run
from tests.report.making import notebook_over


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The shipped notebook over the example runs, two simulated ones and a hostile one."""
    folder = tmp_path_factory.mktemp("report")
    out = folder / "out"
    runs = [
        *example_case(out / "runs").runs,
        phase9_like(out / "runs", origin="simulated"),
        phase10_roomy(out / "runs", origin="simulated", gain_ms=2),
        hostile_run(out / "runs"),
        hostile_run(out / "runs", origin="counterexample", outcome="deadlock"),
    ]
    notebook = notebook_over([run.path for run in runs], folder / "phase10.ipynb")
    progress: list[tuple[float, str]] = []
    written = write_report(
        notebook, out, {"workers": "3"}, progress=lambda share, words: progress.append((share, words))
    )
    return SimpleNamespace(written=written, out=out, runs=runs, progress=progress)


@pytest.fixture
def small_notebook(tmp_path):
    """Write a notebook with the given code cells after one of parameters."""
    import nbformat

    def write(*sources: str, name: str = "small") -> Path:
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        document = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
        parameters = nbformat.v4.new_code_cell(
            "workers: int = 2  # GPU workers\nvram: str = '16GiB'  # device memory\n"
            "ratio: float = 1.5  # of rates\nquick: bool = False  # leave out what takes long\nplain = 3"
        )
        parameters.metadata["tags"] = ["parameters"]
        document.cells = [nbformat.v4.new_markdown_cell("# A small one\n\n## Its heading"), parameters]
        document.cells += [nbformat.v4.new_code_cell(source) for source in sources]
        nbformat.write(document, tmp_path / f"{name}.ipynb")
        return tmp_path / f"{name}.ipynb"

    return write

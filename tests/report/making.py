"""The shipped notebook with runs whose truth is known in place of those that an experiment makes."""

from collections.abc import Sequence
from pathlib import Path

import nbformat

from cuzklab import resources

RUNS_TAG = "runs"


def notebook_over(runs: Sequence[Path], target: Path, name: str = "phase10") -> Path:
    """Write the notebook `name` so that its cell tagged `runs` loads stored runs; everything else is as shipped.

    The question is whether phase 10 (ordered) is to replace phase 9.
    """
    document = nbformat.read(resources.folder("notebooks") / f"{name}.ipynb", as_version=4)
    (cell,) = (cell for cell in document.cells if RUNS_TAG in cell.metadata.get("tags", []))
    paths = [str(path) for path in runs]
    cell.source = f"""\
from types import SimpleNamespace

from cuzklab.trace import load_run

plan = SimpleNamespace(candidate="phase10_ordered", baseline="phase9", question="Does it pay?")
runs = [load_run(path) for path in {paths!r}]
"""
    nbformat.write(document, target)
    return target

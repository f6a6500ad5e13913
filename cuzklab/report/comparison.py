"""Two stored runs as a case: one judged against the other, whatever their designs are called."""

from dataclasses import replace
from pathlib import Path

from cuzklab.analysis import Case
from cuzklab.report.postmortem import PostMortem, examine
from cuzklab.trace import Run, load_run


def compared(candidate: str | Path, baseline: str | Path) -> PostMortem:
    """The post-mortem of a run against another.

    Two runs of one design are told apart by their names; the sizes of their devices need not be equal.
    """
    mine, theirs = load_run(Path(candidate)), load_run(Path(baseline))
    names = [mine.info.policy or mine.name, theirs.info.policy or theirs.name]
    if names[0] == names[1]:
        names = [f"{name} ({run.name})" for name, run in zip(names, (mine, theirs), strict=True)]
        names = names if names[0] != names[1] else [f"{names[0]}, candidate", f"{names[1]}, baseline"]
    runs = tuple(_called(run, name) for run, name in zip((mine, theirs), names, strict=True))
    question = f"Is {names[0]} better than {names[1]}?"
    return examine(Case(names[0], names[1], runs, question=question))


def _called(run: Run, name: str) -> Run:
    return Run(run.path, replace(run.info, policy=name))

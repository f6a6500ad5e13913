"""The notebooks of the phases, all from one template, so that they cannot drift apart.

``python -m cuzklab.report.template`` writes them again from `lab/experiments/`; a test compares. What a phase's report
says of its own is in its experiment's TOML file: title, question, hypothesis, parameters with their help.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat

from cuzklab import resources
from cuzklab.errors import BadInput

# Parameters whose comment in the TOML file does not say enough for a notebook's help.
_HELP = {
    "hardware": "machine that is simulated",
    "workload": "circuit that is simulated",
    "seed": "of test keys, witnesses and simulated spread",
}
_TEXT: Mapping[str, str] = {
    "designs": """## The designs

A design is a program of steps that take time, take locks, or take memory. What is checked, run and simulated below
is the code of these two.""",
    "hypothesis": "## The hypothesis\n\n{hypothesis}",
    "setup": """## Setup

Real runs prove PoRep-shaped circuits that are small enough for this machine, on a device whose memory is limited to
the same share of a partition's buffers as the card in question. Who waits for whom, what is held and what fails to
fit carry over; times of an emulated device say nothing about a GPU, and those of a GPU nothing about another
circuit's size. Figures at 32 GiB scale are simulated.""",
    "checker": """## What the checker found

The checker runs the designs' own programs through every interleaving of their steps, with the buffer sizes of a 32
GiB PoRep partition. What it finds is certain for the number of workers and partitions stated; it knows no times.""",
    "timeline": """## Timeline

Every run of the same engine, and below it one of each kind in detail: where a run was repeated, the one with the
median wall time. Where a run's backend is `host`, times are those of an emulated device on this machine; they rank
designs here, not on a GPU.""",
    "memory": """## Device memory

Who holds what over time, how long buffers live, and whether another worker's would fit beside them.""",
    "locks": "## Locks\n\nHow long each lock is waited for and held, and who keeps whom waiting.",
    "attribution": """## Attribution

Every idle moment of the device has one cause; what lies on the critical path of a proof is what could make it end
earlier.""",
    "blame": """### Who would have run

While a device is idle and workers stand in the queue of a lock, whoever holds the lock is what stops them. The first in
the queue would have run; the graph is of the moment when the most workers wait.""",
    "overlap": """### What hides behind what

A stage of the CPU is hidden while a kernel runs; what is left exposed is all that more overlap could save.""",
    "scale": """## At 32 GiB PoRep scale: a simulation

Virtual runs of the same programs with the sizes of a 32 GiB PoRep partition and the rates of a published machine.
These are predictions of a model, not measurements.""",
    "half_minute": "### Half a minute of it, once the pipeline is full",
    "findings": "## Findings",
    "verdict": "## Verdict, and what would change it",
    "provenance": "## Provenance",
}


def experiments() -> tuple[Path, ...]:
    """The experiments that have a notebook of this template."""
    return tuple(sorted((resources.folder("lab") / "experiments").glob("*.toml")))


def phase_notebook(experiment: Path) -> nbformat.NotebookNode:
    """The notebook of an experiment, without outputs.

    Raises
    ------
    BadInput
        The experiment's file lacks something that the template needs.
    """
    text = experiment.read_text(encoding="utf-8")
    stated = tomllib.loads(text)
    for name in ("title", "question", "hypothesis", "parameters"):
        if name not in stated:
            raise BadInput(f"{experiment}: {name} is missing")
    helps = _helps(text)
    document = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    document.nbformat_minor = 5
    for number, (kind, source, tags) in enumerate(_cells(experiment.stem, stated, helps)):
        make = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
        cell = make(source, id=str(number))
        if tags:
            cell.metadata["tags"] = tags
        document.cells.append(cell)
    return document


def _helps(text: str) -> dict[str, str]:
    """The comment beside each parameter."""
    section = text.split("[parameters]", 1)[1].split("\n[[", 1)[0]
    return dict(re.findall(r"^(\w+) = \S+ +# (.+)$", section, re.MULTILINE)) | _HELP


def _cells(name: str, stated: Mapping[str, Any], helps: Mapping[str, str]) -> Iterator[tuple[str, str, list[str]]]:
    """Kind, source and tags of each cell, in order."""
    parameters = dict(stated["parameters"])
    yield "markdown", f"# {stated['title']}\n\n**The question.** {_one_paragraph(stated['question'])}", []
    yield "code", _parameter_cell(name, parameters, helps), ["parameters"]
    yield "code", _IMPORTS + _parameters_in_force(parameters), []
    yield "code", _RUNS.format(name=name), ["runs"]
    yield "code", _SUMMARY, []
    for part, source in _SECTIONS:
        text = _flowing(_TEXT[part].replace("{hypothesis}", stated["hypothesis"].strip()))
        yield "markdown", text, []
        yield "code", source.replace("{name}", name), []


def _flowing(text: str) -> str:
    """Text whose paragraphs are a line each, as notebooks have them; lists keep their lines."""
    return "\n\n".join(part if part.startswith("*") else " ".join(part.splitlines()) for part in text.split("\n\n"))


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())


def _parameter_cell(name: str, parameters: Mapping[str, Any], helps: Mapping[str, str]) -> str:
    lines = [
        f"# Parameters: `cuzklab report {name} -p NAME=VALUE`",
        f'out: str = "reports/{name}"  # folder for the runs and the record',
    ]
    for key, value in parameters.items():
        literal = f'"{value}"' if isinstance(value, str) else repr(value)
        lines.append(f"{key}: {type(value).__name__} = {literal}  # {helps[key]}")
    return "\n".join(lines)


def _parameters_in_force(parameters: Mapping[str, Any]) -> str:
    """A dictionary of the parameters, as many a line as fit."""
    rows, row = [], ""
    for entry in (f'"{key}": {key},' for key in parameters):
        if row and len(row) + len(entry) + 1 > 110:
            rows.append(row)
            row = ""
        row = f"{row} {entry}".strip()
    return "parameters = {\n" + "".join(f"    {one}\n" for one in [*rows, row]) + "}"


_IMPORTS = """\
import inspect
from pathlib import Path

from cuzklab import policies
from cuzklab.analysis import Case
from cuzklab.report import display, show
from cuzklab.report.postmortem import conclude, examine
from cuzklab.units import parse_size

display.style()
"""
_RUNS = """\
from cuzklab import experiment

plan = experiment.load("{name}", parameters)
runs = experiment.execute("{name}", Path(out), parameters, display.progress)"""
_SUMMARY = """\
names = [policies.name_of(design) for design in (plan.candidate, plan.baseline)]
post = examine(Case(*names, tuple(runs), parse_size(vram), plan.question))
real = post.typical("live", "imported")
show.summary(post)"""
_SECTIONS = (
    ("designs", """\
for name in (plan.candidate, plan.baseline):
    policy = policies.load(name)
    show.program(name, policy.intent, inspect.getsource(policy.module))"""),
    ("hypothesis", "show.predicted(post)"),
    ("setup", "show.setup(post)"),
    ("checker", """\
show.checks(post)
for run in post.counterexamples():
    show.counterexample(run)"""),
    ("timeline", """\
show.metrics(post.runs("live", "imported"))
for run in real:
    show.run(run)"""),
    ("memory", """\
for run in real:
    show.of_run(run)
    show.memory(run)
    show.fits(run)"""),
    ("locks", """\
for run in real:
    show.of_run(run)
    show.lock_table(run)
    show.lock_orders(run)"""),
    ("attribution", """\
show.device_time(real)
show.critical_path(real)
show.against_baseline(post, real)
for run in real:
    show.queues(run)
    show.contention(run)"""),
    ("blame", """\
for run in real:
    show.of_run(run)
    show.blame(run)"""),
    ("overlap", """\
for run in real:
    if run.info.policy == post.case.baseline and run.info.outcome == "ok":
        show.overlaps(run)"""),
    ("scale", """\
from cuzklab.simulate import load_published

simulated = post.typical("simulated")
show.metrics(simulated)
show.published(load_published(), simulated)
show.device_time(simulated)
show.critical_path(simulated)
show.against_baseline(post, simulated)"""),
    ("half_minute", """\
for run in post.case.select(policy=post.case.candidate, origins=("simulated",), outcomes=("ok",))[-1:]:
    show.timeline(run, 300, 330)"""),
    ("findings", "show.findings(post)"),
    ("verdict", "show.verdict(post)"),
    ("provenance", """\
show.provenance(
    post,
    parameters,
    [
        "cuzklab report {name} " + " ".join(f"-p {key}={value}" for key, value in parameters.items()),
        f"cuzklab check {plan.candidate} --workers 2 --partitions 2 --vram {vram}",
        f"cuzklab check {plan.baseline} --workers 2 --partitions 2 --vram {vram}",
        f"cuzklab simulate {plan.candidate} --hardware {hardware} --workload {workload} -c {simulated_proofs} -j 15"
        " -p gw=2 -p pw=10",
    ],
)
conclude(post, Path(out), parameters);"""),
)  # fmt: skip


def write_notebooks() -> list[Path]:
    """Write the notebook of every experiment into `notebooks/`."""
    written = []
    for experiment in experiments():
        target = resources.folder("notebooks") / f"{experiment.stem}.ipynb"
        target.write_text(nbformat.writes(phase_notebook(experiment)) + "\n", encoding="utf-8")
        written.append(target)
    return written


if __name__ == "__main__":
    for path in write_notebooks():
        print(path)

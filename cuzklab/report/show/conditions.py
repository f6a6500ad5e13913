"""Under what a report was made: the designs' programs, the conditions of the runs, where everything comes from."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from cuzklab.analysis.case import CHECKED
from cuzklab.analysis.designs import design, options_of
from cuzklab.analysis.phrases import counted, listing
from cuzklab.report import display, tables
from cuzklab.report.markdown import render_markdown
from cuzklab.report.naming import sentence
from cuzklab.report.postmortem import PostMortem
from cuzklab.report.show.words import CONDITIONS, OUTCOMES
from cuzklab.trace import Run
from cuzklab.units import format_size

_GROUPS = (
    ("Checked, over every interleaving", CHECKED),
    ("Run for real", ("live", "imported")),
    ("Simulated", ("simulated",)),
)
# Conditions that the report states elsewhere.
_ELSEWHERE = {
    "policy",
    "options",
    "states",
    "seconds",
    "complete",
    "finding",
    "steps",
    "shortest",
    "where",
    "devices",
}


_SEED = "seed"


def program(name: str, intent: str, source: str) -> None:
    """A design: what it is meant to do, and its program."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    text = highlight(source, PythonLexer(), HtmlFormatter(cssclass="code"))
    display.heading(name)
    display.markup(f'<div class="cz-text">{render_markdown(intent)}</div>{tables.folded(f"Its program: {name}", text)}')


def setup(post: PostMortem) -> None:
    """What was checked, run and simulated, a table each; what the runs of a table share stands above it."""
    notes = list(dict.fromkeys(note for run in post.case.runs for note in run.info.notes))
    loud = [note for note in notes if "test key" in note.lower()]
    if post.runs("live") and not loud:
        loud = ["Test keys: the keys of these runs come from a known seed, so anybody can forge proofs under them."]
    for note in loud:
        display.markup(f'<div class="cz-warning">{tables.escape(sentence(note))}</div>')
    for title, origins in _GROUPS:
        runs = post.runs(*origins)
        if runs:
            _conditions(post, title, runs)
    quiet = _gathered(note for note in notes if note not in loud)
    if quiet:
        listed = "".join(f"<li>{tables.escape(note)}</li>" for note in quiet)
        display.markup(f'<div class="cz-text cz-small"><p>Notes of the runs:</p><ul>{listed}</ul></div>')


def _gathered(notes: Iterable[str]) -> list[str]:
    """Notes; of those that differ in a number only the first, and that there are more."""
    alike: dict[str, list[str]] = {}
    for note in notes:
        alike.setdefault(re.sub(r"\d+(?:\.\d+)?", "#", note), []).append(note)
    return [
        first if not more else f"{first} ({counted(len(more), 'other run')} the same with other figures.)"
        for first, *more in alike.values()
    ]


def _conditions(post: PostMortem, title: str, runs: Sequence[Run]) -> None:
    conditions = [
        {
            CONDITIONS.get(name, name.replace("_", " ")): _plainly(name, value)
            for name, value in run.info.conditions.items()
            if name not in _ELSEWHERE and name not in options_of(run) and not name.endswith("_bytes")
        }
        for run in runs
    ]
    names = list(dict.fromkeys(name for one in conditions for name in one))
    shared = [name for name in names if len({one.get(name) for one in conditions}) == 1]
    rows = [
        {
            "design": design(run),
            "device_memory_bytes": post.case.limit_bytes(run),
            **{name: one.get(name, "–") for name in names if name not in shared},
            "outcome": _ended(run),
        }
        for run, one in zip(runs, conditions, strict=True)
    ]
    rows = _counted(rows)
    same = ", ".join(f"{name} {conditions[0][name]}" for name in shared)
    right = [name for name in names if all(one.get(name, "0").replace(",", "").isdigit() for one in conditions)]
    display.table(pd.DataFrame(rows), f"{title}: {same}." if same else f"{title}.", right=right)


def _counted(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that differ in their seed only as one, which says how many runs it stands for."""
    alike: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        alike.setdefault(tuple(value for name, value in row.items() if name != _SEED), []).append(row)
    if len(alike) == len(rows):
        return list(rows)
    return [
        first
        | ({_SEED: listing(dict.fromkeys(one[_SEED] for one in (first, *more)))} if _SEED in first else {})
        | {"runs": 1 + len(more)}
        for first, *more in alike.values()
    ]  # fmt: skip


def _ended(run: Run) -> str:
    return "no defect" if run.info.origin == "check" and run.info.outcome == "ok" else OUTCOMES[run.info.outcome]


def _plainly(name: str, value: object) -> str:
    if name.endswith("_bytes") and isinstance(value, int | float):
        return format_size(value)
    if isinstance(value, Mapping):
        return " ".join(f"{key}={_plainly(key, part)}" for key, part in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def provenance(post: PostMortem, parameters: Mapping[str, object], commands: Sequence[str] = ()) -> None:
    """Where and with what it was made, hashes of what went in, and the commands that repeat each step."""
    first = next(iter(post.case.runs), None)
    if first is None:
        return
    machine, versions = first.info.machine, first.info.versions
    created = [run.info.created for run in post.case.runs]
    pairs = {
        "machine": ", ".join(
            f"{format_size(value) if name.endswith('_bytes') else value} {name.removesuffix('_bytes')}"
            if isinstance(value, int) else str(value)
            for name, value in machine.items()
        ) or "not recorded",
        "made": f"{min(created)} to {max(created)}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "parameters": ", ".join(f"{name}={value}" for name, value in parameters.items()),
    }  # fmt: skip
    display.facts(pairs)
    if commands:
        display.markup(
            "<h3>To repeat it</h3><pre>" + "\n".join(tables.escape(command) for command in commands) + "</pre>"
        )
    inputs = {(name, digest) for run in post.case.runs for name, digest in run.info.inputs.items()}
    display.table(
        pd.DataFrame(sorted(inputs), columns=["input", "sha256"]), fold=f"Table: hashes of {len(inputs)} inputs"
    )
    kept = pd.DataFrame(
        [{"run": run.info.title, "stored as": run.name, "missing": _missing(run)} for run in post.case.runs]
    )
    display.table(kept, fold="Table: where the runs are stored, and what they lack")


def _missing(run: Run) -> str:
    lacking = [
        f"{table} {entry['state']}"
        for table, entry in run.availability.items()
        if entry["state"] in ("not captured", "lost")
    ]
    return ", ".join(lacking) or "nothing"

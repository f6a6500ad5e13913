"""A post-mortem: the runs of a question, the findings that they led to, the verdict; and its record as JSON."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuzklab.analysis import Case, Finding, Verdict, find_all
from cuzklab.analysis.verdict import decide
from cuzklab.atomic import atomic_write
from cuzklab.trace import Run
from cuzklab.trace.store import machine_facts, versions
from cuzklab.units import Metric, format_value

# Tells a notebook where the program that runs it expects the record.
RECORD_VARIABLE = "CUZKLAB_REPORT_RECORD"
RECORD_FORMAT = 1


@dataclass(frozen=True)
class PostMortem:
    """What a report is written from."""

    case: Case
    findings: tuple[Finding, ...]
    verdict: Verdict

    def runs(self, *origins: str) -> tuple[Run, ...]:
        """The runs of some origins, in order."""
        return tuple(run for run in self.case.runs if run.info.origin in origins)


@dataclass(frozen=True)
class Tile:
    """A figure large enough to carry a verdict."""

    value: str
    what: str
    obtained: str


def examine(case: Case) -> PostMortem:
    """Findings and verdict of a case."""
    findings = find_all(case)
    return PostMortem(case, findings, decide(case, findings))


def tiles(post: PostMortem, count: int = 3) -> list[Tile]:
    """The figures that carry the verdict: the first of each finding that decided, then of the others."""
    rank = {name: place for place, name in enumerate(post.verdict.because)}
    ordered = sorted(post.findings, key=lambda one: rank.get(one.id, len(rank)))
    chosen: list[Tile] = []
    for finding in ordered:
        if finding.figures and len(chosen) < count:
            figure = finding.figures[0]
            tile = Tile(_large(figure), figure.label or finding.claim, finding.certainty)
            if tile not in chosen:
                chosen.append(tile)
    return chosen


def _large(figure: Metric) -> str:
    if figure.unit == "1" and figure.kind != "count":
        return f"{figure.value * 100:.3g} %"
    return format_value(figure.value, figure.unit)


def conclude(post: PostMortem, out: Path, parameters: Mapping[str, object]) -> Path:
    """Write the record of a report: the only thing from which its verdict is taken.

    Called last in a notebook, so that a notebook that did not reach its end leaves none.

    Returns
    -------
    Path
        Where it was written: the place that the program running the notebook asked for, else `out`/verdict.json.
    """
    place = Path(os.environ.get(RECORD_VARIABLE) or Path(out) / "verdict.json")
    record: dict[str, Any] = {
        "format": RECORD_FORMAT,
        "question": post.case.question,
        "candidate": post.case.candidate,
        "baseline": post.case.baseline,
        "verdict": post.verdict.to_json(),
        "figures": [vars(tile) for tile in tiles(post)],
        "findings": [finding.to_json() for finding in post.findings],
        "runs": [
            {
                "path": os.path.relpath(run.path, out),
                "origin": run.info.origin,
                "title": run.info.title,
                "policy": run.info.policy,
                "outcome": run.info.outcome,
            }
            for run in post.case.runs
        ],
        "parameters": dict(parameters),
        "machine": machine_facts(),
        "versions": versions(),
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(place, "w") as file:
        file.write(json.dumps(record, indent=1, default=_plain, allow_nan=False) + "\n")
    return place


def _plain(value: object) -> object:
    """Numbers of numpy and pandas as Python's; anything else as text."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)

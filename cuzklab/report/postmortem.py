"""A post-mortem: the runs of a question, the findings that they led to, the verdict; and its record as JSON."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuzklab.analysis import Case, Finding, Verdict, find_all
from cuzklab.analysis import verdict as verdicts
from cuzklab.analysis.case import metric
from cuzklab.analysis.designs import design
from cuzklab.atomic import atomic_write
from cuzklab.report.masthead import machine_of
from cuzklab.report.naming import kind_name, label, natural_order
from cuzklab.trace import Run
from cuzklab.trace.store import machine_facts, versions
from cuzklab.units import Metric, format_size, format_value, percent

# Tells a notebook where the program that runs it expects the record.
RECORD_VARIABLE = "CUZKLAB_REPORT_RECORD"
RECORD_FORMAT = 1

_ASPECTS = ("feasibility", "mechanism", "performance")
_LACKING = "short by"
_MOST_TILES = 4  # of a report that only describes
_TELLING = ("share", "kernel_occupancy", "call_occupancy", "size", "peak_vram", "duration", "count")


@dataclass(frozen=True)
class PostMortem:
    """What a report is written from."""

    case: Case
    findings: tuple[Finding, ...]
    verdict: Verdict

    def runs(self, *origins: str) -> tuple[Run, ...]:
        """The runs of some origins, in the order of their labels (phase 9 before phase 10)."""
        chosen = [run for run in self.case.runs if run.info.origin in origins]
        return tuple(sorted(chosen, key=lambda run: natural_order(label(run))))

    def typical(self, *origins: str) -> tuple[Run, ...]:
        """Of runs of some origins that repeat each other, the one whose wall time is the (lower) median.

        Runs repeat each other when their labels and their outcomes are equal.
        """
        alike: dict[tuple[str, str], list[Run]] = {}
        for run in self.runs(*origins):
            alike.setdefault((label(run), run.info.outcome), []).append(run)
        return tuple(sorted(runs, key=_wall_s)[(len(runs) - 1) // 2] for runs in alike.values())

    def counterexamples(self) -> tuple[Run, ...]:
        """For each design, device and kind of outcome the counterexample with the fewest steps."""
        found: dict[tuple[object, ...], Run] = {}
        for run in self.runs("counterexample"):
            key = (
                design(run),
                self.case.limit_bytes(run),
                run.info.outcome,
            )
            if key not in found or _steps(run) < _steps(found[key]):
                found[key] = run
        return tuple(found.values())


def _wall_s(run: Run) -> float:
    found = metric(run, "wall")
    return found.value if found else 0.0


def _steps(run: Run) -> int:
    return int(run.info.conditions.get("steps") or len(run.table("spans")))


@dataclass(frozen=True)
class Tile:
    """A figure large enough to carry a verdict, and the finding that it belongs to."""

    value: str
    what: str
    obtained: str
    finding: Finding


def examine(case: Case) -> PostMortem:
    """Findings and verdict of a case."""
    findings = find_all(case)
    return PostMortem(case, findings, verdicts.verdict(case, findings))


def describe(runs: Sequence[Run], question: str, findings: Sequence[Finding], sentence: str) -> PostMortem:
    """A post-mortem of runs that nobody compares: what they show, and no decision.

    Parameters
    ----------
    runs : sequence of Run
    question : str
        What the report is about.
    findings : sequence of Finding
        The most telling first.
    sentence : str
        What they come to.
    """
    told = tuple(dict.fromkeys(one.id for one in findings if one.aspect != "coverage"))
    described = Verdict("described", sentence, told, "another recording")
    return PostMortem(Case("", "", tuple(runs), question=question), tuple(findings), described)


def tiles(post: PostMortem) -> list[Tile]:
    """The figures that carry the verdict: of each aspect the one of its most telling finding.

    Findings that decided come before others, sure ones before less sure ones; but times of an emulated device, which
    say nothing about a GPU, come last.
    """
    if post.verdict.decision == "described":
        firsts = {one.id: one for one in reversed(post.findings) if one.figures}
        told = [firsts[name] for name in post.verdict.because if name in firsts]
        return [Tile(large(one.figures[0]), one.figures[0].label, one.certainty, one) for one in told[:_MOST_TILES]]
    rank = {name: place for place, name in enumerate(post.verdict.because)}
    sure = ("proved", "measured", "simulated")

    def order(one: Finding) -> tuple[float, ...]:
        emulated = one.aspect == "performance" and any(f.conditions.get("backend") == "host" for f in one.figures)
        # Of several reasons why, the one about the larger part of the time.
        share = one.figures[0].value if one.figures and one.figures[0].kind == "share" else 0.0
        part = -share if one.aspect == "mechanism" and one.id in rank else 0.0
        # A difference above the noise before one below it; the candidate before the baseline; what compares runs before
        # what describes one.
        return (
            emulated, part, rank.get(one.id, len(rank)), one.aspect == "performance" and one.role == "context",
            one.subject != post.case.candidate, len(one.runs) < 2, sure.index(one.certainty),
        )  # fmt: skip

    ordered = sorted(post.findings, key=order)
    chosen = []
    for aspect in _ASPECTS:
        tile = next(
            (tile for one in ordered if one.aspect == aspect and (tile := _tile(one, post.case.baseline))), None
        )
        if tile:
            chosen.append(tile)
    return chosen


def _tile(finding: Finding, baseline: str) -> Tile | None:
    """The most telling figure of a finding: of a comparison the quotient, else what was lacking, else a share."""
    figures = finding.figures
    if finding.aspect == "performance":
        if len(figures) < 2 or figures[0].kind != figures[1].kind or not figures[1].value:
            return None
        what = f"{kind_name(figures[0].kind)} against {baseline}: {finding.subject} {finding.gist}"
        change = percent(figures[0].ratio(figures[1]) - 1, 1, signed=True)
        return Tile(change, what, finding.certainty, finding)
    telling = sorted(figures, key=lambda figure: (figure.label != _LACKING, _TELLING.index(figure.kind)
                     if figure.kind in _TELLING else len(_TELLING)))  # fmt: skip
    if not telling or telling[0].kind not in _TELLING:
        return None
    label = "short" if telling[0].label == _LACKING else telling[0].label or kind_name(telling[0].kind)
    label += _of_limit(telling[0])
    about = "" if finding.subject and finding.subject in label else f": {finding.subject} {finding.gist}"
    return Tile(large(telling[0]), label + about, finding.certainty, finding)


def _of_limit(figure: Metric) -> str:
    """Of a peak on a device that plays a larger one: how much there was, and what that stands for."""
    limit, stands_for = (figure.conditions.get(name) for name in ("vram_bytes", "vram_equivalent_bytes"))
    if figure.kind != "peak_vram" or not limit or not stands_for or limit == stands_for:
        return ""
    return f" of {format_size(int(limit))}, which stand for {format_size(int(stands_for))}"


def large(figure: Metric) -> str:
    """A figure's value for people; shares as percentages."""
    if figure.unit == "1" and figure.kind != "count":
        return percent(figure.value)
    return format_value(figure.value, figure.unit)


def anchor(post: PostMortem, finding: Finding) -> str:
    """Where on the page a finding stands."""
    return f"finding-{post.findings.index(finding) + 1}"


def conclude(post: PostMortem, out: Path, parameters: Mapping[str, object]) -> Path:
    """Write the record of a report: the only thing from which its verdict is taken.

    Called last in a notebook, so that a notebook that did not reach its end leaves none.

    Returns
    -------
    Path
        Where it was written: the place that the program running the notebook asked for, else `out`/verdict.json.
    """
    record: dict[str, Any] = {
        "question": post.case.question,
        "candidate": post.case.candidate,
        "baseline": post.case.baseline,
        "verdict": post.verdict.to_json(),
        "figures": [
            {"value": tile.value, "what": tile.what, "obtained": tile.obtained, "finding": tile.finding.id}
            for tile in tiles(post)
        ],
        "findings": [finding.to_json() for finding in post.findings],
        "runs": [
            {
                "path": os.path.relpath(run.path, out),
                "origin": run.info.origin,
                "title": run.info.title,
                "policy": run.info.policy,
                "outcome": run.info.outcome,
                "machine": machine_of(run),
            }
            for run in post.case.runs
        ],
    }
    return write_record(record, out, parameters)


def write_record(record: Mapping[str, Any], out: Path, parameters: Mapping[str, object]) -> Path:
    """Write a report's record (verdict, findings, runs, what else it has) with where and how it came about.

    Returns
    -------
    Path
        As `conclude`.
    """
    place = Path(os.environ.get(RECORD_VARIABLE) or Path(out) / "verdict.json")
    record = {
        "format": RECORD_FORMAT, **record, "parameters": dict(parameters), "machine": machine_facts(),
        "versions": versions(),
    }  # fmt: skip
    place.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(place, "w") as file:
        file.write(json.dumps(record, indent=1, default=_plain, allow_nan=False) + "\n")
    return place


def _plain(value: object) -> object:
    """Numbers of numpy and pandas as Python's; anything else as text."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)

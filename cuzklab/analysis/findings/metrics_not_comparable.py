"""Figures that look alike and are not: of another kind, or made under conditions that make it another experiment."""

from collections.abc import Iterator

from cuzklab.analysis.case import RECORDED, Case, metric
from cuzklab.analysis.compare import JUDGED_BY, MUST_MATCH, unlike
from cuzklab.analysis.findings.gain_over_baseline import alike_groups
from cuzklab.analysis.model import Finding, certainty_of
from cuzklab.analysis.phrases import differences, memory, run_kind
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import Metric, MetricKindError


@finding
def metrics_not_comparable(case: Case) -> Iterator[Finding]:
    """One finding for completed runs of the candidate that no run of the baseline of that origin compares with."""
    for group in alike_groups(case, case.select(case.candidate, RECORDED, ("ok",))):
        run = group[0]
        baselines = case.select(case.baseline, (run.info.origin,), ("ok",))
        alike = [other for other in baselines if not unlike(run, other)]
        if baselines and not alike:
            why = f"they differ in {differences(unlike(run, baselines[0]))}"
            yield _refused(case, run, baselines[0], why, f"runs with equal {', '.join(MUST_MATCH)}")
        elif alike and not any(_shared(run, other) for other in alike):
            yield _refused(case, run, alike[0], _of_kinds(run, alike[0]), "figures of one kind on both sides")


def _shared(run: Run, other: Run) -> bool:
    """Whether two runs have a figure of time of the same kind."""
    return any(metric(run, kind) and (found := metric(other, kind)) and found.value for kind in JUDGED_BY)


def _of_kinds(run: Run, other: Run) -> str:
    """Why two runs that share no figure of time cannot be compared."""
    mine, theirs = _first_time(run), _first_time(other)
    if mine is None or theirs is None:
        return f"{(run if mine is None else other).name} has no figure of time"
    try:
        mine.ratio(theirs)
    except MetricKindError as error:
        return str(error)
    return f"the {theirs.kind} of {other.name} is zero"


def _first_time(run: Run) -> Metric | None:
    return next((found for kind in JUDGED_BY if (found := metric(run, kind)) is not None), None)


def _refused(case: Case, run: Run, other: Run, why: str, would_change: str) -> Finding:
    return Finding(
        id="metrics_not_comparable",
        claim=f"What {case.candidate} gains over {case.baseline} in {run_kind(run)} {memory(case.limit_bytes(run))}"
        f" cannot be said: {why}.",
        role="context",
        certainty=certainty_of(run),
        figures=tuple(found for one in (run, other) if (found := _first_time(one)) is not None),
        evidence=tuple(
            {"condition": name, "candidate": str(mine), "baseline": str(theirs)}
            for name, (mine, theirs) in unlike(run, other).items()
        ),
        runs=(run.name, other.name),
        would_change=would_change,
        aspect="coverage",
        subject=case.candidate,
        vram_bytes=case.limit_bytes(run),
        gist="has no baseline to be compared with",
    )

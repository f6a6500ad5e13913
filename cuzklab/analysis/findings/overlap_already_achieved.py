"""How much of the CPU's G2 MSM the baseline already hides behind kernels: what is left for the candidate to hide."""

from collections.abc import Iterator

from cuzklab.analysis import overlap
from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.frames import missing, records, window
from cuzklab.analysis.model import Finding, certainty_of
from cuzklab.analysis.phrases import memory, run_kind
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_seconds, percent

_STAGES = ("prep_msm", "b_g2_msm")
_JUDGED = "b_g2_msm"
_MOST = 0.5  # more than half hidden is called achieved; the bound on the gain says what the rest is worth


@finding
def overlap_already_achieved(case: Case) -> Iterator[Finding]:
    """For each origin of completed runs: the baseline's hidden share of b_g2_msm, beside the candidate's if known."""
    candidates = {run.info.origin: run for run in case.representatives(case.candidate)}
    for baseline in case.representatives(case.baseline):
        yield _judged(case, baseline, candidates.get(baseline.info.origin))


def _judged(case: Case, baseline: Run, candidate: Run | None) -> Finding:
    table = overlap.hidden(baseline, _STAGES)
    rows = {row["stage"]: row for row in records(table)}
    kernels_missing = not len(overlap.device_work(baseline))
    common = {
        "id": "overlap_already_achieved",
        "certainty": certainty_of(baseline),
        "subject": case.baseline,
        "vram_bytes": case.limit_bytes(baseline),
    }
    if _JUDGED not in rows or kernels_missing:
        lacks = missing(baseline, "kernels") if kernels_missing else f"spans of {_JUDGED}"
        return Finding(
            claim=f"Whether {case.baseline} hides {_JUDGED} behind kernels cannot be told from {run_kind(baseline)}:"
            f" it lacks {lacks or 'spans of GPU stages'}.",
            role="context",
            figures=(),
            evidence=(),
            runs=(baseline.name,),
            would_change=f"a trace with spans of {_JUDGED} and kernels",
            aspect="coverage",
            gist=f"may or may not hide {_JUDGED}",
            **common,
        )
    row = rows[_JUDGED]
    start, end = window(baseline)
    bound = row["exposed_ns"] / (end - start)
    claim = (
        f"{case.baseline} runs {percent(row['hidden_fraction'])} of {_JUDGED} while the device computes"
        f" ({percent(row['behind_others_fraction'])} behind another worker's kernels) in {run_kind(baseline)};"
        f" the {format_seconds(row['exposed_ns'] * 1e-9)} exposed are {percent(bound)} of its wall time, the most that"
        " hiding the rest could save."
    )
    theirs = _share_of(candidate)
    if theirs is not None:
        claim += (
            f" {case.candidate} {memory(case.limit_bytes(candidate))} hides {percent(theirs['hidden_fraction'])}"
            f" ({percent(theirs['behind_others_fraction'])} behind another worker's)."
        )
    achieved = row["hidden_fraction"] > _MOST
    more = theirs is not None and theirs["hidden_fraction"] > row["hidden_fraction"]
    figures = [
        figure(baseline, "share", row["hidden_fraction"], f"{_JUDGED} hidden, {case.baseline}"),
        figure(baseline, "share", row["behind_others_fraction"], f"{_JUDGED} behind another worker, {case.baseline}"),
        figure(baseline, "share", bound, f"exposed {_JUDGED} of wall time, {case.baseline}"),
    ]
    if theirs is not None:
        figures.append(figure(candidate, "share", theirs["hidden_fraction"], f"{_JUDGED} hidden, {case.candidate}"))
    evidence = [{"run": baseline.name, **found} for found in rows.values()]
    if theirs is not None:
        evidence.append({"run": candidate.name, **theirs})
    return Finding(
        claim=claim,
        role="against" if achieved else "supports" if more else "context",
        figures=tuple(figures),
        evidence=tuple(evidence),
        runs=(baseline.name, *((candidate.name,) if theirs is not None else ())),
        would_change=f"a longer {_JUDGED} (fewer threads, more of the tail on it) or fewer workers, so that kernels no"
        " longer cover it",
        gist=f"{'already hides' if achieved else 'hides only'} {percent(row['hidden_fraction'])} of {_JUDGED}"
        f" in {run_kind(baseline)}",
        **common,
    )


def _share_of(run: Run | None) -> dict[str, object] | None:
    if run is None or not len(overlap.device_work(run)):
        return None
    rows = [row for row in records(overlap.hidden(run, (_JUDGED,)))]
    return rows[0] if rows else None

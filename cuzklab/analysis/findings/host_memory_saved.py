"""The candidate takes less host memory than the baseline under the same conditions, or more."""

from collections.abc import Iterator

from cuzklab.analysis.case import RECORDED, Case, metric
from cuzklab.analysis.compare import compare_repeated, turned, unlike
from cuzklab.analysis.findings.gain_over_baseline import alike_groups
from cuzklab.analysis.model import Finding, certainty_of
from cuzklab.analysis.phrases import differences, run_kind
from cuzklab.analysis.registry import finding
from cuzklab.units import format_size, percent

_KIND = "peak_host"
_MATTERS = 0.03
_FILLS_MEMORY = {"pw", "lookahead", "j"}  # knobs that by themselves make a run take more host memory or less


@finding
def host_memory_saved(case: Case) -> Iterator[Finding]:
    """For each group of alike runs of the candidate, against the baseline under equal conditions."""
    for group in alike_groups(case, case.select(case.candidate, RECORDED, ("ok",))):
        run = group[0]
        others = [
            other
            for other in case.select(case.baseline, (run.info.origin,), ("ok",))
            if not unlike(run, other)
            and not _FILLS_MEMORY & set(turned(run, other))
            and case.limit_bytes(other) == case.limit_bytes(run)
            and metric(other, _KIND)
        ]
        if not others:
            continue
        baseline = min(alike_groups(case, others), key=lambda some: len(turned(run, some[0])))
        result = compare_repeated(group, baseline, _KIND)
        if result is None or abs(result.gain) < _MATTERS:
            continue
        saved = result.gain > 0
        knobs = turned(run, baseline[0])
        yield Finding(
            id="host_memory_saved",
            claim=f"{case.candidate} needs {format_size(result.candidate.value)} of host memory at its peak in"
            f" {run_kind(run)}, {case.baseline} {format_size(result.baseline.value)}: {percent(abs(result.gain))}"
            f" {'less' if saved else 'more'}."
            + (f" They differ in {differences(knobs)}." if knobs else ""),
            role="supports" if saved else "context",
            certainty=certainty_of(run, baseline[0]),
            figures=(result.candidate, result.baseline),
            evidence=({"candidate_bytes": result.candidate.value, "baseline_bytes": result.baseline.value,
                       "ratio": result.ratio},),
            runs=tuple(one.name for one in (*group, *baseline)),
            would_change="other lengths of the queue, or another number of syntheses at a time",
            aspect="performance",
            subject=case.candidate,
            vram_bytes=case.limit_bytes(run),
            gist=f"takes {percent(abs(result.gain))} {'less' if saved else 'more'} host memory in {run_kind(run)}",
        )  # fmt: skip

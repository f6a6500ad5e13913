"""Something else limits the candidate than the baseline: more of the same effort no longer pays."""

from collections.abc import Iterator

from cuzklab.analysis import occupancy
from cuzklab.analysis.calls import calls
from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.compare import JUDGED_BY, compare, unlike
from cuzklab.analysis.frames import device_work
from cuzklab.analysis.intervals import total, union
from cuzklab.analysis.model import Finding, certainty_of
from cuzklab.analysis.phrases import memory, run_kind
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_seconds, percent


@finding
def bottleneck_moved(case: Case) -> Iterator[Finding]:
    """One finding an origin, where baseline and candidate can be compared and are limited by different things."""
    baselines = {run.info.origin: run for run in case.representatives(case.baseline)}
    for run in case.representatives(case.candidate):
        other = baselines.get(run.info.origin)
        if other is None or unlike(run, other):
            continue
        now, before = occupancy.bindings(run), occupancy.bindings(other)
        if now and before and now[0].cause != before[0].cause:
            yield _explained(case, run, other, now[0], before[0])


def _explained(case: Case, run: Run, other: Run, now: occupancy.Binding, before: occupancy.Binding) -> Finding:
    mine, theirs = _kernel_s(run), _kernel_s(other)
    result = next((found for kind in JUDGED_BY if (found := compare(run, other, kind)) is not None), None)
    claim = (
        f"From {case.baseline} to {case.candidate} {memory(case.limit_bytes(run))} in {run_kind(run)} the bottleneck"
        f" moved: {case.baseline} is limited by {before.owed_to}, {case.candidate} by {now.owed_to}."
    )
    figures = [
        figure(run, "share", now.busy_share, f"device busy between first and last kernel, {case.candidate}"),
        figure(other, "share", before.busy_share, f"device busy between first and last kernel, {case.baseline}"),
    ]
    if mine and theirs:
        figures += [figure(run, "duration", mine, f"kernels a partition, {case.candidate}"),
                    figure(other, "duration", theirs, f"kernels a partition, {case.baseline}")]  # fmt: skip
        claim += (
            f" Kernel time a partition went from {format_seconds(theirs)} to {format_seconds(mine)}"
            f" ({_signed(mine / theirs - 1)})"
        )
        claim += f", {result.candidate.kind} by {_signed(result.ratio - 1)}." if result else "."
    return Finding(
        id="bottleneck_moved",
        claim=claim,
        role="context",
        certainty=certainty_of(run, other),
        figures=tuple(figures),
        evidence=tuple(
            {"policy": policy, "limited_by": bound.cause, "busy_share": bound.busy_share, **_shares(bound)}
            for policy, bound in ((case.baseline, before), (case.candidate, now))
        ),
        runs=(run.name, other.name),
        would_change=f"less of what limits it now: {now.owed_to}",
        subject=case.candidate,
        vram_bytes=case.limit_bytes(run),
        gist=f"is limited by {now.owed_to}, no longer by {before.owed_to}",
    )


def _kernel_s(run: Run) -> float:
    """Time in which the device works, a proved partition."""
    work, proved = device_work(run), int(calls(run)["proved"].sum())
    return total(union(work["start_ns"], work["end_ns"])) * 1e-9 / proved if proved else 0.0


def _shares(bound: occupancy.Binding) -> dict[str, float]:
    return {f"{cause}_share": time / max(bound.inner_ns, 1) for cause, time in bound.between_ns.items()}


def _signed(change: float) -> str:
    return f"{'+' if change > 0 else ''}{percent(change)}"

"""At which device memory the candidate works, how much of it it takes, and what it then gains."""

from collections.abc import Iterator

from cuzklab.analysis.case import CHECKED, RECORDED, Case, metric, same_limit
from cuzklab.analysis.findings.gain_over_baseline import alike_groups, gain_over_baseline
from cuzklab.analysis.model import Finding, certainty_of
from cuzklab.analysis.phrases import listing, memory, merged, run_kind
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_size


@finding
def feasible_at(case: Case) -> Iterator[Finding]:
    """One finding a limit at which something shows that the candidate works and nothing that it does not."""
    done: list[int] = []
    works = sorted(
        (run for run in case.select(case.candidate, outcomes=("ok",)) if _tells(run) and case.limit_bytes(run)),
        key=case.limit_bytes,
    )
    for run in works:
        limit_bytes = case.limit_bytes(run)
        if any(same_limit(limit_bytes, other) for other in done):
            continue
        done.append(limit_bytes)
        failures = [
            other for other in case.select(case.candidate, limit_bytes=limit_bytes) if other.info.outcome != "ok"
        ]
        if not failures:
            yield _feasible(case, limit_bytes, [one for one in works if same_limit(case.limit_bytes(one), limit_bytes)])


def _tells(run: Run) -> bool:
    return run.info.origin in RECORDED or (run.info.origin == "check" and bool(run.info.conditions.get("complete")))


def _feasible(case: Case, limit_bytes: int, runs: list[Run]) -> Finding:
    checks = [run for run in runs if run.info.origin in CHECKED]
    parts: dict[str, list[str]] = {}  # what is told of runs, and which they are
    for group in alike_groups(case, runs):
        run = max(group, key=lambda one: peak.value if (peak := metric(one, "peak_vram")) else 0)
        if run in checks:
            covered = run.info.conditions
            workers = covered.get("workers", covered.get("gw", "?"))
            parts.setdefault("is safe", []).append(f"every interleaving of {workers} workers")
            continue
        peak, limit = metric(run, "peak_vram"), min(int(one["vram_limit_bytes"]) for one in run.info.devices)
        taken = f" (at most {format_size(peak.value)} of {format_size(limit)} in use)" if peak else ""
        again = f" {len(group)} times" if len(group) > 1 else ""
        parts.setdefault(f"completed{again}{taken}", []).append(run_kind(run))
    shown = [f"{listing(merged(which))} {what}" for what, which in parts.items()]
    gains = [found for found in gain_over_baseline(case) if same_limit(found.vram_bytes, limit_bytes)]
    told = merged(found.gist for found in gains if found.figures)
    here = case.is_here(limit_bytes)
    return Finding(
        id="feasible_at",
        claim=f"{case.candidate} works {memory(limit_bytes)}: {listing(shown)}"
        # What it gains here stands in findings of its own; elsewhere nobody else tells it.
        + (f"; there it {listing(told)}." if told and not here else "."),
        role="supports" if here else "context",
        certainty="proved" if checks else certainty_of(*runs),
        figures=tuple(peak for run in runs if (peak := metric(run, "peak_vram")) is not None),
        evidence=tuple(
            {"run": run.name, "origin": run.info.origin, "outcome": run.info.outcome, "limit_bytes": limit_bytes}
            for run in runs
        ),
        runs=tuple(run.name for run in runs),
        would_change="less device memory, or more workers than these runs had",
        aspect="feasibility",
        subject=case.candidate,
        vram_bytes=limit_bytes,
        gist=f"works {memory(limit_bytes)}" + (f", where it {listing(told)}" if told and not here else ""),
    )

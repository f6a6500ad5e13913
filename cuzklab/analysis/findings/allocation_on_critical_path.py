"""Proofs wait for memory calls: allocating, freeing, pinning lie on their critical path."""

from collections.abc import Iterator

import pandas as pd

from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.critical_path import critical_stages
from cuzklab.analysis.frames import records
from cuzklab.analysis.model import Finding, about
from cuzklab.analysis.phrases import in_run, listing
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_seconds, percent

_MATTERS = 0.01  # of the critical paths


@finding
def allocation_on_critical_path(case: Case) -> Iterator[Finding]:
    """For each policy and origin, one finding of a completed run in which it is more than a trifle."""
    for policy in (case.candidate, case.baseline):
        for run in case.representatives(policy):
            stages = critical_stages(run)
            found = stages[stages["kind"].isin(("memory", "wait:memory"))]
            if len(found) and found["share"].sum() >= _MATTERS:
                yield _explained(case, run, found)


def _explained(case: Case, run: Run, found: pd.DataFrame) -> Finding:
    share, whole = float(found["share"].sum()), int(found["time_ns"].sum())
    parts = listing(f"{row['what']} {format_seconds(row['time_ns'] * 1e-9)}" for row in records(found, 3))
    return Finding(
        id="allocation_on_critical_path",
        claim=f"{in_run(run, case)}, calls for memory are"
        f" {percent(share)} of the critical paths of the proofs ({format_seconds(whole * 1e-9)}): {parts}.",
        role="context",
        figures=(
            figure(run, "share", share, "calls for memory on the critical paths"),
            figure(run, "duration", whole * 1e-9, "calls for memory on the critical paths"),
        ),
        evidence=records(found, 12),
        **about(run, case.limit_bytes(run)),
        would_change="buffers that are kept from one partition to the next, or pinned once",
        gist=f"has calls for memory on the critical path ({percent(share)})",
    )

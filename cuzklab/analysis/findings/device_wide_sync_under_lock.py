"""A worker waited for the whole device while it held a lock that another worker wanted."""

from collections.abc import Iterator

import pandas as pd

from cuzklab.analysis import locks
from cuzklab.analysis.calls import calls
from cuzklab.analysis.case import RECORDED, Case, figure
from cuzklab.analysis.frames import records, root, table
from cuzklab.analysis.intervals import covered, intersection, union
from cuzklab.analysis.model import Finding, about
from cuzklab.analysis.phrases import counted, in_run, listing, run_kind, worker
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_seconds, percent

_MATTERS = 0.01  # of the time in calls: what makes less of a difference is told, but decides nothing

_COLUMNS = {
    "lock": "str", "holder": "str", "partition": "str", "start_ns": "int64", "end_ns": "int64", "waiting": "str",
    "stalled_ns": "int64",
}  # fmt: skip


@finding
def device_wide_sync_under_lock(case: Case) -> Iterator[Finding]:
    """For each policy and origin, one finding of the run in which it stalled others longest, if any."""
    for policy in (case.candidate, case.baseline):
        for origin in RECORDED:
            found = [(run, stalls_of(run)) for run in case.select(policy, (origin,))]
            run, stalls = max(found, key=lambda one: one[1]["stalled_ns"].sum(), default=(None, ()))
            if len(stalls):
                yield _explained(case, run, stalls)


def stalls_of(run: Run) -> pd.DataFrame:
    """Device-wide waits under a lock that others wanted.

    Returns
    -------
    DataFrame
        One row a wait and lock: `lock`, `holder`, `partition`, `start_ns`, `end_ns` (of the wait for the device),
        `waiting` (workers that wanted the lock meanwhile), `stalled_ns` (how long at least one of them did); the
        longest first.
    """
    waits = run.table("waits")
    waits = waits[waits["kind"] == "device_sync"]
    waits = waits.assign(worker=root(waits["worker"]))
    uses = locks.uses(run)
    rows = []
    for (lock, holder), held in uses.groupby(["lock", "worker"]):
        syncs = waits[waits["worker"] == holder]
        wanted = uses[(uses["lock"] == lock) & (uses["worker"] != holder)]
        both = intersection(
            union(held["acquired_ns"], held["released_ns"]), union(wanted["requested_ns"], wanted["acquired_ns"])
        )
        stalled = covered(syncs["start"], syncs["end"], both)
        for sync, time in zip(syncs[stalled > 0].itertuples(), stalled[stalled > 0].tolist(), strict=True):
            there = (wanted["requested_ns"] < sync.end) & (wanted["acquired_ns"] > sync.start)
            names = listing(sorted(wanted.loc[there, "worker"].unique()))
            rows.append((lock, holder, sync.partition, sync.start, sync.end, names, time))
    return table(rows, _COLUMNS).sort_values(["stalled_ns", "start_ns"], ascending=[False, True], ignore_index=True)


def _explained(case: Case, run: Run, stalls: pd.DataFrame) -> Finding:
    worst = records(stalls, 1)[0]
    by_lock = stalls.groupby("lock")["stalled_ns"].sum().sort_values(ascending=False)
    whole = int(stalls["stalled_ns"].sum())
    called = int(calls(run)["duration_ns"].sum())
    share = whole / called if called else 1.0
    matters = run.info.policy == case.candidate and share >= _MATTERS
    of_calls = f" ({percent(share)} of all call time)" if called else ""
    return Finding(
        id="device_wide_sync_under_lock",
        claim=f"{in_run(run, case)}, workers waited for the whole"
        f" device {counted(len(stalls), 'time')} while holding {listing(by_lock.index)} that another worker wanted,"
        f" which kept others waiting for {format_seconds(whole * 1e-9)}{of_calls}; the longest:"
        f" {worker(worst['holder'], run)} under {worst['lock']} for {format_seconds(worst['stalled_ns'] * 1e-9)}.",
        role="against" if matters else "context",
        figures=(
            figure(run, "duration", whole * 1e-9, "lock wait behind device-wide waits"),
            figure(run, "count", len(stalls), "device-wide waits under a wanted lock"),
            *((figure(run, "share", share, "of call time"),) if called else ()),
        ),
        evidence=records(stalls, 12),
        **about(run, case.limit_bytes(run)),
        would_change="stream-ordered allocation and free, or the device-wide call outside the lock",
        gist=f"waits for the whole device under a lock that others want in"
        f" {run_kind(run, more=format_seconds(whole * 1e-9))}",
    )

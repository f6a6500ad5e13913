"""A worker waited for the whole device while it held a lock that another worker wanted."""

from collections.abc import Iterator

import pandas as pd

from cuzklab.analysis import locks
from cuzklab.analysis.case import RECORDED, Case, figure
from cuzklab.analysis.frames import records, root, table
from cuzklab.analysis.intervals import intersection, total, union
from cuzklab.analysis.model import Finding, certainty_of
from cuzklab.analysis.phrases import counted, listing, memory, run_kind, worker
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_seconds

_COLUMNS = {
    "lock": "str", "holder": "str", "partition": "str", "start_ns": "int64", "end_ns": "int64", "waiting": "str",
    "stalled_ns": "int64",
}  # fmt: skip


@finding
def device_wide_sync_under_lock(case: Case) -> Iterator[Finding]:
    """One finding a run of either policy in which it happened."""
    for policy, role in ((case.candidate, "against"), (case.baseline, "context")):
        for run in case.select(policy, RECORDED):
            stalls = stalls_of(run)
            if len(stalls):
                yield _explained(case, run, role, stalls)


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
    syncs = waits[waits["kind"] == "device_sync"]
    uses = locks.uses(run)
    rows = []
    for start, end, who, partition in zip(syncs["start"], syncs["end"], root(syncs["worker"]), syncs["partition"]):
        held = uses[(uses["worker"] == who) & (uses["acquired_ns"] < end) & (uses["released_ns"] > start)]
        for hold in held.itertuples():
            span = union([max(start, hold.acquired_ns)], [min(end, hold.released_ns)])
            wanted = uses[(uses["lock"] == hold.lock) & (uses["worker"] != who)]
            stalled = intersection(span, union(wanted["requested_ns"], wanted["acquired_ns"]))
            if len(stalled):
                there = wanted[(wanted["requested_ns"] < end) & (wanted["acquired_ns"] > start)]
                names = listing(sorted(there["worker"].unique()))
                rows.append((hold.lock, who, partition, start, end, names, total(stalled)))
    return table(rows, _COLUMNS).sort_values(["stalled_ns", "start_ns"], ascending=[False, True], ignore_index=True)


def _explained(case: Case, run: Run, role: str, stalls: pd.DataFrame) -> Finding:
    worst = records(stalls, 1)[0]
    by_lock = stalls.groupby("lock")["stalled_ns"].sum().sort_values(ascending=False)
    whole = int(stalls["stalled_ns"].sum())
    return Finding(
        id="device_wide_sync_under_lock",
        claim=f"In {run_kind(run)} of {run.info.policy} {memory(case.limit_bytes(run))}, workers waited for the whole"
        f" device {counted(len(stalls), 'time')} while holding {listing(by_lock.index)} that another worker wanted,"
        f" which kept others waiting for {format_seconds(whole * 1e-9)}; the longest:"
        f" {worker(worst['holder'], run)} under {worst['lock']} for {format_seconds(worst['stalled_ns'] * 1e-9)}.",
        role=role,
        certainty=certainty_of(run),
        figures=(
            figure(run, "duration", whole * 1e-9, "lock wait behind device-wide waits"),
            figure(run, "count", len(stalls), "device-wide waits under a wanted lock"),
        ),
        evidence=records(stalls, 12),
        runs=(run.name,),
        would_change="stream-ordered allocation and free, or the device-wide call outside the lock",
        subject=run.info.policy,
        vram_bytes=case.limit_bytes(run),
        gist=f"waits for the whole device under a lock that others want ({format_seconds(whole * 1e-9)})",
    )

"""A lock was held, and wanted by another worker, while its holder did nothing that the lock protects."""

from collections.abc import Iterator

import pandas as pd

from cuzklab.analysis import locks
from cuzklab.analysis.calls import calls
from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.frames import as_set, cpu_work, device_work, records, root, table
from cuzklab.analysis.intervals import Intervals, difference, intersection, merge, total, union
from cuzklab.analysis.model import Finding, about
from cuzklab.analysis.phrases import in_run, listing, run_kind, worker
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_seconds, percent

_MATTERS = 0.01  # of the time in calls
_WORSE = 1.1  # times as much a call as under the baseline
_COLUMNS = {"lock": "str", "holder": "str", "doing": "str", "time_ns": "int64"}
# Waits in which the holder needs the device to itself or to be done.
_FOR_THE_DEVICE = ("device_sync", "event", "memory")


@finding
def lock_held_without_need(case: Case) -> Iterator[Finding]:
    """For each policy and origin, one finding of a completed run in which it cost others more than a trifle.

    It speaks against the candidate where it is more a call than under the baseline.
    """
    held: dict[tuple[str, str], float] = {}
    for policy in (case.baseline, case.candidate):
        for run in case.representatives(policy):
            needless, every = needless_holds(run), calls(run)
            share = int(needless["time_ns"].sum()) / max(int(every["duration_ns"].sum()), 1)
            each = held[policy, run.info.origin] = int(needless["time_ns"].sum()) / max(len(every), 1)
            if share >= _MATTERS:
                worse = each > _WORSE * held.get((case.baseline, run.info.origin), 0.0)
                yield _explained(case, run, needless, share, worse and policy == case.candidate)


def needless_holds(run: Run) -> pd.DataFrame:
    """Time in which a lock was held and wanted, while nothing of its holder used the device or its memory.

    Returns
    -------
    DataFrame
        `lock`, `holder`, `doing` (the CPU stage or wait that it was in; empty: the trace does not tell), `time_ns`; the
        longest first. Without device work in the trace nothing can be told, and there are no rows.
    """
    work = device_work(run)
    if not len(work):
        return table((), _COLUMNS)
    uses = locks.uses(run)
    rows = []
    for (lock, holder), held in uses.groupby(["lock", "worker"]):
        wanted = uses[(uses["lock"] == lock) & (uses["worker"] != holder)]
        both = intersection(
            union(held["acquired_ns"], held["released_ns"]), union(wanted["requested_ns"], wanted["acquired_ns"])
        )
        left = difference(both, _uses_of_device(run, work, holder))
        for doing, times in _activities(run, holder):
            rows.append((lock, holder, doing, total(intersection(left, times))))
            left = difference(left, times)
        rows.append((lock, holder, "", total(left)))
    found = table((row for row in rows if row[-1]), _COLUMNS)
    return found.sort_values(["time_ns", "lock", "holder"], ascending=[False, True, True], ignore_index=True)


def _uses_of_device(run: Run, work: pd.DataFrame, worker_name: str) -> Intervals:
    """When a worker's kernels, copies or calls for device memory are under way, or it waits for the device."""
    copies, waits, spans = run.table("transfers"), run.table("waits"), run.table("spans")
    copies = copies[root(copies["worker"]) == worker_name]
    waits = waits[(root(waits["worker"]) == worker_name) & waits["kind"].isin(_FOR_THE_DEVICE)]
    calls_for = spans[(root(spans["worker"]) == worker_name) & (spans["category"].isin(("memory", "gpu", "transfer")))]
    parts = [as_set(work[work["worker"] == worker_name])]
    parts += [union(rows["start"], rows["end"]) for rows in (copies, waits, calls_for)]
    return merge(*parts)


def _activities(run: Run, worker_name: str) -> list[tuple[str, Intervals]]:
    """What a worker did without the device: waits first, since a CPU stage then runs on another thread."""
    waits, stages = run.table("waits"), cpu_work(run)
    waits = waits[(root(waits["worker"]) == worker_name) & ~waits["kind"].isin((*_FOR_THE_DEVICE, "lock"))]
    stages = stages[stages["worker"] == worker_name]
    found = [(f"{kind} wait", union(rows["start"], rows["end"])) for kind, rows in waits.groupby("kind")]
    return found + [(str(stage), as_set(rows)) for stage, rows in stages.groupby("stage")]


def _explained(case: Case, run: Run, needless: pd.DataFrame, share: float, against: bool) -> Finding:
    whole = int(needless["time_ns"].sum())
    by_doing = needless[needless["doing"] != ""].groupby("doing")["time_ns"].sum().sort_values(ascending=False)
    doing = listing(f"{name} ({format_seconds(time * 1e-9)})" for name, time in by_doing.head(3).items())
    top = records(needless, 1)[0]
    return Finding(
        id="lock_held_without_need",
        claim=f"{in_run(run, case)}, "
        f"{listing(sorted(needless['lock'].unique()))} was held and wanted for {format_seconds(whole * 1e-9)}"
        f" ({percent(share)} of all call time) while its holder used neither the device nor its memory"
        + (f", but was in {doing}" if doing else "")
        + f"; the most by {worker(top['holder'], run)} ({format_seconds(top['time_ns'] * 1e-9)}).",
        role="against" if against else "context",
        figures=(
            figure(run, "share", share, "of call time a lock is held, wanted, and not needed"),
            figure(run, "duration", whole * 1e-9, "lock held and wanted, not needed"),
        ),
        evidence=records(needless, 12),
        **about(run, case.limit_bytes(run)),
        would_change="the lock taken after that work, or given back before it",
        gist=f"holds its lock {percent(share)} of its call time over work that does not need it in {run_kind(run)}",
    )

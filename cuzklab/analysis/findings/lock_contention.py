"""Who waits for whom at which lock, and how many calls wait."""

from collections.abc import Iterator

from cuzklab.analysis import locks
from cuzklab.analysis.calls import calls
from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.frames import records
from cuzklab.analysis.model import Finding, about
from cuzklab.analysis.phrases import in_run, worker
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_seconds, percent

_MOST_PAIRS = 12


@finding
def lock_contention(case: Case) -> Iterator[Finding]:
    """For each policy and origin, one finding of a completed run in which some lock was waited for."""
    for policy in (case.candidate, case.baseline):
        for run in case.representatives(policy):
            table = locks.contention(run)
            if len(table) and table.loc[0, "wait_total_ns"] > 0:
                yield _explained(case, run)


def _explained(case: Case, run: Run) -> Finding:
    worst = records(locks.contention(run), 1)[0]
    pairs = locks.waited_for(run)
    pairs = pairs[(pairs["lock"] == worst["lock"]) & (pairs["holder"] != "")]
    every = calls(run)
    called, waited = int(every["duration_ns"].sum()), int(every["lock_wait_ns"].sum())
    claim = (
        f"{in_run(run, case)}, {worst['contended']} of"
        f" {worst['uses']} requests for {worst['lock']} ({percent(worst['contended_share'])}) found it held and waited"
        f" {format_seconds(worst['wait_total_ns'] * 1e-9)} altogether; it was held {percent(worst['held_share'])} of"
        " the time"
    )
    top = records(pairs, 1)
    if top:
        claim += (
            f"; most of it {worker(top[0]['victim'], run)} for {worker(top[0]['holder'], run)}"
            f" ({format_seconds(top[0]['time_ns'] * 1e-9)})"
        )
    figures = [
        figure(run, "duration", worst["wait_total_ns"] * 1e-9, f"wait for {worst['lock']}"),
        figure(run, "share", worst["contended_share"], f"requests for {worst['lock']} that waited"),
        figure(run, "share", worst["held_share"], f"time in which {worst['lock']} is held"),
    ]
    if called:
        claim += f"; lock waits are {percent(waited / called)} of all call time"
        figures.append(figure(run, "share", waited / called, "lock wait of call time"))
    return Finding(
        id="lock_contention",
        claim=claim + ".",
        role="context",
        figures=tuple(figures),
        evidence=records(locks.contention(run), 4) + records(pairs, _MOST_PAIRS),
        **about(run, case.limit_bytes(run)),
        would_change="fewer workers, or less work under the lock",
        gist=f"spends {percent(waited / called) if called else 'time'} of its calls waiting for locks",
    )

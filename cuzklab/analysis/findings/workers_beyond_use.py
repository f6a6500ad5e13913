"""More workers a device than it can use: the same design with fewer is as fast."""

from collections.abc import Iterator

from cuzklab.analysis import locks
from cuzklab.analysis.calls import calls
from cuzklab.analysis.case import RECORDED, Case, figure
from cuzklab.analysis.compare import JUDGED_BY, Comparison, compare_repeated, turned
from cuzklab.analysis.designs import options_of
from cuzklab.analysis.findings.gain_over_baseline import alike_groups
from cuzklab.analysis.model import Finding, certainty_of
from cuzklab.analysis.phrases import memory, run_kind
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_value, percent

_WORTH = 0.01  # a worker more that saves less than this is of no use


@finding
def workers_beyond_use(case: Case) -> Iterator[Finding]:
    """For each design, origin and device: the fewest workers that are as fast as the most that were tried."""
    for policy in (case.candidate, case.baseline):
        groups = alike_groups(case, case.select(policy, RECORDED, ("ok",)))
        for group in groups:
            fewer = [other for other in groups if _only_workers_differ(case, group[0], other[0])]
            more = [other for other in groups if _only_workers_differ(case, other[0], group[0])]
            if more or not fewer:  # only from the most that were tried
                continue
            compared = [(other, result) for other in fewer if (result := _compared(group, other)) is not None]
            useless = [(other, result) for other, result in compared if result.ratio >= 1 - _WORTH]
            if useless:
                other, result = min(useless, key=lambda one: _workers(one[0][0]))
                yield _explained(case, group, other, result)


def _only_workers_differ(case: Case, more: Run, fewer: Run) -> bool:
    """Whether one run is another with more workers a device and nothing else changed."""
    return (
        more.info.origin == fewer.info.origin
        and case.limit_bytes(more) == case.limit_bytes(fewer)
        and set(turned(more, fewer)) == {"gw"}
        and options_of(more) == options_of(fewer)
        and _workers(more) > _workers(fewer)
    )


def _workers(run: Run) -> int:
    return int(run.info.conditions.get("gw") or 0)


def _compared(group: tuple[Run, ...], other: tuple[Run, ...]) -> Comparison | None:
    return next((found for kind in JUDGED_BY if (found := compare_repeated(group, other, kind)) is not None), None)


def _explained(case: Case, group: tuple[Run, ...], fewer: tuple[Run, ...], result: Comparison) -> Finding:
    run, other = group[0], fewer[0]
    waits = [_wait_share(one) for one in (run, other)]
    change = result.ratio - 1
    told = (
        f"{percent(change)} longer" if change >= 0.0005 else f"{percent(-change)} shorter" if change < 0 else "as long"
    )
    return Finding(
        id="workers_beyond_use",
        claim=f"{run.info.policy} {memory(case.limit_bytes(run))} with {_workers(run)} workers a device takes"
        f" {_value(result.candidate)} ({result.candidate.kind}) in {run_kind(run)}, with {_workers(other)} it takes"
        f" {_value(result.baseline)}: {told} with more workers. They then spend {percent(waits[0])} of their calls"
        f" waiting for locks, with {_workers(other)} {percent(waits[1])}.",
        role="context",
        certainty=certainty_of(run, other),
        figures=(
            result.candidate, result.baseline,
            figure(run, "share", waits[0], f"lock wait of call time with {_workers(run)} workers"),
            figure(other, "share", waits[1], f"lock wait of call time with {_workers(other)} workers"),
        ),
        evidence=tuple(
            {"run": one.name, "gw": _workers(one), "lock_wait_share": share, "uses_of_locks": len(locks.uses(one))}
            for one, share in zip((run, other), waits, strict=True)
        ),
        runs=tuple(one.name for one in (*group, *fewer)),
        would_change="a device or a host that is less busy, or work outside the lock that another worker could hide",
        subject=run.info.policy,
        vram_bytes=case.limit_bytes(run),
        gist=f"has no use for more than {_workers(other)} workers a device in {run_kind(run)}",
    )  # fmt: skip


def _wait_share(run: Run) -> float:
    every = calls(run)
    return int(every["lock_wait_ns"].sum()) / max(int(every["duration_ns"].sum()), 1)


def _value(metric) -> str:
    return format_value(metric.value, metric.unit)

"""The check found a schedule on which the candidate runs out of memory or stops for ever."""

from collections.abc import Iterator

import pandas as pd

from cuzklab.analysis import vram
from cuzklab.analysis.case import RECORDED, Case, figure
from cuzklab.analysis.designs import design
from cuzklab.analysis.frames import records, window
from cuzklab.analysis.model import MAX_EVIDENCE_ROWS, Finding
from cuzklab.analysis.phrases import (
    device_of,
    failed_request,
    listing,
    memory,
    run_kind,
    sentence_case,
    worker,
)
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import Metric, sizes_in_words

_OUTCOMES = ("device_oom", "deadlock", "fault")
_WHAT = {
    "oom": "runs out of device memory",
    "capacity_deadlock": "comes to a capacity deadlock",
    "lock_order_deadlock": "comes to a deadlock by the order of its locks",
    "lost_wakeup": "loses a wake-up and waits for ever",
    "request_above_capacity": "waits for ever for more than the device has",
}
_WHAT_OUTCOME = {"device_oom": _WHAT["oom"], "deadlock": "comes to a deadlock", "fault": "goes wrong"}


@finding
def design_infeasible_here(case: Case) -> Iterator[Finding]:
    """One finding a policy, limit and outcome: the shortest counterexample, and whether real runs reproduced it."""
    found: dict[tuple[str, int | None, str], Run] = {}
    for run in case.select(origins=("counterexample",), outcomes=_OUTCOMES):
        key = (run.info.policy, case.limit_bytes(run), _what(run))
        if key not in found or _steps(run) < _steps(found[key]):
            found[key] = run
    roles = {case.candidate: "against", case.baseline: "supports"}
    for (policy, limit_bytes, what), run in found.items():
        number = _steps(run)
        schedule = "the shortest schedule to it has" if run.info.conditions.get("shortest") else "a schedule to it has"
        peers = case.select(policy, RECORDED, limit_bytes=limit_bytes) if limit_bytes else ()
        yield Finding(
            id="design_infeasible_here",
            claim=f"{design(run)} {what} {memory(limit_bytes)}; {schedule} {number} steps: "
            f"{_how(run)}.{_reproduced(peers, run.info.outcome, case)}",
            role=roles.get(policy, "context"),
            certainty="proved",
            figures=_figures(run, number),
            evidence=_schedule(run),
            runs=(run.name, *(peer.name for peer in peers)),
            would_change="more device memory, or a design in which no worker can hold what another one lacks",
            aspect="feasibility",
            subject=policy,
            vram_bytes=limit_bytes,
            gist=f"{what} within {number} steps (proved by exhaustive check)",
        )


def _figures(run: Run, number: int) -> tuple[Metric, ...]:
    found = [figure(run, "count", number, "steps of the shortest schedule")]
    for request in records(vram.failed_requests(run), 1):
        found.append(figure(run, "size", request["requested_bytes"], "requested"))
        found.append(figure(run, "size", request["live_bytes"], "live"))
        if request["short_bytes"] > 0:
            found.append(figure(run, "size", request["short_bytes"], "short by"))
    return tuple(found)


def _what(run: Run) -> str:
    """What goes wrong, as a clause: by the check's kind of finding where it is one that we have words for."""
    kind = str(run.info.conditions.get("finding", ""))
    if kind in _WHAT:
        return _WHAT[kind]
    return f"goes wrong ({kind.replace('_', ' ')})" if kind else _WHAT_OUTCOME[run.info.outcome]


def _steps(run: Run) -> int:
    """Length of a counterexample."""
    stated = run.info.conditions.get("steps")
    start, end = window(run)
    return int(stated) if stated is not None else end - start


def _how(run: Run) -> str:
    requests = records(vram.failed_requests(run), 1)
    if requests:
        return failed_request(requests[0], run)
    waits = _last_waits(run)
    if run.info.outcome == "fault" or not len(waits):
        return run.info.explanation or "the counterexample has no rows that say how"
    return listing(
        f"{worker(row['worker'], run)} waits for {sizes_in_words(row['on'])}" + _holders(row, run)
        for row in records(waits)
    )


def _holders(wait: dict[str, object], run: Run) -> str:
    """Who keeps a worker waiting, other than itself."""
    names = [worker(name, run) for name in str(wait["holder"]).split(", ") if name and name != wait["worker"]]
    return f" (held by {listing(names)})" if names else ""


def _last_waits(run: Run) -> pd.DataFrame:
    """What each actor waits for when nothing can go on."""
    waits = run.table("waits")
    _, end = window(run)
    return waits[waits["end"] >= end]


def _reproduced(peers: tuple[Run, ...], outcome: str, case: Case) -> str:
    """What runs at the same limit did; nothing where there were none."""
    same = [peer for peer in peers if peer.info.outcome == outcome]
    other = [peer for peer in peers if peer.info.outcome != outcome]
    parts = []
    if same:
        names = listing(f"{run_kind(peer)} {device_of(peer, case)}" for peer in same)
        parts.append(f" {sentence_case(names)} ended the same way.")
    for peer in other:
        ended = "did not meet that schedule" if peer.info.outcome == "ok" else f"ended in {peer.info.outcome}"
        parts.append(f" {sentence_case(run_kind(peer))} {device_of(peer, case)} {ended}.")
    return "".join(parts)


def _schedule(run: Run) -> tuple[dict[str, object], ...]:
    """The steps, the last ones where there are many."""
    spans = run.table("spans")
    if len(spans):
        steps = pd.DataFrame({"step": spans["start"], "actor": spans["worker"], "thread": spans["thread"],
                              "effect": spans["name"], "partition": spans["partition"]})  # fmt: skip
        return records(steps.tail(MAX_EVIDENCE_ROWS))
    return records(vram.steps(run).tail(MAX_EVIDENCE_ROWS))

"""Copies from pageable host memory, and how long the device idled during them."""

from collections.abc import Iterator

import pandas as pd

from cuzklab.analysis.calls import calls
from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.frames import as_set, device_work, window
from cuzklab.analysis.intervals import difference, total, union
from cuzklab.analysis.model import Finding, about
from cuzklab.analysis.phrases import in_run, run_kind
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_seconds, format_size, percent

_BETWEEN_HOST_AND_DEVICE = ("h2d", "d2h")
_MATTERS = 0.01  # of the wall time
_WORSE = 1.1  # times as much a call as under the baseline


@finding
def pageable_transfer(case: Case) -> Iterator[Finding]:
    """For each policy and origin, one finding of a completed run that copied from or to pageable memory.

    It speaks against the candidate where the device idles on it for longer a call than under the baseline.
    """
    idled: dict[tuple[str, str], float] = {}
    for policy in (case.baseline, case.candidate):
        for run in case.representatives(policy):
            rows = run.table("transfers")
            rows = rows[rows["direction"].isin(_BETWEEN_HOST_AND_DEVICE)]
            pageable = rows[~rows["pinned"].astype(bool)]
            start, end = window(run)
            idle = total(difference(union(pageable["start"], pageable["end"]), as_set(device_work(run))))
            share = idle / max(end - start, 1)
            each = idled[policy, run.info.origin] = idle / max(len(calls(run)), 1)
            worse = share >= _MATTERS and each > _WORSE * idled.get((case.baseline, run.info.origin), 0.0)
            if len(pageable):
                yield _explained(case, run, rows, pageable, idle, share, worse and policy == case.candidate)


def _explained(
    case: Case, run: Run, rows: pd.DataFrame, pageable: pd.DataFrame, idle: int, share: float, against: bool
) -> Finding:
    moved, whole = int(pageable["bytes"].sum()), int(rows["bytes"].sum())
    rates = {True: _rate(rows[rows["pinned"].astype(bool)]), False: _rate(pageable)}
    beside = f", pinned ones at {format_size(rates[True])}/s" if rates[True] else ""
    return Finding(
        id="pageable_transfer",
        claim=f"{in_run(run, case)}, {format_size(moved)} of"
        f" {format_size(whole)} ({percent(moved / max(whole, 1))}) were copied from or to pageable memory, at"
        f" {format_size(rates[False])}/s{beside}; no kernel ran during {format_seconds(idle * 1e-9)} of it"
        f" ({percent(share)} of the wall time).",
        role="against" if against else "context",
        figures=(
            figure(run, "share", share, "of the wall time the device idles on pageable copies"),
            figure(run, "size", moved, "copied from or to pageable memory"),
        ),
        evidence=(
            {"copies": len(pageable), "bytes": moved, "bytes_per_s": rates[False], "idle_ns": idle},
            {"copies": len(rows) - len(pageable), "bytes": whole - moved, "bytes_per_s": rates[True], "idle_ns": None},
        ),
        **about(run, case.limit_bytes(run)),
        would_change="buffers that are pinned before they are copied",
        gist=f"copies {format_size(moved)} from pageable memory while the device idles {percent(share)} of the time in"
        f" {run_kind(run)}",
    )  # fmt: skip


def _rate(rows: pd.DataFrame) -> float:
    """Bytes a second while such a copy is under way."""
    spent = total(union(rows["start"], rows["end"]))
    return int(rows["bytes"].sum()) / (spent * 1e-9) if spent else 0.0

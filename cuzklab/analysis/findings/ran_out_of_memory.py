"""A run of the candidate or of the baseline ended because a request for device memory did not fit."""

from collections.abc import Iterator

from cuzklab.analysis import vram
from cuzklab.analysis.case import RECORDED, Case, figure, same_limit
from cuzklab.analysis.frames import missing, records
from cuzklab.analysis.model import MAX_EVIDENCE_ROWS, Finding, certainty_of
from cuzklab.analysis.phrases import device_of, failed_request, run_kind, sentence_case
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_size


@finding
def ran_out_of_memory(case: Case) -> Iterator[Finding]:
    """One finding a run that ran out of device memory."""
    for policy, role in ((case.candidate, "against"), (case.baseline, "supports")):
        for run in case.select(policy, RECORDED, ("device_oom",)):
            yield _explained(run, role, case)


def _explained(run: Run, role: str, case: Case) -> Finding:
    requests = vram.failed_requests(run)
    where = f"{sentence_case(run_kind(run))} of {run.info.policy} {device_of(run, case)} ran out of device memory"
    common = {
        "id": "ran_out_of_memory",
        "certainty": certainty_of(run),
        "runs": (run.name,),
        "aspect": "feasibility",
        "subject": run.info.policy,
        "vram_bytes": case.limit_bytes(run),
    }
    if not len(requests):
        return Finding(
            claim=f"{where}; which request failed is not known, since the trace lacks {missing(run, 'vram') or 'it'}"
            f"{': ' + run.info.explanation if run.info.explanation else ''}.",
            role=role,
            figures=(figure(run, "count", 1, "runs out of memory"),),
            evidence=(),
            would_change="more device memory",
            gist=f"ran out of device memory in {run_kind(run)}",
            **common,
        )
    first = records(requests, 1)[0]
    more = len(requests) - 1
    kept = first["short_bytes"] <= 0  # what is live would have left room
    lacking = "kept by the pool or fragmented: more than" if kept else "short by"
    held = vram.holdings(run, first["event"])
    short = format_size(abs(first["short_bytes"]))
    stands_for_bytes = case.limit_bytes(run) or first["limit_bytes"]
    if not same_limit(stands_for_bytes, first["limit_bytes"]):
        scale = stands_for_bytes / first["limit_bytes"]
        short += f", which stand for {format_size(abs(first['short_bytes']) * scale)}"
    return Finding(
        claim=f"{where}: {failed_request(first, run)}."
        + (f" {more} further request{'s' if more > 1 else ''} failed after it." if more else ""),
        role=role,
        figures=tuple(
            figure(run, "size", value, label)
            for label, value in (
                ("requested", first["requested_bytes"]),
                ("live", first["live_bytes"]),
                ("limit", first["limit_bytes"]),
                (lacking, abs(first["short_bytes"])),
            )
        ),
        evidence=(
            {"row": "failed request", **first},
            *({"row": "live at that moment", **row} for row in records(held, MAX_EVIDENCE_ROWS - 1)),
        ),
        would_change="a trim of the memory pool before that request, or more device memory"
        if kept
        else f"{format_size(first['short_bytes'])} more device memory at that moment, or an order in which the others"
        " give back first",
        gist=f"ran out of device memory in {run_kind(run)} ({lacking} {short})",
        **common,
    )

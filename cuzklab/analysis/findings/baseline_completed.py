"""The baseline ran to its end on the device in question."""

from collections.abc import Iterator

from cuzklab.analysis.calls import calls
from cuzklab.analysis.case import Case, figure, metric
from cuzklab.analysis.model import Finding, certainty_of
from cuzklab.analysis.phrases import counted, device_of, run_kind, sentence_case
from cuzklab.analysis.registry import finding
from cuzklab.units import format_size


@finding
def baseline_completed(case: Case) -> Iterator[Finding]:
    """One finding an origin of runs."""
    for run in case.representatives(case.baseline):
        proved = int(calls(run)["proved"].sum())
        peak = metric(run, "peak_vram")
        taken = f", with at most {format_size(peak.value)} of device memory in use" if peak else ""
        number = f" after {counted(proved, 'partition')}" if proved else ""
        who = f"{sentence_case(run_kind(run))} of {case.baseline} {device_of(run, case)}"
        yield Finding(
            id="baseline_completed",
            claim=f"{who} came to its end{number}{taken}.",
            role="context",
            certainty=certainty_of(run),
            figures=(figure(run, "count", proved, "partitions proved"), *((peak,) if peak else ())),
            evidence=({"run": run.name, "outcome": run.info.outcome, "partitions_proved": proved},),
            runs=(run.name,),
            would_change="less device memory, or a schedule that this run did not meet",
            aspect="feasibility",
            subject=case.baseline,
            vram_bytes=case.limit_bytes(run),
            gist=f"completed {run_kind(run)}",
        )

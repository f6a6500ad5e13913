"""The device idles because no synthesised partition is there."""

from collections.abc import Iterator

from cuzklab.analysis import occupancy
from cuzklab.analysis.calls import calls
from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.frames import cpu_work
from cuzklab.analysis.model import Finding, about
from cuzklab.analysis.phrases import in_run
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import format_seconds, percent

_MATTERS = 0.05  # of the time between the first and the last kernel
_STAGE = "synthesis"


@finding
def starvation_by_synthesis(case: Case) -> Iterator[Finding]:
    """For each policy, origin and device of completed runs where it is more than a trifle."""
    for policy in (case.candidate, case.baseline):
        for run in case.representatives(policy):
            for bound in occupancy.bindings(run):
                starved = bound.between_ns.get("queue", 0)
                if starved >= _MATTERS * bound.inner_ns:
                    yield _explained(case, run, bound, starved)


def _explained(case: Case, run: Run, bound: occupancy.Binding, starved_ns: int) -> Finding:
    work = cpu_work(run)
    work = work[work["stage"] == _STAGE]
    share = starved_ns / bound.inner_ns
    every = calls(run)
    figures = [
        figure(run, "share", share, f"GPU {bound.device} idles with nothing queued"),
        figure(run, "duration", starved_ns * 1e-9, f"GPU {bound.device} idles with nothing queued"),
    ]
    evidence = {"device": bound.device, "starved_ns": starved_ns, "share": share, "calls": len(every)}
    supply = ""
    if len(work):
        median_ns = int((work["end_ns"] - work["start_ns"]).median())
        span_s = max((int(work["end_ns"].max()) - int(work["start_ns"].min())) * 1e-9, 1e-9)
        rate = len(work) / span_s
        supply = (
            f" Synthesis delivers {rate:.3g} partitions a second, each of {format_seconds(median_ns * 1e-9)} (median)."
        )
        figures.append(figure(run, "duration", median_ns * 1e-9, "synthesis of a partition, median"))
        evidence |= {"syntheses": len(work), "synthesis_median_ns": median_ns, "synthesised_a_second": rate}
    return Finding(
        id="starvation_by_synthesis",
        claim=f"{in_run(run, case)}, GPU {bound.device} idles"
        f" {percent(share)} of the time between its first and its last kernel ({format_seconds(starved_ns * 1e-9)})"
        f" because no synthesised partition is queued.{supply}",
        role="context",
        figures=tuple(figures),
        evidence=(evidence,),
        **about(run, case.limit_bytes(run)),
        would_change="faster or more syntheses: more of their workers, or more bandwidth of host memory for them",
        gist=f"starves the device {percent(share)} of the time for want of synthesised partitions",
    )

"""A CPU stage takes longer the more CPU stages run beside it, though there are cores for all: host memory limits it."""

from collections.abc import Iterator

from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.model import Finding, about
from cuzklab.analysis.phrases import in_run, listing
from cuzklab.analysis.registry import finding
from cuzklab.analysis.stages import Contention, contention_of
from cuzklab.trace import Run
from cuzklab.units import format_seconds, percent

_MATTERS = 0.10  # longer beside the most competitors than beside the fewest
_SURE = 0.01  # level of the rank correlation


@finding
def bandwidth_bound_stage(case: Case) -> Iterator[Finding]:
    """For each policy and origin, one finding of a completed run with the stages that competition stretches."""
    for policy in (case.candidate, case.baseline):
        for run in case.representatives(policy):
            stretched = [one for one in contention_of(run) if one.inflation >= _MATTERS and one.p_value <= _SURE]
            if stretched:
                yield _explained(case, run, sorted(stretched, key=lambda one: -one.inflation))


def _explained(case: Case, run: Run, stretched: list[Contention]) -> Finding:
    worst = stretched[0]
    told = listing(
        f"{one.stage} by {percent(one.inflation)} ({format_seconds(one.fewest_s)} beside {one.fewest:.1f} others,"
        f" {format_seconds(one.most_s)} beside {one.most:.1f})" for one in stretched[:3]
    )  # fmt: skip
    bandwidth = run.table("counters")
    bandwidth = bandwidth[bandwidth["name"].str.contains("bandwidth")] if len(bandwidth) else bandwidth
    known = (
        f" The host's memory moved {bandwidth['value'].max() / 1e9:.3g} GB/s at most." if len(bandwidth)
        else " The trace has no counter of the host's bandwidth; caches and clocks could be to blame as well."
    )  # fmt: skip
    return Finding(
        id="bandwidth_bound_stage",
        claim=f"{in_run(run, case)}, CPU stages take longer when"
        f" more of them run, with a core for each: {told}. What they share is host memory.{known}",
        role="context",
        figures=(
            figure(run, "share", worst.inflation, f"longer takes {worst.stage} beside the most competitors"),
            figure(run, "duration", worst.most_s, f"{worst.stage} beside the most competitors"),
            figure(run, "duration", worst.fewest_s, f"{worst.stage} beside the fewest"),
        ),
        evidence=tuple(one.to_json() for one in stretched),
        **about(run, case.limit_bytes(run)),
        would_change="fewer threads of these stages at a time, or a host with more memory channels",
        gist=f"has CPU stages that host memory slows ({worst.stage} by {percent(worst.inflation)})",
    )

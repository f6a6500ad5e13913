"""CPU time that the host of a virtual machine gave to others while a run was timed."""

from collections.abc import Iterator

from cuzklab.analysis.case import Case
from cuzklab.analysis.model import MAX_EVIDENCE_ROWS, Finding, certainty_of
from cuzklab.analysis.phrases import counted
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run, stolen
from cuzklab.units import Metric, percent


@finding
def host_contended(case: Case) -> Iterator[Finding]:
    """One finding a design whose live runs lost so much that their times are of the neighbours as well."""
    lost: dict[str, list[Run]] = {}
    for run in case.select(origins=("live",)):
        share = run.info.machine.get(stolen.FACT)
        if isinstance(share, float) and share >= stolen.NOTED_SHARE:
            lost.setdefault(run.info.policy, []).append(run)
    for policy, runs in lost.items():
        shares = {run.name: float(run.info.machine[stolen.FACT]) for run in runs}
        low, high = min(shares.values()), max(shares.values())
        much = percent(high, 0) if percent(low, 0) == percent(high, 0) else f"{percent(low, 0)} to {percent(high, 0)}"
        yield Finding(
            id="host_contended",
            claim=f"In {counted(len(runs), 'run')} of {policy} the machine's host gave {much} of the CPU time that it"
            " wanted to others: CPU stages and launches took longer than on a machine left alone.",
            role="context",
            certainty=certainty_of(*runs),
            figures=(Metric("share", high, "measured", dict(runs[0].info.conditions), "CPU time given to others"),),
            evidence=tuple({"run": name, "stolen": share} for name, share in shares.items())[:MAX_EVIDENCE_ROWS],
            runs=tuple(shares),
            would_change="the same runs on a machine whose cores nobody shares",
            aspect="coverage",
            subject=policy,
            gist=f"ran on a machine whose host gave {much} of its CPU time to others",
        )

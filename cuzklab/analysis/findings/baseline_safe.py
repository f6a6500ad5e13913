"""Every interleaving of the baseline was checked and none goes wrong."""

from collections.abc import Iterator

from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.model import Finding
from cuzklab.analysis.phrases import counted, memory
from cuzklab.analysis.registry import finding


@finding
def baseline_safe(case: Case) -> Iterator[Finding]:
    """One finding a complete check; of an incomplete one, that it proves nothing."""
    for run in case.select(case.baseline, ("check",), ("ok",)):
        covered = run.info.conditions
        size = _size(covered)
        limit_bytes = case.limit_bytes(run)
        states = covered.get("states")
        figures = (figure(run, "count", states, "states visited"),) if states else ()
        common = {
            "id": "baseline_safe",
            "figures": figures,
            "evidence": ({"check": run.name, **{name: covered[name] for name in sorted(covered)}},),
            "runs": (run.name,),
            "subject": case.baseline,
            "vram_bytes": limit_bytes,
        }
        if covered.get("complete", False):
            yield Finding(
                claim=f"{case.baseline} with {size} {memory(limit_bytes)} is safe: on no interleaving"
                f"{f' ({states:,} states)' if states else ''} does it run out of device memory, deadlock or misuse a"
                " buffer.",
                role="context",
                certainty="proved",
                would_change="more workers or partitions than were checked, less memory, or an effect that the check"
                " does not know",
                aspect="feasibility",
                gist=f"is proved safe with {size}",
                **common,
            )
        else:
            yield Finding(
                claim=f"The check of {case.baseline} with {size} {memory(limit_bytes)} found nothing but did not visit"
                " every interleaving, so it proves nothing.",
                role="context",
                certainty="measured",
                would_change="a complete check",
                aspect="coverage",
                gist="was not checked to the end",
                **common,
            )


def _size(covered: dict[str, object]) -> str:
    workers = covered.get("workers", covered.get("gw"))
    partitions = covered.get("partitions")
    parts = [counted(int(workers), "worker")] if workers else []
    parts += [counted(int(partitions), "partition")] if partitions else []
    return " × ".join(parts) or "the workers checked"

"""Every interleaving of the baseline was checked and none goes wrong."""

from collections.abc import Iterator

from cuzklab.analysis.case import Case, figure
from cuzklab.analysis.model import Finding
from cuzklab.analysis.phrases import counted, listing, memory
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run


@finding
def baseline_safe(case: Case) -> Iterator[Finding]:
    """One finding a limit of the complete checks; of each incomplete one, that it proves nothing."""
    complete: dict[int | None, list[Run]] = {}
    for run in case.select(case.baseline, ("check",), ("ok",)):
        if run.info.conditions.get("complete", False):
            complete.setdefault(case.limit_bytes(run), []).append(run)
        else:
            yield _incomplete(case, run)
    for limit_bytes, runs in complete.items():
        covered = [(_size(run.info.conditions), run.info.conditions.get("states")) for run in runs]
        sizes = listing(f"{size}{f' ({states:,} states)' if states else ''}" for size, states in covered)
        yield Finding(
            id="baseline_safe",
            claim=f"{case.baseline} {memory(limit_bytes)} is safe with {sizes}: on no interleaving does it run out of"
            " device memory, deadlock or misuse a buffer.",
            role="context",
            certainty="proved",
            figures=tuple(figure(run, "count", states, f"states of {size}")
                          for run, (size, states) in zip(runs, covered, strict=True) if states),
            evidence=tuple(_covered(run) for run in runs),
            runs=tuple(run.name for run in runs),
            would_change="more workers or partitions than were checked, less memory, or an effect that the check does"
            " not know",
            aspect="feasibility",
            subject=case.baseline,
            vram_bytes=limit_bytes,
            gist=f"is proved safe with {listing(size for size, _ in covered)}",
        )  # fmt: skip


def _incomplete(case: Case, run: Run) -> Finding:
    limit_bytes = case.limit_bytes(run)
    return Finding(
        id="baseline_safe",
        claim=f"The check of {case.baseline} with {_size(run.info.conditions)} {memory(limit_bytes)} found nothing but"
        " did not visit every interleaving, so it proves nothing.",
        role="context",
        certainty="measured",
        figures=(),
        evidence=(_covered(run),),
        runs=(run.name,),
        would_change="a complete check",
        aspect="coverage",
        subject=case.baseline,
        vram_bytes=limit_bytes,
        gist="was not checked to the end",
    )


def _covered(run: Run) -> dict[str, object]:
    conditions = run.info.conditions
    names = ("workers", "partitions", "devices", "vram_bytes", "workload", "states", "complete", "seconds")
    return {"check": run.name, **{name: conditions[name] for name in names if name in conditions}}


def _size(covered: dict[str, object]) -> str:
    workers = covered.get("workers", covered.get("gw"))
    partitions = covered.get("partitions")
    parts = [counted(int(workers), "worker")] if workers else []
    parts += [counted(int(partitions), "partition")] if partitions else []
    return " × ".join(parts) or "the workers checked"

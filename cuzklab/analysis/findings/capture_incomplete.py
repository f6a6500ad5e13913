"""What the runs of a question did not record, and what therefore cannot be told."""

from collections.abc import Iterator, Mapping

from cuzklab.analysis.case import RECORDED, Case
from cuzklab.analysis.model import MAX_EVIDENCE_ROWS, Finding, certainty_of
from cuzklab.analysis.phrases import counted, listing
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run

# Table → what it tells.
TELLS: Mapping[str, str] = {
    "spans": "which stage ran when",
    "locks": "who held which lock and who waited for it",
    "vram": "how much device memory was in use and whose it was",
    "transfers": "what was copied, and whether from pinned memory",
    "kernels": "when the device worked",
    "waits": "what workers waited for",
}
_BAD = ("not captured", "lost")


@finding
def capture_incomplete(case: Case) -> Iterator[Finding]:
    """One finding a design and set of missing tables."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[Run]] = {}
    for run in case.select(origins=RECORDED):
        states = tuple((name, str(run.availability.get(name, {}).get("state", "not captured"))) for name in TELLS)
        lacking = tuple((name, state) for name, state in states if state in _BAD)
        if lacking:
            found.setdefault((run.info.policy, lacking), []).append(run)
    for (policy, lacking), runs in found.items():
        tables = listing(f"{name} ({state})" for name, state in lacking)
        yield Finding(
            id="capture_incomplete",
            claim=f"{counted(len(runs), 'run')} of {policy or 'an unnamed design'} lack{'s' if len(runs) == 1 else ''}"
            f" {tables}: {listing(TELLS[name] for name, _ in lacking)} cannot be told from"
            f" {'it' if len(runs) == 1 else 'them'}.",
            role="context",
            certainty=certainty_of(*runs),
            figures=(),
            evidence=tuple(
                {"run": run.name, "table": name, "state": state,
                 "reason": str(run.availability.get(name, {}).get("reason", ""))}
                for run in runs for name, state in lacking
            )[:MAX_EVIDENCE_ROWS],
            runs=tuple(run.name for run in runs),
            would_change="a recording with these tables",
            aspect="coverage",
            subject=policy,
            gist=f"was recorded without {listing(name for name, _ in lacking)}",
        )  # fmt: skip

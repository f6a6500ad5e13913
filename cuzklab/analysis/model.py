"""What an analysis concludes: findings with their evidence, and the verdict made of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuzklab.trace import Run
from cuzklab.units import Metric

ROLES = ("supports", "against", "context")
CERTAINTIES = ("measured", "simulated", "proved")
ASPECTS = ("feasibility", "performance", "mechanism", "coverage")
# `described`: a report of runs that nobody compares has no candidate to decide about.
DECISIONS = ("keep", "revert", "tune", "undecided", "described")
MAX_EVIDENCE_ROWS = 36


@dataclass(frozen=True)
class Finding:
    """One claim about a design, with what it rests on.

    Attributes
    ----------
    id : str
        Name of the rule that made it.
    claim : str
        One sentence: who, what, when, how much.
    role : {"supports", "against", "context"}
        Whether it speaks for the candidate, against it, or only explains.
    certainty : {"measured", "simulated", "proved"}
    figures : tuple of Metric
    evidence : tuple of mapping
        The rows of tables that it rests on, at most `MAX_EVIDENCE_ROWS`.
    runs : tuple of str
        Names of the runs.
    would_change : str
        What would have to be different for the claim to fall.
    aspect : {"feasibility", "performance", "mechanism", "coverage"}
        Whether it tells if a design can run at all, how fast it is, why, or what the data do not show. Verdicts are
        made by aspect and role, so that a new rule counts without a change elsewhere.
    subject : str
        The policy that it is about.
    vram_bytes : int or None
        The limit of device memory at which it holds; None where it does not depend on one.
    gist : str
        The claim as a clause about the subject, for the sentence of a verdict: "runs out of memory in 11 steps".
    """

    id: str
    claim: str
    role: str
    certainty: str
    figures: tuple[Metric, ...]
    evidence: tuple[Mapping[str, Any], ...]
    runs: tuple[str, ...]
    would_change: str
    aspect: str = "mechanism"
    subject: str = ""
    vram_bytes: int | None = None
    gist: str = ""

    def __post_init__(self) -> None:
        for value, known in ((self.role, ROLES), (self.certainty, CERTAINTIES), (self.aspect, ASPECTS)):
            if value not in known:
                raise ValueError(f"{value!r} is not one of {', '.join(known)}")
        if len(self.evidence) > MAX_EVIDENCE_ROWS:
            raise ValueError(
                f"finding {self.id} has {len(self.evidence)} rows of evidence; at most {MAX_EVIDENCE_ROWS}"
            )
        if self.role != "context" and not (self.evidence or self.figures):
            raise ValueError(f"finding {self.id} claims something without evidence")

    def to_json(self) -> dict[str, Any]:
        """The finding as plain values."""
        return {
            "id": self.id,
            "claim": self.claim,
            "role": self.role,
            "certainty": self.certainty,
            "aspect": self.aspect,
            "subject": self.subject,
            "vram_bytes": self.vram_bytes,
            "gist": self.gist,
            "figures": [figure.to_json() for figure in self.figures],
            "evidence": [dict(row) for row in self.evidence],
            "runs": list(self.runs),
            "would_change": self.would_change,
        }


@dataclass(frozen=True)
class Verdict:
    """What to do with the candidate.

    Attributes
    ----------
    decision : {"keep", "revert", "tune", "undecided", "described"}
    sentence : str
    because : tuple of str
        Ids of the findings that decided, the most important first.
    would_change : str
    head, reasons : str, tuple of str
        The sentence in parts: what to do and where, and the clauses that say why; empty where it has no such parts.
    basis : str
        What it rests on: cards, sizes and numbers of workers of the runs. The sentence ends with it.
    """

    decision: str
    sentence: str
    because: tuple[str, ...]
    would_change: str
    head: str = ""
    reasons: tuple[str, ...] = ()
    basis: str = ""

    def __post_init__(self) -> None:
        if self.decision not in DECISIONS:
            raise ValueError(f"{self.decision!r} is not one of {', '.join(DECISIONS)}")

    def to_json(self) -> dict[str, Any]:
        return {
            "decision": self.decision,
            "sentence": self.sentence,
            "because": list(self.because),
            "would_change": self.would_change,
            "head": self.head,
            "reasons": list(self.reasons),
            "basis": self.basis,
        }


CERTAINTY_OF_ORIGIN: Mapping[str, str] = {
    "live": "measured",
    "imported": "measured",
    "simulated": "simulated",
    "counterexample": "proved",
    "check": "proved",
}


def about(run: Run, limit_bytes: int | None) -> dict[str, Any]:
    """What every finding about one run by itself says of it: fields of `Finding`."""
    return {
        "certainty": certainty_of(run), "runs": (run.name,), "subject": run.info.policy, "vram_bytes": limit_bytes,
    }  # fmt: skip


def certainty_of(*runs: Run) -> str:
    """How sure a claim is that rests on these runs: as sure as the least sure of them."""
    order = ("simulated", "measured", "proved")
    return min((CERTAINTY_OF_ORIGIN[run.info.origin] for run in runs), key=order.index)

"""What a report's decision asks of its reader: one colour a class on every page, and its words beside it.

Colour never stands alone: a badge holds the decision's own word, and an index says what each class means.
"""

from collections import Counter
from collections.abc import Iterable

GOOD, DOUBT, BAD, NEUTRAL = "good", "doubt", "bad", "neutral"
# Decisions after which a program that asked for the report ends with exit status 1.
FAILING = ("regressed", "failed")

_LOOKS = {
    "keep": GOOD, "steady": GOOD,
    "tune": DOUBT, "undecided": DOUBT, "suspect": DOUBT,
    "revert": BAD, "regressed": BAD, "failed": BAD,
}  # fmt: skip
MEANINGS = {
    GOOD: "keep: it is better, or nothing got worse",
    DOUBT: "act or look again: tune, undecided, suspect",
    BAD: "revert, regressed, failed",
    NEUTRAL: "tells what is, decides nothing",
}


def look_of(decision: str) -> str:
    """The class of a decision; one that recommends nothing is neutral."""
    return _LOOKS.get(decision, NEUTRAL)


def counted(decisions: Iterable[str]) -> str:
    """How many of each, what needs somebody first: ``2 revert, 1 tune, 3 keep, 4 described``."""
    order = (BAD, DOUBT, GOOD, NEUTRAL)
    found = Counter(decisions)
    return ", ".join(
        f"{found[name]} {name}" for name in sorted(found, key=lambda name: (order.index(look_of(name)), name))
    )

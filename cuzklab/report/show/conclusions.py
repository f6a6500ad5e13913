"""What a report concludes: the verdict and the figures that carry it, the findings with their evidence."""

from collections.abc import Sequence

import pandas as pd

from cuzklab.analysis import Finding
from cuzklab.report import display, tables
from cuzklab.report.decisions import look_of
from cuzklab.report.display import badge
from cuzklab.report.naming import sentence
from cuzklab.report.postmortem import PostMortem, anchor, large, tiles
from cuzklab.report.show.words import metric_name
from cuzklab.units import Metric


def summary(post: PostMortem) -> None:
    """The verdict in a sentence, and the three figures that carry it."""
    verdict = post.verdict
    shown = "".join(
        f'<div class="cz-tile"><div class="value">{tables.prose(tile.value)}</div>'
        f'<div class="what">{tables.prose(tile.what)}</div>{badge(tile.obtained)}'
        f' <a class="why" href="#{anchor(post, tile.finding)}">evidence</a></div>'
        for tile in tiles(post)
    )
    reasons = [
        f"{post.case.candidate} {clause[3:]}" if clause.startswith("it ") else clause for clause in verdict.reasons
    ]
    headline(verdict.decision, verdict.head or verdict.sentence, reasons, verdict.basis, shown)


def headline(decision: str, sentence: str, reasons: Sequence[str] = (), basis: str = "", tiles: str = "") -> None:
    """A verdict, first thing on a page: the decision in its colour, the sentence, why, what it rests on, figures.

    Parameters
    ----------
    tiles : str
        HTML of this package.
    """
    listed = "".join(f"<li>{tables.prose(clause)}</li>" for clause in reasons)
    display.markup(
        f'<div class="cz-verdict {look_of(decision)}"><p class="word">Verdict: {tables.escape(decision)}</p>'
        f'<p class="sentence">{tables.prose(sentence)}</p>'
        + (f'<ul class="reasons">{listed}</ul>' if listed else "")
        + (f'<p class="basis">{tables.prose(basis)}</p>' if basis else "")
        + (f'<div class="cz-tiles">{tiles}</div>' if tiles else "")
        + "</div>"
    )


def findings(post: PostMortem) -> None:
    """Every finding: claim, how sure, its figures and evidence, and what would make it fall."""
    if not post.findings:
        display.text("These runs led to no finding.")
        return
    deciding = [one for one in post.findings if one.role != "context" or one.id in post.verdict.because]
    context = [one for one in post.findings if one not in deciding]
    display.markup(_finding_list(post, deciding))
    if context:
        display.markup(tables.folded(f"{len(context)} findings that give context", _finding_list(post, context)))


def _finding_list(post: PostMortem, chosen: Sequence[Finding]) -> str:
    items = "".join(f'<li class="cz-finding" id="{anchor(post, one)}">{_finding(one)}</li>' for one in chosen)
    return f'<ol class="cz-findings">{items}</ol>'


def _finding(one: Finding) -> str:
    words = {"against": "against it", "supports": "for it", "context": "context"}[one.role]
    content = ""
    if one.figures:
        content += tables.table(_metric_rows(one.figures), right=("value",), markup=("obtained",))
    if one.evidence:
        content += tables.table(pd.DataFrame([dict(row) for row in one.evidence]))
    content += f'<p class="cz-small">Runs: {tables.escape(", ".join(one.runs))}</p>' if content else ""
    rests = f"Figures and evidence ({len(one.figures) + len(one.evidence)} rows)"
    return (
        f"{badge(words, one.role)} {badge(one.certainty)}"
        f'<p class="claim">{tables.prose(one.claim)}</p>'
        + (
            f'<p class="falls">What would change it: {tables.prose(sentence(one.would_change))}</p>'
            if one.would_change
            else ""
        )
        + (tables.folded(rests, content) if content else "")
    )


def verdict(post: PostMortem) -> None:
    """The decision again, with the findings that made it, and what would change it."""
    by_id: dict[str, list[str]] = {}
    for one in post.findings:
        by_id.setdefault(one.id, []).append(one.claim)
    because = "".join(
        f"<li>{tables.prose(claim)}</li>" for name in post.verdict.because for claim in by_id.get(name, [])
    )
    decision = badge(post.verdict.decision, look_of(post.verdict.decision))
    display.markup(
        f'<div class="cz-text"><p>{decision} {tables.prose(post.verdict.sentence)}</p>'
        + (f"<p>Because:</p><ul>{because}</ul>" if because else "")
        + f"<p>What would change it: {tables.prose(sentence(post.verdict.would_change))}</p></div>"
    )


def _metric_rows(metrics: Sequence[Metric]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "figure": [metric_name(one) for one in metrics],
            "value": [large(one) for one in metrics],
            "obtained": [badge(one.obtained) for one in metrics],
        }
    )

"""The sections of a regression report: figures over time, what got worse, and how sure that is."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cuzklab.analysis.history import SeriesJudgement
from cuzklab.report import display, figures, tables
from cuzklab.report.display import badge
from cuzklab.report.naming import figure_name
from cuzklab.report.show import conclusions
from cuzklab.units import format_value, percent

REGRESSED, STEADY, TOO_SHORT, SUSPECT = "regressed", "steady", "too short", "suspect"
_MOST_LINES = 8
_LOOKS = {"slower": "failed", "suspect": "doubt", "too noisy": "doubt", "faster": "ok", "unchanged": ""}


def decided(judged: Sequence[SeriesJudgement]) -> dict[str, Any]:
    """The verdict over all series: regressed with any alarm, suspect with any suspect, else steady; or too short."""
    states = [one.judgement.state for one in judged]
    alarms = [one for one in judged if one.judgement.alarm]
    known = [state for state in states if state != "too short"]
    if alarms:
        worst = alarms[0]
        sentence = (
            f"{len(alarms)} of {len(judged)} figures got worse, the most {figure_name(worst)}: "
            f"{percent(worst.judgement.effect, 1, signed=True)}."
        )
        return _verdict(REGRESSED, sentence, "the change that made it slower undone, or a new baseline accepted")
    if "suspect" in states:
        count = states.count("suspect")
        words = (
            f"{count} of {len(judged)} figures {'is' if count == 1 else 'are'} suspect: one run never raises an alarm."
        )
        return _verdict(SUSPECT, words, "a confirming rerun (`cuzklab schedule run` makes them)")
    if not known:
        words = f"None of {len(judged)} figures has enough history to be judged."
        return _verdict(TOO_SHORT, words, "more runs under the same conditions on the same machine")
    words = f"None of the {len(known)} figures with enough history got worse."
    return _verdict(STEADY, words, "a slowdown that reruns confirm")


def _verdict(decision: str, sentence: str, would_change: str) -> dict[str, Any]:
    return {"decision": decision, "sentence": sentence, "because": [], "would_change": would_change}


def headline(verdict: dict[str, Any]) -> None:
    """The verdict, first thing on the page."""
    conclusions.headline(
        verdict["decision"], verdict["sentence"], [f"What would change it: {verdict['would_change']}."]
    )


def alarms(judged: Sequence[SeriesJudgement], words: Callable[[SeriesJudgement], str]) -> None:
    """Each figure that is worse, suspect or better, in a sentence."""
    told = [one for one in judged if one.judgement.state in ("slower", "suspect", "too noisy", "faster")]
    if not told:
        display.text("No figure is slower, faster or suspect.")
        return
    items = "".join(
        f'<li class="cz-finding">{badge(one.judgement.state, _LOOKS[one.judgement.state])}'
        f'<p class="claim">{tables.prose(words(one))}</p></li>'
        for one in told
    )
    display.markup(f'<ol class="cz-findings">{items}</ol>')


def trends(judged: Sequence[SeriesJudgement]) -> None:
    """Figures over the occasions of their runs, a picture for each kind, the worst first."""
    kinds: dict[str, list[SeriesJudgement]] = {}
    for one in judged:
        if len(one.levels) >= figures.FEWEST_OCCASIONS:
            kinds.setdefault(one.kind, []).append(one)
    if not kinds:
        display.markup('<p class="cz-absent">No figure of trends: it takes two reports to draw a line.</p>')
    for kind, series in kinds.items():
        drawn = series[:_MOST_LINES]
        more = f" ({len(drawn)} of {len(series)}, the worst)" if len(drawn) < len(series) else ""
        display.figure(figures.trend(drawn, f"{kind.replace('_', ' ').capitalize()} over reports{more}"))
        rows = [
            {"figure": figure_name(one), "report": Path(occasion).name, "level": format_value(level, one.unit)}
            for one in drawn for occasion, level in zip(one.occasions, one.levels, strict=True)
        ]  # fmt: skip
        display.table(pd.DataFrame(rows), fold=f"Table: {kind.replace('_', ' ')} by report", right=("level",))


def judged_table(judged: Sequence[SeriesJudgement]) -> None:
    """Every figure with its judgement, effect and interval."""
    rows = [
        {
            "figure": figure_name(one), "state": one.judgement.state, "now": format_value(one.level, one.unit),
            "before": format_value(one.baseline_level, one.unit) if one.baseline_level == one.baseline_level else None,
            "change_share": one.judgement.effect if one.judgement.baseline else None,
            "from_share": one.judgement.low, "to_share": one.judgement.high, "noise_share": one.judgement.noise or None,
            "runs": one.runs,
        }
        for one in judged
    ]  # fmt: skip
    short = [row for row in rows if row["state"] == "too short"]
    known = [row for row in rows if row["state"] != "too short"]
    _rows(known)
    _rows(short, fold=f"Table: {len(short)} figures with too little history")


def _rows(rows: list[dict[str, Any]], fold: str = "") -> None:
    display.table(
        pd.DataFrame(rows), "Every figure, the worst first. From and to: 95 % interval of the change. Noise: standard"
        " deviation of a run's level.", right=("now", "before"), fold=fold, rows=400,
    )  # fmt: skip

"""Two runs on one axis, with their figures and stages side by side."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cuzklab.analysis.case import metrics_of
from cuzklab.analysis.compare import JUDGED_BY, compare, differing, unlike
from cuzklab.analysis.compare_stages import by_stage
from cuzklab.errors import BadInput
from cuzklab.report.canvas import picture_of
from cuzklab.report.canvas.picture import beside
from cuzklab.report.naming import labels
from cuzklab.trace import Run, load_run
from cuzklab.units import format_value
from cuzklab.workbench.texts import sentence_table, text_table
from cuzklab.workbench.timeline import Timeline

_NO_INTERVAL = "too few samples"


class Compare(Timeline):
    """Two runs, each from its own start, one above the other; the left one is divided by the right one.

    Runs of different experiments are shown, but not divided: the table says in which conditions they differ.

    Parameters
    ----------
    left, right : Run or path
        A candidate and its baseline.

    Raises
    ------
    BadInput
        One is counted in steps and the other in time.
    """

    def __init__(self, left: Run | Path | str, right: Run | Path | str) -> None:
        self.left, self.right = (run if isinstance(run, Run) else load_run(run) for run in (left, right))
        if self.left.info.time_unit != self.right.info.time_unit:
            raise BadInput(
                f"{self.left.name} counts {self.left.info.time_unit}, {self.right.name} {self.right.info.time_unit}: "
                "a counterexample has steps, not times; compare it with another one"
            )
        names = labels((self.left, self.right))
        pictures = [
            picture_of(run, title=name) for run, name in zip((self.left, self.right), names, strict=True)
        ]  # fmt: skip
        super().__init__(beside(*pictures), tables=comparison(self.left, self.right))


def comparison(left: Run, right: Run) -> list[dict[str, Any]]:
    """The tables of a comparison; for runs that must not be compared the reason and their figures, undivided."""
    forbidden = unlike(left, right)
    conditions = [
        {"condition": name, "left": str(mine), "right": str(theirs)}
        for name, (mine, theirs) in differing(left, right).items()
    ]
    tables = []
    if forbidden:
        words = ", ".join(f"{name} ({mine} and {theirs})" for name, (mine, theirs) in forbidden.items())
        tables.append(sentence_table(f"These runs are not divided by each other: they differ in {words}."))
    tables.append(_figures(left, right, divided=not forbidden))
    if not forbidden:
        tables += _stages(left, right)
    if conditions:
        tables.append(text_table(pd.DataFrame(conditions), "Conditions that differ"))
    return tables


def _figures(left: Run, right: Run, divided: bool) -> dict[str, Any]:
    """Figures of both, kind by kind; each with its quotient and interval, or with the reason why it has none."""
    mine, theirs = ({(one.kind, one.label): one for one in metrics_of(run)} for run in (left, right))
    rows = []
    for key in dict.fromkeys((*mine, *theirs)):
        one, other = mine.get(key), theirs.get(key)
        row = {
            "figure": key[1] or key[0].replace("_", " "),
            "left": format_value(one.value, one.unit) if one else "–",
            "right": format_value(other.value, other.unit) if other else "–",
            "left / right": "–", "interval": "",
            "obtained": " / ".join(dict.fromkeys(figure.obtained for figure in (one, other) if figure)),
        }  # fmt: skip
        if not one or not other:
            row["interval"] = f"only the {'left' if one else 'right'} run has it"
        elif not divided:
            row["interval"] = "not compared"
        elif other.value:
            # Only of times there are samples within a run; with a label of its own a figure is of something else.
            timed = key[0] in JUDGED_BY
            found = compare(left, right, key[0]) if timed and not key[1] else None
            row["left / right"] = f"{one.ratio(other):.3f}"
            known = found is not None and found.low is not None and abs(found.ratio - one.ratio(other)) < 1e-12
            row["interval"] = (
                f"{found.low:.3f} to {found.high:.3f} ({found.sampled})" if known else _NO_INTERVAL if timed else ""
            )
        rows.append(row)
    caption = "Figures; below 1 the left run is smaller. Intervals (95 %) are of the spread within the runs."
    columns = ["figure", "left", "right", "left / right", "interval", "obtained"]
    return text_table(pd.DataFrame(rows, columns=columns), caption)


def _stages(left: Run, right: Run) -> list[dict[str, Any]]:
    found = by_stage(left, right)
    if not len(found):
        return []
    frame = pd.DataFrame(
        {
            "stage": found["stage"],
            "left partitions": found["count"],
            "right partitions": found["baseline_count"],
            "left_ns": found["mean_ns"],
            "right_ns": found["baseline_mean_ns"],
            "left / right": found["ratio"],
            "interval": [
                f"{low:.3f} to {high:.3f}" if np.isfinite(low) else _NO_INTERVAL
                for low, high in zip(found["low"].astype(float), found["high"].astype(float), strict=True)
            ],
            "differs": ["yes" if resolved else "not shown" for resolved in found["resolved"]],
        }
    )
    caption = "Stages: mean time of a partition, with the 95 % bootstrap interval of the quotient."
    return [text_table(frame, caption, headings={"left_ns": "left, mean", "right_ns": "right, mean"})]

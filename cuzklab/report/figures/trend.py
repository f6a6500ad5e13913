"""A figure of many runs over time: each occasion's level, where the level changed, what is judged now."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from cuzklab.analysis.history import SeriesJudgement
from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, titled
from cuzklab.report.naming import figure_name
from cuzklab.units import format_value

FEWEST_OCCASIONS = 2  # occasions that make a line


def trend(series: Sequence[SeriesJudgement], title: str) -> go.Figure | Absent:
    """Levels over occasions, each series relative to its own median, so that unlike figures share an axis.

    Occasions from which on the level is another are marked; the newest is filled with the colour of its judgement.
    """
    drawn = [one for one in series if len(one.levels) >= FEWEST_OCCASIONS]
    if not drawn:
        return Absent(f"No trend of {title}: it takes {FEWEST_OCCASIONS} reports to draw a line.")
    figure = go.Figure()
    for place, one in enumerate(drawn):
        colour = theme.WORKER_COLOURS[place % len(theme.WORKER_COLOURS)]
        relative = np.asarray(one.levels) / np.median(one.levels)
        names = [Path(occasion).name for occasion in one.occasions]
        name = theme.plain(figure_name(one))
        figure.add_trace(
            go.Scatter(
                x=names, y=relative, mode="lines+markers", name=name, line={"color": colour, "width": 1.5},
                marker={"size": [5] * (len(names) - 1) + [10], "color": colour,
                        "symbol": ["circle"] * (len(names) - 1) + [_SYMBOL.get(one.judgement.state, "circle")]},
                customdata=[format_value(level, one.unit) for level in one.levels],
                hovertemplate=f"%{{x}}<br><b>{name}</b>: %{{customdata}} (%{{y:.3f}} of its median)<extra></extra>",
            )
        )  # fmt: skip
        for change in one.changes:
            figure.add_vline(x=names.index(Path(change).name), line={"color": colour, "dash": "dot", "width": 1})
    figure.update_layout(
        titled(
            title,
            "Each figure divided by its own median. Large marker: the newest; a dotted line: the level changed here.",
            f"Trend over reports of {len(drawn)} figures, each relative to its median.",
            380,
            showlegend=True,
            xaxis={"type": "category", "title": theme.axis_title("report"), "nticks": 12},
            yaxis={"title": theme.axis_title("relative to its median"), "tickformat": ".2f"},
        )
    )
    return figure


_SYMBOL = {"slower": "triangle-up", "suspect": "triangle-up-open", "faster": "triangle-down", "too noisy": "x"}

"""A wait-for graph: who waits for whom, and for what."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from cuzklab.report import theme
from cuzklab.report.figures.axes import ordered, short_worker


def wait_graph(edges: Sequence[tuple[str, str, str]], subtitle: str) -> go.Figure:
    """Draw an arrow from each actor to those that it waits for.

    Parameters
    ----------
    edges : sequence of (waiter, holder, what)
        At least one; what is waited for by the same of the same stands at one arrow.
    subtitle : str
        Of which moment it is.
    """
    things: dict[tuple[str, str], list[str]] = {}
    for waiter, holder, what in edges:
        things.setdefault((waiter, holder), []).append(what)
    edges = [(*pair, ", ".join(dict.fromkeys(what))) for pair, what in things.items()]
    actors = ordered([name for edge in edges for name in edge[:2]])
    place = {
        actor: (-math.cos(2 * math.pi * number / len(actors)), 0.8 * math.sin(2 * math.pi * number / len(actors)))
        for number, actor in enumerate(actors)
    }
    figure = go.Figure()
    for start, end, what in edges:
        (x0, y0), (x1, y1) = place[start], place[end]
        length = math.hypot(x1 - x0, y1 - y0)
        # Arrows in both directions between two actors run side by side, each label on its own side.
        aside_x, aside_y = -(y1 - y0) / length * 0.09, (x1 - x0) / length * 0.09
        figure.add_annotation(
            x=x1 + aside_x - (x1 - x0) / length * 0.2, y=y1 + aside_y - (y1 - y0) / length * 0.2,
            ax=x0 + aside_x + (x1 - x0) / length * 0.2, ay=y0 + aside_y + (y1 - y0) / length * 0.2,
            axref="x", ayref="y", xref="x", yref="y", text="", showarrow=True, arrowhead=2, arrowsize=1.3,
            arrowwidth=1.6, arrowcolor=theme.FAILED,
        )  # fmt: skip
        figure.add_annotation(
            x=(x0 + x1) / 2 + 2.2 * aside_x, y=(y0 + y1) / 2 + 2.2 * aside_y, showarrow=False,
            text=f"waits for {theme.plain(what, 28)}", font={"size": 12},
        )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=[place[actor][0] for actor in actors], y=[place[actor][1] for actor in actors], mode="markers+text",
            text=[theme.plain(short_worker(actor), 12) for actor in actors], textfont={"color": "#ffffff", "size": 13},
            marker={"size": 40, "color": [theme.WORKER_COLOURS[0]] * len(actors)}, hoverinfo="skip", showlegend=False,
        )
    )  # fmt: skip
    hidden = {"visible": False, "range": [-1.5, 1.5], "fixedrange": True}
    figure.update_layout(
        theme.layout(
            title={
                "text": "Who waits for whom",
                "subtitle": {"text": subtitle},
            },
            height=(130 if len(actors) == 2 else 260) + theme.TITLE_HEIGHT,
            meta={"description": theme.plain("; ".join(f"{a} waits for {b}" for a, b, _ in edges), 600)},
            xaxis=hidden,
            yaxis={**hidden, "range": [-0.8, 0.8] if len(actors) == 2 else [-1.2, 1.2]},
        )
    )
    return figure

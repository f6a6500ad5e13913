"""A search's figures: speed against memory, designs over device memory, gains from a tenth more of each resource."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, size_scale, titled
from cuzklab.report.tables import number
from cuzklab.units import percent

# Slower than the baseline is warm, faster cool, all light enough for dark text on any page.
_DIVERGING = ((0.0, "#E79A5B"), (0.5, "#E8EAED"), (1.0, "#6FAEDC"))
_CELL_INK = "#1B1F24"
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "pentagon", "hexagon", "star")
_MOST_GAIN = 25.0  # per cent at which the colour is full


def speed_against_memory(
    points: Sequence[Mapping[str, Any]], front: Sequence[Mapping[str, Any]], memory: str, conditions: str
) -> go.Figure | Absent:
    """Seconds a proof over a kind of memory: every configuration that was screened, and the Pareto front.

    Parameters
    ----------
    points, front : sequence of mapping
        design, label, batch_average_s, memory_bytes; the front in order of memory, with interval_s if known.
    memory : str
        "host memory" or "device memory".
    conditions : str
    """
    if not points:
        return Absent(f"No figure of speed against {memory}: no configuration can run.")
    divisor, unit = size_scale(max(point["memory_bytes"] for point in points))
    designs = sorted({point["design"] for point in points})
    colours = theme.colours_apart(designs)
    figure = go.Figure()
    for place, design in enumerate(designs):
        own = [point for point in points if point["design"] == design]
        figure.add_trace(
            go.Scatter(
                x=[point["memory_bytes"] / divisor for point in own], y=[point["batch_average_s"] for point in own],
                mode="markers", name=theme.plain(design),
                marker={
                    "color": theme.shade(colours[design], 0.7), "symbol": _SYMBOLS[place % len(_SYMBOLS)], "size": 8,
                    "line": {"width": 0},
                },
                customdata=[[theme.plain(point["label"], 80)] for point in own],
                hovertemplate=f"<b>%{{customdata[0]}}</b><br>%{{y:.2f}} s/proof, %{{x:.1f}} {unit}<extra></extra>",
            )
        )  # fmt: skip
    spread = [point["interval_s"] or (point["batch_average_s"],) * 2 for point in front]
    figure.add_trace(
        go.Scatter(
            x=[point["memory_bytes"] / divisor for point in front], y=[point["batch_average_s"] for point in front],
            mode="lines+markers", name="Pareto front, confirmed",
            line={"color": theme.INK, "width": 1.5, "shape": "hv"},
            marker={"color": "rgba(0,0,0,0)", "size": 13, "line": {"color": theme.INK, "width": 2}},
            error_y={
                "type": "data", "symmetric": False, "thickness": 1, "width": 3, "color": theme.INK,
                "array": [high - point["batch_average_s"] for (_, high), point in zip(spread, front, strict=True)],
                "arrayminus": [point["batch_average_s"] - low for (low, _), point in zip(spread, front, strict=True)],
            },
            customdata=[[theme.plain(point["label"], 80)] for point in front],
            hovertemplate=f"<b>%{{customdata[0]}}</b><br>%{{y:.2f}} s/proof, %{{x:.1f}} {unit}<extra>front</extra>",
        )
    )  # fmt: skip
    figure.update_layout(
        titled(
            f"Speed against {memory}",
            f"{conditions}. Small marks: one long simulation each. Circles: the front, with 90 % intervals of one run.",
            f"Seconds a proof over {memory} for {len(points)} configurations; {len(front)} make the Pareto front.",
            440,
            xaxis={"title": theme.axis_title(f"peak of {memory} ({unit})")},
            yaxis={"title": theme.axis_title("s/proof, batch average")},
        )
    )
    return figure


def crossover_map(
    cells: Sequence[Mapping[str, Any]], designs: Sequence[str], sizes: Sequence[int], baseline: str, conditions: str
) -> go.Figure | Absent:
    """Designs × device memory: how much faster than the baseline, and where a design cannot run.

    Parameters
    ----------
    cells : sequence of mapping
        design, vram_bytes, batch_average_s, gain, resolved, gw, why.
    """
    if not cells:
        return Absent("No map of designs over device memory: nothing was compared.")
    divisor, unit = size_scale(max(sizes))
    columns = [f"{number(size / divisor)}" for size in sizes]
    by_place = {(cell["design"], cell["vram_bytes"]): cell for cell in cells}
    rows = [[by_place[design, size] for size in sizes] for design in designs]
    figure = go.Figure(
        go.Heatmap(
            z=[[None if cell["gain"] is None else 100 * cell["gain"] for cell in row] for row in rows],
            x=columns, y=[theme.plain(design) for design in designs],
            zmin=-_MOST_GAIN, zmax=_MOST_GAIN, xgap=2, ygap=2, colorscale=_DIVERGING, showscale=False,
            text=[[_cell_text(cell) for cell in row] for row in rows], texttemplate="%{text}",
            textfont={"color": _CELL_INK},
            customdata=[[_cell_words(cell, baseline) for cell in row] for row in rows],
            hoverongaps=True,
            hovertemplate=f"<b>%{{y}}</b> with %{{x}} {unit}<br>%{{customdata}}<extra></extra>",
        )
    )  # fmt: skip
    figure.update_layout(
        titled(
            "From which device memory does each design pay?",
            f"{conditions}. s/proof of the best safe number of GPU workers; blue: faster than {baseline} with the same "
            "memory, orange: slower, grey: no difference, no colour: cannot run.",
            f"Designs over device memory, compared with {baseline}.",
            110 + 34 * len(designs),
            xaxis={
                "title": theme.axis_title(f"device memory ({unit})"), "type": "category", "showgrid": False,
                "ticks": "",
            },
            yaxis={"autorange": "reversed", "type": "category", "showgrid": False, "ticks": ""},
        )
    )  # fmt: skip
    return figure


def gains(rows: Sequence[Mapping[str, Any]], what: str) -> go.Figure | Absent:
    """What a tenth more of each resource brings.

    Parameters
    ----------
    rows : sequence of mapping
        title, gain, interval, limits: as in `cuzklab.simulate.explain.Explanation.to_json`; those without a gain are
        left out.
    what : str
        What was explained.
    """
    told = [row for row in rows if row["gain"] is not None]
    if not told:
        return Absent("No figure of what limits it: no replay completed a proof.")
    figure = go.Figure(
        go.Bar(
            y=["<br>".join(textwrap.wrap(theme.plain(row["title"]), 22)) for row in told],
            x=[100 * row["gain"] for row in told], orientation="h",
            marker={
                "color": [theme.STAGE_COLOURS["ntt_h"] if row["limits"] else theme.WAIT for row in told],
                "line": {"width": 0},
            },
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.2, "width": 4, "color": theme.INK,
                "array": [100 * (row["interval"][1] - row["gain"]) for row in told],
                "arrayminus": [100 * (row["gain"] - row["interval"][0]) for row in told],
            },
            customdata=[[row["change"]] for row in told],
            hovertemplate="%{y}: %{customdata[0]}<br>%{x:+.2f} % of throughput<extra></extra>",
        )
    )  # fmt: skip
    figure.update_layout(
        titled(
            "What limits it",
            f"{what}. Gain of throughput from a tenth more of each resource, with 90 % intervals over seeds. 10 % "
            "would be all of it; blue: a limit.",
            f"Gain from a tenth more of each resource: {what}.",
            90 + 30 * len(told),
            xaxis={"title": theme.axis_title("gain of throughput (%)")},
            yaxis={"autorange": "reversed", "ticks": "", "showgrid": False},
            showlegend=False,
        )
    )
    return figure


def _cell_text(cell: Mapping[str, Any]) -> str:
    return f"{cell['batch_average_s']:.1f}" if cell["batch_average_s"] is not None else "–"


def _cell_words(cell: Mapping[str, Any], baseline: str) -> str:
    if cell["batch_average_s"] is None:
        return f"cannot run: {theme.plain(cell['why'], 90)}"
    words = f"{cell['batch_average_s']:.2f} s/proof with {cell['gw']} GPU worker{'s' if cell['gw'] > 1 else ''}"
    if cell["gain"] is not None:
        words += f"<br>{percent(cell['gain'], 1, signed=True)} of {theme.plain(baseline)}'s throughput"
        words += "" if cell["resolved"] else ", not told apart"
    return words + (f"<br>{theme.plain(cell['why'], 90)}" if cell["why"] else "")

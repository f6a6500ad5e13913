"""Which designs are safe on how much device memory: a bar for each design and number of workers."""

from collections.abc import Sequence
from typing import Any, Protocol

import plotly.graph_objects as go

from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, titled
from cuzklab.units import GiB, format_size

_SAFE, _UNSAFE, _UNKNOWN = "#009E73", "#D55E00", theme.WAIT
_LOOKS = {"safe": (_SAFE, ""), "unsafe": (_UNSAFE, "/"), "unknown": (_UNKNOWN, ".")}


class Interval(Protocol):
    """An interval of device memory with one verdict."""

    from_bytes: int
    to_bytes: int | None
    verdict: str
    message: str


class Option(Protocol):
    """A design with a number of workers; see `cuzklab.capacity.Option`."""

    policy: str
    workers: int
    intervals: Sequence[Interval]


def feasibility(options: Sequence[Option], last_bytes: int, marks: Sequence[int] = ()) -> go.Figure | Absent:
    """Safe and unsafe amounts of device memory.

    Parameters
    ----------
    options : sequence
    last_bytes : int
        Where the axis ends.
    marks : sequence of int
        Sizes of cards to mark.
    """
    if not options:
        return Absent("No figure of feasibility: no design was asked about.")
    figure = go.Figure()
    for verdict, (colour, pattern) in _LOOKS.items():
        bars: list[dict[str, Any]] = [
            {
                "option": option,
                "from": one.from_bytes / GiB,
                "to": (one.to_bytes or last_bytes) / GiB,
                "why": one.message,
            }
            for option in options
            for one in option.intervals
            if one.verdict == verdict and one.from_bytes < last_bytes
        ]
        if not bars:
            continue
        marker: dict[str, Any] = {"color": colour, "line": {"width": 0}}
        if pattern:
            marker["pattern"] = {"shape": pattern, "fgcolor": "rgba(255,255,255,0.5)", "size": 6, "solidity": 0.22}
        figure.add_trace(
            go.Bar(
                y=[_name(bar["option"]) for bar in bars], base=[bar["from"] for bar in bars],
                x=[bar["to"] - bar["from"] for bar in bars], orientation="h", name=verdict, marker=marker,
                hovertext=[
                    f"<b>{_name(bar['option'])}</b>: {verdict} from {bar['from']:.2f} to {bar['to']:.2f} GiB"
                    + (f"<br>{theme.plain(bar['why'], 120)}" if bar["why"] else "")
                    for bar in bars
                ],
                hoverinfo="text",
            )
        )  # fmt: skip
    for size_bytes in marks:
        figure.add_vline(
            x=size_bytes / GiB, line={"color": theme.INK, "dash": "dot", "width": 1},
            annotation={"text": format_size(size_bytes).replace(".0 ", " "), "font": {"size": 11}, "yanchor": "bottom"},
        )  # fmt: skip
    figure.update_layout(
        titled(
            "What fits which device",
            "Proved for every amount of memory and every interleaving; dotted: the cards asked about.",
            "Amounts of device memory on which each design is safe and unsafe.",
            140 + 30 * len(options),
            barmode="overlay",
            xaxis={"title": theme.axis_title("device memory (GiB)"), "range": [0, last_bytes / GiB]},
            yaxis={"autorange": "reversed", "ticks": "", "showgrid": False},
        )
    )
    return figure


def _name(option: Option) -> str:
    return theme.wrapped(f"{option.policy}, {option.workers} worker{'s' if option.workers != 1 else ''}")

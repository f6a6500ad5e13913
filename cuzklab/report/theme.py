"""Colours and the look of figures: one place, so that a stage has one colour in every figure of every report.

The colours are Okabe and Ito's set for colour-blind readers with two neighbours added, so that work on the device is
cool, work on the CPU warm, and waiting has no colour at all. Nothing relies on colour alone: bars carry their name,
workers have a pattern, and every figure has its table.
"""

import html
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

STAGE_COLOURS: Mapping[str, str] = {
    "ntt_h": "#0072B2",
    "h_msm": "#56B4E9",
    "batch_add": "#009E73",
    "tail_msm": "#8C6BB1",
    "upload": "#7A8B99",
    "synthesis": "#E8C547",
    "prep_msm": "#E69F00",
    "b_g2_msm": "#D55E00",
    "epilogue": "#CC79A7",
    "pin": "#B59A6A",
    "unpin": "#B59A6A",
}
# Who: softer than the stages' colours and of alternating lightness, for holds of locks and of memory.
WORKER_COLOURS = ("#4A6FA5", "#DDA49A", "#7C8A35", "#B9A7DB", "#3F8F8B", "#E3C77B", "#8C5A7A", "#A9C1D9")
_OTHERS = ("#999933", "#AA4499", "#44AA99", "#DDCC77", "#882255", "#6699CC")

STAGE_ORDER = ("synthesis", "prep_msm", "b_g2_msm", "ntt_h", "h_msm", "batch_add", "tail_msm", "epilogue")
# The page of a report replaces the first colour by its own background.
SEQUENTIAL = ((0.0, "#EEF2F6"), (1.0, "#0072B2"))

WAIT = "#9AA4AE"
LIMIT = "#D2463A"
FAILED = "#D2463A"
# The middle of grey is legible on white and on near-black alike; the page of a report replaces it by its own ink.
INK = "#6B7280"
GRID = "rgba(128,138,150,0.22)"
FONT = "Inter, 'Segoe UI', -apple-system, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
PATTERNS = ("", "/", ".", "x", "-", "\\", "+", "|")

# Left edge of figures over time, so that a timeline and the memory below it share their axis to the pixel.
LANE_MARGIN, NARROW_LANE_MARGIN = 124, 82
LABEL_LENGTH = 48
# Room for a title and a subtitle above a figure; the page of a report shows them as text instead.
TITLE_HEIGHT = 64


def colour_of_stage(name: str) -> str:
    """The colour of a stage by its name; parts (``batch_add l``, ``batch_add:l``) have their stage's colour."""
    for separator in (" ", ":", "/", "."):
        name = name.split(separator)[0]
    return STAGE_COLOURS.get(name) or _OTHERS[sum(name.encode()) % len(_OTHERS)]


def colours_apart(names: Sequence[str]) -> dict[str, str]:
    """Colours for names out of a foreign trace: stages have theirs, the others differ while there are enough."""
    foreign = [name for name in names if colour_of_stage(name) not in STAGE_COLOURS.values()]
    apart = (*_OTHERS, *WORKER_COLOURS)
    return {name: colour_of_stage(name) for name in names} | {
        name: apart[place % len(apart)] for place, name in enumerate(foreign)
    }


def colour_of_worker(worker: str, workers: Sequence[str]) -> str:
    """The colour of a worker among all workers of a run; grey for nobody."""
    return WORKER_COLOURS[workers.index(worker) % len(WORKER_COLOURS)] if worker in workers else WAIT


def shade(colour: str, opacity: float) -> str:
    """A colour that lets the page through, so that it is lighter on light and darker on dark."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def plain(text: object, length: int = LABEL_LENGTH) -> str:
    """A name from a trace as text of a figure: cut, on one line, and without the power of markup.

    plotly reads a subset of HTML in every label; a name could otherwise put a link or a line break into a figure.
    """
    flat = "".join(character if character.isprintable() else "�" for character in str(text))
    if len(flat) > length:
        flat = flat[: length // 2] + "…" + flat[-(length - length // 2 - 1) :]
    return html.escape(flat, quote=False)


def wrapped(text: object, width: int = 24, lines: int = 2) -> str:
    """`plain` text on at most so many lines, for labels of bars that must leave room for the bars on a phone.

    Lines end after a comma, or before a parenthesis, where they can.
    """
    whole = html.unescape(plain(text, width * lines)).replace(" ", "\u00a0")
    whole = whole.replace(",\u00a0", ", ").replace("\u00a0(", " (")
    pieces = [piece.replace("\u00a0", " ") for piece in textwrap.wrap(whole, width)]
    return "<br>".join(html.escape(piece, quote=False) for piece in pieces[:lines])


def over_time(longest_lane: int = 0) -> dict[str, Any]:
    """Margins of a figure over time, wide and narrow, with a fixed left edge; on a phone only long names move it."""
    narrow = max(NARROW_LANE_MARGIN, 12 + 7 * longest_lane)
    wide = {"l": LANE_MARGIN, "r": 16, "t": 8 + TITLE_HEIGHT, "b": 8}
    return {
        "margin": wide,
        "meta": {"narrow": {"margin": {**wide, "l": narrow, "r": 8, "t": 8}}},
    }


def axis_title(text: str) -> dict[str, Any]:
    """The title of an axis."""
    return {"text": text, "standoff": 8, "font": {"size": 13}}


def layout(**more: Any) -> dict[str, Any]:
    """What all figures share; `more` is laid over it, one level deep."""
    axis = {
        "gridcolor": GRID, "zeroline": False, "linecolor": GRID, "ticks": "outside", "ticklen": 4, "tickcolor": GRID,
        "automargin": True,
    }  # fmt: skip
    shared: dict[str, Any] = {
        "font": {"family": FONT, "size": 13, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 12, "t": 8 + TITLE_HEIGHT, "b": 8},
        "xaxis": axis,
        "yaxis": axis,
        "legend": {"font": {"size": 12}},  # beside the figure; the page of a report, which is wide, puts it on top
        "hoverlabel": {"align": "left", "font": {"family": FONT, "size": 12}},
        "hovermode": "closest",
        "bargap": 0.25,
    }
    for key, value in more.items():
        both = isinstance(value, dict) and isinstance(shared.get(key), dict)
        shared[key] = {**shared[key], **value} if both else value
    return shared

"""How parts of a report are shown, in JupyterLab and on the exported page alike.

Figures are plotly's MIME type, so that a notebook keeps their data and no script; everything else is HTML with a few
classes. The same rules of style serve the page (inside it) and JupyterLab (once, by `style`).
"""

import json
import time
from collections.abc import Mapping
from importlib import resources
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from IPython.display import HTML, display

from cuzklab.report import tables
from cuzklab.report.canvas import Picture
from cuzklab.report.canvas.merge import thinned
from cuzklab.report.canvas.scripts import frame as frame_of
from cuzklab.report.figures import Absent
from cuzklab.report.html import EMBEDS_TIMELINE, PLOTLY, STYLE_ONLY

# Bars of a timeline that a page carries: two megabytes or so.
MOST_BARS = 200_000

_PROGRESS_INTERVAL_S = 0.3
_told_at = float("-inf")

_JUPYTERLAB = """<style>
.jp-OutputArea { --ink: var(--jp-content-font-color1); --muted: var(--jp-content-font-color2);
  --rule: var(--jp-border-color2); --raised: var(--jp-layout-color2); --paper: var(--jp-layout-color1);
  --accent: var(--jp-content-link-color); --bad: #c0392b; --good: #1e8449; --doubt: #b9770e;
  --mono: var(--jp-code-font-family); }
.jp-OutputArea .cz-table :is(th, td, caption):not(.number) { text-align: left; }
.jp-OutputArea .cz-table td { vertical-align: top; }
.jp-OutputArea th .unit { font-weight: 400; }
%s</style>"""


def style() -> None:
    """Give JupyterLab the style of the parts below; the exported page has its own copy and leaves this out."""
    rules = (resources.files("cuzklab.report") / "page" / "parts.css").read_text(encoding="utf-8")
    display({"text/html": _JUPYTERLAB % rules}, raw=True, metadata={STYLE_ONLY: True})


def markup(html: str) -> None:
    """Show HTML."""
    display(HTML(html))


def text(sentence: str) -> None:
    """Show a paragraph of plain text."""
    markup(f'<div class="cz-text"><p>{tables.prose(sentence)}</p></div>')


def figure(drawn: go.Figure | Absent) -> None:
    """Show a figure, or the sentence that says why there is none."""
    if isinstance(drawn, Absent):
        markup(f'<p class="cz-absent">{tables.escape(drawn.reason)}</p>')
        return
    content = json.loads(drawn.to_json())
    description = (content["layout"].get("meta") or {}).get("description", "figure")
    display({PLOTLY: content, "text/plain": description}, raw=True)


def canvas(picture: Picture) -> None:
    """Show a picture of `report.canvas`, thinned where it is too large for a page; its words say so."""
    kept = thinned(picture, MOST_BARS)
    words = f"Timeline of {picture.title}: {len(picture):,} spans. {kept.note}".strip()
    html = f"<figure>{frame_of(kept)}</figure>"
    display({"text/html": html, "text/plain": words}, raw=True, metadata={EMBEDS_TIMELINE: True})


def table(frame: pd.DataFrame, caption: str = "", *, fold: str = "", **options: Any) -> None:
    """Show a table; with `fold` behind a line of that text."""
    if not len(frame):
        return
    content = tables.table(frame, caption, **options)
    markup(tables.folded(fold, content) if fold else content)


def badge(word: str, kind: str = "") -> tables.Markup:
    """A word in a frame: how sure, how obtained, how it ended."""
    return tables.Markup(f'<span class="cz-badge {tables.escape(kind or word)}">{tables.escape(word)}</span>')


def heading(words: str, badges: str = "") -> None:
    """A heading of the third level, with badges after it."""
    markup(f"<h3>{tables.escape(words)} {badges}</h3>")


def facts(pairs: Mapping[str, object]) -> None:
    """Show names and values."""
    markup(tables.facts(pairs.items()))


def progress(share: float, words: str = "") -> None:
    """Tell how far a long job is: a line that the program running the notebook understands, a few times a second."""
    global _told_at
    now = time.monotonic()
    if share >= 1 or now - _told_at >= _PROGRESS_INTERVAL_S:
        _told_at = now
        print(f"{share * 100:.0f} % {words}", flush=True)

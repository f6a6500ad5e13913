"""An executed notebook as one HTML file that needs nothing else: no network, no other file, no server.

Stock converters reach for require.js and MathJax on the net and lose plotly's figures. Here figures stay the JSON that
they are in the notebook, plotly.js is embedded once (compressed), and a content security policy forbids everything
that the file does not carry itself: the browser would refuse a request even if a name out of a trace contained one.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from importlib import resources
from pathlib import Path
from typing import Any

from cuzklab.atomic import atomic_write
from cuzklab.report import stacks
from cuzklab.report.canvas import scripts as canvas
from cuzklab.report.markdown import Contents, render_markdown
from cuzklab.report.tables import escape
from cuzklab.report.theme import TITLE_HEIGHT

# Marks an output that only carries style for JupyterLab.
STYLE_ONLY = "cuzklab_style"
# Marks an output that holds a frame of `stacks`, whose scripts the page must allow.
EMBEDS_STACKS = "cuzklab_stacks"
# Marks an output that holds a frame of `canvas`, likewise.
EMBEDS_TIMELINE = "cuzklab_timeline"
PLOTLY = "application/vnd.plotly.v1+json"
# What an output is shown as, the richest first.
_MIME_ORDER = (PLOTLY, "text/html", "text/markdown", "image/svg+xml", "image/png", "text/plain")


@dataclass
class Page:
    """What rendering gathers: figures, headings and the parts between them."""

    contents: Contents = field(default_factory=Contents)
    figures: list[str] = field(default_factory=list)
    script_hashes: tuple[str, ...] = ()


def export_html(notebook: Path, target: Path, *, note: str = "", kind: str = "report") -> Path:
    """Write an executed notebook as a self-contained page.

    Parameters
    ----------
    notebook : Path
        Executed .ipynb; figures are its outputs of plotly's MIME type.
    target : Path
        The page appears whole or not at all.
    note : str
        One line under the title: when and where it was made.
    kind : str
        What it is, in a word or two above the title.

    Returns
    -------
    Path
        `target`.
    """
    import nbformat

    document = nbformat.read(notebook, as_version=4)
    page = Page()
    body = _body(document.cells, page)
    script = _resource("page.js")
    with atomic_write(target, "w") as file:
        file.write(
            _template().render(
                title=page.contents.title or notebook.stem,
                note=note,
                kind=kind,
                contents=[entry for entry in page.contents.entries if entry.level == 2],
                body=body,
                style=_resource("page.css") + _resource("parts.css") + _code_style(),
                script=script,
                policy=_security_policy(script, page),
                bundle=_plotly_bundle() if page.figures else "",
                figures=len(page.figures),
            )
        )
    return target


def _body(cells: Sequence[Mapping[str, Any]], page: Page) -> str:
    """All cells; the code of cells that show nothing is folded away together with that of the next one that does."""
    parts: list[str] = []
    sources: list[str] = []
    printed: list[str] = []

    def fold_code() -> str:
        tools = (_code("\n\n".join(sources)) if sources else "") + _log("".join(printed))
        sources.clear()
        printed.clear()
        return f'<div class="tools">{tools}</div>' if tools else ""

    for cell in cells:
        if cell["cell_type"] == "markdown":
            parts.append(f'<div class="prose">{render_markdown(cell["source"], page.contents)}</div>\n')
        elif cell["cell_type"] == "code":
            outputs = cell.get("outputs", ())
            if cell["source"].strip():
                sources.append(cell["source"])
            printed += [output["text"] for output in outputs if output["output_type"] == "stream"]
            shown = "".join(_output(output, page) for output in outputs)
            if shown:
                parts.append(f'<div class="cell">{shown}{fold_code()}</div>\n')
    return "".join(parts) + fold_code()


def _code(source: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    formatted = highlight(source, PythonLexer(), HtmlFormatter(cssclass="code"))
    return f'<details class="tool"><summary>code</summary>{formatted}</details>'


def _log(printed: str) -> str:
    if not printed.strip():
        return ""
    lines = printed.strip().splitlines()
    return (
        f'<details class="tool"><summary>what it printed</summary>'
        f"<pre>{escape(chr(10).join(lines[-400:]))}</pre></details>"
    )


def _output(output: Mapping[str, Any], page: Page) -> str:
    if output["output_type"] == "stream":
        return ""
    if output["output_type"] == "error":
        return f'<pre class="error">{escape(output["ename"])}: {escape(output["evalue"])}</pre>'
    if STYLE_ONLY in output.get("metadata", {}):
        return ""
    for mark, hashes in ((EMBEDS_STACKS, stacks.script_hashes), (EMBEDS_TIMELINE, canvas.script_hashes)):
        if mark in output.get("metadata", {}):
            page.script_hashes = tuple(dict.fromkeys((*page.script_hashes, *hashes())))
    data = output.get("data", {})
    mime = next((mime for mime in _MIME_ORDER if mime in data), None)
    if mime is None:
        return ""
    value = data[mime]
    if mime == PLOTLY:
        return _figure(value, page)
    text = value if isinstance(value, str) else "".join(value)
    if mime in ("text/html", "image/svg+xml"):
        return text
    if mime == "text/markdown":
        return f'<div class="prose">{render_markdown(text, page.contents)}</div>'
    if mime == "image/png":
        return f'<img alt="" src="data:image/png;base64,{escape("".join(text.split()))}">'
    return f"<pre>{escape(text)}</pre>"


def _figure(figure: Mapping[str, Any], page: Page) -> str:
    """A figure's place, its title lifted out of the drawing so that it wraps like text, and its JSON."""
    layout = dict(figure.get("layout") or {})
    name = f"figure-{len(page.figures) + 1}"
    page.figures.append(name)
    title = layout.pop("title", None) or {}
    title = {"text": title} if isinstance(title, str) else title
    heading, subtitle = _label(title), _label(title.get("subtitle") or {})
    height = int(layout.get("height") or 450)
    if heading:
        saved = min(TITLE_HEIGHT, height // 3)
        margin = dict(layout.get("margin") or {})
        layout["margin"] = {**margin, "t": max(8, int(margin.get("t") or 0) - saved)}
        layout["height"] = height = height - saved
    description = (layout.get("meta") or {}).get("description") or heading
    caption = (f"<b>{heading}</b>" if heading else "") + (f"<span>{subtitle}</span>" if subtitle else "")
    caption = f"<figcaption>{caption}</figcaption>" if caption else ""
    return (
        f'<figure class="cz-figure">{caption}'
        f'<div class="plot" id="{name}" role="img" aria-label="{escape(unescape(str(description)))}"'
        f' style="min-height:{height}px"></div>'
        f'<script type="application/json" data-figure="{name}">'
        f"{_inert_json({'data': figure.get('data', []), 'layout': layout})}</script></figure>"
    )


def _label(title: Mapping[str, Any]) -> str:
    """Text of a plotly label, which may hold entities, as HTML."""
    return escape(unescape(str(title.get("text") or "")))


def _inert_json(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _security_policy(script: str, page: Page) -> str:
    """Only these scripts may run, by their hash; nothing may be fetched."""
    own = (f"'sha256-{_digest(source)}'" for source in (script, _plotly_source()))
    hashes = " ".join((*own, *page.script_hashes))
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"


def _digest(source: str) -> str:
    return base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


@lru_cache(maxsize=1)
def _plotly_source() -> str:
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


@lru_cache(maxsize=1)
def _plotly_bundle() -> str:
    """plotly.js, compressed and as text; the page inflates it."""
    return base64.b64encode(gzip.compress(_plotly_source().encode(), 9, mtime=0)).decode()


def _resource(name: str) -> str:
    return (resources.files("cuzklab.report") / "page" / name).read_text(encoding="utf-8")


def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(
        _resource("page.html.j2")
    )


def _code_style() -> str:
    """Colours of source code for both schemes."""
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="friendly").get_style_defs(".code")
    dark = HtmlFormatter(style="native").get_style_defs(".code")
    plain = ".code { background: none; }"
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n{plain}"

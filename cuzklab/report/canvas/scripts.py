"""The canvas' scripts as one module, and one picture as a document that needs nothing else.

Each script is an ES module that node and browsers load as it is. A widget is given one file, and a page may run only
scripts whose hash it names; so the modules are joined in the order of their imports, less the lines that import them.
"""

import base64
import hashlib
import re
from functools import cache, lru_cache
from importlib import resources

from cuzklab.report.canvas.picture import Picture
from cuzklab.report.tables import escape

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) )", re.MULTILINE)
# Of what stands around lanes and memory: title, tools, legend, axis, the table.
_FRAME_PX, _LANES_PX, _MEMORY_PX = 560, 436, 118
_BODY_STYLE = "html { color-scheme: light dark; } body { margin: 0; }"


@cache
def script(entry: str) -> str:
    """A module and all that it imports, as one.

    Parameters
    ----------
    entry : {"widget", "page"}
    """
    order: list[str] = []

    def visit(name: str) -> None:
        for needed in _IMPORT.findall(_resource(f"{name}.js")):
            if needed not in order:
                visit(needed)
        order.append(name)

    visit(entry)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", _resource(f"{name}.js"))) for name in order)


@lru_cache(maxsize=1)
def style() -> str:
    """The view's style."""
    return _resource("timeline.css")


def script_hashes() -> tuple[str, ...]:
    """The document's script, as a content security policy names it."""
    return (f"'sha256-{base64.b64encode(hashlib.sha256(script('page').encode()).digest()).decode()}'",)


def document(picture: Picture) -> str:
    """A page that shows a picture: data in an inert element, one constant script, nothing fetched."""
    data = base64.b64encode(picture.to_bytes()).decode()
    policy = f"default-src 'none'; script-src {' '.join(script_hashes())}; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(picture.title)}</title>"
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        f"<style>{_BODY_STYLE}{style()}</style></head><body>"
        f'<div id="timeline"></div><script type="text/plain" id="picture">{data}</script>'
        f'<script type="module">{script("page")}</script></body></html>'
    )


def frame(picture: Picture) -> str:
    """An `iframe` that shows a picture; the page around must name `script_hashes` where it has a policy."""
    height_px = _FRAME_PX + min(_LANES_PX, 24 * len(picture.row_lane) + 80) + _MEMORY_PX * len(picture.memory)
    return (
        f'<iframe class="cz-timeline" title="timeline of {escape(picture.title)}" sandbox="allow-scripts" '
        f'loading="lazy" style="width:100%;height:{height_px}px;border:0" '
        f'srcdoc="{escape(document(picture))}"></iframe>'
    )


def _resource(name: str) -> str:
    return (resources.files("cuzklab.report") / "canvas" / name).read_text(encoding="utf-8")

"""pyinstrument's flame view as one document for a frame: every script constant, nothing fetched, nothing trusted.

The sessions are data in an inert element. The scripts are pyinstrument's own, less the web font that it would fetch, a
stand-in for storage, and a few lines that let a reader choose the stage; so the page that holds the frame can name
them by their hashes.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from cuzklab.errors import BadInput
from cuzklab.report.tables import escape

_MAX_SAMPLES = 1_000_000
_FONT = re.compile(r'r\.href="https://fonts\.googleapis\.com/[^"]*",document\.head\.appendChild\(r\)')
# A frame without an origin has no storage, in which pyinstrument's page keeps how it was looked at last.
_STORAGE = """
const kept = new Map();
const storage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value) };
for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, { value: storage });
"""
_CHOOSE = """
const stages = JSON.parse(document.getElementById("stages").textContent);
const choice = document.getElementById("choice");
const show = () => {
  const app = document.getElementById("app");
  app.replaceChildren();
  pyinstrumentHTMLRenderer.render(app, stages[choice.value]);
};
for (const name of Object.keys(stages)) choice.add(new Option(name, name));
choice.addEventListener("change", show);
show();
"""
_STYLE = """
body { margin: 0; }
#stage { position: fixed; left: 0; right: 0; bottom: 0; z-index: 10; padding: 8px 30px;
  font: 13px system-ui, sans-serif; background: #24282b; color: #fff; }
#stage select { font: inherit; margin-left: 6px; }
"""


def frame(sessions: Mapping[str, Any], height_px: int = 560) -> str:
    """An `iframe` that shows sampled stacks, a stage at a time.

    Parameters
    ----------
    sessions : mapping
        pyinstrument's session of each stage as its JSON, which may come from a file.

    Raises
    ------
    BadInput
        A session is not one.
    """
    return (
        f'<iframe class="cz-stacks" title="sampled stacks by stage" sandbox="allow-scripts" loading="lazy" '
        f'style="width:100%;height:{int(height_px)}px;border:0" srcdoc="{escape(document(sessions))}"></iframe>'
    )


def document(sessions: Mapping[str, Any]) -> str:
    """The document inside the frame; it can stand alone as well."""
    if not isinstance(sessions, Mapping) or not sessions:
        raise BadInput("sampled stacks: no stages in them")
    stages = {str(stage): _for_renderer(str(stage), session) for stage, session in sessions.items()}
    data = json.dumps(stages, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    scripts = "".join(f"<script>{script}</script>" for script in _scripts())
    policy = f"default-src 'none'; script-src {' '.join(script_hashes())}; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>sampled stacks</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        f"<style>{_resource('app.css')}{_STYLE}</style></head><body>"
        '<div id="stage"><label>stage <select id="choice"></select></label></div><div id="app"></div>'
        f'<script type="application/json" id="stages">{data}</script>'
        f"{scripts}</body></html>"
    )


def script_hashes() -> tuple[str, ...]:
    """The document's scripts, as a content security policy names them."""
    return tuple(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in _scripts()
    )


def _for_renderer(stage: str, session: Any) -> Any:
    """A stored session in the form that pyinstrument's page takes."""
    from pyinstrument.renderers.html import JSONForHTMLRenderer
    from pyinstrument.session import Session

    try:
        if len(session["frame_records"]) > _MAX_SAMPLES:
            raise ValueError(f"more than {_MAX_SAMPLES} samples")
        return json.loads(JSONForHTMLRenderer().render(Session.from_json(session)))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, AssertionError) as error:
        raise BadInput(f"sampled stacks of {stage!r}: damaged ({type(error).__name__}: {error})") from None


@lru_cache(maxsize=1)
def _scripts() -> tuple[str, ...]:
    return _STORAGE, _FONT.sub("void 0", _resource("app.js")), _CHOOSE


def _resource(name: str) -> str:
    return (resources.files("pyinstrument.renderers") / "html_resources" / name).read_text(encoding="utf-8")

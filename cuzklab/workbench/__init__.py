"""What is worked with in a notebook: widgets over runs, in JupyterLab, a plain notebook and VS Code.

`timeline` is the canvas as a widget; `explorer` adds answers (who is to blame for a wait, what a stretch of time went
into, export); `compare` puts two runs on one axis. The canvas itself lies in `cuzklab.report.canvas`, because reports
show it too. A class is imported when it is asked for: widgets load slowly.
"""

from importlib import import_module
from typing import Any

_PLACES = {"Timeline": "timeline", "TraceExplorer": "explorer", "Compare": "compare"}

__all__ = ["Compare", "Timeline", "TraceExplorer"]  # noqa: F822


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)

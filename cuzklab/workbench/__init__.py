"""What is worked with in a notebook: widgets over runs, in JupyterLab, a plain notebook and VS Code.

`Timeline` (`timeline`) is the canvas as a widget; `TraceExplorer` (`explorer`) adds `answers`: who is to blame for a
wait, what a stretch of time went into, and export (`perfetto`); `Compare` (`compare`) puts two runs on one axis. The
canvas itself lies in `cuzklab.report.canvas`, because reports show it too.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzklab.workbench.compare import Compare
    from cuzklab.workbench.explorer import TraceExplorer
    from cuzklab.workbench.timeline import Timeline

__all__ = ["Compare", "Timeline", "TraceExplorer"]

_HOMES = {"Compare": "compare", "Timeline": "timeline", "TraceExplorer": "explorer"}


def __getattr__(name: str) -> Any:
    """The views, imported when they are asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

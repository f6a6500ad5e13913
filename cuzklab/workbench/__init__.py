"""The workbench: what is worked with in a notebook, in JupyterLab, a plain notebook and VS Code.

Designs: `DesignBench` (`bench`) simulates while sliders move (`design` is what it is about, `turn` answers a knob,
`picture` is what it draws, in columns that are `packed`); what takes longer is asked of a child process (`consult`,
`second_look`). `LiveView` (`live`) shows a real run in a child process (`child`), of which `plan` says what it is;
`KernelBench` (`kernels`) and `AuthorBench` (`author`) edit a kernel and a design beside their judges. Their
JavaScript lies in `static/`; `assets` puts it together.

Runs: `Timeline` (`timeline`) is the canvas as a widget; `TraceExplorer` (`explorer`) adds `answers`: who is to blame
for a wait, what a stretch of time went into, and export (`perfetto`); `Compare` (`compare`) puts two runs on one axis.
The canvas itself lies in `cuzklab.report.canvas`, because reports show it too.

`server` starts JupyterLab on all of it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzklab.workbench.author import AuthorBench
    from cuzklab.workbench.bench import DesignBench
    from cuzklab.workbench.compare import Compare
    from cuzklab.workbench.explorer import TraceExplorer
    from cuzklab.workbench.kernels import KernelBench
    from cuzklab.workbench.live import LiveView
    from cuzklab.workbench.timeline import Timeline

__all__ = ["AuthorBench", "Compare", "DesignBench", "KernelBench", "LiveView", "Timeline", "TraceExplorer"]

_HOMES = {
    "AuthorBench": "author", "Compare": "compare", "DesignBench": "bench", "KernelBench": "kernels", "LiveView": "live",
    "Timeline": "timeline", "TraceExplorer": "explorer",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """The views, imported when they are asked for: the server needs none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

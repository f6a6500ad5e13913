"""The workbench: tuning a design by hand, in JupyterLab, a plain notebook or VS Code.

`DesignBench` simulates while sliders move (`picture` is what it draws, `design` what it is about); what takes longer is
asked of a child process (`consult`, `second_look`). `LiveView` shows a real run in a child process (`child`),
`KernelBench` and `AuthorBench` edit a kernel and a design beside their judges. `server` starts JupyterLab on all of it.
What is drawn lies in `static/`, one module a view over `common.js`; it travels with the notebook, so that a saved one
shows its last state without a kernel.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzklab.workbench.author import AuthorBench
    from cuzklab.workbench.bench import DesignBench
    from cuzklab.workbench.kernels import KernelBench
    from cuzklab.workbench.live import LiveView

__all__ = ["AuthorBench", "DesignBench", "KernelBench", "LiveView"]

_HOMES = {"AuthorBench": "author", "DesignBench": "bench", "KernelBench": "kernels", "LiveView": "live"}


def __getattr__(name: str) -> Any:
    """The views, imported when they are asked for: the server needs none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

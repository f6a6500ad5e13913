"""The JavaScript and the style of the views: shipped in the package, put together as one module a view."""

from functools import cache
from importlib import resources

from cuzklab.report.canvas.scripts import script


@cache
def module(*names: str) -> str:
    """The text of one module made of `static/NAME.js` files; the last exports the view."""
    return "\n".join([script("keep"), *(_text(f"{name}.js") for name in ("common", *names))])


@cache
def style() -> str:
    """The style that all views share."""
    return _text("style.css")


def _text(file: str) -> str:
    return (resources.files("cuzklab.workbench") / "static" / file).read_text(encoding="utf-8")

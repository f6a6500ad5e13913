"""The canvas timeline as a widget."""

from collections.abc import Mapping
from typing import Any

import anywidget
import traitlets

from cuzklab.report.canvas import Picture, picture_of
from cuzklab.report.canvas.merge import thinned
from cuzklab.report.canvas.scripts import script, style
from cuzklab.trace import Run

# Bars that are saved with the notebook (a few MB); a running kernel sends a larger picture when somebody looks at it.
MOST_SAVED = 150_000


class Timeline(anywidget.AnyWidget):
    """Everything in a run that took time, by worker, lock and stream, with device memory on the same axis.

    Parameters
    ----------
    shown : Run or Picture
        A run, or what `picture_of` made of one.

    Attributes
    ----------
    selection : list of int
        The selected stretch of time, in nanoseconds (steps) from the start of the run; empty for none.
    chosen : dict
        The bar clicked last: `time`, `place` in the picture, and `whole`: whether that is all of it.
    tables : list of dict
        Tables below the picture: `caption`, `columns` (name, number), `rows` of text.
    """

    _esm = script("widget")
    _css = style()

    picture = traitlets.Bytes().tag(sync=True)
    complete = traitlets.Bool(True).tag(sync=True)
    exports = traitlets.Bool(False).tag(sync=True)
    selection = traitlets.List(traitlets.Int()).tag(sync=True)
    chosen = traitlets.Dict().tag(sync=True)
    tables = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(self, shown: Run | Picture, **traits: Any) -> None:
        whole = shown if isinstance(shown, Picture) else picture_of(shown)
        super().__init__(**self._pictures(whole), **traits)
        self.on_msg(self._asked)

    def show(self, shown: Run | Picture) -> None:
        """Show another run in the same place; selection and answers are cleared."""
        whole = shown if isinstance(shown, Picture) else picture_of(shown)
        with self.hold_sync():
            self.set_trait("selection", [])
            self.set_trait("chosen", {})
            self.set_trait("tables", [])
            for name, value in self._pictures(whole).items():
                self.set_trait(name, value)

    def _pictures(self, whole: Picture) -> dict[str, Any]:
        self._whole, self._saved = whole, thinned(whole, MOST_SAVED)
        self._bytes: bytes | None = None
        return {"picture": self._saved.to_bytes(), "complete": self._saved is whole}

    def row_of(self, chosen: Mapping[str, Any]) -> int | None:
        """The row of `frames.timeline` that a chosen bar is; None for a bar that stands for several."""
        picture = self._whole if chosen.get("whole") else self._saved
        place = chosen.get("place", -1)
        if not isinstance(place, int) or not 0 <= place < len(picture):
            return None
        source = int(picture.source[place])
        return source if source >= 0 else None

    def _asked(self, _widget: Any, content: Mapping[str, Any], _buffers: list[Any]) -> None:
        if content.get("ask") == "whole":
            if self._bytes is None:
                self._bytes = self._whole.to_bytes()
            self.send({"whole": True}, [self._bytes])

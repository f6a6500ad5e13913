"""Columns of numbers as bytes: what a page reads as typed arrays instead of parsing text.

A column is ``{kind: bytes}``, where `kind` is ``u2``, ``u4`` or ``f4``, little-endian. Widgets send bytes as they are
and save them with the notebook in base64; `numbers` in ``static/packed.js`` is the reader.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = dict[str, bytes]


def places(values: Sequence[int] | NDArray[Any]) -> Column:
    """Places in a list, from 0 on, in as few bytes as hold them all."""
    whole = np.asarray(values, dtype=np.int64)
    kind = "u2" if not len(whole) or int(whole.max()) <= 0xFFFF else "u4"
    return {kind: whole.astype(f"<{kind}").tobytes()}


def reals(values: Sequence[float] | NDArray[Any]) -> Column:
    """Numbers to seven digits, which is more than a screen shows."""
    return {"f4": np.asarray(values, dtype="<f4").tobytes()}


def unpacked(column: Column) -> NDArray[Any]:
    """The numbers of a column again."""
    ((kind, data),) = column.items()
    return np.frombuffer(data, f"<{kind}")


class Texts:
    """Texts once each, in the order of their appearance, and their places."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._place.setdefault(text, len(self._place))

    def __iter__(self) -> Any:
        return iter(self._place)

    def places(self, texts: Sequence[str]) -> Column:
        """The places of some texts, which are kept."""
        return places([self(text) for text in texts])

"""Tables as text for the canvas, which shows names as text and nothing else."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cuzklab.units import format_seconds, format_size, percent

MOST_ROWS = 40
_SUFFIXES = ("ns", "bytes", "share", "ratio")


def text_table(
    frame: pd.DataFrame, caption: str, *, headings: Mapping[str, str] | None = None, unit: str = "ns"
) -> dict[str, Any]:
    """A frame as the canvas' table: `caption`, `columns` (name, number) and `rows` of text.

    Parameters
    ----------
    frame : DataFrame
        Columns say their unit at the end of their names: `_ns`, `_bytes`, `_share`.
    caption : str
    headings : mapping, optional
        Names of columns that are not made of the column's own name.
    unit : {"ns", "step"}
        What times are counted in.
    """
    headings = headings or {}
    shown = frame.head(MOST_ROWS)
    columns = [
        {"name": headings.get(column, _heading(column)), "number": pd.api.types.is_numeric_dtype(frame[column].dtype)}
        for column in frame.columns
    ]
    rows = [[_cell(row[column], column, unit) for column in frame.columns] for row in shown.to_dict("records")]
    if len(frame) > MOST_ROWS:
        caption = f"{caption} The first {MOST_ROWS} of {len(frame):,}."
    return {"caption": caption, "columns": columns, "rows": rows}


def sentence_table(text: str) -> dict[str, Any]:
    """A sentence where otherwise a table stands."""
    return {"caption": text, "columns": [], "rows": []}


def time_text(time: int, unit: str) -> str:
    """A duration or a moment from the start, for people."""
    if unit == "step":
        return f"{time:,} {'step' if time == 1 else 'steps'}"
    return format_seconds(time * 1e-9) if time else "0 s"


def _heading(column: str) -> str:
    base, _, suffix = column.rpartition("_")
    return (base if base and suffix in _SUFFIXES else column).replace("_", " ")


def _cell(value: Any, column: str, unit: str) -> str:
    if value is None or pd.isna(value):
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    suffix = column.rpartition("_")[2]
    if suffix == "ns":
        return time_text(int(value), unit)
    if suffix == "bytes":
        return format_size(value)
    if suffix == "share":
        return percent(float(value))
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"

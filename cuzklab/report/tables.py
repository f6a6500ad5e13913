"""Tables as HTML: escaped, with units in the headings, numbers aligned to the right.

The unit comes from a column's name (``wait_ns``, ``peak_bytes``, ``prove_time_s``, ``hidden_share``), one unit for
the whole column so that its numbers can be compared by eye.
"""

import html
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cuzklab.units import GiB, KiB, MiB, TiB

_TIME_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
_SIZE_UNITS = (("TiB", TiB), ("GiB", GiB), ("MiB", MiB), ("KiB", KiB), ("B", 1))
_MISSING = "–"
_SENTENCE = 48  # characters from which on a text takes a line of its own on a phone


@dataclass(frozen=True)
class _Scale:
    """How a column of numbers is written: divided by `divisor`, with `unit` in its heading."""

    unit: str
    divisor: float


def escape(value: object) -> str:
    """Text for HTML, whatever it holds; characters that cannot be shown are replaced."""
    text = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in str(value))
    return html.escape(text, quote=True)


def prose(text: object) -> str:
    """A sentence for HTML, in which no line ends between a number and its unit, or a knob and its value."""
    bound = re.sub(r"(?<=\d) (?=(?:%|[KMGT]iB|s|ms|µs|s/proof)(?:[^\w]|$))", "\u00a0", escape(text))
    return re.sub(r"\b(gw|pw) (?=\d)", "\\1\u00a0", bound)


def number(value: float) -> str:
    """A number to three significant digits, thousands apart; whole numbers in full."""
    if value == 0:
        return "0"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}".replace("-", "−")
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 9)}f}".replace("-", "−")


def table(
    frame: pd.DataFrame,
    caption: str = "",
    *,
    headings: Mapping[str, str] | None = None,
    rows: int = 200,
    right: Collection[str] = (),
    markup: Collection[str] = (),
) -> str:
    """A frame as an HTML table.

    Parameters
    ----------
    frame : DataFrame
        Column names end in the unit of their values: `_ns`, `_s`, `_bytes`, `_share`.
    caption : str
        Plain text.
    headings : mapping, optional
        Headings that differ from the column's name; the unit is appended by itself.
    rows : int
        Longer tables are cut, and say so.
    right : collection of str
        Columns of text that is aligned like numbers.
    markup : collection of str
        Columns that hold HTML made by this package; all others are escaped.
    """
    shown = frame.head(rows)
    scales = {column: _scale(column, frame[column]) for column in frame.columns}
    numeric = {column for column in frame.columns if scales[column] or _is_numeric(frame[column]) or column in right}
    wordy = {column for column in frame.columns if column not in (*numeric, *markup) and _longest(shown[column])}
    titles = {column: _heading(column, scales[column], headings or {}) for column in frame.columns}
    head = "".join(f'<th scope="col"{_class(column in numeric)}>{titles[column]}</th>' for column in frame.columns)
    labels = {column: f' data-label="{_plain(titles[column])}"' if wordy else "" for column in frame.columns}
    body = []
    for record in shown.to_dict("records"):
        cells = (
            record[column] if column in markup else _cell(record[column], scales[column]) for column in frame.columns
        )
        columns = "".join(
            f"<td{_class(column in numeric, column in wordy)}{labels[column]}>{cell}</td>"
            for column, cell in zip(frame.columns, cells, strict=True)
        )
        body.append(f"<tr>{columns}</tr>")
    if len(frame) > rows:
        caption = f"{caption} The first {rows} of {len(frame):,} rows.".strip()
    return (
        f'<div class="cz-table{" wordy" if wordy else ""}"><table>'
        + (f"<caption><span>{escape(caption)}</span></caption>" if caption else "")
        + f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and values as a list of two columns; values are text, or `Markup` that is HTML already."""
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{value if isinstance(value, Markup) else escape(value)}</dd>"
        for name, value in pairs
    )
    return f'<dl class="cz-facts">{rows}</dl>'


class Markup(str):
    """Text that is HTML already, made by this package."""


def folded(summary: str, content: str) -> Markup:
    """Content behind a line that opens it."""
    return Markup(f'<details class="cz-more"><summary>{escape(summary)}</summary>{content}</details>')


def _class(is_number: bool, is_sentence: bool = False) -> str:
    return ' class="number"' if is_number else ' class="sentence"' if is_sentence else ""


def _longest(values: pd.Series) -> bool:
    """Whether a column holds a text that is long enough to be read as a sentence."""
    return any(isinstance(value, str) and len(value) > _SENTENCE for value in values)


def _plain(heading: str) -> str:
    """A heading, which is escaped already, without its tags."""
    return re.sub(r"<[^>]*>", "", heading)


def _is_numeric(values: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def _scale(column: str, values: pd.Series) -> _Scale | None:
    if column.endswith("_s_per_proof"):
        return _Scale("s/proof", 1.0)
    suffix = column.rpartition("_")[2]
    if suffix not in ("ns", "s", "bytes", "share", "fraction"):
        return None
    largest = float(pd.to_numeric(values, errors="coerce").abs().max()) if len(values) else 0.0
    largest = 0.0 if math.isnan(largest) else largest
    if suffix in ("share", "fraction"):
        return _Scale("%", 0.01)
    if suffix == "bytes":
        unit, size = next(((unit, size) for unit, size in _SIZE_UNITS if largest >= size), ("B", 1))
        return _Scale(unit, size)
    in_seconds = 1e-9 if suffix == "ns" else 1.0
    unit, size = next(((unit, size) for unit, size in _TIME_UNITS if largest * in_seconds >= size), ("s", 1.0))
    return _Scale(unit, size / in_seconds)


def _heading(column: str, scale: _Scale | None, headings: Mapping[str, str]) -> str:
    base = column.rpartition("_")[0] or column if scale else column
    title = headings.get(column, base.replace("_", " "))
    unit = f' <span class="unit">{scale.unit}</span>' if scale else ""
    return escape(title) + unit


def _cell(value: Any, scale: _Scale | None) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return _MISSING
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "yes" if value else "no"
    if scale:
        return number(float(value) / scale.divisor)
    if isinstance(value, int | float) or hasattr(value, "dtype"):
        return number(value.item() if hasattr(value, "item") else value)
    return prose(value)

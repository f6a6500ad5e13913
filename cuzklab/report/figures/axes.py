"""What figures share: units of time, names and order of workers, and the answer of a figure without data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from cuzklab.analysis.frames import missing, window
from cuzklab.report import theme
from cuzklab.report.naming import label, labels
from cuzklab.report.tables import number
from cuzklab.trace import Run
from cuzklab.units import GiB, KiB, MiB


@dataclass(frozen=True)
class Absent:
    """Why there is no figure, in one sentence."""

    reason: str


def absent(run: Run, what: str, *tables: str) -> Absent:
    """The sentence for a figure that lacks its tables."""
    lacking = missing(run, *tables)
    return Absent(f"No figure of {what}: {label(run)} has no rows of {lacking}.")


@dataclass(frozen=True)
class TimeScale:
    """Time of a run as an axis shows it: from its start, in one unit."""

    origin_ns: int
    divisor: float
    unit: str

    def of(self, time_ns: ArrayLike) -> NDArray[np.float64]:
        """Moments in the axis' unit."""
        return (np.asarray(time_ns, dtype=np.int64) - self.origin_ns) / self.divisor

    def length(self, duration_ns: ArrayLike) -> NDArray[np.float64]:
        """Durations in the axis' unit."""
        return np.asarray(duration_ns, dtype=np.int64) / self.divisor

    @property
    def title(self) -> str:
        return "step of the schedule" if self.unit == "step" else f"time since the start ({self.unit})"

    def text(self, duration: float) -> str:
        """A duration for people."""
        return f"{duration:.0f}" if self.unit == "step" else f"{number(duration)} {self.unit}"

    def moment(self, value: float) -> str:
        """A moment for people: to the thousandth of the unit."""
        return f"{value:.0f}" if self.unit == "step" else f"{value:,.3f} {self.unit}"


def time_scale(run: Run) -> TimeScale:
    """The unit in which the run's length has a handy number; steps for a counterexample."""
    start, end = window(run)
    if run.info.time_unit != "ns":
        return TimeScale(0, 1, "step")
    divisor, unit = next(
        ((size, unit) for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")) if end - start >= 2 * size), (1, "ns")
    )
    return TimeScale(start, divisor, unit)


def size_scale(largest_bytes: float) -> tuple[float, str]:
    """Divisor and name of the unit in which a size has a handy number."""
    return next(((size, name) for size, name in ((GiB, "GiB"), (MiB, "MiB"), (KiB, "KiB")) if largest_bytes >= size),
                (1, "B"))  # fmt: skip


def short_worker(worker: str) -> str:
    """A worker's name without its device, which lanes and legends name already: w1 of gpu0.w1."""
    head, _, tail = worker.partition(".")
    return tail if tail and head.startswith("gpu") and head[3:].isdigit() else worker


def ordered(names: Iterable[str]) -> list[str]:
    """Names with their numbers in numerical order, GPU workers before the others, nobody left out."""

    def key(name: str) -> tuple[object, ...]:
        pieces = "".join(c if c.isdigit() else "\0" for c in name).split("\0")
        return (
            not name.startswith("gpu"),
            "".join(c for c in name if not c.isdigit()),
            *map(int, filter(None, pieces)),
        )

    return sorted({name for name in names if name}, key=key)


def workers_of(run: Run) -> list[str]:
    """Workers that use locks or device memory, in order: those that have a colour."""
    tables = (run.table("locks")["worker"], run.table("vram")["worker"])
    return ordered(str(name).partition("/")[0] for column in tables for name in column.unique())


def stacked_bar(y: Iterable[str], x: Iterable[float], name: str, colour: str, pattern: str = "", **more: Any) -> go.Bar:
    """One part of horizontal stacked bars; `pattern` lies over the colour."""
    marker: dict[str, Any] = {"color": colour, "line": {"width": 0}}
    if pattern:
        marker["pattern"] = {"shape": pattern, "fgcolor": "rgba(255,255,255,0.5)", "size": 6, "solidity": 0.22}
    return go.Bar(
        y=list(y), x=list(x), orientation="h", name=name, marker=marker, textposition="inside",
        insidetextanchor="middle", textangle=0, **more,
    )  # fmt: skip


def shares_text(shares: Iterable[float]) -> list[str]:
    """Percentages as the text of bars; parts that have no room for it get none."""
    return [f"{share:.0f} %" if share >= 4 else "" for share in shares]


def bar_names(runs: Sequence[Run]) -> list[str]:
    """The names of bars that are runs: a design with options takes up to three lines."""
    return [theme.wrapped(name, width=24, lines=3) for name in labels(runs)]


def share_bar(y: Iterable[str], shares: list[float], name: str, colour: str, pattern: str) -> go.Bar:
    """A part of each run's bar, in per cent of the whole; it says its share where there is room, and when hovered."""
    hover = f"%{{y}}<br><b>{name}</b>: %{{x:.1f}} %<extra></extra>"
    return stacked_bar(y, shares, name, colour, pattern, text=shares_text(shares), hovertemplate=hover)


def layout_of_shares(title: str, subtitle: str, description: str, names: Sequence[str], whole: str) -> dict[str, Any]:
    """The layout of stacked bars that each fill a whole: one a run, the first on top."""
    bar_px = 54 if any(name.count("<br>") > 1 for name in names) else 40
    return titled(
        title, subtitle, description, 150 + bar_px * len(names),
        barmode="stack",
        xaxis={"title": theme.axis_title(f"share of {whole} (%)"), "range": [0, 100]},
        yaxis={"autorange": "reversed", "ticks": "", "showgrid": False},
        legend={"traceorder": "normal"},
    )  # fmt: skip


def titled(title: str, subtitle: str, description: str, height: int, **more: Any) -> dict[str, Any]:
    """The layout of a figure with its words; `height` is that of the drawing without its title.

    `subtitle` and `description` may hold names from a trace.
    """
    meta = {"description": theme.plain(description, 600), **more.pop("meta", {})}
    words = {"text": title, "subtitle": {"text": theme.plain(subtitle, 300)}}
    return theme.layout(title=words, height=height + theme.TITLE_HEIGHT, meta=meta, **more)

"""The timeline: threads of workers, locks and device queues as lanes, everything that took time as bars."""

from html import unescape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cuzklab.analysis import frames
from cuzklab.report import theme
from cuzklab.report.figures.axes import (
    Absent,
    TimeScale,
    absent,
    ordered,
    short_worker,
    time_scale,
    titled,
    workers_of,
)
from cuzklab.report.naming import label
from cuzklab.trace import Run

# Beyond this a figure of bars is slow and its bars are thinner than a pixel; a window of the run is shown instead.
MOST_BARS = 2500
# Lanes of actors that use no device (synthesis workers); more of them say nothing new.
MOST_OTHER_LANES = 4
# Entries of the legend for stages and ranges; a capture may have hundreds of names, of which the longest are named.
MOST_NAMES = 8
_OTHER_NAMES = "others"
_LONGEST_NAME = 28
_LANE_HEIGHT, _FRAME_HEIGHT = 30, 130
_LETTER = 0.0072  # width of a letter as part of a figure on a desktop

# kind of wait -> legend entry, pattern
_WAITS = {"lock": ("waits for a lock", "/"), "queue": ("waits for work", ".")}
_OTHER_WAIT = ("waits otherwise", "x")
_WAIT_WORDS = {
    "lock": "a lock", "memory": "device memory", "barrier": "the barrier (prep_msm)", "queue": "a queue",
    "event": "a copy", "device_sync": "an idle device", "join": "a thread to end",
}  # fmt: skip
_HOLD, _COPY, _MEMORY = "lock held", "copy", "pin, allocate, free"


def timeline(run: Run, start_s: float | None = None, end_s: float | None = None) -> go.Figure | Absent:
    """What every worker, lock and device did, as bars over time.

    Parameters
    ----------
    run : Run
    start_s, end_s : float, optional
        Part of the run, in seconds from its start (in steps, for a counterexample). By default all of it, or, where
        that would be more than `MOST_BARS` bars, a window from its middle; the subtitle says which.
    """
    bars = frames.timeline(run)
    bars = bars[(bars["category"] != "call") & (bars["end_ns"] > bars["start_ns"])]
    if not len(bars):
        return absent(run, "what happened when", "spans", "locks", "waits", "kernels")
    scale = time_scale(run)
    shown, part = _window(bars, run, start_s, end_s)
    lanes, left_out = _lanes(shown)
    shown = shown[[place in lanes for place in zip(shown["group"], shown["lane"], strict=True)]]
    if not len(shown):
        return Absent(f"Nothing happened in {label(run)} between {start_s} and {end_s} s.")
    figure = go.Figure()
    workers, span = workers_of(run), _range(run, shown, part, scale)
    margins = theme.over_time(max(len(unescape(words)) for words in lanes.values()))
    kinds = _kinds(shown)
    # In a foreign trace no name recurs from report to report; there it matters that they differ in this one.
    colours = theme.colours_apart([key for key, _ in kinds]) if run.info.origin == "imported" else {}
    for key, rows in kinds:
        colour = colours.get(key) or theme.colour_of_stage(key)
        figure.add_trace(_bars(key, rows, lanes, scale, workers, span[1] - span[0], colour))
    figure.update_layout(
        titled(
            "Timeline",
            _subtitle(run, part, left_out),
            f"Timeline of {label(run)}: {len(shown)} bars in {len(lanes)} lanes. The table below holds its sums.",
            _FRAME_HEIGHT + _LANE_HEIGHT * len(lanes),
            margin=margins["margin"],
            meta=margins["meta"],
            barmode="overlay",
            bargap=0.22,
            uniformtext={"minsize": 10, "mode": "hide"},
            xaxis={"title": theme.axis_title(scale.title), "range": span, "showgrid": True},
            yaxis={
                "categoryorder": "array", "categoryarray": list(reversed(lanes.values())), "showgrid": False,
                "ticks": "", "range": [-0.6, len(lanes) - 0.4], "fixedrange": True, "automargin": False,
            },
            legend={"traceorder": "normal"},
        )
    )  # fmt: skip
    for border in _borders(list(lanes)):
        figure.add_hline(y=len(lanes) - border - 0.5, line={"color": theme.GRID, "width": 1})
    return figure


def _window(bars: pd.DataFrame, run: Run, start_s: float | None, end_s: float | None) -> tuple[pd.DataFrame, bool]:
    """The bars of a part of the run, cut at its edges, and whether it is only a part."""
    first, last = int(bars["start_ns"].min()), int(bars["end_ns"].max())
    per_second = 1 if run.info.time_unit != "ns" else 10**9
    start, _ = frames.window(run)
    left = first if start_s is None else start + round(start_s * per_second)
    right = last if end_s is None else start + round(end_s * per_second)
    if start_s is None and end_s is None and len(bars) > MOST_BARS:
        middles = np.sort(((bars["start_ns"] + bars["end_ns"]) // 2).to_numpy())
        middle = len(middles) // 2
        left, right = int(middles[middle - MOST_BARS // 2]), int(middles[middle + MOST_BARS // 2 - 1])
    inside = bars[(bars["end_ns"] > left) & (bars["start_ns"] < right)].head(2 * MOST_BARS)
    cut = inside.assign(start_ns=inside["start_ns"].clip(lower=left), end_ns=inside["end_ns"].clip(upper=right))
    return cut, (left, right) != (first, last)


def _lanes(bars: pd.DataFrame) -> tuple[dict[tuple[str, str], str], int]:
    """(group, lane) → label from top to bottom, and how many lanes were left out.

    Workers that use a device with their threads, locks, devices, and then a few of the other actors; those that do
    nothing but wait have no lane.
    """
    working = bars[~bars["category"].str.startswith("wait:")]
    users = {str(name) for name in bars.loc[bars["category"].isin(("hold", "gpu")), "worker"]}
    present = bars[["group", "lane", "worker"]].drop_duplicates()
    threads = present[present["group"] == "worker"]
    chosen = [("worker", name) for name in _by_owner(threads.loc[threads["worker"].isin(users), "lane"])]
    chosen += [("lock", name) for name in ordered(present.loc[present["group"] == "lock", "lane"])]
    chosen += [("device", name) for name in ordered(present.loc[present["group"] == "device", "lane"])]
    busy = set(working.loc[working["group"] == "worker", "lane"])
    others = [name for name in _by_owner(threads.loc[~threads["worker"].isin(users), "lane"]) if name in busy]
    chosen += [("worker", name) for name in others[:MOST_OTHER_LANES]]
    lanes: dict[tuple[str, str], str] = {}
    for group, name in chosen:
        words = name if group == "device" else short_worker(name).replace("/", " ")
        words = theme.plain(f"{words} lock" if group == "lock" and words != "lock" else words, 16)
        while words in lanes.values():
            words += " "
        lanes[group, name] = words
    return lanes, len(others[MOST_OTHER_LANES:])


def _by_owner(lanes: pd.Series) -> list[str]:
    """Threads beside the worker that they work for."""
    owners = ordered(name.partition("/")[0] for name in lanes)
    return sorted(ordered(lanes), key=lambda name: owners.index(name.partition("/")[0]))


def _borders(lanes: list[tuple[str, str]]) -> list[int]:
    """Places between lanes of different workers, or of different groups."""
    owners = [(group, name.partition("/")[0] if group == "worker" else "") for group, name in lanes]
    return [place for place in range(1, len(lanes)) if owners[place] != owners[place - 1]]


def _kinds(bars: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Bars by legend entry: waits and holds first (they lie beneath), then stages in the order of the table."""
    names = {"hold": _HOLD, "transfer": _COPY, "memory": _MEMORY}
    names |= {f"wait:{kind}": _WAITS.get(kind, _OTHER_WAIT)[0] for kind in _WAIT_WORDS}
    stage = bars["label"].astype(str).str.partition(".")[0]
    key = bars["category"].map(names).where(bars["category"].isin(names), stage)
    key = key.where(~(bars["category"].str.startswith("wait:") & ~bars["category"].isin(names)), _OTHER_WAIT[0])
    order = [name for name, _ in _WAITS.values()]
    order += [_OTHER_WAIT[0], _HOLD, "synthesis", "prep_msm", "b_g2_msm", _MEMORY, _COPY, *theme.STAGE_ORDER]
    if len(set(key.unique()) - set(order)) > MOST_NAMES:
        key = key.where(key.isin(order), key.str.replace(r"\b\d+\b", "…", regex=True))  # names that only count are one
    lengths = (bars["end_ns"] - bars["start_ns"]).groupby(key)
    rare = lengths.sum().drop(order, errors="ignore").sort_values(ascending=False).index[MOST_NAMES:]
    key = key.where(~key.isin(rare), _OTHER_NAMES)
    mean = (bars["end_ns"] - bars["start_ns"]).groupby(key).mean()
    # Of ranges that lie in each other the longer is around the other, so it is drawn first.
    rank = {
        name: (order.index(name), 0.0, name) if name in order else (len(order), -mean[name], name)
        for name in mean.index
    }
    return [(name, bars[key == name]) for name in sorted(rank, key=rank.__getitem__)]


def _bars(
    key: str, rows: pd.DataFrame, lanes: dict[tuple[str, str], str], scale: TimeScale, workers: list[str], span: float,
    colour: str,
) -> go.Bar:  # fmt: skip
    marker: dict[str, Any] = {"line": {"width": 0.5, "color": "rgba(128,138,150,0.6)"}}
    text = rows["label"].map(theme.plain)
    patterns = dict([*_WAITS.values(), _OTHER_WAIT])
    if key in patterns:
        marker["color"] = theme.shade(theme.WAIT, 0.12)
        marker["pattern"] = {"shape": patterns[key], "fgcolor": theme.WAIT, "size": 6, "solidity": 0.25}
        kinds = rows["category"].str.removeprefix("wait:")
        hover = "waits for " + kinds.map(lambda kind: _WAIT_WORDS.get(kind, theme.plain(kind))) + ": " + text
        text = [""] * len(rows)
    elif key == _HOLD:
        marker["line"] = {"width": 1, "color": theme.WAIT}
        marker["color"] = [theme.colour_of_worker(worker, workers) for worker in rows["worker"]]
        text = rows["worker"].map(lambda worker: theme.plain(short_worker(worker)))
        hover = rows["worker"].map(theme.plain) + " holds " + rows["lane"].map(theme.plain)
    elif key in (_COPY, _MEMORY):
        marker["color"] = theme.STAGE_COLOURS["upload" if key == _COPY else "pin"]
        hover = "copy " + text if key == _COPY else text
    else:
        marker["color"], hover = colour, text
    start, length = scale.of(rows["start_ns"]), scale.length(rows["end_ns"] - rows["start_ns"])
    # A name that is wider than its bar would be shrunk, and with it all others.
    fitting = [name if wide > len(name) * _LETTER * span else "" for name, wide in zip(text, length, strict=True)]
    return go.Bar(
        y=[lanes[group, lane] for group, lane in zip(rows["group"], rows["lane"], strict=True)],
        x=length, base=start, orientation="h", name=theme.plain(key, _LONGEST_NAME), marker=marker, text=fitting,
        textposition="inside", insidetextanchor="middle", textangle=0, textfont={"size": 11},
        hovertext=_details(rows, hover, start, length, scale), hoverinfo="text", cliponaxis=True,
    )  # fmt: skip


def _details(rows: pd.DataFrame, what: pd.Series, start: np.ndarray, length: np.ndarray, scale: TimeScale) -> list[str]:
    """What pointing at a bar tells: what, whose, when, how long."""
    return [
        f"<b>{words}</b><br>{theme.plain(partition)}{' · ' if partition else ''}{theme.plain(worker)}"
        f"<br>{scale.moment(at)} to {scale.moment(at + extent)}"
        + (f" ({scale.text(extent)})" if scale.unit != "step" else "")
        + ("<br>not ended when the recording was" if unfinished else "")
        for words, partition, worker, at, extent, unfinished in zip(
            what, rows["partition"], rows["worker"], start, length, rows["open"], strict=True
        )
    ]


def _range(run: Run, bars: pd.DataFrame, part: bool, scale: TimeScale) -> list[float]:
    """The whole run, as in the figure of device memory; of a part only that."""
    edges = (bars["start_ns"].min(), bars["end_ns"].max()) if part else frames.window(run)
    return [float(edge) for edge in scale.of(edges)]


def _subtitle(run: Run, part: bool, left_out: int) -> str:
    text = f"{label(run)}. Lanes of locks show who holds them."
    text += " A part of the run; all of it would be bars thinner than a pixel." if part else ""
    what = "threads" if run.info.origin == "imported" else "lanes of synthesis"
    return text + (f" {left_out} more {what} are left out." if left_out else "")

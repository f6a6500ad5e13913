"""The timeline: threads of workers, locks and device queues as lanes, everything that took time as bars."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cuzklab.analysis import frames
from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, TimeScale, absent, ordered, short_worker, time_scale, workers_of
from cuzklab.report.naming import label
from cuzklab.trace import Run

# Beyond this a figure of bars is slow and its bars are thinner than a pixel; a window of the run is shown instead.
MOST_BARS = 2500
_LANE_HEIGHT, _FRAME_HEIGHT = 30, 120
_LETTER = 0.0072  # width of a letter as part of a figure on a desktop
_WAITS = {
    "lock": "a lock", "memory": "device memory", "barrier": "the barrier (prep_msm)", "queue": "a queue",
    "event": "a copy", "device_sync": "an idle device", "join": "a thread to end",
}  # fmt: skip


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
    if not len(shown):
        return Absent(f"Nothing happened in {label(run)} between {start_s} and {end_s} s.")
    lanes = _lanes(shown)
    figure = go.Figure()
    workers, margins, span = workers_of(run), theme.over_time(), _range(run, shown, part, scale)
    for key, rows in _kinds(shown):
        figure.add_trace(_bars(key, rows, lanes, scale, workers, span[1] - span[0]))
    figure.update_layout(
        theme.layout(
            title={"text": "Timeline", "subtitle": {"text": theme.plain(_subtitle(run, part, scale), 300)}},
            barmode="overlay",
            bargap=0.22,
            height=_FRAME_HEIGHT + theme.TITLE_HEIGHT + _LANE_HEIGHT * len(lanes),
            margin=margins["margin"],
            meta={"description": _description(run, shown), **margins["meta"]},
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


def _lanes(bars: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(group, lane) → label, from top to bottom: workers with their threads, locks, devices."""
    lanes: dict[tuple[str, str], str] = {}
    present = bars[["group", "lane"]].drop_duplicates()
    for group in ("worker", "lock", "device"):
        names = ordered(present.loc[present["group"] == group, "lane"])
        if group == "worker":
            owners = ordered(name.partition("/")[0] for name in names)
            names.sort(key=lambda name: owners.index(name.partition("/")[0]))
        for name in names:
            label = name if group == "device" else short_worker(name).replace("/", " ")
            label = f"{label} lock" if group == "lock" and label != "lock" else label
            label = theme.plain(label, 16)
            while label in lanes.values():
                label += " "
            lanes[group, name] = label
    return lanes


def _borders(lanes: list[tuple[str, str]]) -> list[int]:
    """Places between lanes of different workers, or of different groups."""
    owners = [(group, name.partition("/")[0] if group == "worker" else "") for group, name in lanes]
    return [place for place in range(1, len(lanes)) if owners[place] != owners[place - 1]]


def _kinds(bars: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Bars by legend entry: waits and holds first (they lie beneath), then stages in the order of the table."""
    key = bars["label"].astype(str).str.partition(".")[0].where(bars["category"].isin(("cpu", "gpu")), bars["category"])
    key = key.where(~bars["category"].str.startswith("wait:"), "waiting")
    order = ["waiting", "hold", "synthesis", "prep_msm", "transfer", *theme.STAGE_COLOURS]
    names = sorted(key.unique(), key=lambda name: (order.index(name) if name in order else len(order), name))
    return [(name, bars[key == name]) for name in names]


def _bars(key: str, rows: pd.DataFrame, lanes: dict[tuple[str, str], str], scale: TimeScale, workers: list[str],
          span: float) -> Any:  # fmt: skip
    marker: dict[str, Any] = {"line": {"width": 0.5, "color": "rgba(128,138,150,0.6)"}}
    name, text = theme.plain(key), rows["label"].map(lambda label: theme.plain(label))
    match key:
        case "waiting":
            marker["color"] = theme.shade(theme.WAIT, 0.12)
            marker["pattern"] = {"shape": "/", "fgcolor": theme.WAIT, "size": 6, "solidity": 0.25}
            what = rows["category"].str.removeprefix("wait:").map(lambda kind: _WAITS.get(kind, kind))
            hover = "waits for " + what.map(theme.plain) + ": " + text
            text = [""] * len(rows)
        case "hold":
            name, marker["line"] = "lock held", {"width": 1, "color": theme.WAIT}
            marker["color"] = [theme.colour_of_worker(worker, workers) for worker in rows["worker"]]
            hover = rows["worker"].map(theme.plain) + " holds " + rows["lane"].map(theme.plain)
            text = rows["worker"].map(lambda worker: theme.plain(short_worker(worker)))
        case "transfer":
            name, marker["color"], hover = "copy", theme.STAGE_COLOURS["upload"], "copy " + text
        case _:
            marker["color"], hover = theme.colour_of_stage(key), text
    start, length = scale.of(rows["start_ns"]), scale.length(rows["end_ns"] - rows["start_ns"])
    # A name that is wider than its bar would be shrunk, and with it all others.
    text = [name if wide > len(name) * _LETTER * span else "" for name, wide in zip(text, length, strict=True)]
    details = [
        f"<b>{what}</b><br>{theme.plain(partition)}{' · ' if partition else ''}{theme.plain(worker)}"
        f"<br>{scale.text(at)} to {scale.text(at + extent)}"
        + (f" ({scale.text(extent)})" if scale.unit != "step" else "")
        + ("<br>not ended when the recording was" if unfinished else "")
        for what, partition, worker, at, extent, unfinished in zip(
            hover, rows["partition"], rows["worker"], start, length, rows["open"], strict=True
        )
    ]
    return go.Bar(
        y=[lanes[group, lane] for group, lane in zip(rows["group"], rows["lane"], strict=True)],
        x=length, base=start, orientation="h", name=name, marker=marker, text=list(text), textposition="inside",
        insidetextanchor="middle", textangle=0, textfont={"size": 11}, hovertext=details, hoverinfo="text", cliponaxis=True,
    )  # fmt: skip


def _range(run: Run, bars: pd.DataFrame, part: bool, scale: TimeScale) -> list[float]:
    """The whole run, as in the figure of device memory; of a part only that."""
    edges = (bars["start_ns"].min(), bars["end_ns"].max()) if part else frames.window(run)
    return [float(edge) for edge in scale.of(edges)]


def _subtitle(run: Run, part: bool, scale: TimeScale) -> str:
    text = f"{label(run)}. Hatched: waiting; lanes of locks show who holds them."
    return text + " A part of the run: bars of all of it would be thinner than a pixel." if part else text


def _description(run: Run, bars: pd.DataFrame) -> str:
    lanes = bars[["group", "lane"]].drop_duplicates()
    return f"Timeline of {label(run)}: {len(bars)} bars in {len(lanes)} lanes. The table below holds its sums."

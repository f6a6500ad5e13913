"""Locks: how long each worker waited for each lock, and who held it meanwhile."""

import plotly.graph_objects as go

from cuzklab.analysis import locks
from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, absent, ordered, short_worker, time_scale, workers_of
from cuzklab.report.naming import label
from cuzklab.trace import Run

_SHOWN = 0.08  # of the longest bar; shorter pieces have no room for their time


def lock_waits(run: Run) -> go.Figure | Absent:
    """Time waited by worker and lock, split by who held the lock."""
    if not len(run.table("locks")):
        return absent(run, "waiting for locks", "locks")
    waits = locks.waited_for(run)
    if not len(waits):
        return Absent(f"No figure of waiting for locks: nobody waited for one in {label(run)}.")
    scale = time_scale(run)
    workers = workers_of(run)
    places = [
        (lock, victim)
        for lock in ordered(waits["lock"])
        for victim in ordered(waits.loc[waits["lock"] == lock, "victim"])
    ]
    several = len({lock for lock, _ in places}) > 1
    longest = scale.length(waits.groupby(["lock", "victim"])["time_ns"].sum().max())
    figure = go.Figure()
    for holder in [*ordered(waits["holder"]), *([""] if (waits["holder"] == "").any() else [])]:
        rows = waits[waits["holder"] == holder]
        who = theme.plain(short_worker(holder)) if holder else "nobody (hand-over)"
        lengths = scale.length(rows["time_ns"])
        figure.add_trace(
            go.Bar(
                y=[_label(lock, victim, several) for lock, victim in zip(rows["lock"], rows["victim"], strict=True)],
                x=lengths, orientation="h", name=f"held by {who}",
                marker={"color": theme.colour_of_worker(holder, workers), "line": {"width": 0.5, "color": theme.WAIT}},
                text=[scale.text(length) if length > _SHOWN * longest else "" for length in lengths], textposition="inside", insidetextanchor="middle", textangle=0,
                hovertext=[
                    f"<b>{theme.plain(short_worker(victim))}</b> waited {scale.text(length)} for {theme.plain(lock)}"
                    f"<br>while it was held by {who} ({count} waits)"
                    for victim, lock, length, count in zip(rows["victim"], rows["lock"], lengths, rows["waits"], strict=True)
                ],
                hoverinfo="text",
            )
        )  # fmt: skip
    figure.update_layout(
        theme.layout(
            title={
                "text": "Waiting for locks",
                "subtitle": {"text": theme.plain(f"{label(run)}. Who waited, and who held the lock meanwhile.", 300)},
            },
            barmode="stack",
            height=130 + theme.TITLE_HEIGHT + 38 * len(places),
            meta={"description": f"Time waited for locks in {label(run)}, by worker and by holder."},
            xaxis={"title": theme.axis_title(f"time waited, sum over the run ({scale.unit})"), "rangemode": "tozero"},
            yaxis={
                "categoryorder": "array", "ticks": "", "showgrid": False,
                "categoryarray": [_label(lock, victim, several) for lock, victim in reversed(places)],
            },
        )
    )  # fmt: skip
    return figure


def _label(lock: str, victim: str, several: bool) -> str:
    who = theme.plain(short_worker(victim), 20)
    return f"{who} for {theme.plain(short_worker(lock), 24)}" if several else who

"""Locks: how long each worker waited for each lock, and who held it meanwhile."""

import plotly.graph_objects as go

from cuzklab.analysis import locks
from cuzklab.report import theme
from cuzklab.report.figures.axes import (
    Absent,
    absent,
    ordered,
    short_worker,
    stacked_bar,
    time_scale,
    titled,
    workers_of,
)
from cuzklab.report.naming import label
from cuzklab.trace import Run

_ROOM = 0.08  # of the longest bar; shorter pieces have no room for their time


def lock_waits(run: Run) -> go.Figure | Absent:
    """Time waited by worker and lock, split by who held the lock."""
    if not len(run.table("locks")):
        return absent(run, "waiting for locks", "locks")
    waits = locks.waited_for(run)
    if not len(waits):
        return Absent(f"No figure of waiting for locks: nobody waited for one in {label(run)}.")
    scale, workers = time_scale(run), workers_of(run)
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
        hover = [
            f"<b>{theme.plain(short_worker(row.victim))}</b> waited {scale.text(length)} for {theme.plain(row.lock)}"
            f"<br>while it was held by {who} ({row.waits} waits)"
            for row, length in zip(rows.itertuples(), lengths, strict=True)
        ]
        figure.add_trace(
            stacked_bar(
                [_place(row.lock, row.victim, several) for row in rows.itertuples()],
                lengths,
                f"held by {who}",
                theme.colour_of_worker(holder, workers),
                text=[scale.text(length) if length > _ROOM * longest else "" for length in lengths],
                hovertext=hover,
                hoverinfo="text",
            )
        )
    figure.update_layout(
        titled(
            "Waiting for locks",
            f"{label(run)}. Who waited, and who held the lock meanwhile.",
            f"Time waited for locks in {label(run)}, by worker and by holder.",
            130 + 38 * len(places),
            barmode="stack",
            xaxis={
                "title": theme.axis_title(f"time waited, sum over the run ({scale.unit})"),
                "rangemode": "tozero",
            },
            legend={"traceorder": "normal"},
            yaxis={
                "categoryorder": "array",
                "categoryarray": [_place(lock, victim, several) for lock, victim in reversed(places)],
                "ticks": "",
                "showgrid": False,
            },
        )
    )
    return figure


def _place(lock: str, victim: str, several: bool) -> str:
    who = theme.plain(short_worker(victim), 20)
    return f"{who} for {theme.plain(short_worker(lock), 24)}" if several else who

"""Device memory over time: whose it is, against the limit, with the peak and the requests that failed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cuzklab.analysis import frames, vram
from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, absent, short_worker, size_scale, time_scale, titled, workers_of
from cuzklab.report.naming import label, short_size
from cuzklab.trace import Run
from cuzklab.units import format_size

# Beyond this many events the steps are thinned to the largest of each stretch of time.
MOST_EVENTS = 2000
MOST_FAILURES = 12
# Buffers with a colour of their own: the largest; the others are one area.
MOST_BUFFERS = 12
# A limit so many times above the peak would leave nothing else to see.
_FAR_ABOVE = 40
_OTHERS = "other buffers"
_TOLD = 0.01  # part of the peak from which on a worker is named beside it
# How far a buffer lets the page through: the two that live long are strong, what comes and goes is pale.
_SHADES = {"d_bc": 1.0, "d_a": 0.72}
_PALE = 0.45
_SCRATCH = "scratch"
_REST = "not traced"


def device_memory(run: Run, device: int | None = None) -> go.Figure | Absent:
    """Live bytes of a device by worker and buffer, as stacked steps under the limit.

    Parameters
    ----------
    run : Run
    device : int, optional
        By default the one with the highest peak.
    """
    peaks = vram.peaks(run)
    if not len(peaks):
        return absent(run, "device memory", "vram")
    if device is None:
        device = int(peaks.loc[peaks["live_bytes"].idxmax(), "device"])
    peak = peaks[peaks["device"] == device].iloc[0]
    steps, failed = vram.steps(run), vram.failed_requests(run)
    steps, failed = steps[steps["device"] == device], failed[failed["device"] == device]
    limit_bytes = int(steps["limit_bytes"].max())
    if limit_bytes > _FAR_ABOVE * peak["live_bytes"] and not len(failed):
        limit_bytes = 0
    wanted = (failed["live_bytes"] + failed["requested_bytes"]).max() if len(failed) else 0
    top = max(int(peak["live_bytes"]), limit_bytes, int(wanted))
    divisor, unit = size_scale(top)
    scale, workers, margins = time_scale(run), workers_of(run), theme.over_time()
    moments, levels = _to_the_end(frames.window(run)[1], *_levels(run, device, steps))
    times = scale.of(moments)
    figure = go.Figure()
    for (worker, buffer), values in levels:
        figure.add_trace(_area(worker, buffer, times, values / divisor, unit, workers))
    if limit_bytes:
        told_at = failed["time_ns"].iloc[0] if len(failed) else peak["time_ns"]
        _draw_limit(figure, limit_bytes, divisor, on_the_right=_in_left_half(figure, float(scale.of(told_at))))
    for number, request in enumerate(failed.head(MOST_FAILURES).to_dict("records")):
        _mark_failure(figure, request, float(scale.of(request["time_ns"])), divisor, explained=number == 0)
    if not len(failed):
        _mark_peak(figure, run, peak, float(scale.of(peak["time_ns"])), divisor, top)
    figure.update_layout(
        titled(
            "Device memory",
            _subtitle(run, peak, failed),
            f"Live device memory of {label(run)} by worker and buffer, against the limit.",
            260 if scale.unit == "step" else 380,
            margin=margins["margin"],
            meta=margins["meta"],
            xaxis={
                "title": theme.axis_title(scale.title),
                "range": [float(edge) for edge in scale.of(frames.window(run))],
            },
            yaxis={
                "title": theme.axis_title(f"live ({unit})"),
                "range": [0, top / divisor * (1.15 if len(failed) else 1.32)],
                "ticks": "",
                "automargin": False,
            },
            legend={"traceorder": "normal", "tracegroupgap": 4},
            hovermode="x unified" if len(levels) <= 12 else "closest",
        )
    )
    return figure


def _to_the_end(
    end_ns: int, moments: np.ndarray, levels: list[tuple[tuple[str, str], np.ndarray]]
) -> tuple[np.ndarray, list[tuple[tuple[str, str], np.ndarray]]]:
    """The last level until the run's end: a schedule that ends in a failure has its highest one there."""
    if not len(moments) or moments[-1] >= end_ns:
        return moments, levels
    return np.append(moments, end_ns), [(key, np.append(values, values[-1])) for key, values in levels]


def _draw_limit(figure: go.Figure, limit_bytes: int, divisor: float, on_the_right: bool) -> None:
    """The limit as a line, its name on the side where nothing else is written."""
    figure.add_hline(y=limit_bytes / divisor, line={"color": theme.LIMIT, "width": 1.5, "dash": "dash"})
    figure.add_annotation(
        x=1 if on_the_right else 0, xanchor="right" if on_the_right else "left", xref="paper", yanchor="bottom",
        y=limit_bytes / divisor, showarrow=False,
        text=f"limit {format_size(limit_bytes)}", font={"color": theme.LIMIT, "size": 12},
    )  # fmt: skip


def _levels(run: Run, device: int, steps: pd.DataFrame) -> tuple[np.ndarray, list[tuple[tuple[str, str], np.ndarray]]]:
    """Moments, and for each worker and buffer its live bytes from then on; they add up to the bytes recorded."""
    moments = steps["time_ns"].to_numpy()
    changes: dict[tuple[str, str], np.ndarray] = {}
    lives = vram.allocations(run)
    place = {event: number for number, event in enumerate(steps.index)}
    lives = lives[lives["device"] == device]
    buffers = lives["buffer"].str.partition(" at 0x")[0] if len(lives) else lives["buffer"]  # captured: by address
    lives = lives.assign(buffer=buffers.where(~buffers.str.endswith("scratch"), _SCRATCH))
    largest = lives.groupby(["worker", "buffer"])["bytes"].max().sort_values(ascending=False, kind="stable")
    shown = set(largest.index[:MOST_BUFFERS])
    for life in lives.to_dict("records"):
        key = (life["worker"], life["buffer"])
        change = changes.setdefault(key if key in shown else ("", _OTHERS), np.zeros(len(moments), dtype=np.int64))
        change[place[life["first_event"]]] += life["bytes"]
        if life["last_event"] in place:
            change[place[life["last_event"]]] -= life["bytes"]
    levels = {key: np.cumsum(change) for key, change in changes.items()}
    rest = steps["live_bytes"].to_numpy() - sum(levels.values(), np.zeros(len(moments), dtype=np.int64))
    if (rest > 0).any():
        levels["", _REST] = np.maximum(rest, 0)
    kept = _thinned(steps)
    order = {name: number for number, name in enumerate(workers_of(run))}
    known = [*_SHADES, _SCRATCH]
    keys = sorted(levels, key=lambda key: (order.get(key[0], -1), known.index(key[1]) if key[1] in known else 9, key))
    return moments[kept], [(key, levels[key][kept]) for key in keys]


def _thinned(steps: pd.DataFrame) -> np.ndarray:
    """Rows to draw: all, or of each stretch of time the one with the most live bytes, first and last row included."""
    if len(steps) <= MOST_EVENTS:
        return np.arange(len(steps))
    stretch = np.arange(len(steps)) * (MOST_EVENTS // 2) // len(steps)
    live = pd.Series(steps["live_bytes"].to_numpy())
    kept = {0, len(steps) - 1, *live.groupby(stretch).idxmax(), *live.groupby(stretch).idxmin()}
    kept.update(np.flatnonzero((steps["op"] == "fail").to_numpy())[:100])
    return np.array(sorted(kept))


def _area(worker: str, buffer: str, times: np.ndarray, values: np.ndarray, unit: str, workers: list[str]) -> go.Scatter:
    who = theme.plain(short_worker(worker)) or "nobody"
    colour = theme.colour_of_worker(worker, workers)
    fill = theme.shade(colour, _SHADES.get(buffer, _PALE))
    pattern = theme.PATTERNS[workers.index(worker) % len(theme.PATTERNS)] if worker in workers else "."
    lines = {"shape": pattern, "fgcolor": "rgba(255,255,255,0.55)", "bgcolor": fill, "size": 7, "solidity": 0.18}
    return go.Scatter(
        x=times,
        y=values,
        name=f"{who} {theme.plain(buffer)}",
        stackgroup="live",
        mode="lines",
        line={"shape": "hv", "width": 0, "color": colour},
        legendgroup=who,
        fillcolor=fill,
        fillpattern=lines if pattern else None,
        hovertemplate=f"{who} {theme.plain(buffer)}: %{{y:.2f}} {unit}<extra></extra>",
    )


def _mark_failure(figure: go.Figure, request: dict[str, Any], at: float, divisor: float, explained: bool) -> None:
    """A request that did not fit: how far it would have gone above what was live."""
    live, wanted = request["live_bytes"] / divisor, request["requested_bytes"] / divisor
    line = {"color": theme.FAILED, "width": 3, "dash": "dot"}
    figure.add_shape(type="line", x0=at, x1=at, y0=live, y1=live + wanted, line=line)
    text = (
        f"<b>{theme.plain(short_worker(request['worker']))} asks for {theme.plain(request['buffer'])}, "
        f"{format_size(request['requested_bytes'])}</b><br>{format_size(request['short_bytes'])} too little is free"
    )
    figure.add_trace(
        go.Scatter(
            x=[at],
            y=[live + wanted],
            mode="markers",
            showlegend=False,
            hovertext=text,
            hoverinfo="text",
            marker={"symbol": "x", "size": 9, "color": theme.FAILED},
        )
    )
    if explained:
        left = _in_left_half(figure, at)
        figure.add_annotation(
            x=at, y=live + wanted, text=text, align="left", font={"color": theme.FAILED, "size": 12},
            ax=40 if left else -40, ay=0, axref="pixel", ayref="pixel", xanchor="left" if left else "right",
            arrowcolor=theme.FAILED, arrowwidth=1, name="wide",
        )  # fmt: skip


def _mark_peak(figure: go.Figure, run: Run, peak: pd.Series, at: float, divisor: float, top_bytes: int) -> None:
    """Name what is held at the peak, above the limit, where nothing else is drawn."""
    held = vram.holdings(run, int(peak["event"]))
    lines = [f"<b>peak {format_size(peak['live_bytes'])}</b>", *_held_by_worker(held)]
    figure.add_annotation(
        x=at, y=peak["live_bytes"] / divisor, text="<br>".join(lines), align="left", font={"size": 12}, name="wide",
        ax=0, axref="pixel", ay=1.06 * top_bytes / divisor, ayref="y", yanchor="bottom",
        xanchor="left" if _in_left_half(figure, at) else "right", arrowwidth=1, arrowcolor=theme.WAIT, arrowhead=6,
        arrowsize=0.7,
    )  # fmt: skip


def _held_by_worker(held: pd.DataFrame) -> Iterator[str]:
    """One line a worker: what it holds; those that hold next to nothing have none."""
    named = held.assign(buffer=held["buffer"].str.partition(" at 0x")[0] if len(held) else held["buffer"])
    least_bytes = _TOLD * held["bytes"].sum()
    for worker, rows in named.groupby("worker", sort=True):
        if rows["bytes"].sum() < least_bytes:
            continue
        sizes = rows.groupby("buffer", sort=False)["bytes"].sum()
        parts = [f"{theme.plain(name)} {format_size(size)}" for name, size in sizes.items()]
        yield f"{theme.plain(short_worker(str(worker))) or 'nobody'}: {', '.join(parts[:4])}"


def _in_left_half(figure: go.Figure, at: float) -> bool:
    """Whether a moment is in the left half, so that words about it have room on its right."""
    times = figure.data[0].x
    return at < (float(times[0]) + float(times[-1])) / 2


def _subtitle(run: Run, peak: pd.Series, failed: pd.DataFrame) -> str:
    text = f"{label(run)}. Peak {format_size(peak['live_bytes'])} of {format_size(peak['limit_bytes'])}"
    stands_for = run.info.conditions.get("vram_equivalent_bytes")
    if stands_for and int(stands_for) != int(peak["limit_bytes"]):
        text += f", which stand for {short_size(int(stands_for))}"
    if len(failed):
        count = "one request" if len(failed) == 1 else f"{len(failed)} requests"
        return f"{text}; {count} failed (red)."
    return f"{text}; no request failed."

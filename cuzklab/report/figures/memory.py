"""Device memory over time: whose it is, against the limit, with the peak and the requests that failed."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cuzklab.analysis import frames, vram
from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, absent, short_worker, size_scale, time_scale, workers_of
from cuzklab.report.naming import label
from cuzklab.trace import Run
from cuzklab.units import format_size

# Beyond this many events the steps are thinned to the largest of each stretch of time.
MOST_EVENTS = 2000
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
    steps = vram.steps(run)
    steps = steps[steps["device"] == device]
    failed = vram.failed_requests(run)
    failed = failed[failed["device"] == device]
    top = max(steps["live_bytes"].max(), steps["limit_bytes"].max(), (failed["live_bytes"] + failed["requested_bytes"]).max()
              if len(failed) else 0)  # fmt: skip
    divisor, unit = size_scale(top)
    scale = time_scale(run)
    figure, margins = go.Figure(), theme.over_time()
    moments, levels = _levels(run, device, steps)
    times = scale.of(moments)
    workers = workers_of(run)
    for (worker, buffer), values in levels:
        figure.add_trace(_area(worker, buffer, times, values / divisor, unit, workers))
    limit = steps["limit_bytes"].max() / divisor
    figure.add_hline(y=limit, line={"color": theme.LIMIT, "width": 1.5, "dash": "dash"})
    figure.add_annotation(
        x=1, xref="paper", y=limit, yanchor="bottom", xanchor="right", showarrow=False,
        text=f"limit {theme.plain(format_size(steps['limit_bytes'].max()))}", font={"color": theme.LIMIT, "size": 12},
    )  # fmt: skip
    for request in failed.head(12).to_dict("records"):
        _mark_failure(figure, request, float(scale.of(request["time_ns"])), divisor, unit, len(failed) == 1)
    if not len(failed):
        _mark_peak(figure, run, peak, float(scale.of(peak["time_ns"])), divisor)
    figure.update_layout(
        theme.layout(
            title={"text": "Device memory", "subtitle": {"text": theme.plain(_subtitle(run, peak, failed), 300)}},
            height=380 + theme.TITLE_HEIGHT,
            margin=margins["margin"],
            meta={
                "description": f"Live device memory of {label(run)} by worker and buffer, against the limit.",
                **margins["meta"],
            },
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


def _levels(run: Run, device: int, steps: pd.DataFrame) -> tuple[np.ndarray, list[tuple[tuple[str, str], np.ndarray]]]:
    """Moments, and for each worker and buffer its live bytes from each moment on; the bytes add up to those recorded."""
    moments = steps["time_ns"].to_numpy()
    changes: dict[tuple[str, str], np.ndarray] = {}
    lives = vram.allocations(run)
    place = {event: number for number, event in enumerate(steps.index)}
    for life in lives[lives["device"] == device].to_dict("records"):
        buffer = _SCRATCH if life["buffer"].endswith("scratch") else life["buffer"]
        change = changes.setdefault((life["worker"], buffer), np.zeros(len(moments), dtype=np.int64))
        change[place[life["first_event"]]] += life["bytes"]
        if life["last_event"] in place:
            change[place[life["last_event"]]] -= life["bytes"]
    levels = {key: np.cumsum(change) for key, change in changes.items()}
    rest = steps["live_bytes"].to_numpy() - sum(levels.values(), np.zeros(len(moments), dtype=np.int64))
    if (rest > 0).any():
        levels["", _REST] = np.maximum(rest, 0)
    kept = _thinned(steps)
    order = {name: number for number, name in enumerate(workers_of(run))}
    buffers = [*_SHADES, _SCRATCH]
    keys = sorted(
        levels, key=lambda key: (order.get(key[0], -1), buffers.index(key[1]) if key[1] in buffers else 9, key)
    )
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
    pattern = theme.PATTERNS[workers.index(worker) % len(theme.PATTERNS)] if worker in workers else "."
    return go.Scatter(
        x=times, y=values, name=f"{who} {theme.plain(buffer)}", stackgroup="live", mode="lines",
        line={"shape": "hv", "width": 0, "color": colour}, legendgroup=who,
        fillcolor=theme.shade(colour, _SHADES.get(buffer, _PALE)),
        fillpattern={"shape": pattern, "fgcolor": "rgba(255,255,255,0.55)", "bgcolor": theme.shade(colour, _SHADES.get(buffer, _PALE)),
                     "size": 7, "solidity": 0.18} if pattern else None,
        hovertemplate=f"{who} {theme.plain(buffer)}: %{{y:.2f}} {unit}<extra></extra>",
    )  # fmt: skip


def _mark_failure(figure: go.Figure, request: dict, at: float, divisor: float, unit: str, alone: bool) -> None:
    live, wanted = request["live_bytes"] / divisor, request["requested_bytes"] / divisor
    figure.add_shape(
        type="line", x0=at, x1=at, y0=live, y1=live + wanted, line={"color": theme.FAILED, "width": 3, "dash": "dot"}
    )
    text = (
        f"<b>{theme.plain(short_worker(request['worker']))} asks for {theme.plain(request['buffer'])}, "
        f"{format_size(request['requested_bytes'])}</b><br>{format_size(request['short_bytes'])} too little is free"
    )
    figure.add_trace(
        go.Scatter(
            x=[at], y=[live + wanted], mode="markers", showlegend=False, hovertext=text, hoverinfo="text",
            marker={"symbol": "x", "size": 9, "color": theme.FAILED},
        )
    )  # fmt: skip
    if alone:
        figure.add_annotation(
            x=at, y=live + wanted, text=text, align="left", font={"color": theme.FAILED, "size": 12},
            **_beside(figure, at), ay=0, arrowcolor=theme.FAILED, arrowwidth=1, bgcolor="rgba(0,0,0,0)",
        )  # fmt: skip


def _mark_peak(figure: go.Figure, run: Run, peak: pd.Series, at: float, divisor: float) -> None:
    """Name what is held at the peak, above the limit, where nothing else is drawn."""
    held = vram.holdings(run, int(peak["event"]))
    lines = [f"<b>peak {format_size(peak['live_bytes'])}</b>", *_held_by_worker(held)]
    figure.add_annotation(
        x=at, y=peak["live_bytes"] / divisor, text="<br>".join(lines), align="left", font={"size": 12}, name="wide",
        arrowwidth=1, arrowcolor=theme.WAIT, arrowhead=6, arrowsize=0.7, axref="pixel", ax=0, ayref="y", yanchor="bottom",
        ay=1.06 * max(peak["limit_bytes"], peak["live_bytes"]) / divisor, xanchor=_beside(figure, at)["xanchor"],
    )  # fmt: skip


def _held_by_worker(held: pd.DataFrame) -> Iterator[str]:
    """One line a worker: what it holds."""
    for worker, rows in held.groupby("worker", sort=True):
        parts = [f"{theme.plain(row.buffer)} {format_size(row.bytes)}" for row in rows.itertuples()]
        yield f"{theme.plain(short_worker(str(worker))) or 'nobody'}: {', '.join(parts[:4])}"


def _beside(figure: go.Figure, at: float) -> dict[str, object]:
    """Where an annotation stands so that it stays inside: right of a point in the left half, left of one in the right."""
    times = figure.data[0].x
    left_half = at < (float(times[0]) + float(times[-1])) / 2
    return {
        "ax": 40 if left_half else -40,
        "xanchor": "left" if left_half else "right",
        "axref": "pixel",
        "ayref": "pixel",
    }


def _subtitle(run: Run, peak: pd.Series, failed: pd.DataFrame) -> str:
    text = f"{label(run)}. Peak {format_size(peak['live_bytes'])} of {format_size(peak['limit_bytes'])}"
    if len(failed):
        count = "one request" if len(failed) == 1 else f"{len(failed)} requests"
        return f"{text}; {count} failed (red)."
    return f"{text}; no request failed."

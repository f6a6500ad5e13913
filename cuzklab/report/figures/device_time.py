"""Where a device's time goes: kernels, and the causes of its idle time, one bar a run."""

from collections.abc import Sequence

import plotly.graph_objects as go

from cuzklab.analysis import occupancy
from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent
from cuzklab.report.naming import labels
from cuzklab.trace import Run

_COLOURS = {
    "transfer": theme.STAGE_COLOURS["upload"],
    "barrier": theme.STAGE_COLOURS["prep_msm"],
    "host": theme.STAGE_COLOURS["b_g2_msm"],
    "queue": theme.STAGE_COLOURS["synthesis"],
    "ramp": "#C9D1D9",
    "drain": "#DDE3E8",
    "lock": "#A0485F",
    "memory": "#7A2E8E",
    "device_sync": "#C46BAE",
    "event": "#5E7F8C",
}
_NAMES = {
    "transfer": "copying", "barrier": "waiting for prep_msm", "host": "CPU work of a call", "queue": "nothing queued",
    "ramp": "before the first kernel", "drain": "after the last kernel", "lock": "lock held, no kernel",
    "memory": "waiting for memory", "device_sync": "device-wide wait", "event": "waiting for an event",
}  # fmt: skip


def device_time(runs: Sequence[Run]) -> go.Figure | Absent:
    """Share of each run's wall time in which kernels run, and why none runs in the rest; mean over devices."""
    drawn = [(run, occupancy.occupancy(run), occupancy.idle(run)) for run in runs]
    drawn = [(run, used, idle) for run, used, idle in drawn if len(used)]
    if not drawn:
        return Absent("No figure of where the devices' time goes: no kernel ran in any of these runs.")
    names = [theme.plain(name) for name in labels([run for run, _, _ in drawn])]
    figure = go.Figure()
    busy = [used["kernel_occupancy"].mean() * 100 for _, used, _ in drawn]
    figure.add_trace(_bar(names, busy, "kernels running", theme.STAGE_COLOURS["h_msm"], ""))
    causes = [cause for cause in occupancy.CAUSES if any((idle["cause"] == cause).any() for _, _, idle in drawn)]
    for cause in [*causes, occupancy.UNATTRIBUTED]:
        shares = [idle.loc[idle["cause"] == cause, "share"].sum() / len(used) * 100 for _, used, idle in drawn]
        if any(shares):
            name = _NAMES.get(cause, cause.replace("_", " "))
            figure.add_trace(_bar(names, shares, name, _COLOURS.get(cause, theme.WAIT), "/"))
    figure.update_layout(
        theme.layout(
            title={
                "text": "Where the device's time goes",
                "subtitle": {"text": "Share of each run's wall time. Hatched: the device idles, by cause; an idle moment has one cause."},
            },
            barmode="stack",
            height=150 + theme.TITLE_HEIGHT + 46 * len(drawn),
            meta={"description": "Share of wall time in which kernels run, and causes of idle time, for each run."},
            xaxis={"title": theme.axis_title("share of wall time (%)"), "range": [0, 100]},
            yaxis={"autorange": "reversed", "ticks": "", "showgrid": False},
            legend={"traceorder": "normal"},
        )
    )  # fmt: skip
    return figure


def _bar(names: Sequence[str], shares: Sequence[float], name: str, colour: str, pattern: str) -> go.Bar:
    return go.Bar(
        y=list(names), x=list(shares), orientation="h", name=name,
        marker={"color": colour, "line": {"width": 0},
                "pattern": {"shape": pattern, "fgcolor": "rgba(255,255,255,0.45)", "size": 6, "solidity": 0.25}},
        text=[f"{share:.0f} %" if share >= 4 else "" for share in shares], textposition="inside", insidetextanchor="middle", textangle=0,
        hovertemplate=f"%{{y}}<br><b>{name}</b>: %{{x:.1f}} %<extra></extra>",
    )  # fmt: skip

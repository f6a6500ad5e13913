"""Where a device's time goes: kernels, and the causes of its idle time, one bar a run."""

from collections.abc import Sequence

import plotly.graph_objects as go

from cuzklab.analysis import occupancy
from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, bar_names, layout_of_shares, share_bar
from cuzklab.trace import Run

# cause of idling -> its name here, its colour: that of the stage which is waited for, where there is one
_CAUSES = {
    "ramp": ("before the first kernel", "#C9D1D9"),
    "drain": ("after the last kernel", "#DDE3E8"),
    "transfer": ("copying", theme.STAGE_COLOURS["upload"]),
    "device_sync": ("device-wide wait", "#C46BAE"),
    "memory": ("waiting for memory", "#7A2E8E"),
    "allocation": ("allocating and freeing", "#A678B5"),
    "host_memory": ("pinning host memory", theme.STAGE_COLOURS["pin"]),
    "profiler": ("the profiler itself", "#4B5563"),
    "barrier": ("waiting for prep_msm", theme.STAGE_COLOURS["prep_msm"]),
    "event": ("waiting for an event", "#5E7F8C"),
    "lock": ("lock held, no kernel", "#A0485F"),
    "host": ("CPU work of a call", theme.STAGE_COLOURS["b_g2_msm"]),
    "queue": ("nothing queued", theme.STAGE_COLOURS["synthesis"]),
}


def device_time(runs: Sequence[Run]) -> go.Figure | Absent:
    """Share of each run's wall time in which kernels run, and why none runs in the rest; mean over devices."""
    drawn = [(run, occupancy.occupancy(run), occupancy.idle(run)) for run in runs]
    drawn = [(run, used, idle) for run, used, idle in drawn if len(used)]
    if not drawn:
        return Absent("No figure of where the devices' time goes: no kernel ran in any of these runs.")
    names = bar_names([run for run, _, _ in drawn])
    figure = go.Figure()
    busy = [used["kernel_occupancy"].mean() * 100 for _, used, _ in drawn]
    figure.add_trace(share_bar(names, busy, "kernels running", theme.STAGE_COLOURS["h_msm"], ""))
    for cause in [*occupancy.CAUSES, occupancy.UNATTRIBUTED]:
        shares = [idle.loc[idle["cause"] == cause, "share"].sum() / len(used) * 100 for _, used, idle in drawn]
        if any(shares):
            name, colour = _CAUSES.get(cause, (cause.replace("_", " "), theme.WAIT))
            figure.add_trace(share_bar(names, shares, name, colour, "/"))
    figure.update_layout(
        layout_of_shares(
            "Where the device's time goes",
            "Share of each run's wall time. Hatched: no kernel runs, by cause; each idle moment has one cause.",
            "Share of wall time in which kernels run, and causes of idle time, for each run.",
            names, "wall time",
        )
    )  # fmt: skip
    return figure

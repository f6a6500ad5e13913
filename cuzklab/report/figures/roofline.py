"""Kernels under the roof of a machine: rate over arithmetic intensity, both on logarithmic scales."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, titled
from cuzklab.report.tables import number

# Transforms are blue, as the stage is; sums over G1 green, over G2 warm; what is stored or streamed lighter.
_LOOKS: Mapping[str, tuple[str, str]] = {
    "ntt": ("#0072B2", "circle"),
    "h_polynomial": ("#56B4E9", "square"),
    "msm_g1": ("#009E73", "diamond"),
    "pinned_msm_g1": ("#6CC4A7", "diamond-open"),
    "fixed_msm_g1": ("#3B7A57", "diamond-wide"),
    "masked_sum_g1": ("#7C8A35", "triangle-up"),
    "msm_g2": ("#D55E00", "pentagon"),
    "fixed_msm_g2": ("#A0522D", "hexagon"),
    "masked_sum_g2": ("#E69F00", "triangle-down"),
}
_OTHER = ("#8C6BB1", "x")


def _bytes_rate(per_s: float) -> str:
    return f"{number(per_s / 1e12)} TB/s" if per_s >= 1e12 else f"{number(per_s / 1e9)} GB/s"


def roofline(
    rows: Sequence[Mapping[str, Any]], operations_per_s: float, bytes_per_s: float, unit: str, conditions: str
) -> go.Figure | Absent:
    """Draw kernels under the two limits of a machine.

    Parameters
    ----------
    rows : sequence of mapping
        kernel, log2n, median_ms, intensity (operations a byte), operations_per_s, roof_share.
    operations_per_s, bytes_per_s : float
        The measured limits.
    unit : str
        What an operation is.
    conditions : str
        Machine and versions.
    """
    if not rows:
        return Absent("No roofline: nothing was measured.")
    divisor, prefix = (1e12, "T") if operations_per_s >= 2e11 else (1e9, "G")
    ridge = operations_per_s / bytes_per_s
    intensities = [row["intensity"] for row in rows]
    left, right = min(ridge, *intensities) / 2.5, max(ridge, *intensities) * 2.5
    figure = go.Figure()
    xs = np.array([left, ridge, right])
    figure.add_trace(
        go.Scatter(
            x=xs, y=np.minimum(operations_per_s, xs * bytes_per_s) / divisor, mode="lines", showlegend=False,
            line={"color": theme.INK, "width": 2}, hoverinfo="skip",
        )
    )  # fmt: skip
    smallest, largest = min(row["log2n"] for row in rows), max(row["log2n"] for row in rows)

    def size_of(log_n: int) -> float:
        return 6 + 6 * (log_n - smallest) / max(1, largest - smallest)

    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        own = [row for row in rows if row["kernel"] == kernel]
        colour, symbol = _LOOKS.get(kernel, _OTHER)
        figure.add_trace(
            go.Scatter(
                x=[row["intensity"] for row in own],
                y=[row["operations_per_s"] / divisor for row in own],
                mode="lines+markers",
                name=theme.plain(kernel),
                line={"color": theme.shade(colour, 0.45), "width": 1},
                marker={"color": colour, "symbol": symbol, "size": [size_of(row["log2n"]) for row in own]},
                customdata=[
                    (f"2<sup>{row['log2n']}</sup>", number(row["median_ms"]), 100 * row["roof_share"]) for row in own
                ],
                hovertemplate=(
                    f"<b>{theme.plain(kernel)}</b> of %{{customdata[0]}}: %{{customdata[1]}} ms<br>"
                    f"%{{y:.3g}} {prefix} a second, %{{x:.3g}} a byte<br>"
                    "%{customdata[2]:.0f} % of the roof<extra></extra>"
                ),
            )
        )
    lowest = min(row["operations_per_s"] for row in rows) / divisor
    slope_x = (left * ridge) ** 0.5
    limits = (
        (right, operations_per_s, f"multiplier, {number(operations_per_s / divisor)} {prefix}/s", "right", "bottom"),
        (slope_x, slope_x * bytes_per_s, f"memory, {_bytes_rate(bytes_per_s)}", "left", "top"),
    )
    for x, y, text, across, along in limits:
        figure.add_annotation(
            x=np.log10(x), y=np.log10(y / divisor), text=text, showarrow=False, xanchor=across, yanchor=along,
            xshift=10 if across == "left" else 0, yshift=4 if along == "bottom" else 0, font={"size": 12},
        )  # fmt: skip
    bottom = min(lowest, left * bytes_per_s / divisor) / 1.6
    log_axis = {"type": "log", "minor": {"showgrid": False}, "dtick": 1}
    figure.update_layout(
        titled(
            "Kernels under the roof of this machine",
            f"{conditions}. The larger the mark, the larger the size.",
            f"Roofline: rate of {unit} over {unit} a byte, for {len(rows)} measurements.",
            460,
            xaxis={**log_axis, "title": theme.axis_title(f"{unit} a byte"), "range": [np.log10(left), np.log10(right)]},
            yaxis={
                **log_axis, "title": theme.axis_title(f"{unit}, {prefix}/s"),
                "range": [np.log10(bottom), np.log10(operations_per_s / divisor * 1.8)],
            },
        )
    )  # fmt: skip
    return figure

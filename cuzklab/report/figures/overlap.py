"""What ran at the same time as what, and which CPU stages the device hides."""

import numpy as np
import plotly.graph_objects as go

from cuzklab.analysis import overlap
from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, absent, shares_text, stacked_bar, titled
from cuzklab.report.naming import label
from cuzklab.trace import Run

_PARTS = (
    ("behind_others_ns", "behind another worker's kernels", theme.STAGE_COLOURS["batch_add"], ""),
    ("behind_own_ns", "behind its own worker's kernels", theme.STAGE_COLOURS["h_msm"], "."),
    ("behind_unknown_ns", "behind kernels of unknown workers", theme.WAIT, "x"),
    ("exposed_ns", "no kernel running", theme.STAGE_COLOURS["prep_msm"], "/"),
)


def overlap_map(run: Run) -> go.Figure | Absent:
    """Stage against stage of the other workers, as a share of the row's time."""
    pairs = overlap.stage_overlap(run)
    if not len(pairs):
        if not len(run.table("spans")):
            return absent(run, "overlap", "spans", "kernels")
        return Absent(f"No figure of overlap: in {label(run)} no two workers ran a stage at the same time.")
    rows, columns = _in_order(set(pairs["stage"])), _in_order(set(pairs["other_stage"]))
    shares = np.full((len(rows), len(columns)), np.nan)
    for pair in pairs.itertuples():
        shares[rows.index(pair.stage), columns.index(pair.other_stage)] = pair.fraction * 100
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=[theme.plain(name) for name in columns],
            y=[theme.plain(name) for name in rows],
            zmin=0,
            zmax=100,
            xgap=2,
            ygap=2,
            texttemplate="%{z:.0f}",
            colorscale=theme.SEQUENTIAL,
            showscale=False,
            hovertemplate="%{z:.1f} % of the time of <b>%{y}</b><br>another worker ran <b>%{x}</b><extra></extra>",
        )
    )
    figure.update_layout(
        titled(
            "What overlaps what",
            f"{label(run)}. While a worker runs the stage of the row: for which part of that time some other worker "
            "runs the stage of the column, in per cent.",
            f"Overlap of stages across workers in {label(run)}.",
            120 + 34 * len(rows),
            xaxis={
                "title": theme.axis_title("stage of another worker"), "showgrid": False, "ticks": "", "tickangle": -30,
            },
            yaxis={"title": theme.axis_title("stage"), "autorange": "reversed", "showgrid": False, "ticks": ""},
        )
    )  # fmt: skip
    return figure


def _in_order(names: set[str]) -> list[str]:
    known = list(theme.STAGE_ORDER)
    return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


def what_is_hidden(run: Run) -> go.Figure | Absent:
    """For each CPU stage of a partition, the part of its time that kernels hide."""
    hidden = overlap.hidden(run)
    if not len(hidden):
        if not len(run.table("spans")):
            return absent(run, "hidden CPU work", "spans")
        return Absent(f"No figure of hidden CPU work: {label(run)} ran neither prep_msm nor b_g2_msm.")
    figure = go.Figure()
    stages = [theme.plain(name) for name in hidden["stage"]]
    for column, name, colour, pattern in _PARTS:
        shares = hidden[column] / hidden["total_ns"].clip(lower=1) * 100
        if shares.any():
            hover = f"%{{y}}: %{{x:.1f}} % {name}<extra></extra>"
            text = shares_text(shares)
            figure.add_trace(stacked_bar(stages, shares, name, colour, pattern, text=text, hovertemplate=hover))
    figure.update_layout(
        titled(
            "CPU work that the device hides",
            f"{label(run)}. Share of each stage's time, all partitions together.",
            f"Share of CPU stages hidden behind kernels in {label(run)}.",
            120 + 44 * len(hidden),
            barmode="stack",
            xaxis={"title": theme.axis_title("share of the stage's time (%)"), "range": [0, 100]},
            yaxis={"autorange": "reversed", "ticks": "", "showgrid": False},
            legend={"traceorder": "normal"},
        )
    )
    return figure

"""What ran at the same time as what, and which CPU stages the device hides."""

import numpy as np
import plotly.graph_objects as go

from cuzklab.analysis import overlap
from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, absent
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
        return absent(run, "overlap", "spans", "kernels") if not len(run.table("spans")) else Absent(
            f"No figure of overlap: in {label(run)} no two workers ran a stage at the same time."
        )  # fmt: skip
    known = list(theme.STAGE_ORDER)

    def order(names: set[str]) -> list[str]:
        return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))

    rows, columns = order(set(pairs["stage"])), order(set(pairs["other_stage"]))
    shares = np.full((len(rows), len(columns)), np.nan)
    for pair in pairs.itertuples():
        shares[rows.index(pair.stage), columns.index(pair.other_stage)] = pair.fraction
    figure = go.Figure(
        go.Heatmap(
            z=shares * 100, x=[theme.plain(name) for name in columns], y=[theme.plain(name) for name in rows],
            zmin=0, zmax=100, xgap=2, ygap=2, texttemplate="%{z:.0f}", colorscale=theme.SEQUENTIAL,
            hovertemplate="%{z:.1f} % of the time of <b>%{y}</b><br>another worker ran <b>%{x}</b><extra></extra>",
            showscale=False,
        )
    )  # fmt: skip
    figure.update_layout(
        theme.layout(
            title={
                "text": "What overlaps what",
                "subtitle": {"text": theme.plain(
                    f"{label(run)}. While a worker runs the stage of the row: for which part of that time another "
                    "worker runs the stage of the column, in per cent.", 300)},
            },
            height=130 + theme.TITLE_HEIGHT + 36 * len(rows),
            meta={"description": f"Overlap of stages across workers in {label(run)}."},
            xaxis={"title": theme.axis_title("stage of another worker"), "showgrid": False, "ticks": "", "tickangle": -35},
            yaxis={"title": theme.axis_title("stage"), "autorange": "reversed", "showgrid": False, "ticks": ""},
        )
    )  # fmt: skip
    return figure


def what_is_hidden(run: Run) -> go.Figure | Absent:
    """For each CPU stage of a partition, the part of its time that kernels hide."""
    hidden = overlap.hidden(run)
    if not len(hidden):
        return absent(run, "hidden CPU work", "spans") if not len(run.table("spans")) else Absent(
            f"No figure of hidden CPU work: {label(run)} ran neither prep_msm nor b_g2_msm."
        )  # fmt: skip
    figure = go.Figure()
    for column, name, colour, pattern in _PARTS:
        if not hidden[column].any():
            continue
        shares = hidden[column] / hidden["total_ns"] * 100
        figure.add_trace(
            go.Bar(
                y=hidden["stage"].map(theme.plain), x=shares, orientation="h", name=name,
                marker={"color": colour, "pattern": {"shape": pattern, "fgcolor": "rgba(255,255,255,0.6)", "solidity": 0.2},
                        "line": {"width": 0}},
                text=[f"{share:.0f} %" if share >= 4 else "" for share in shares], textposition="inside", insidetextanchor="middle", textangle=0,
                hovertemplate=f"%{{y}}: %{{x:.1f}} % {name}<extra></extra>",
            )
        )  # fmt: skip
    figure.update_layout(
        theme.layout(
            title={
                "text": "CPU work that the device hides",
                "subtitle": {"text": theme.plain(f"{label(run)}. Share of each stage's time, all partitions together.", 300)},
            },
            barmode="stack",
            height=130 + theme.TITLE_HEIGHT + 48 * len(hidden),
            meta={"description": f"Share of CPU stages hidden behind kernels in {label(run)}."},
            xaxis={"title": theme.axis_title("share of the stage's time (%)"), "range": [0, 100]},
            yaxis={"autorange": "reversed", "ticks": "", "showgrid": False},
        )
    )  # fmt: skip
    return figure

"""What the critical paths of a run's proofs are made of, one bar a run."""

from collections.abc import Sequence

import plotly.graph_objects as go

from cuzklab.analysis.critical_path import HOST, critical_stages
from cuzklab.report import theme
from cuzklab.report.figures.axes import Absent, bar_names, layout_of_shares, share_bar
from cuzklab.trace import Run

_MOST_PARTS = 12  # the rest is one part
_REST = "other"
_PATTERN = {"memory": "x", "transfer": "-", HOST: "."}


def critical_paths(runs: Sequence[Run]) -> go.Figure | Absent:
    """Share of each stage, wait and call for memory in the critical paths of each run's proofs."""
    drawn = [(run, critical_stages(run)) for run in runs]
    drawn = [(run, stages) for run, stages in drawn if len(stages)]
    if not drawn:
        return Absent("No figure of critical paths: no run has spans of proofs.")
    weight: dict[tuple[str, str], float] = {}
    for _, stages in drawn:
        for row in stages.itertuples():
            weight[row.kind, row.what] = weight.get((row.kind, row.what), 0.0) + row.share
    parts = sorted(weight, key=weight.get, reverse=True)[:_MOST_PARTS]
    names = bar_names([run for run, _ in drawn])
    figure = go.Figure()
    for part in [*parts, None]:
        shares = [
            100 * sum(row.share for row in stages.itertuples()
                      if ((row.kind, row.what) == part if part else (row.kind, row.what) not in parts))
            for _, stages in drawn
        ]  # fmt: skip
        if not any(shares):
            continue
        kind, what = part or ("", _REST)
        waits = kind.startswith("wait:")
        name = theme.plain(f"waiting ({kind.removeprefix('wait:').replace('_', ' ')}) {what}" if waits else what)
        colour = theme.WAIT if waits or not part else theme.STAGE_COLOURS["upload"] if kind == "transfer" else (
            theme.colour_of_stage(what))  # fmt: skip
        pattern = "/" if waits else _PATTERN.get(kind, "")
        figure.add_trace(share_bar(names, shares, name, colour, pattern))
    figure.update_layout(
        layout_of_shares(
            "What proofs wait for in the end",
            "Critical paths of all proofs: only what is on them could make a proof end earlier.",
            "Share of each stage and wait in the critical paths of the proofs of each run.",
            names, "the critical paths",
        )
    )  # fmt: skip
    return figure

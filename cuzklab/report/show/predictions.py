"""Typed figures of several runs side by side, and what others have published."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cuzklab.analysis.case import metric, metrics_of
from cuzklab.report import display
from cuzklab.report.naming import kind_name, labels
from cuzklab.report.postmortem import large
from cuzklab.report.show.words import OUTCOMES
from cuzklab.trace import Run
from cuzklab.units import METRIC_KINDS, GiB

_PUBLISHED_CARD_BYTES = 16 * GiB


def metrics(runs: Sequence[Run]) -> None:
    """Typed figures, a column a run; only figures of one row can be compared."""
    if not runs:
        display.markup('<p class="cz-absent">No such run was made.</p>')
        return
    kinds = list(dict.fromkeys(one.kind for run in runs for one in metrics_of(run)))
    rows = [
        {"run": name, "ended": OUTCOMES[run.info.outcome]}
        | {_column(kind): found.value if (found := metric(run, kind)) else None for kind in kinds}
        for name, run in zip(labels(runs), runs, strict=True)
    ]
    headings = {_column(kind): kind_name(kind) for kind in kinds}
    display.table(pd.DataFrame(rows), "Compare within a column only: each is a kind of its own.", headings=headings)
    meanings = pd.DataFrame([{"kind": kind_name(kind), "what it is": METRIC_KINDS[kind][1]} for kind in kinds])
    display.table(meanings, fold="What each kind measures")


def _column(kind: str) -> str:
    """A kind of metric as the name of a column of a table, which ends in its unit."""
    return f"{kind}_{ {'s/proof': 's_per_proof', 's': 's', 'B': 'bytes', '1': 'share'}[METRIC_KINDS[kind][0]] }"


def published(rows: Sequence[Any], runs: Sequence[Run]) -> None:
    """Published results of the designs that were run, beside the figure of the same kind and conditions, if any.

    Parameters
    ----------
    rows : sequence
        With `policy`, `metric` (None for an outcome), `outcome`, `conditions` and `assumed`, as
        `cuzklab.simulate.load_published` gives them.
    runs : sequence of Run
    """
    policies = {run.info.policy for run in runs}
    table: list[dict[str, Any]] = []
    for row in (row for row in rows if row.policy in policies):
        same = next((run for run in runs if run.info.policy == row.policy and _same(row.conditions, run)), None)
        ours = metric(same, row.metric.kind) if same and row.metric else None
        table.append(
            {
                "design": row.policy,
                "conditions": ", ".join(
                    f"{name} {value}{' (assumed)' if name in row.assumed else ''}"
                    for name, value in row.conditions.items()
                ),
                "kind": kind_name(row.metric.kind) if row.metric else "outcome",
                "published": large(row.metric) if row.metric else OUTCOMES[row.outcome],
                "simulated here": large(ours) if ours else OUTCOMES[same.info.outcome] if same else None,
                "difference_share": ours.ratio(row.metric) - 1 if ours else None,
            }
        )
    words = "c: proofs, j: in flight, pw: synthesis workers, gw: GPU workers. Published by the engine's authors."
    met = [row for row in table if row["simulated here"]]
    right = ("published", "simulated here")
    display.table(
        pd.DataFrame(met), f"Published results and the simulation under the same conditions. {words}", right=right
    )
    every = pd.DataFrame(table)
    display.table(every, words, right=right, fold=f"Table: all {len(every)} published results of these designs")


def _same(conditions: Mapping[str, object], run: Run) -> bool:
    limits = {int(device["vram_limit_bytes"]) for device in run.info.devices if device.get("vram_limit_bytes")}
    return limits == {_PUBLISHED_CARD_BYTES} and all(
        run.info.conditions.get(name) == value for name, value in conditions.items()
    )

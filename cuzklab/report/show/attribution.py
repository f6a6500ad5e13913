"""Where time goes and what stands in the way: critical paths, queues, stages side by side, what fits the device."""

from collections.abc import Sequence

import pandas as pd

from cuzklab.analysis import compare_stages, lock_order, queueing, stages, vram_fit
from cuzklab.analysis import critical_path as paths
from cuzklab.analysis.compare import JUDGED_BY, compare_repeated, turned, unlike
from cuzklab.analysis.phrases import counted, differences
from cuzklab.report import display, figures, tables
from cuzklab.report.display import badge
from cuzklab.report.naming import kind_name, label
from cuzklab.report.postmortem import PostMortem, large
from cuzklab.report.show.words import SURE_BY_ORIGIN
from cuzklab.trace import Run
from cuzklab.units import format_size, format_value

_MOST_ROWS = 40
_MOST_OPEN = 3  # tables of one kind; more are folded


def of_run(run: Run) -> None:
    """A heading that says which run the following is about."""
    display.heading(label(run), badge(SURE_BY_ORIGIN[run.info.origin]))


def critical_path(runs: Sequence[Run]) -> None:
    """What the critical paths of the proofs are made of."""
    display.figure(figures.critical_paths(runs))
    rows = [paths.critical_stages(run).assign(run=label(run)) for run in runs]
    rows = [frame for frame in rows if len(frame)]
    if rows:
        frame = pd.concat(rows, ignore_index=True)[["run", "kind", "what", "pieces", "time_ns", "share"]]
        display.table(frame, fold="Table: critical paths by stage, wait and call")


def queues(run: Run) -> None:
    """Arrivals, waits and services of each resource."""
    display.table(
        queueing.queueing(run),
        f"{label(run)}. Queue and in service: their mean number over the run (arrivals × mean time, Little's law).",
        headings={"per_second": "a second", "mean_queue": "queue", "mean_in_service": "in service"},
        fold="Table: queues of locks, workers and devices",
    )


def lock_orders(run: Run) -> None:
    """Which locks are taken under which, and convoys."""
    order = lock_order.order(run)
    inverted = order[order["inverted"]]
    if len(inverted):
        pairs = ", ".join(f"{row.wanted} under {row.held}" for row in inverted.itertuples())
        display.text(f"The order of locks and memory has a cycle in {label(run)}: {pairs}. It can deadlock.")
    display.table(order, "What was wanted while a lock was held.", fold="Table: locks and memory wanted under locks")
    convoys = lock_order.convoys(run)
    display.table(
        convoys.drop(columns=["start_ns", "end_ns"]).assign(lasted_ns=convoys["end_ns"] - convoys["start_ns"]),
        "Stretches in which a lock went from worker to worker with the next one always waiting.",
        fold=f"Table: {counted(len(convoys), 'convoy')}",
    )


def fits(run: Run) -> None:
    """How long buffers live, who needs how much, and whether another worker's buffers would fit beside."""
    for fit in vram_fit.fits(run):
        beside = (
            f"the peaks of {fit.fitting_workers} workers fit side by side, and one more takes"
            if fit.fitting_workers > 1
            else "a second one's does not fit beside it: it takes"
        )
        display.text(
            f"{label(run)}: a worker's own peak is {format_size(fit.worker_bytes)}. On"
            f" {format_size(fit.limit_bytes)} {beside} {format_size(fit.short_bytes)} more. At the fullest moment"
            f" {format_size(fit.headroom_bytes)} were free."
        )
    lost = vram_fit.fragmentation(run)
    lost = lost[(lost["unexplained_max_bytes"] > 0) | (lost["failed_with_room"] > 0)]
    display.table(lost, "Memory in use that is no known buffer: kept by a pool, fragmented, or not traced.")
    display.table(vram_fit.lifetimes(run), "Lives of buffers.", fold="Table: buffers and how long they live")
    display.table(vram_fit.owners(run), "Device memory by worker.", fold="Table: device memory by worker")


def stage_comparison(candidate: Run, baseline: Run, *, folded: bool = False) -> None:
    """Two runs by stage with intervals, or why they cannot be compared, and in which conditions they differ."""
    try:
        rows = compare_stages.by_stage(candidate, baseline)
    except compare_stages.NotComparable as error:
        display.markup(f'<p class="cz-absent">{tables.escape(error)}.</p>')
        return
    knobs = turned(candidate, baseline)
    note = f" They differ in {differences(knobs)}." if knobs else ""
    shown = rows.drop(columns=["low", "high", "resolved"]).assign(
        change_share=rows["ratio"] - 1, low_share=rows["low"] - 1, high_share=rows["high"] - 1,
        certain=["yes" if row.resolved else "no" for row in rows.itertuples()],
    )  # fmt: skip
    display.table(
        shown.drop(columns=["ratio"]),
        f"{label(candidate)} against {label(baseline)}: mean time a partition spends in each stage, with 95 % intervals"
        f" from a bootstrap over partitions.{note}",
        headings={"count": "partitions", "baseline_count": "in the baseline", "baseline_mean_ns": "baseline's mean",
                  "mean_ns": "mean", "low_share": "from", "high_share": "to", "certain": "beyond chance"},
        fold=f"Table: stages of {label(candidate)} against {label(baseline)}" if folded else "",
    )  # fmt: skip


def against_baseline(post: PostMortem, runs: Sequence[Run]) -> None:
    """Each completed run of the candidate beside the nearest of the baseline, stage by stage."""
    done = [run for run in runs if run.info.outcome == "ok"]
    candidates = [one for one in done if one.info.policy == post.case.candidate]
    for run in candidates:
        others = [one for one in done if one.info.policy == post.case.baseline and one.info.origin == run.info.origin]
        if others:
            stage_comparison(
                run, min(others, key=lambda one: _distance(post, run, one)), folded=len(candidates) > _MOST_OPEN
            )


def contention(run: Run) -> None:
    """How CPU stages stretch when more of them run."""
    display.table(
        stages.inflation(run), "Duration of CPU stages by how many others ran beside them, on average.",
        headings={"median_ns": "median"}, fold="Table: CPU stages under competition", rows=_MOST_ROWS,
    )  # fmt: skip


def predicted(post: PostMortem, origin: str = "simulated") -> None:
    """The gain that the model predicts: candidate against baseline, figure by figure."""
    groups: dict[str, list[Run]] = {}
    for run in post.case.select(post.case.candidate, (origin,), ("ok",)):
        groups.setdefault(label(run), []).append(run)
    rows = []
    for name, runs in groups.items():
        others = [
            other for other in post.case.select(post.case.baseline, (origin,), ("ok",)) if not unlike(runs[0], other)
        ]
        if not others:
            continue
        near = min(others, key=lambda other: _distance(post, runs[0], other))
        alike = [other for other in others if label(other) == label(near)]
        for kind in (*JUDGED_BY[:2], "peak_host"):
            result = compare_repeated(runs, alike, kind)
            if result is not None:
                rows.append(
                    {"candidate": name, "baseline": label(near), "figure": kind_name(kind),
                     "predicted": large(result.candidate), "baseline's": large(result.baseline),
                     "saving_share": result.gain}
                )  # fmt: skip
    if not rows:
        display.markup('<p class="cz-absent">Nothing was simulated that predicts a gain.</p>')
        return
    display.table(
        pd.DataFrame(rows), "The predicted gain, from simulations: medians where a simulation was repeated with other"
        " seeds. A model's figures, not a machine's.", right=("predicted", "baseline's"),
    )  # fmt: skip


def _distance(post: PostMortem, run: Run, other: Run) -> int:
    """How many knobs differ between two runs; another device is further than any of them."""
    elsewhere = post.case.limit_bytes(run) != post.case.limit_bytes(other)
    return len(turned(run, other)) + 100 * elsewhere


def scores(predicted: Run, measured: Run) -> None:
    """A stored prediction against a later measurement."""
    try:
        found = compare_stages.score(predicted, measured)
    except compare_stages.NotComparable as error:
        display.markup(f'<p class="cz-absent">{tables.escape(error)}.</p>')
        return
    rows = [
        {"figure": one.label or kind_name(one.kind), "predicted": format_value(one.predicted, one.unit),
         "measured": format_value(one.measured, one.unit), "error_share": one.error}
        for one in found
    ]  # fmt: skip
    display.table(pd.DataFrame(rows), "Error: predicted over measured, less one.", right=("predicted", "measured"))

"""What was checked and what ran: schedules, timelines, device memory, locks, overlap."""

from collections.abc import Sequence

import pandas as pd

from cuzklab.analysis import locks, occupancy, overlap, stages, vram
from cuzklab.analysis.case import CHECKED, metrics_of
from cuzklab.analysis.designs import design
from cuzklab.analysis.frames import window
from cuzklab.report import display, figures, schedule, tables
from cuzklab.report.canvas import picture_of
from cuzklab.report.display import badge
from cuzklab.report.naming import label, sentence
from cuzklab.report.postmortem import PostMortem, large
from cuzklab.report.show.words import OUTCOMES, SURE_BY_ORIGIN, metric_name
from cuzklab.trace import Run
from cuzklab.units import percent

# Rows with an extent in time, beyond which a figure of bars shows only a part of the run.
MOST_PLOTTED = 10_000
_WITH_EXTENT = ("spans", "locks", "waits", "kernels", "transfers")


def checks(post: PostMortem) -> None:
    """What the checker covered and found, one row a design and device."""
    runs = [run for run in post.case.runs if run.info.origin in CHECKED]
    if not runs:
        display.markup('<p class="cz-absent">No design was checked.</p>')
        return
    rows = []
    for run in runs:
        conditions = run.info.conditions
        safe = run.info.outcome == "ok"
        rows.append(
            {
                "design": design(run),
                "device_memory_bytes": post.case.limit_bytes(run),
                "workers": conditions.get("workers"),
                "partitions": conditions.get("partitions"),
                "states": conditions.get("states"),
                "all_interleavings": conditions.get("complete"),
                "verdict": badge("safe" if safe else "unsafe", "ok" if safe else "failed"),
                "what": "no defect found" if safe else run.info.explanation or OUTCOMES[run.info.outcome],
            }
        )
    display.table(pd.DataFrame(rows).dropna(axis=1, how="all"), "Partitions are those that each worker proves.",
                  markup=("verdict",))  # fmt: skip


def counterexample(run: Run) -> None:
    """The shortest schedule that leads to a defect: table, timeline, device memory by step, and who waits for whom."""
    display.heading(f"{label(run)}: {OUTCOMES[run.info.outcome]}", badge("proved"))
    if run.info.explanation:
        display.text(sentence(run.info.explanation))
    display.markup(schedule.table(run))
    display.figure(figures.timeline(run))
    waits = schedule.who_waits(run)
    if waits:
        display.markup(
            f'<div class="cz-text"><p>At the end:</p><ul>{"".join(f"<li>{w}</li>" for w in waits)}</ul></div>'
        )
        if run.info.outcome == "deadlock":
            display.figure(schedule.wait_graph(run))
    if len(run.table("vram")):
        display.figure(figures.device_memory(run))


def run(run: Run) -> None:
    """One run: how it ended, its figures, and its timeline."""
    ok = run.info.outcome == "ok"
    ended = badge(OUTCOMES[run.info.outcome], "ok" if ok else "failed")
    display.heading(label(run), f"{badge(SURE_BY_ORIGIN[run.info.origin])} {ended}")
    if run.info.explanation:
        display.text(sentence(run.info.explanation))
    metrics = metrics_of(run)
    if metrics:
        display.markup(
            '<p class="cz-line">'
            + " · ".join(f"{tables.escape(metric_name(one))} <b>{tables.escape(large(one))}</b>" for one in metrics)
            + "</p>"
        )
    timeline(run)


def timeline(run: Run, start_s: float | None = None, end_s: float | None = None) -> None:
    """What every worker, lock and device did over time, with the durations of the stages.

    A large run is a canvas, which shows all of it; a figure of bars would show a window from its middle.
    """
    if start_s is None and end_s is None and sum(len(run.table(name)) for name in _WITH_EXTENT) > MOST_PLOTTED:
        display.canvas(picture_of(run))
    else:
        display.figure(figures.timeline(run, start_s, end_s))
    display.table(stages.stage_times(run), "All executions of each stage.", fold="Table: durations by stage")


def memory(run: Run) -> None:
    """Device memory over time, who holds what at the peak, and what failed to fit."""
    display.figure(figures.device_memory(run))
    failed = vram.failed_requests(run)
    display.table(
        failed.drop(columns=["event", "device"]).assign(time_ns=failed["time_ns"] - _start(run)).head(40),
        "Requests that did not fit. Short: how much more memory it would have taken.",
        headings={"lock_held": "lock held"},
    )
    held = vram.failed_holdings(run) if len(failed) else vram.peak_holdings(run)
    title = "Table: who held what when a request failed" if len(failed) else "Table: who holds what at the peak"
    display.table(held.drop(columns=["event"], errors="ignore"), fold=title)


def lock_table(run: Run) -> None:
    """Contention of each lock, and who waited for whom."""
    if not len(run.table("locks")):
        return
    columns = [
        "lock", "uses", "contended_share", "wait_total_ns", "wait_mean_ns", "wait_max_ns", "hold_mean_ns", "held_share",
        "handoffs",
    ]  # fmt: skip
    display.figure(figures.lock_waits(run))
    display.table(
        locks.contention(run)[columns],
        "Locks. Contended: requests that found it held. Held: part of the run's wall time. "
        "Hand-overs: acquisitions by another worker than the last.",
        headings={"handoffs": "hand-overs"},
    )
    display.table(locks.waited_for(run), fold="Table: who waited for whom")


def device_time(runs: Sequence[Run]) -> None:
    """Where the devices' time goes in each run, with the causes of idle time."""
    display.figure(figures.device_time(runs))
    idle = [occupancy.idle(run).assign(run=label(run)) for run in runs]
    idle = [frame for frame in idle if len(frame)]
    if idle:
        rows = pd.concat(idle, ignore_index=True)
        display.table(
            rows[["run", "device", "cause", "explanation", "pieces", "time_ns", "share"]],
            fold="Table: idle time by cause",
        )


def overlaps(run: Run) -> None:
    """Which CPU stages the device hides, and what runs at the same time as what."""
    hidden = overlap.hidden(run)
    for row in hidden[hidden["stage"] == "b_g2_msm"].itertuples():
        display.text(
            f"In {label(run)}, {percent(row.hidden_fraction)} of the time of b_g2_msm is hidden behind kernels, "
            f"{percent(row.behind_others_fraction)} behind those of another worker; "
            f"{percent(row.exposed_fraction)} is exposed."
        )
    display.figure(figures.what_is_hidden(run))
    display.table(hidden, fold="Table: hidden CPU work")
    display.figure(figures.overlap_map(run))
    display.table(overlap.stage_overlap(run), fold="Table: overlap of stages")


def _start(run: Run) -> int:
    return window(run)[0] if run.info.time_unit == "ns" else 0

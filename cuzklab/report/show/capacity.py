"""The sections of a capacity report: what fits a device, and which of what fits is fastest."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from cuzklab.report import display, figures
from cuzklab.report.figures.fitting import Option
from cuzklab.report.naming import short_size
from cuzklab.report.postmortem import PostMortem, describe
from cuzklab.trace import Run
from cuzklab.units import format_size


def answered(question: str, findings: Sequence, runs: Sequence[Run], here_bytes: int) -> PostMortem:
    """The report's post-mortem: the choice for the device in question comes first."""
    first = [one for one in findings if one.vram_bytes == here_bytes and one.id in ("fastest_feasible", "nothing_fits")]
    ordered = [*first, *(one for one in findings if one not in first)]
    return describe(tuple(runs), question, ordered, first[0].claim if first else "No answer for that device.")


def feasible(options: Sequence[Option], last_bytes: int, marks: Sequence[int]) -> None:
    """Where each design is safe, as a picture and a table."""
    display.figure(figures.feasibility(options, last_bytes, marks))
    rows = [
        {"design": one.policy, "workers": one.workers, "from_bytes": part.from_bytes,
         "to": "any" if part.to_bytes is None or part.to_bytes >= last_bytes else format_size(part.to_bytes + 1),
         "verdict": part.verdict, "why": part.message}
        for one in options for part in one.intervals
    ]  # fmt: skip
    display.table(pd.DataFrame(rows), "Every byte of the range is covered; the check knows no times.",
                  right=("to",), fold="Table: where each design is safe")  # fmt: skip


def choices(frame: pd.DataFrame) -> None:
    """Every option at every card: how fast its simulation is, or that it is not safe; the fastest is marked."""
    fastest = frame.groupby("vram_bytes")["batch_average_s"].min()
    rows = []
    for (policy, workers), part in frame.groupby(["policy", "workers"], sort=False):
        cells = {
            short_size(one.vram_bytes): _cell(one, fastest[one.vram_bytes]) for one in part.itertuples()
        }  # fmt: skip
        rows.append({"design": policy, "workers": workers, **cells})
    cards = [short_size(size) for size in sorted(frame["vram_bytes"].unique())]
    display.table(
        pd.DataFrame(rows)[["design", "workers", *cards]],
        "Seconds a proof (batch average, simulated) on each card; ● the fastest there. Only what is safe on every"
        " interleaving was simulated.",
        right=cards,
    )
    shown = frame.assign(
        batch_average_s_per_proof=frame["batch_average_s"], device_busy_share=frame["kernel_occupancy"]
    )
    columns = ["vram_bytes", "policy", "workers", "verdict", "batch_average_s_per_proof", "peak_vram_bytes",
               "peak_host_bytes", "device_busy_share", "why"]  # fmt: skip
    display.table(
        shown.sort_values(["vram_bytes", "batch_average_s_per_proof"], na_position="last")[columns],
        headings={"vram_bytes": "card", "policy": "design", "batch_average_s_per_proof": "batch average"},
        fold="Table: every choice with its memory, and why it is not safe",
    )


def _cell(one: Any, fastest_s: float) -> str:
    if one.batch_average_s is None or math.isnan(one.batch_average_s):
        return "not safe" if one.verdict == "unsafe" else one.outcome or one.verdict
    return f"{'● ' if one.batch_average_s == fastest_s else ''}{one.batch_average_s:.1f}"

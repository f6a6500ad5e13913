"""The sections of a capacity report: what fits a device, and which of what fits is fastest."""

from collections.abc import Sequence

import pandas as pd

from cuzklab.report import display, figures
from cuzklab.report.figures.fitting import Option
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
    """Every option at every card: safe or not, and how fast a simulation is."""
    shown = frame.assign(batch_average_s_per_proof=frame["batch_average_s"]).drop(
        columns=["batch_average_s", "outcome"]
    )
    columns = ["vram_bytes", "policy", "workers", "verdict", "batch_average_s_per_proof", "peak_vram_bytes",
               "peak_host_bytes", "kernel_occupancy", "why"]  # fmt: skip
    shown = shown.sort_values(["vram_bytes", "batch_average_s_per_proof"], na_position="last")[columns]
    display.table(
        shown.rename(columns={"kernel_occupancy": "device_busy_share"}),
        "Fastest first for each card. Figures are simulated, and only where every interleaving is safe.",
        headings={"vram_bytes": "card", "policy": "design", "batch_average_s_per_proof": "batch average"},
    )

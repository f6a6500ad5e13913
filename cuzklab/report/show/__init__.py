"""The sections of a post-mortem, each a call: what a notebook cell says is what it shows.

Every function displays something and returns nothing. They take runs, or a `PostMortem`; figures have their tables with
them. `attribution`: where time goes; `blocked`: who keeps a device idle; `conclusions`: verdict and findings;
`conditions`: designs, setup, provenance; `runs`: what was checked and what ran; `predictions`: figures of simulations;
`kernels`: benches; `sampled`: stacks of CPU stages; `words`: what things are called. Reports of other kinds have theirs
in a module that is called as `show.capture.NAME`: `capture` (one recording by itself), `capacity` (what fits a
machine), `history` (figures over time), `tuning` (a search).
"""

from cuzklab.report.show import capacity, capture, history, tuning
from cuzklab.report.show.attribution import (
    against_baseline,
    contention,
    critical_path,
    fits,
    lock_orders,
    of_run,
    predicted,
    queues,
    scores,
    stage_comparison,
)
from cuzklab.report.show.blocked import blame
from cuzklab.report.show.conclusions import findings, headline, summary, verdict
from cuzklab.report.show.conditions import program, provenance, setup
from cuzklab.report.show.kernels import conclude_kernels, furthest, roofline, trial
from cuzklab.report.show.predictions import metrics, published
from cuzklab.report.show.runs import checks, counterexample, device_time, lock_table, memory, overlaps, run, timeline
from cuzklab.report.show.sampled import stacks

__all__ = [
    "against_baseline", "blame", "capacity", "capture", "checks", "conclude_kernels", "contention",
    "counterexample", "critical_path", "device_time", "findings", "fits", "furthest", "headline", "history",
    "lock_orders", "lock_table", "memory", "metrics", "of_run", "overlaps", "predicted", "program", "provenance",
    "published", "queues", "roofline", "run", "scores", "setup", "stacks", "stage_comparison", "summary",
    "timeline", "trial", "tuning", "verdict",
]  # fmt: skip

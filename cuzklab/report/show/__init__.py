"""The sections of a post-mortem, each a call: what a notebook cell says is what it shows.

Every function displays something and returns nothing. They take runs, or a `PostMortem`; figures have their tables
with them. `conclusions`: verdict and findings; `conditions`: designs, setup, provenance; `runs`: what was checked and
what ran; `predictions`: figures of simulations; `kernels`: benches; `sampled`: stacks of CPU stages; `capture`: one
recording by itself, called as `show.capture.NAME`; `tuning`: a search, as `show.tuning.NAME`; `words`: what things
are called.
"""

from cuzklab.report.show import capture, tuning
from cuzklab.report.show.conclusions import findings, summary, verdict
from cuzklab.report.show.conditions import program, provenance, setup
from cuzklab.report.show.kernels import conclude_kernels, roofline, trial
from cuzklab.report.show.predictions import metrics, published
from cuzklab.report.show.runs import checks, counterexample, device_time, lock_table, memory, overlaps, run, timeline
from cuzklab.report.show.sampled import stacks

__all__ = [
    "capture", "checks", "conclude_kernels", "counterexample", "device_time", "findings", "lock_table", "memory",
    "metrics", "overlaps", "program", "provenance", "published", "roofline", "run", "setup", "stacks", "summary",
    "timeline", "trial", "tuning", "verdict",
]  # fmt: skip

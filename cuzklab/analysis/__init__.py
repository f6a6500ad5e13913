"""From a trace to tables, from tables to findings, from findings to a verdict.

Tables: `frames` (timeline), `locks`, `vram`, `overlap`, `occupancy`, `stages`, `calls`; each function takes a `Run` and
returns a small tidy frame whose columns carry their units. `intervals` is the exact arithmetic beneath them.
`case` holds the runs of a question, `findings/` one rule a file, `registry` finds them, `verdict` decides. Nothing here
plots, and nothing here knows more than the trace.
"""

from cuzklab.analysis.case import Case
from cuzklab.analysis.model import Finding, Verdict
from cuzklab.analysis.registry import find_all, finding
from cuzklab.analysis.verdict import verdict_json

__all__ = ["Case", "Finding", "Verdict", "find_all", "finding", "verdict", "verdict_json"]

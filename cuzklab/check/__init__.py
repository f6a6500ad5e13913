"""Exhaustive checks of policies: every interleaving, and the shortest schedule to each defect.

`automaton` unfolds programs into nodes (`frames` tells when two histories come to the same), `model` makes states and
moves of them. `search` surveys the states that `reduction` and `symmetry` leave; a large survey goes on in compiled
code (`compiled`, `tables`, `kernel`). `dataflow` says which data a survey must mind. `deadlock` says who waits for
ever, `endings` what is wrong once programs are over, `causes` what is one defect; `shortest` finds the shortest
schedules. `explore` strings these together for any programs, `policy` for the workers of a policy. `findings` holds
what comes out, `words` and `render` say it, `replay` and `counterexample` turn it into a stored run. `promela` writes
the programs for SPIN, an independent judge of the checker in the tests; `mutants`, `mutations`, `judging` and
`survivors` try how much a check would notice.
"""

from cuzklab.check.counterexample import check_run, counterexample_run, outcome_of
from cuzklab.check.explore import explore
from cuzklab.check.findings import CheckResult, Exploration, Finding, Step
from cuzklab.check.policy import check, worker_programs
from cuzklab.check.render import render, render_text, verdict_line
from cuzklab.check.replay import replay

__all__ = [
    "CheckResult",
    "Exploration",
    "Finding",
    "Step",
    "check",
    "check_run",
    "counterexample_run",
    "explore",
    "outcome_of",
    "render",
    "render_text",
    "replay",
    "verdict_line",
    "worker_programs",
]

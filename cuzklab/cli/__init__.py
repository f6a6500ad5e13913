"""The command line: one verb a command, thin. Heavy imports happen inside commands.

`options` holds what several verbs share; `checks` (check), `designs` (simulate, run; `engine` what they share),
`proofs` (setup, prove, verify, circuit), `reports` (report), `benches` (bench) and `stored` (runs) hold the verbs.

Exit status: 0 done, 1 the thing asked about failed (an unsafe design, an invalid proof), 2 bad usage or bad input.
"""

from cuzklab.cli import benches, checks, designs, proofs, reports, stored
from cuzklab.cli.options import app, main

__all__ = ["app", "benches", "checks", "designs", "main", "proofs", "reports", "stored"]

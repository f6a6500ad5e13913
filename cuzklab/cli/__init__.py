"""The command line: one verb a command, thin. Heavy imports happen inside commands.

`options` holds what several verbs share; `designs` (check, run), `simulation` (simulate), `proofs` (setup, prove,
verify, circuit), `reports` (report, bench) and `stored` (runs) hold the verbs.

Exit status: 0 done, 1 the thing asked about failed (an unsafe design, an invalid proof), 2 bad usage or bad input.
"""

from cuzklab.cli import designs, proofs, reports, simulation, stored
from cuzklab.cli.options import app, main

__all__ = ["app", "designs", "main", "proofs", "reports", "simulation", "stored"]

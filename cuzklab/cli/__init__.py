"""The command line: one verb a command, thin. Heavy imports happen inside commands.

`options` holds what several verbs share; the verbs are in `designs` (check, simulate, run), `circuits` (circuit),
`proofs` (setup, prove), `verifying` (verify), `reports` (report, bench), `proof_bench` (bench prove), `stored` (runs).

Exit status: 0 done, 1 the thing asked about failed (an unsafe design, an invalid proof), 2 bad usage or bad input.
"""

from cuzklab.cli import circuits, designs, proof_bench, proofs, reports, stored, verifying
from cuzklab.cli.options import app, main

__all__ = ["app", "circuits", "designs", "main", "proof_bench", "proofs", "reports", "stored", "verifying"]

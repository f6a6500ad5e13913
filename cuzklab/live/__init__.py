"""Runs a policy for real: a thread for every program, real locks, real kernels, real proofs.

`engine` is a whole run (`run_live`), and `result` what it comes to; `place` is where it executes (an emulated device or
a GPU); `circuit` makes what it proves, `stages` binds the names of stages to the prover's functions. `run` holds what
the actors of a run share and watches over them, `actor` does what each effect says, `copies` knows uploads and who
waits for them, `trail` what an actor leaves in the trace, `primitives` are the locks and queues, `device_memory` the
allocations, `board` knows who waits for whom and recognises a deadlock; `instruments` records, `rows` says what a stage
leaves. `footprint` tells the host memory that a run takes, before anything large is made, and `machine_memory` what
there is of it; `asked` makes out what a run is asked for. `data` knows what stages have written. `work` says what a
workload must offer, so that tests can run small programs.
"""

from cuzklab.live.engine import run_live
from cuzklab.live.result import LiveResult
from cuzklab.policies.engine import Failure

__all__ = ["Failure", "LiveResult", "run_live"]

"""Phase 0: one proof after the other, its partitions synthesised together and then proved in turn.

This is what phase 7 replaced. A worker's program is that of phase 7; what differs is how it is fed, which is no part of
a design: run it with one proof in flight (`in_flight = 1`), so that the device idles while the next proof's partitions
are synthesised.
"""

from cuzklab.policies.model import Gpu, Partition, program
from cuzklab.policies.phase7 import prove_partition as of_phase7


@program
def prove_partition(p: Partition, gpu: Gpu):
    yield from of_phase7(p, gpu)

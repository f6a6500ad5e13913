"""Phase 12: the call split in two, so that the worker returns once its kernels have ended.

A finaliser joins the G2 MSM and does the epilogue while the worker is at the kernels of the next partition. a, b and c
are freed before that. A synthesis holds its permit until the partition is in the queue (a synthesis worker of the
engine is such a permit: it waits where the queue is full), and the queue is as long as there are permits, so what is
synthesised ahead is bounded. The rest is phase 9 with the smaller pool for the G2 MSM.
"""

from cuzklab.policies.common import prep
from cuzklab.policies.effects import Compute, Fork, FreeHost, Join
from cuzklab.policies.model import Gpu, Partition, Task, program
from cuzklab.policies.phase9 import kernels


@program
def prove_partition(p: Partition, gpu: Gpu, g2_threads: int = 32):
    prep_thread = yield Fork(prep(p, g2_threads))
    yield from kernels(p, gpu)
    yield FreeHost(p.abc, p)
    return prep_thread


@program
def finish_partition(p: Partition, prep_thread: Task):
    yield Join(prep_thread)
    yield Compute("epilogue", p)


def queue_capacity(lookahead: int, synthesis_workers: int) -> int:
    """One place for each permit at least."""
    return max(lookahead, synthesis_workers)

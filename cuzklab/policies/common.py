"""Steps that several designs share."""

from collections.abc import Generator
from typing import Any

from cuzklab.policies.effects import Compute, Effect, Launch, Notify
from cuzklab.policies.model import Gpu, Partition, program


@program
def prep(p: Partition, g2_threads: int = 0) -> Generator[Effect, Any, None]:
    """The prep thread: classify the scalars, let the sums of ones start, then the G2 MSM on the CPU."""
    yield Compute("prep_msm", p)
    yield Notify(p.barrier)
    yield Compute("b_g2_msm", p, threads=g2_threads)


@program
def sums(p: Partition, gpu: Gpu) -> Generator[Effect, Any, None]:
    """What follows the barrier on the device: sums of ones for each query, then the MSMs over the tails."""
    for query in ("l", "a", "b_g1", "b_g2"):
        yield Launch(gpu, "batch_add", p, query)
    for query in ("l", "a", "b_g1"):
        yield Launch(gpu, "tail_msm", p, query)

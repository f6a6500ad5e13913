"""Phase 11: phase 9, and three interventions against the contention for host memory, each with a switch.

``serial_dealloc``
    a, b and c are freed beside the G2 MSM at the end of a call; one worker at a time.
``g2_threads``
    Threads of the G2 MSM's pool; 0 leaves it all cores. Fewer of them take less from the syntheses.
``throttle``
    A flag is set during each G2 MSM, and no synthesis starts meanwhile. It is one flag for all workers: of two G2 MSMs
    that overlap, the first to end clears it. That costs some effect and nothing else.
"""

from cuzklab.policies.common import prep
from cuzklab.policies.effects import (
    Acquire,
    ClearFlag,
    Compute,
    Fork,
    FreeHost,
    Join,
    Notify,
    PolicyFault,
    Release,
    SetFlag,
    WaitClear,
)
from cuzklab.policies.model import Flag, Gpu, Lock, Partition, program
from cuzklab.policies.phase9 import kernels

THROTTLE, DEALLOC = Flag("throttle"), Lock("dealloc")


@program
def prove_partition(p: Partition, gpu: Gpu, serial_dealloc: bool = True, g2_threads: int = 32, throttle: bool = True):
    prep_thread = yield Fork(throttling_prep(p, g2_threads) if throttle else prep(p, g2_threads), "prep")
    yield from kernels(p, gpu)
    dealloc_thread = yield Fork(dealloc(p, serial_dealloc))
    yield Join(prep_thread)
    yield Compute("epilogue", p)
    yield Join(dealloc_thread)


@program
def throttling_prep(p: Partition, g2_threads: int):
    """As `prep`, with the flag set during the G2 MSM."""
    yield Compute("prep_msm", p)
    yield Notify(p.barrier)
    yield SetFlag(THROTTLE)
    try:
        yield Compute("b_g2_msm", p, threads=g2_threads)
    except PolicyFault:
        yield ClearFlag(THROTTLE)
        raise
    yield ClearFlag(THROTTLE)


@program
def synthesise(p: Partition, throttle: bool):
    """A synthesis that holds back while a G2 MSM runs."""
    if throttle:
        yield WaitClear(THROTTLE)
    yield Compute("synthesis", p)


@program
def dealloc(p: Partition, serial: bool):
    """Free a, b and c, one worker at a time or all at once."""
    if serial:
        yield Acquire(DEALLOC)
    yield FreeHost(p.abc, p)
    if serial:
        yield Release(DEALLOC)

"""Resident memory: the split call of phase 12 with everything kept that used to be given back.

d_a stays on the device from one partition to the next. d_bc comes from the pool and goes back to it, and the pool
keeps what is freed: no trim, no free that waits for the device, no device-wide sync before a call. Synthesis writes a,
b and c directly into pinned buffers, so nothing is pinned for a call. All this under one lock, as in phase 9. The
price: what the pool keeps is of no use for the scratch memory of kernels.
"""

from cuzklab.policies.common import prep, sums
from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    Exchange,
    Fork,
    Free,
    FreeHost,
    Launch,
    Pin,
    RecordEvent,
    Release,
    Unpin,
    Upload,
    Wait,
    WaitEvent,
)
from cuzklab.policies.model import Gpu, Partition, program
from cuzklab.policies.phase12 import finish_partition, queue_capacity

__all__ = ["finish_partition", "prove_partition", "queue_capacity"]


@program
def prove_partition(p: Partition, gpu: Gpu, g2_threads: int = 32):
    upload, resident = p.stream(gpu, "upload"), gpu.slot("d_a")
    prep_thread = yield Fork(prep(p, g2_threads))
    yield Pin(p.abc, pooled=True)

    yield Acquire(gpu.lock)
    d_a = yield Exchange(resident)
    if d_a is None:
        d_a = yield Alloc(gpu, "d_a", p.sizes.d_a)
    d_bc = yield Alloc(gpu, "d_bc", p.sizes.d_bc, p, pooled=True)
    yield Upload(p.abc, (d_a, d_bc), upload, p)
    yield WaitEvent((yield RecordEvent(upload)), p.stream(gpu, "compute"))
    yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
    yield Free(d_bc)
    yield Launch(gpu, "h_msm", p, uses=(d_a,))
    yield Exchange(resident, d_a)
    yield Wait(p.barrier)
    yield from sums(p, gpu)
    yield Release(gpu.lock)

    yield Unpin(p.abc, pooled=True)
    yield FreeHost(p.abc, p)
    return prep_thread

"""Phase 10, reservation: two locks as in the ordered variant, but whoever allocates has reserved the bytes before.

A worker reserves all the device memory that it will ever use at a time, before it takes a lock, and gives the
reservation back when it has freed everything. The reservation is a counted resource: whoever gets one can stage, and
its allocations cannot fail; whoever gets none waits while it holds nothing that another needs. So there is no query and
no way back to an allocation inside `compute`. On a card with room for one partition the workers go one by one, as with
one lock; where two fit, one uploads while the other computes.
"""

from cuzklab.policies.common import prep, sums
from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    Compute,
    Fork,
    Free,
    Join,
    Launch,
    Pin,
    RecordEvent,
    Release,
    Reserve,
    TrimPool,
    Unpin,
    Unreserve,
    Upload,
    Wait,
    WaitEvent,
)
from cuzklab.policies.model import Gpu, Partition, program


@program
def prove_partition(p: Partition, gpu: Gpu):
    mem, compute = gpu.mutex("mem"), gpu.mutex("compute")
    upload = p.stream(gpu, "upload")
    # d_bc is free again before any stage takes scratch memory.
    peak_bytes = max(p.staged_bytes, p.sizes.d_a + max(p.sizes.scratch.values()))
    prep_thread = yield Fork(prep(p))
    yield Pin(p.abc)

    yield Reserve(gpu, peak_bytes)
    yield Acquire(mem)
    yield TrimPool(gpu)
    d_a = yield Alloc(gpu, "d_a", p.sizes.d_a, p, pooled=True)
    d_bc = yield Alloc(gpu, "d_bc", p.sizes.d_bc, p)
    yield Upload(p.abc, (d_a, d_bc), upload, p)
    yield WaitEvent((yield RecordEvent(upload)), p.stream(gpu, "compute"))
    yield Release(mem)

    yield Acquire(compute)
    yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
    yield Free(d_bc)
    yield Launch(gpu, "h_msm", p, uses=(d_a,))
    yield Free(d_a)
    yield Wait(p.barrier)
    yield from sums(p, gpu)
    yield Unreserve(gpu, peak_bytes)
    yield Release(compute)

    yield Unpin(p.abc)
    yield Join(prep_thread)
    yield Compute("epilogue", p)

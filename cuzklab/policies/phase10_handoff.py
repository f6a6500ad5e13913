"""Phase 10, hand-off: a worker does not free its device memory; its successor does, at its own start.

So no call that waits for the whole device is made inside `compute`. A worker leaves its buffers in two slots of the
device, where the next to enter `mem` finds and frees them. With ``leave="at_start"`` they are left there as soon as
they are allocated, on the belief that a successor starts when its predecessor has ended; nothing ensures that. With
``leave="after_kernels"`` they are left when their owner needs them no more; then a successor that starts earlier finds
nothing to free. The last worker's buffers stay for ever.
"""

from typing import Literal

from cuzklab.policies.common import prep, sums
from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    Compute,
    Exchange,
    Fork,
    Free,
    Join,
    Launch,
    OnFull,
    Pin,
    RecordEvent,
    Release,
    TrimPool,
    Unpin,
    Upload,
    Wait,
    WaitEvent,
)
from cuzklab.policies.model import Gpu, Partition, program


@program
def prove_partition(
    p: Partition, gpu: Gpu, leave: Literal["at_start", "after_kernels"] = "at_start", on_full: OnFull = "fail"
):
    mem, compute = gpu.mutex("mem"), gpu.mutex("compute")
    upload = p.stream(gpu, "upload")
    prep_thread = yield Fork(prep(p))
    yield Pin(p.abc)

    yield Acquire(mem)
    yield from replace(gpu)
    yield TrimPool(gpu)
    d_a = yield Alloc(gpu, "d_a", p.sizes.d_a, p, on_full, pooled=True)
    d_bc = yield Alloc(gpu, "d_bc", p.sizes.d_bc, p, on_full)
    yield Upload(p.abc, (d_a, d_bc), upload, p)
    yield WaitEvent((yield RecordEvent(upload)), p.stream(gpu, "compute"))
    if leave == "at_start":
        yield from replace(gpu, d_a, d_bc)
    yield Release(mem)

    yield Acquire(compute)
    yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
    yield Launch(gpu, "h_msm", p, uses=(d_a,))
    yield Wait(p.barrier)
    yield from sums(p, gpu)
    if leave != "at_start":
        yield from replace(gpu, d_a, d_bc)
    yield Release(compute)

    yield Unpin(p.abc)
    yield Join(prep_thread)
    yield Compute("epilogue", p)


@program
def replace(gpu: Gpu, *buffers):
    """Leave buffers, or nothing, and free those that were left there before."""
    for name, buffer in zip(("d_a", "d_bc"), buffers or (None, None), strict=True):
        left = yield Exchange(gpu.slot(name), buffer)
        if left is not None:
            yield Free(left, device_wide=True)

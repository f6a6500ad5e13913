"""Phase 10, ordered, as it was built: the lock split in two that are never nested.

`mem` guards the device's memory (trim, allocate, upload), `compute` its kernels, so that one of three or four workers
can upload while another computes. If the query shows too little memory, the worker allocates inside `compute`
instead. Nothing makes the order of `compute` follow the order of `mem`.
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
    OnFull,
    Pin,
    QueryFree,
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
def prove_partition(p: Partition, gpu: Gpu, on_full: OnFull = "fail"):
    mem, compute = gpu.mutex("mem"), gpu.mutex("compute")
    prep_thread = yield Fork(prep(p))
    yield Pin(p.abc)

    yield Acquire(mem)
    yield TrimPool(gpu)
    staged = (yield QueryFree(gpu)) >= p.staged_bytes + gpu.margin_bytes
    if staged:
        d_a, d_bc = yield from stage(p, gpu, on_full)
    yield Release(mem)

    yield Acquire(compute)
    if not staged:
        d_a, d_bc = yield from stage(p, gpu, on_full)
    yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
    yield Free(d_bc, device_wide=True)
    yield Launch(gpu, "h_msm", p, uses=(d_a,))
    yield Free(d_a)
    yield Wait(p.barrier)
    yield from sums(p, gpu)
    yield Release(compute)

    yield Unpin(p.abc)
    yield Join(prep_thread)
    yield Compute("epilogue", p)


@program
def stage(p: Partition, gpu: Gpu, on_full: OnFull):
    """Allocate d_a and d_bc and fill them asynchronously; the partition's kernels wait for the copy."""
    upload = p.stream(gpu, "upload")
    d_a = yield Alloc(gpu, "d_a", p.sizes.d_a, p, on_full, pooled=True)
    d_bc = yield Alloc(gpu, "d_bc", p.sizes.d_bc, p, on_full, device_wide=True)
    yield Upload(p.abc, (d_a, d_bc), upload, p)
    yield WaitEvent((yield RecordEvent(upload)), p.stream(gpu, "compute"))
    return d_a, d_bc

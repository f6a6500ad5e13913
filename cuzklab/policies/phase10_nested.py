"""Phase 10, nested: `compute` first, and `mem` inside it whenever the device's memory changes.

A worker allocates and uploads under `mem` alone and computes under `compute`; the free of d_bc takes `mem` inside
`compute`. With allocation that waits, a worker that holds `mem` until memory is free and a worker that holds
`compute` and wants `mem` to free it wait for each other.
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
    upload = p.stream(gpu, "upload")
    prep_thread = yield Fork(prep(p))
    yield Pin(p.abc)

    yield Acquire(mem)
    yield TrimPool(gpu)
    d_a = yield Alloc(gpu, "d_a", p.sizes.d_a, p, on_full, pooled=True)
    d_bc = yield Alloc(gpu, "d_bc", p.sizes.d_bc, p, on_full)
    yield Upload(p.abc, (d_a, d_bc), upload, p)
    yield WaitEvent((yield RecordEvent(upload)), p.stream(gpu, "compute"))
    yield Release(mem)

    yield Acquire(compute)
    yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
    yield Acquire(mem)
    yield Free(d_bc)
    yield Release(mem)
    yield Launch(gpu, "h_msm", p, uses=(d_a,))
    yield Free(d_a)
    yield Wait(p.barrier)
    yield from sums(p, gpu)
    yield Release(compute)

    yield Unpin(p.abc)
    yield Join(prep_thread)
    yield Compute("epilogue", p)

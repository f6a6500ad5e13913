"""Phase 9: pinned pre-staging inside the one lock, released before the G2 MSM is joined.

a, b and c are pinned before the lock. Inside it the pool is trimmed and free memory queried; if it suffices, d_a and
d_bc are allocated and filled asynchronously on an upload stream while kernels wait on events. Both live through the
H-MSM. The lock is given back before the G2 MSM is joined, so that MSM overlaps the next worker's kernels.
"""

from cuzklab.policies.common import prep, sums
from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    Compute,
    DeviceSync,
    Fork,
    Free,
    Join,
    Launch,
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
def prove_partition(p: Partition, gpu: Gpu):
    prep_thread = yield Fork(prep(p))
    yield from kernels(p, gpu)
    yield Join(prep_thread)
    yield Compute("epilogue", p)


@program
def kernels(p: Partition, gpu: Gpu):
    """The part on the device, from pinning to unpinning; the lock is held for most of it."""
    upload, compute = p.stream(gpu, "upload"), p.stream(gpu, "compute")
    yield Pin(p.abc)
    yield Acquire(gpu.lock)
    yield DeviceSync(gpu)
    yield TrimPool(gpu)
    staged = (yield QueryFree(gpu)) >= p.staged_bytes + gpu.margin_bytes
    d_a = yield Alloc(gpu, "d_a", p.sizes.d_a, p, pooled=True)
    d_bc = yield Alloc(gpu, "d_bc", p.sizes.d_bc, p, device_wide=True)
    yield Upload(p.abc, (d_a, d_bc), upload if staged else compute, p)
    if staged:
        yield WaitEvent((yield RecordEvent(upload)), compute)
    yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
    if not staged:
        yield Free(d_bc, device_wide=True)
    yield Launch(gpu, "h_msm", p, uses=(d_a,))
    if staged:
        yield Free(d_bc, device_wide=True)
    yield Free(d_a)
    yield Wait(p.barrier)
    yield from sums(p, gpu)
    yield Release(gpu.lock)
    yield Unpin(p.abc)

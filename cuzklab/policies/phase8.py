"""Phase 8: one lock a device, narrowed to the CUDA region.

Two workers share the device. CPU preparation and the G2 MSM of one overlap the kernels of the other. a, b and c are
copied from pageable memory inside the lock, so the device idles while they cross.
"""

from cuzklab.policies.common import prep, sums
from cuzklab.policies.effects import Acquire, Alloc, Compute, Fork, Free, Join, Launch, Release, Upload, Wait
from cuzklab.policies.model import Gpu, Partition, program


@program
def prove_partition(p: Partition, gpu: Gpu):
    prep_thread = yield Fork(prep(p))
    yield Acquire(gpu.lock)
    d_a = yield Alloc(gpu, "d_a", p.sizes.d_a, p, pooled=True)
    d_bc = yield Alloc(gpu, "d_bc", p.sizes.d_bc, p, device_wide=True)
    yield Upload(p.abc, (d_a, d_bc), p.stream(gpu, "compute"), p)
    yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
    yield Free(d_bc, device_wide=True)
    yield Launch(gpu, "h_msm", p, uses=(d_a,))
    yield Free(d_a)
    yield Wait(p.barrier)
    yield from sums(p, gpu)
    yield Release(gpu.lock)
    yield Join(prep_thread)
    yield Compute("epilogue", p)

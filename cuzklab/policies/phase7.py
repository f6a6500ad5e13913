"""Phase 7: one queue of partitions from many proofs, one GPU worker, and a lock around its whole call.

The lock was there before the queue and spans everything: classification of scalars, copies from pageable memory,
kernels, the G2 MSM on the CPU, the epilogue. It is simple and safe, and the device idles while the CPU works: a second
worker would only wait. Meant for one worker a device. Host memory is given back in the background, after the call.
"""

from cuzklab.policies.common import prep, sums
from cuzklab.policies.effects import Acquire, Alloc, Compute, Fork, Free, Join, Launch, Release, Upload, Wait
from cuzklab.policies.model import Gpu, Partition, program


@program
def prove_partition(p: Partition, gpu: Gpu):
    yield Acquire(gpu.lock)
    prep_thread = yield Fork(prep(p))
    d_a = yield Alloc(gpu, "d_a", p.sizes.d_a, p, pooled=True)
    d_bc = yield Alloc(gpu, "d_bc", p.sizes.d_bc, p, device_wide=True)
    yield Upload(p.abc, (d_a, d_bc), p.stream(gpu, "compute"), p)
    yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
    yield Free(d_bc, device_wide=True)
    yield Launch(gpu, "h_msm", p, uses=(d_a,))
    yield Free(d_a)
    yield Wait(p.barrier)
    yield from sums(p, gpu)
    yield Join(prep_thread)
    yield Compute("epilogue", p)
    yield Release(gpu.lock)

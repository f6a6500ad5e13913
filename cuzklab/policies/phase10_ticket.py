"""Phase 10, ticket: the ordered variant, with the order of `mem` made the order of `compute`.

Whoever leaves `mem` takes a ticket, and `compute` is entered in the order of tickets. So nobody who staged later can
compute first. It cures the overtaking of the ordered variant and not its cause: a worker that found too little memory
allocates in its turn, and by then somebody with a later ticket may have staged what it needs.
"""

from cuzklab.policies.common import prep, sums
from cuzklab.policies.effects import (
    Acquire,
    Compute,
    Exchange,
    Fork,
    Free,
    Join,
    Launch,
    Notify,
    OnFull,
    Pin,
    PolicyFault,
    QueryFree,
    Release,
    TrimPool,
    Unpin,
    Wait,
)
from cuzklab.policies.model import Gpu, Partition, Semaphore, program
from cuzklab.policies.phase10_ordered import stage


@program
def prove_partition(p: Partition, gpu: Gpu, on_full: OnFull = "fail"):
    mem, next_ticket = gpu.mutex("mem"), gpu.slot("ticket")
    prep_thread = yield Fork(prep(p))
    yield Pin(p.abc)

    yield Acquire(mem)
    yield TrimPool(gpu)
    staged = (yield QueryFree(gpu)) >= p.staged_bytes + gpu.margin_bytes
    buffers = (yield from stage(p, gpu, on_full)) if staged else ()
    ticket = (yield Exchange(next_ticket)) or 0
    yield Exchange(next_ticket, ticket + 1)
    yield Release(mem)

    my_turn = False
    try:
        yield Wait(turn(gpu, ticket))
        my_turn = True
        yield from compute(p, gpu, buffers, on_full)
    except PolicyFault:  # the turn passes on all the same, or everybody behind would wait for ever
        if not my_turn:
            yield Wait(turn(gpu, ticket))
        yield Notify(turn(gpu, ticket + 1))
        raise
    yield Notify(turn(gpu, ticket + 1))

    yield Unpin(p.abc)
    yield Join(prep_thread)
    yield Compute("epilogue", p)


@program
def compute(p: Partition, gpu: Gpu, buffers: tuple, on_full: OnFull):
    """The kernels, by whoever's turn it is."""
    d_a, d_bc = buffers or (yield from stage(p, gpu, on_full))
    yield Launch(gpu, "ntt_h", p, uses=(d_a, d_bc))
    yield Free(d_bc, device_wide=True)
    yield Launch(gpu, "h_msm", p, uses=(d_a,))
    yield Free(d_a)
    yield Wait(p.barrier)
    yield from sums(p, gpu)


def turn(gpu: Gpu, ticket: int) -> Semaphore:
    """Notified when the tickets before this one are done."""
    return Semaphore(f"gpu{gpu.index}.turn{ticket}", initial=1 if ticket == 0 else 0)

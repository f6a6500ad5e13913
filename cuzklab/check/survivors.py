"""Why a mutant that the checker passes is harmless: what is different about it, since nothing is wrong.

The effect says what its being there, or its place, is worth: that table was reviewed, and a survivor that no row speaks
of has no reason. Beside it stands what is derived: which effects a lock spans now, and what device memory a call takes.
"""

from cuzklab.check.judging import Facts
from cuzklab.check.mutants import Mutation
from cuzklab.units import format_size

# By the name of an effect that was dropped.
DROPPED = {
    "DeviceSync": "a call that waits for the idle device follows before anything depends on it",
    "TrimPool": "what the pool keeps is not missed at this size of memory",
    "Pin": "pinned memory only makes the copy fast",
    "Unpin": "pooled memory stays pinned in any case; it goes back to the pool later",
    "WaitEvent": "another wait for the same stream stands before the first use",
    "FreeHost": "host memory is freed when the partition has its outcome: more of it at a time",
    "Join": "nothing comes after it that the thread makes; the call returns before the thread has ended",
    "SetFlag": "the throttle throttles nobody: syntheses compete with the G2 MSM",
    "WaitClear": "a synthesis begins during a G2 MSM: only slower",
}
# By the name of an effect that comes at another time, with nothing measurable changed.
MOVED = {
    "Compute": "a CPU stage at another moment, with its data there: only timing",
    "Launch": "a kernel at another moment, with its data there: only timing",
    "Upload": "the copy is queued at another moment and done before its first use: only timing",
    "WaitEvent": "the stream waits from another moment on, before the first use",
    "DeviceSync": "the device is waited for at another moment, and nothing in between relied on it",
    "TrimPool": "the pool is trimmed at another moment; memory suffices before and after",
    "Pin": "pages are locked at another moment",
    "Unpin": "pages are unlocked at another moment, with no copy from them under way",
    "Free": "memory is given back at another moment, after its last use",
    "FreeHost": "host memory is given back at another moment, after the copy",
    "Join": "the thread is waited for at another moment, before anything needs what it makes",
    "Wait": "the permit is taken at another moment, before the sums that need it",
    "Notify": "the permit is given at another moment, when what it stands for is there",
    "Acquire": "the lock is taken at another moment; it spans all that it must",
    "Release": "the lock is given back at another moment; it spans all that it must",
    "Reserve": "bytes are promised at another moment, before they are allocated",
    "Unreserve": "the promise is taken back at another moment, after the memory was freed",
    "SetFlag": "the throttle is on for another while: only timing",
    "ClearFlag": "the throttle is on for another while: only timing",
    "WaitClear": "the synthesis looks at the throttle at another moment: only timing",
}


def reason_of(mutation: Mutation, before: Facts, after: Facts, vram_bytes: int) -> str:
    """In words, why a mutant that was passed is harmless; empty where no reason is on record.

    Then either the checker has missed something or the table has, and whoever asks must say so.
    """
    changes: list[str] = []
    longer = sorted(f"{effect} under {lock}" for lock, effect in after.under_locks - before.under_locks)
    shorter = sorted(f"{effect} no longer under {lock}" for lock, effect in before.under_locks - after.under_locks)
    if longer or shorter:
        shown = [*longer, *shorter]
        more = f" and {len(shown) - 2} more" if len(shown) > 2 else ""
        changes.append(f"a lock spans other steps ({', '.join(shown[:2])}{more}), all of them safe there: only timing")
    if after.peak_bytes != before.peak_bytes:
        changes.append(
            f"peak memory {format_size(after.peak_bytes)} instead of {format_size(before.peak_bytes)}, within "
            f"{format_size(vram_bytes)}"
        )
    if after.from_pageable and not before.from_pageable:
        changes.append("the copy is made from pageable memory: slower, and the call waits for its end")
    name = mutation.effect.partition(" ")[0]
    table = DROPPED if mutation.kind == "drop" else MOVED
    if name not in table:
        return ""
    return "; ".join([table[name], *changes])

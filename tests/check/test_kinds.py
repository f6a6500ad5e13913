"""Each kind of defect as a small program, found with its shortest schedule; and its repaired twin, proved clean."""

import pytest

from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    ClearFlag,
    Compute,
    Fork,
    Free,
    FreeHost,
    Get,
    Join,
    Launch,
    Notify,
    Pin,
    Put,
    ReadFlag,
    RecordEvent,
    Release,
    Reserve,
    SetFlag,
    Unpin,
    Unreserve,
    Upload,
    Wait,
    WaitEvent,
)
from cuzklab.policies.model import Gpu, Lock, Queue, Semaphore, program
from tests.check.programs import FLAG, GPU, LOCKS, PARTITION, SEMAPHORE, kinds, plain, run, steps

RED, BLUE = LOCKS
OTHER_GPU = Gpu(1, vram_bytes=10, margin_bytes=0)


@program
def nest(first: Lock, second: Lock):
    yield Acquire(first)
    yield Acquire(second)
    yield Release(second)
    yield Release(first)


@program
def borrow(size: int, on_full: str = "fail", give_back: bool = True):
    """Allocate, use, free."""
    buffer = yield Alloc(GPU, "buffer", size, on_full=on_full)
    yield Launch(GPU, "stage without scratch", PARTITION, uses=(buffer,))
    if give_back:
        yield Free(buffer)


@program
def borrow_twice(on_full: str):
    first = yield Alloc(GPU, "first", 4, on_full=on_full)
    second = yield Alloc(GPU, "second", 4, on_full=on_full)
    yield Free(second)
    yield Free(first)


@program
def borrow_reserved():
    """The repair of `borrow_twice`: promise both before taking one."""
    yield Reserve(GPU, 8)
    yield from borrow_twice("fail")
    yield Unreserve(GPU, 8)


@program
def check_then_wait():
    """Look, then sleep: what is set and rung in between is missed by the look and kept by the bell."""
    if not (yield ReadFlag(FLAG)):
        yield Wait(SEMAPHORE)


@program
def set_then_clear():
    yield SetFlag(FLAG)
    yield ClearFlag(FLAG)


@program
def outlived(joined: bool):
    """The call frees what its helper still uses, unless it joins the helper first."""
    buffer = yield Alloc(GPU, "d_a", 4)
    helper = yield Fork(plain(Launch(GPU, "late", PARTITION, uses=(buffer,))), "helper")
    if joined:
        yield Join(helper)
    yield Free(buffer)
    if not joined:
        yield Join(helper)


@program
def free_twice(times: int):
    buffer = yield Alloc(GPU, "d_a", 4)
    for _ in range(times):
        yield Free(buffer)


@program
def put_all(queue: Queue, items: int, permits: Semaphore | None = None):
    for item in range(items):
        if permits is not None:
            yield Wait(permits)
        yield Put(queue, item)


@program
def get_all(queue: Queue, items: int, permits: Semaphore | None = None):
    for _ in range(items):
        yield Get(queue)
        if permits is not None:
            yield Notify(permits)


@program
def upload_on(gpu: Gpu):
    buffer = yield Alloc(GPU, "d_a", 4)
    yield Upload(PARTITION.abc, (buffer,), PARTITION.stream(gpu, "upload"), PARTITION)
    yield Free(buffer)


STREAM, COMPUTE = PARTITION.stream(GPU, "upload"), PARTITION.stream(GPU, "compute")


@program
def staged(*end: str, joined: bool = False):
    """Stage from pinned memory and go on at once, or (`joined`) once the copy is done; then do what is asked for."""
    yield Pin(PARTITION.abc)
    buffer = yield Alloc(GPU, "d_a", 4)
    yield Upload(PARTITION.abc, (buffer,), STREAM, PARTITION)
    event = yield RecordEvent(STREAM)
    if joined:
        yield WaitEvent(event)
    for what in end:
        match what:
            case "free":
                yield Free(buffer)
            case "free by cudaFree":
                yield Free(buffer, device_wide=True)
            case "unpin":
                yield Unpin(PARTITION.abc)
            case "free host":
                yield FreeHost(PARTITION.abc, PARTITION)
            case "wait on the stream":
                yield WaitEvent(event, COMPUTE)
            case "launch":
                yield Launch(GPU, "stage without scratch", PARTITION, uses=(buffer,))


@program
def lend(box: Queue):
    """Hand a buffer to a peer, and use it all the same."""
    buffer = yield Alloc(GPU, "d_a", 4)
    yield Put(box, buffer)
    yield Launch(GPU, "stage without scratch", PARTITION, uses=(buffer,))
    yield Notify(SEMAPHORE)


@program
def free_lent(box: Queue, wait: bool):
    buffer = yield Get(box)
    if wait:
        yield Wait(SEMAPHORE)
    yield Free(buffer)


@program
def worker_on(used: Gpu, own: Gpu):
    """All device work on one device, memory and mutex on the worker's own."""
    yield Acquire(own.lock)
    buffer = yield Alloc(own, "d_a", 4)
    yield Upload(PARTITION.abc, (buffer,), PARTITION.stream(used, "upload"), PARTITION)
    yield Free(buffer, device_wide=True)
    yield Release(own.lock)


@program
def synthesise(queue: Queue, items: int, permits: Semaphore, after_the_send: bool):
    """Each item needs a permit; it is given back before the send, or by whoever receives it."""
    for item in range(items):
        yield Wait(permits)
        yield Compute("stage", PARTITION)
        if not after_the_send:
            yield Notify(permits)
        yield Put(queue, item)


LENT = Queue("lent", 1)
UNBOUNDED, PERMITS = Queue("results"), Semaphore("permits", 16)
DEFECTS = {
    "lock order": ("lock_order_deadlock", {"a": nest(RED, BLUE), "b": nest(BLUE, RED)}, 2),
    "lock taken twice": ("lock_order_deadlock", {"a": plain(Acquire(RED), Acquire(RED))}, 1),
    "capacity": ("capacity_deadlock", {"a": borrow_twice("wait"), "b": borrow_twice("wait"), "c": borrow(1)}, None),
    "capacity by reservations": (
        "capacity_deadlock",
        {name: plain(Reserve(GPU, 4), Reserve(GPU, 4), Unreserve(GPU, 4), Unreserve(GPU, 4)) for name in "abc"},
        2,
    ),
    "bytes and a lock": (
        "capacity_deadlock",
        {"a": plain(Acquire(RED), Reserve(GPU, 6), Unreserve(GPU, 6), Release(RED)),
         "b": plain(Reserve(GPU, 6), Acquire(RED), Release(RED), Unreserve(GPU, 6))},
        2,
    ),
    "memory runs out": ("oom", {"a": borrow(6), "b": borrow(6)}, 2),
    "scratch runs out": ("oom", {"a": borrow(8), "b": plain(Launch(GPU, "stage", PARTITION))}, 2),
    "memory never suffices": ("request_above_capacity", {"a": borrow(11, "wait")}, 1),
    "reservation never suffices": ("request_above_capacity", {"a": plain(Reserve(GPU, 11))}, 1),
    "nobody rings": ("lost_wakeup", {"a": check_then_wait(), "b": set_then_clear()}, 1),
    "empty queue": ("lost_wakeup", {"a": get_all(UNBOUNDED, 2), "b": put_all(UNBOUNDED, 1)}, 2),
    "use after free": ("use_after_free", {"a": outlived(joined=False)}, 4),
    "double free": ("double_free", {"a": free_twice(2)}, 3),
    "release by another": ("release_by_non_owner", {"a": nest(RED, BLUE), "b": plain(Release(RED))}, 1),
    "reservation of another": ("release_by_non_owner", {"a": plain(Reserve(GPU, 2), Unreserve(GPU, 3))}, 2),
    "wrong device": ("wrong_device", {"a": upload_on(OTHER_GPU)}, 2),
    "memory left": ("leak", {"a": borrow(6, give_back=False)}, 3),
    "lock left": ("leak", {"a": plain(Acquire(RED))}, 1),
    "lock left to a waiter": ("leak", {"a": plain(Acquire(RED)), "b": plain(Acquire(RED), Release(RED))}, 1),
    "pin left": ("leak", {"a": plain(Pin(PARTITION.abc))}, 1),
    "reservation left": ("leak", {"a": plain(Reserve(GPU, 2))}, 1),
    "freed under a copy": ("use_after_free", {"a": staged("free", "unpin")}, 5),
    "read before it is copied": ("use_after_free", {"a": staged("launch", "free by cudaFree", "unpin")}, 5),
    "host memory freed under a copy": (
        "use_after_free", {"a": staged("free host", "free by cudaFree", "unpin")}, 5,
    ),
    "unpinned under a copy": ("use_after_free", {"a": staged("unpin", "free by cudaFree")}, 5),
    "a peer frees what another uses": ("use_after_free", {"a": lend(LENT), "b": free_lent(LENT, wait=False)}, 5),
    "always the first device": (
        "wrong_device", {"a": worker_on(GPU, GPU), "b": worker_on(GPU, OTHER_GPU)}, 3,
    ),
    "permit released before the send": (
        "unbounded_queue",
        {"a": synthesise(UNBOUNDED, 20, PERMITS, after_the_send=False), "b": get_all(UNBOUNDED, 20)},
        17 * 4,
    ),
    "queue grows": ("unbounded_queue", {"a": put_all(UNBOUNDED, 20), "b": get_all(UNBOUNDED, 20)}, 17),
}  # fmt: skip
REPAIRED = {
    "lock order": {"a": nest(RED, BLUE), "b": nest(RED, BLUE)},
    "lock taken twice": {"a": plain(Acquire(RED), Release(RED), Acquire(RED), Release(RED))},
    "capacity": {"a": borrow_reserved(), "b": borrow_reserved(), "c": borrow(1)},
    "bytes and a lock": {
        "a": plain(Acquire(RED), Reserve(GPU, 6), Unreserve(GPU, 6), Release(RED)),
        "b": plain(Acquire(RED), Reserve(GPU, 6), Unreserve(GPU, 6), Release(RED)),
    },
    "memory runs out": {"a": borrow(6, "wait"), "b": borrow(6, "wait")},
    "memory never suffices": {"a": borrow(10, "wait")},
    "nobody rings": {"a": plain(Wait(SEMAPHORE)), "b": plain(Compute("stage", PARTITION), Notify(SEMAPHORE))},
    "use after free": {"a": outlived(joined=True)},
    "double free": {"a": free_twice(1)},
    "wrong device": {"a": upload_on(GPU)},
    "memory left": {"a": borrow(6)},
    "pin left": {"a": plain(Pin(PARTITION.abc), Unpin(PARTITION.abc))},
    "freed under a copy": {"a": staged("free", "unpin", joined=True)},
    "freed under a copy, by cudaFree": {"a": staged("free by cudaFree", "unpin")},
    "read before it is copied": {"a": staged("wait on the stream", "launch", "free", "unpin")},
    "host memory freed under a copy": {"a": staged("free host", "free", "unpin", joined=True)},
    "unpinned under a copy": {"a": staged("unpin", "free", joined=True)},
    "a peer frees what another uses": {"a": lend(LENT), "b": free_lent(LENT, wait=True)},
    "always the first device": {"a": worker_on(GPU, GPU), "b": worker_on(OTHER_GPU, OTHER_GPU)},
    "permit released before the send": {
        "a": synthesise(UNBOUNDED, 20, PERMITS, after_the_send=True),
        "b": get_all(UNBOUNDED, 20, PERMITS),
    },
    "release by another": {"a": nest(RED, BLUE), "b": nest(RED, BLUE)},
    "reservation of another": {"a": plain(Reserve(GPU, 2), Unreserve(GPU, 2))},
    "capacity by reservations": {name: plain(Reserve(GPU, 8), Unreserve(GPU, 8)) for name in "abc"},
    "scratch runs out": {"a": borrow(7), "b": plain(Launch(GPU, "stage", PARTITION))},
    "reservation never suffices": {"a": plain(Reserve(GPU, 10), Unreserve(GPU, 10))},
    "empty queue": {"a": get_all(UNBOUNDED, 2), "b": put_all(UNBOUNDED, 2)},
    "lock left": {"a": plain(Acquire(RED), Release(RED))},
    "lock left to a waiter": {name: plain(Acquire(RED), Release(RED)) for name in "ab"},
    "reservation left": {"a": plain(Reserve(GPU, 2), Unreserve(GPU, 2))},
    "queue grows": {"a": put_all(UNBOUNDED, 20, PERMITS), "b": get_all(UNBOUNDED, 20, PERMITS)},
}


def test_every_defect_has_a_repaired_twin():
    assert set(DEFECTS) <= set(REPAIRED)


@pytest.mark.parametrize("name", DEFECTS)
def test_defect_is_found_with_its_shortest_schedule(name):
    kind, programs, length = DEFECTS[name]
    found = run(**programs)
    assert found.complete and found.verdict == "unsafe"
    of_kind = [finding for finding in found.findings if finding.kind == kind]
    assert of_kind and all(finding.shortest for finding in found.findings)
    if length is not None:
        assert min(len(finding.schedule) for finding in of_kind) == length


@pytest.mark.parametrize("name", REPAIRED)
def test_repaired_twin_is_proved_clean(name):
    found = run(**REPAIRED[name])
    assert (found.verdict, found.findings, found.complete, found.outcomes) == ("safe", (), True, {"ok"})


def test_lock_order_deadlock_names_both_sides():
    (finding,) = run(a=nest(RED, BLUE), b=nest(BLUE, RED)).findings
    assert sorted(steps(finding)) == ["a: Acquire red", "b: Acquire blue"]
    graph = {wait.actor: (wait.kind, wait.on, [(h.actor, h.held) for h in wait.holders]) for wait in finding.wait_for}
    assert graph == {"a": ("lock", "blue", [("b", "blue")]), "b": ("lock", "red", [("a", "red")])}


def test_capacity_deadlock_says_who_holds_how_much():
    found = run(a=borrow_twice("wait"), b=borrow_twice("wait"), c=plain(Compute("stage", PARTITION)))
    (finding,) = found.findings
    assert finding.kind == "capacity_deadlock"
    # 4 + 4 of 10 are live, both want 4 more; c is not needed for it.
    assert sorted(steps(finding)) == ["a: Alloc gpu0 first 4 B", "b: Alloc gpu0 first 4 B"]
    assert {(w.actor, w.kind, w.wanted_bytes, w.free_bytes) for w in finding.wait_for} == {
        ("a", "memory", 4, 2), ("b", "memory", 4, 2),
    }  # fmt: skip
    assert {(h.actor, h.held, h.held_bytes) for h in finding.wait_for[0].holders} == {
        ("a", "first", 4), ("b", "first", 4),
    }  # fmt: skip


def test_a_deadlock_shows_as_soon_as_nobody_can_resolve_it():
    # c could go on for a long time, but neither takes nor gives anything that a and b wait for.
    busy = plain(*[Compute("stage", PARTITION)] * 9)
    (finding,) = run(a=nest(RED, BLUE), b=nest(BLUE, RED), c=busy).findings
    assert len(finding.schedule) == 2


def test_a_bystander_that_may_give_memory_back_must_be_stuck_too():
    # c holds 2 of 10 B; until it has freed them, a and b may still be helped.
    found = run(a=borrow_twice("wait"), b=borrow_twice("wait"), c=borrow(2))
    capacity = [finding for finding in found.findings if finding.kind == "capacity_deadlock"]
    assert [len(finding.schedule) for finding in capacity] == [2 + 4]  # alloc, launch start and end, free


def test_out_of_memory_that_is_caught_is_no_finding():
    from cuzklab.policies.effects import OutOfDeviceMemory

    @program
    def modest():
        try:
            buffer = yield Alloc(GPU, "large", 11)
        except OutOfDeviceMemory:
            buffer = yield Alloc(GPU, "small", 1)
        yield Free(buffer)

    found = run(a=modest())
    assert (found.verdict, [line.split(" @")[0] for line in found.caught]) == ("safe", ["Alloc gpu0 large 11 B"])


def test_out_of_memory_that_passes_a_cleanup_is_reported_where_it_arose():
    @program
    def tidy():
        first = yield Alloc(GPU, "first", 4)
        try:
            yield Alloc(GPU, "second", 9)
        finally:
            yield Free(first)

    (finding,) = run(a=tidy()).findings
    assert (finding.kind, finding.effect) == ("oom", "Alloc gpu0 second 9 B")
    assert steps(finding) == ["a: Alloc gpu0 first 4 B", "a: Alloc gpu0 second 9 B", "a: Free gpu0 first"]


def test_same_defect_of_several_actors_is_one_finding():
    found = run(a=borrow(6), b=borrow(6), c=borrow(6))
    assert [finding.kind for finding in found.findings] == ["oom"]


def test_several_kinds_are_all_found():
    found = run(a=nest(RED, BLUE), b=nest(BLUE, RED), c=borrow(6, give_back=False), d=borrow(6, give_back=False))
    assert kinds(found) == ["lock_order_deadlock", "oom"]
    assert found.outcomes == {"device_oom", "deadlock"}


def test_a_name_that_is_forked_again_is_another_actor_while_the_first_still_runs():
    @program
    def parent():
        yield Fork(plain(Notify(SEMAPHORE)), "child")
        yield Fork(plain(), "child")
        yield Acquire(RED)
        yield Release(RED)

    # b need not wait for its first child to end: it stands before the lock after two steps, and so it may for ever.
    found = run(a=plain(Acquire(RED)), b=parent())
    assert [len(finding.schedule) for finding in found.findings if "b" in finding.actors] == [3]


def test_memory_is_left_to_a_waiter_only_once_its_holder_has_ended():
    @program
    def keep():
        yield Alloc(GPU, "kept", 8)
        yield Compute("stage", PARTITION)
        yield Compute("stage", PARTITION)

    # b can already wait for ever after a's first step, but only when a has ended is it sure that this is a leak.
    found = run(a=keep(), b=plain(Alloc(GPU, "wanted", 4, on_full="wait")))
    waiting = [finding for finding in found.findings if finding.wait_for]
    assert [(finding.kind, finding.actors, len(finding.schedule)) for finding in waiting] == [("leak", ("b",), 3)]


def test_a_cycle_beside_an_owner_that_is_not_stuck():
    # a waits for its own bytes and b's, b holds 2 B for ever but goes on: a alone is the core.
    programs = {"a": borrow_twice("wait"), "b": plain(Alloc(GPU, "kept", 3), *[Compute("stage", PARTITION)] * 3)}
    capacity = [finding for finding in run(**programs).findings if finding.kind == "capacity_deadlock"]
    assert [(finding.actors, len(finding.schedule)) for finding in capacity] == [(("a",), 2)]


def test_waiting_for_what_an_ended_actor_kept_is_a_deadlock_among_the_outcomes():
    # Whichever comes first keeps the lock: both end only if neither waits for the other's.
    found = run(a=plain(Acquire(RED)), b=plain(Acquire(RED)))
    assert kinds(found) == ["leak"] and all(finding.wait_for for finding in found.findings)
    assert found.outcomes == {"deadlock"}

"""The effects that a policy yields, each with its rule of blocking and of failure.

An effect's class is the one place where its meaning stands; `effect` says what the parts of a rule are. The rules are
read side by side, so they are in one module.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from cuzklab.policies.effect import (
    DoubleFree,
    Effect,
    OutOfDeviceMemory,
    ReleaseByNonOwner,
    UseAfterFree,
    World,
    WrongDevice,
)
from cuzklab.policies.effect import (
    PolicyFault as PolicyFault,
)
from cuzklab.policies.model import (
    Buffer,
    Event,
    Flag,
    Gpu,
    HostBuffer,
    Lock,
    Partition,
    Program,
    Queue,
    Semaphore,
    Slot,
    Stream,
    Task,
)

# --- locks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Acquire(Effect):
    """Take a lock. Blocks while somebody holds it, its holder included: locks are not re-entrant."""

    lock: Lock
    wait_kind: ClassVar[str] = "lock"

    def ready(self, world, actor):
        return world.read(self.lock) is None

    def start(self, world, actor):
        world.write(self.lock, actor)

    def undo(self, result):
        return Release(self.lock)

    def blockers(self, world):
        return (world.read(self.lock),)

    def perform(self, live):
        live.acquire(self.lock)

    @property
    def on(self):
        return self.lock.name


@dataclass(frozen=True)
class Release(Effect):
    """Give a lock back. Fails if another actor, or nobody, holds it."""

    lock: Lock
    gives: ClassVar[bool] = True

    def start(self, world, actor):
        holder = world.read(self.lock)
        if holder != actor:
            raise ReleaseByNonOwner(f"{actor} releases {self.lock.name}, held by {holder or 'nobody'}")
        world.write(self.lock, None)

    @property
    def settles(self):
        return ("lock", self.lock)

    def perform(self, live):
        live.release(self.lock)

    @property
    def on(self):
        return self.lock.name


# --- device memory ---------------------------------------------------------------------------------------------------


OnFull = Literal["fail", "wait"]
"""What an allocation does that does not fit."""


def live_buffers(world: World, gpu: Gpu) -> tuple[Buffer, ...]:
    """Allocations of a device, by owner and in the order of each owner's allocations."""
    return world.read(("live", gpu)) or ()


def in_order(buffers: Iterable[Buffer]) -> tuple[Buffer, ...]:
    """Buffers in an order that is not that of time: allocations that came in another order leave the same state."""
    return tuple(sorted(buffers, key=lambda buffer: (buffer.owner, buffer.serial, buffer.name)))


def live_bytes(world: World, gpu: Gpu) -> int:
    return sum(buffer.size_bytes for buffer in live_buffers(world, gpu))


def pool_bytes(world: World, gpu: Gpu) -> int:
    """Freed memory that the stream-ordered pool keeps."""
    return world.read(("pool", gpu)) or 0


def _free_for(world: World, gpu: Gpu, pooled: bool) -> int:
    kept = 0 if pooled else pool_bytes(world, gpu)
    return gpu.vram_bytes - live_bytes(world, gpu) - kept


def _device_idle(world: World, gpu: Gpu) -> bool:
    return not world.read(("busy", gpu))


def _take(world: World, buffer: Buffer) -> Buffer:
    gpu = buffer.gpu
    if _free_for(world, gpu, buffer.pooled) < buffer.size_bytes:
        used = live_bytes(world, gpu) + (0 if buffer.pooled else pool_bytes(world, gpu))
        raise OutOfDeviceMemory(buffer.name, buffer.size_bytes, used, gpu.vram_bytes)
    if buffer.pooled:
        world.write(("pool", gpu), max(0, pool_bytes(world, gpu) - buffer.size_bytes))
    world.write(("live", gpu), in_order((*live_buffers(world, gpu), buffer)))
    return buffer


def _give_back(world: World, buffer: Buffer) -> None:
    buffers = live_buffers(world, buffer.gpu)
    if buffer not in buffers:
        raise DoubleFree(f"{buffer.name} of {buffer.owner} is not allocated")
    world.write(("live", buffer.gpu), tuple(other for other in buffers if other != buffer))
    if buffer.pooled:
        world.write(("pool", buffer.gpu), pool_bytes(world, buffer.gpu) + buffer.size_bytes)


@dataclass(frozen=True)
class Alloc(Effect):
    """Allocate device memory; the result is its `Buffer`.

    With ``on_full="fail"`` (what `cudaMalloc` does) it never blocks: when it does not fit, `OutOfDeviceMemory` is
    thrown into the policy. With ``on_full="wait"`` it blocks until it fits. A pooled (stream-ordered) allocation can
    use memory that the pool keeps, another cannot. `device_wide`: it also waits until the device is idle.
    """

    gpu: Gpu
    name: str
    size_bytes: int
    partition: Partition | None = None
    on_full: OnFull = "fail"
    pooled: bool = False
    device_wide: bool = False
    lasts: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "memory"

    def ready(self, world, actor):
        if self.device_wide and not _device_idle(world, self.gpu):
            return False
        return self.on_full == "fail" or self.free_bytes(world) >= self.size_bytes

    def kind_of_wait(self, world):
        return "device_sync" if self.device_wide and not _device_idle(world, self.gpu) else self.wait_kind

    def start(self, world, actor):
        serial = (world.read(("serial", actor)) or 0) + 1
        buffer = Buffer(
            self.name, self.size_bytes, self.gpu, actor, serial, self.partition.name if self.partition else "",
            self.pooled,
        )  # fmt: skip
        _take(world, buffer)
        world.write(("serial", actor), serial)
        return buffer

    def undo(self, result):
        return Free(result)

    def blockers(self, world):
        return tuple(dict.fromkeys(buffer.owner for buffer in live_buffers(world, self.gpu)))

    def free_bytes(self, world: World) -> int:
        """Bytes that such an allocation could have now."""
        return _free_for(world, self.gpu, self.pooled)

    @property
    def above_capacity(self):
        return self.on_full == "wait" and self.size_bytes > self.gpu.vram_bytes

    def perform(self, live):
        return live.alloc(self)

    @property
    def on(self):
        return f"gpu{self.gpu.index} {self.name} {self.size_bytes} B"


@dataclass(frozen=True)
class Free(Effect):
    """Give device memory back. Fails if it is not allocated. `device_wide` (`cudaFree`) waits for an idle device."""

    buffer: Buffer
    device_wide: bool = False
    lasts: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "device_sync"

    def ready(self, world, actor):
        return not self.device_wide or _device_idle(world, self.buffer.gpu)

    def start(self, world, actor):
        _give_back(world, self.buffer)

    @property
    def settles(self):
        return ("buffer", self.buffer)

    def perform(self, live):
        live.free(self)

    @property
    def on(self):
        return f"gpu{self.buffer.gpu.index} {self.buffer.name}"


@dataclass(frozen=True)
class Reserve(Effect):
    """Promise bytes of a device to this actor without allocating them. Blocks until so many are unpromised."""

    gpu: Gpu
    size_bytes: int
    wait_kind: ClassVar[str] = "memory"

    def ready(self, world, actor):
        return self.free_bytes(world) >= self.size_bytes

    def start(self, world, actor):
        promises = (*(world.read(("reserved", self.gpu)) or ()), (actor, self.size_bytes))
        world.write(("reserved", self.gpu), tuple(sorted(promises)))

    def undo(self, result):
        return Unreserve(self.gpu, self.size_bytes)

    def blockers(self, world):
        return tuple(dict.fromkeys(owner for owner, _ in world.read(("reserved", self.gpu)) or ()))

    def free_bytes(self, world: World) -> int:
        """Bytes of the device that are promised to nobody."""
        return self.gpu.vram_bytes - sum(size for _, size in world.read(("reserved", self.gpu)) or ())

    @property
    def above_capacity(self):
        return self.size_bytes > self.gpu.vram_bytes

    def perform(self, live):
        live.reserve(self.gpu, self.size_bytes)

    @property
    def on(self):
        return f"gpu{self.gpu.index} {self.size_bytes} B"


@dataclass(frozen=True)
class Unreserve(Effect):
    """Take a promise back. Fails if this actor holds no promise of that size."""

    gpu: Gpu
    size_bytes: int
    gives: ClassVar[bool] = True

    def start(self, world, actor):
        promises = list(world.read(("reserved", self.gpu)) or ())
        if (actor, self.size_bytes) not in promises:
            raise ReleaseByNonOwner(f"{actor} gives back a reservation of {self.size_bytes} B that it does not hold")
        promises.remove((actor, self.size_bytes))
        world.write(("reserved", self.gpu), tuple(promises))

    @property
    def settles(self):
        return ("reservation", self.gpu, self.size_bytes)

    def perform(self, live):
        live.unreserve(self.gpu, self.size_bytes)

    @property
    def on(self):
        return f"gpu{self.gpu.index} {self.size_bytes} B"


# --- host memory and transfers ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pin(Effect):
    """Page-lock host memory, so that copies from it run at full rate and asynchronously.

    `pooled`: the buffer lies in memory that the engine keeps pinned, as where synthesis writes directly into pinned
    buffers. Then it takes no time.
    """

    buffer: HostBuffer
    pooled: bool = False
    lasts: ClassVar[bool] = True
    local: ClassVar[bool] = True

    def start(self, world, actor):
        world.write(("pinned", self.buffer), True)

    def undo(self, result):
        return Unpin(self.buffer, self.pooled)

    def perform(self, live):
        live.pin(self.buffer, self.pooled)

    @property
    def on(self):
        return self.buffer.name


@dataclass(frozen=True)
class Unpin(Effect):
    """Undo `Pin`. `pooled` memory goes back to those who synthesise, and stays pinned."""

    buffer: HostBuffer
    pooled: bool = False
    lasts: ClassVar[bool] = True
    local: ClassVar[bool] = True

    def start(self, world, actor):
        world.write(("pinned", self.buffer), None)

    @property
    def settles(self):
        return ("pin", self.buffer)

    def perform(self, live):
        live.unpin(self.buffer, self.pooled)

    @property
    def on(self):
        return self.buffer.name


@dataclass(frozen=True)
class FreeHost(Effect):
    """Give the host memory of a partition's buffer back before the partition is done. Fails if it was freed already.

    What is not freed so is freed when the partition has its outcome. An upload from freed memory fails.
    """

    buffer: HostBuffer
    partition: Partition
    local: ClassVar[bool] = True

    def start(self, world, actor):
        if world.read(("freed", self.buffer)):
            raise DoubleFree(f"{self.buffer.name} was freed before")
        world.write(("freed", self.buffer), True)

    def perform(self, live):
        live.free_host(self)

    @property
    def on(self):
        return self.buffer.name


def _begin_on(world: World, stream: Stream, buffers: tuple[Buffer, ...], what: str) -> None:
    """Work enters a stream: its buffers must be live and on the stream's device."""
    for buffer in buffers:
        if buffer.gpu != stream.gpu:
            raise WrongDevice(f"{what} on gpu{stream.gpu.index} uses {buffer.name} of gpu{buffer.gpu.index}")
        if buffer not in live_buffers(world, buffer.gpu):
            raise UseAfterFree(f"{what} uses {buffer.name} of {buffer.owner}, which was freed")
    world.write(("busy", stream.gpu), (world.read(("busy", stream.gpu)) or 0) + 1)
    world.write(("issued", stream), (world.read(("issued", stream)) or 0) + 1)


def _end_on(world: World, stream: Stream) -> None:
    world.write(("busy", stream.gpu), world.read(("busy", stream.gpu)) - 1)
    world.write(("done", stream), (world.read(("done", stream)) or 0) + 1)


def fired(world: World, event: Event) -> bool:
    """Whether the work before an event is done."""
    return (world.read(("done", event.stream)) or 0) >= event.count


@dataclass(frozen=True)
class Upload(Effect):
    """Copy host memory to the device, in order on a stream.

    From pinned memory it is asynchronous: the policy goes on as soon as the copy is queued, and an event tells when it
    is done. From pageable memory the call returns when the copy is done, at the lower rate. Never blocks otherwise.
    """

    source: HostBuffer
    targets: tuple[Buffer, ...]
    stream: Stream
    partition: Partition
    lasts: ClassVar[bool] = True

    def asynchronous(self, world: World) -> bool:
        return bool(world.read(("pinned", self.source)))

    def start(self, world, actor):
        if world.read(("freed", self.source)):
            raise UseAfterFree(f"upload uses {self.source.name}, which was freed")
        _begin_on(world, self.stream, self.targets, f"upload of {self.source.name}")

    def finish(self, world, actor):
        _end_on(world, self.stream)

    def perform(self, live):
        live.upload(self)

    @property
    def on(self):
        return f"gpu{self.stream.gpu.index} {self.source.name}"


@dataclass(frozen=True)
class RecordEvent(Effect):
    """Mark a point in a stream; the result is an `Event` that fires when the work before it is done."""

    stream: Stream

    def start(self, world, actor):
        return Event(self.stream, world.read(("issued", self.stream)) or 0)

    def perform(self, live):
        return live.record_event(self.stream)

    @property
    def on(self):
        return self.stream.name


@dataclass(frozen=True)
class WaitEvent(Effect):
    """Make later work of a stream wait for an event; the policy itself goes on.

    Without a stream the policy blocks until the event has fired.
    """

    event: Event
    stream: Stream | None = None
    wait_kind: ClassVar[str] = "event"

    def ready(self, world, actor):
        return self.stream is not None or fired(world, self.event)

    def start(self, world, actor):
        if self.stream is not None and not fired(world, self.event):
            world.write(("after", self.stream), (*(world.read(("after", self.stream)) or ()), self.event))

    def perform(self, live):
        live.wait_event(self)

    @property
    def on(self):
        return self.event.stream.name


# --- work ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Launch(Effect):
    """Run a GPU stage of a partition and wait for its end, as these engines do at the end of each stage.

    It blocks until the events that its stream waits for have fired. Its scratch memory is allocated at its start,
    which may raise `OutOfDeviceMemory`, and freed at its end. Fails if a buffer that it uses was freed.
    """

    gpu: Gpu
    stage: str
    partition: Partition
    part: str = ""
    uses: tuple[Buffer, ...] = ()
    lasts: ClassVar[bool] = True
    two_steps: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "event"

    @property
    def stream(self) -> Stream:
        """A partition's kernels run on a stream of its own."""
        return self.partition.stream(self.gpu, "compute")

    @property
    def scratch_bytes(self) -> int:
        return self.partition.sizes.scratch.get((self.stage, self.part), 0)

    @property
    def label(self) -> str:
        return f"{self.stage}.{self.part}" if self.part else self.stage

    def _scratch(self, actor: str) -> Buffer:
        return Buffer(f"{self.label} scratch", self.scratch_bytes, self.gpu, actor, 0, self.partition.name)

    def ready(self, world, actor):
        return all(fired(world, event) for event in world.read(("after", self.stream)) or ())

    def start(self, world, actor):
        if self.scratch_bytes:
            _take(world, self._scratch(actor))
        world.write(("after", self.stream), None)
        _begin_on(world, self.stream, self.uses, self.label)

    def finish(self, world, actor):
        _end_on(world, self.stream)
        if self.scratch_bytes:
            _give_back(world, self._scratch(actor))

    def perform(self, live):
        live.launch(self)

    @property
    def on(self):
        return f"gpu{self.gpu.index} {self.label}"


@dataclass(frozen=True)
class Compute(Effect):
    """Run a CPU stage of a partition; the policy goes on when it is done. `threads` 0 means the engine's default."""

    stage: str
    partition: Partition
    part: str = ""
    threads: int = 0
    lasts: ClassVar[bool] = True
    local: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return f"{self.stage}.{self.part}" if self.part else self.stage

    def perform(self, live):
        live.compute(self)

    @property
    def on(self):
        return self.label


# --- device-wide calls -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeviceSync(Effect):
    """Wait until no work of any actor is under way on the device."""

    gpu: Gpu
    lasts: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "device_sync"

    def ready(self, world, actor):
        return _device_idle(world, self.gpu)

    def perform(self, live):
        live.device_sync(self.gpu)

    @property
    def on(self):
        return f"gpu{self.gpu.index}"


@dataclass(frozen=True)
class TrimPool(Effect):
    """Give the pool's unused memory back to the device. Device-wide: it waits until the device is idle."""

    gpu: Gpu
    lasts: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "device_sync"

    def ready(self, world, actor):
        return _device_idle(world, self.gpu)

    def start(self, world, actor):
        world.write(("pool", self.gpu), 0)

    def perform(self, live):
        live.trim_pool(self.gpu)

    @property
    def on(self):
        return f"gpu{self.gpu.index}"


@dataclass(frozen=True)
class QueryFree(Effect):
    """Bytes of the device that are neither allocated nor kept by the pool, as `cudaMemGetInfo` tells."""

    gpu: Gpu

    def start(self, world, actor):
        return _free_for(world, self.gpu, pooled=False)

    def perform(self, live):
        return live.query_free(self.gpu)

    @property
    def on(self):
        return f"gpu{self.gpu.index}"


# --- coordination ----------------------------------------------------------------------------------------------------


def _permits(world: World, semaphore: Semaphore) -> int:
    permits = world.read(semaphore)
    return semaphore.initial if permits is None else permits


@dataclass(frozen=True)
class Notify(Effect):
    """Add a permit to a semaphore."""

    semaphore: Semaphore
    gives: ClassVar[bool] = True

    def start(self, world, actor):
        world.write(self.semaphore, _permits(world, self.semaphore) + 1)

    def perform(self, live):
        live.notify(self.semaphore)

    @property
    def on(self):
        return self.semaphore.name


@dataclass(frozen=True)
class Wait(Effect):
    """Take a permit from a semaphore. Blocks while there is none."""

    semaphore: Semaphore
    wait_kind: ClassVar[str] = "barrier"

    def ready(self, world, actor):
        return _permits(world, self.semaphore) > 0

    def start(self, world, actor):
        world.write(self.semaphore, _permits(world, self.semaphore) - 1)

    def perform(self, live):
        live.wait(self.semaphore)

    @property
    def on(self):
        return self.semaphore.name


@dataclass(frozen=True)
class SetFlag(Effect):
    """Set a flag, whatever it was."""

    flag: Flag

    def start(self, world, actor):
        world.write(self.flag, True)

    def undo(self, result):
        return ClearFlag(self.flag)

    def perform(self, live):
        live.set_flag(self.flag, True)

    @property
    def on(self):
        return self.flag.name


@dataclass(frozen=True)
class ClearFlag(Effect):
    """Clear a flag, whatever it was and whoever set it."""

    flag: Flag

    def start(self, world, actor):
        world.write(self.flag, None)

    @property
    def settles(self):
        return ("flag", self.flag)

    def perform(self, live):
        live.set_flag(self.flag, False)

    @property
    def on(self):
        return self.flag.name


@dataclass(frozen=True)
class ReadFlag(Effect):
    """Whether a flag is set at this moment."""

    flag: Flag

    def start(self, world, actor):
        return bool(world.read(self.flag))

    def perform(self, live):
        return live.read_flag(self.flag)

    @property
    def on(self):
        return self.flag.name


@dataclass(frozen=True)
class WaitClear(Effect):
    """Block while a flag is set: what a loop that polls it comes to."""

    flag: Flag
    wait_kind: ClassVar[str] = "barrier"

    def ready(self, world, actor):
        return not world.read(self.flag)

    def perform(self, live):
        live.wait_clear(self.flag)

    @property
    def on(self):
        return self.flag.name


@dataclass(frozen=True)
class Exchange(Effect):
    """Put a value into a slot and get what was there, None at first, in one indivisible step.

    A buffer that is put into a slot belongs to whoever takes it out: it outlives the partition that allocated it, and
    one that lies in a slot at the end is kept, not leaked. If a partition fails that has taken one out, it goes back.
    """

    slot: Slot
    value: Any = None

    def start(self, world, actor):
        before = world.read(self.slot)
        world.write(self.slot, self.value)
        return before

    def undo(self, result):
        return Exchange(self.slot, result) if isinstance(result, Buffer) else None

    @property
    def settles(self):
        return ("buffer", self.value) if isinstance(self.value, Buffer) else None

    def perform(self, live):
        return live.exchange(self.slot, self.value)

    @property
    def on(self):
        return self.slot.name


@dataclass(frozen=True)
class Put(Effect):
    """Append to a queue. Blocks while the queue is full."""

    queue: Queue
    item: Any
    wait_kind: ClassVar[str] = "queue"

    def ready(self, world, actor):
        return self.queue.capacity is None or len(world.read(self.queue) or ()) < self.queue.capacity

    def start(self, world, actor):
        world.write(self.queue, (*(world.read(self.queue) or ()), self.item))

    def perform(self, live):
        live.put(self.queue, self.item)

    @property
    def on(self):
        return self.queue.name


@dataclass(frozen=True)
class Get(Effect):
    """Take the oldest item of a queue. Blocks while it is empty."""

    queue: Queue
    wait_kind: ClassVar[str] = "queue"

    def ready(self, world, actor):
        return bool(world.read(self.queue))

    def start(self, world, actor):
        item, *rest = world.read(self.queue)
        world.write(self.queue, tuple(rest))
        return item

    def perform(self, live):
        return live.get(self.queue)

    @property
    def on(self):
        return self.queue.name


@dataclass(frozen=True)
class Fork(Effect):
    """Start a program beside this one, in a thread of its own; the result is a `Task`.

    The interpreter starts an actor named ``parent/name``; `name` defaults to the program's. Until an earlier one of
    that name has been joined, the new one is ``parent/name#2`` and so on. A fault that ends a forked program is raised
    in the one that forked it; the new program takes that over for the tasks that it `adopts`.
    """

    program: Program
    name: str = ""
    adopts: tuple[Task, ...] = ()

    def start(self, world, actor):
        name = child = f"{actor}/{self.name or self.program.name}"
        number = 1
        while world.read(("task", child)) not in (None, "joined"):
            number += 1
            child = f"{name}#{number}"
        world.write(("task", child), "running")
        return Task(child)

    def undo(self, result):
        return Join(result)

    def perform(self, live):
        return live.fork(self)

    @property
    def on(self):
        return self.name or self.program.name


@dataclass(frozen=True)
class Join(Effect):
    """Wait until a forked program has ended."""

    task: Task
    wait_kind: ClassVar[str] = "join"

    def ready(self, world, actor):
        return world.read(("task", self.task.actor)) in ("ended", "joined")

    def start(self, world, actor):
        world.write(("task", self.task.actor), "joined")

    def blockers(self, world):
        return (self.task.actor,)

    @property
    def settles(self):
        return ("task", self.task)

    def perform(self, live):
        live.join(self.task)

    @property
    def on(self):
        return self.task.actor

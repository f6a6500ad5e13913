"""Device memory: allocations, what the pool keeps, reservations, and their arithmetic."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from cuzklab.policies.effect import DoubleFree, Effect, OutOfDeviceMemory, ReleaseByNonOwner, UseAfterFree, World
from cuzklab.policies.effects.in_flight import device_idle, user_of
from cuzklab.policies.model import Buffer, Gpu, Partition

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


def free_for(world: World, gpu: Gpu, pooled: bool) -> int:
    kept = 0 if pooled else pool_bytes(world, gpu)
    return gpu.vram_bytes - live_bytes(world, gpu) - kept


def take(world: World, buffer: Buffer) -> Buffer:
    gpu = buffer.gpu
    if free_for(world, gpu, buffer.pooled) < buffer.size_bytes:
        used = live_bytes(world, gpu) + (0 if buffer.pooled else pool_bytes(world, gpu))
        raise OutOfDeviceMemory(buffer.name, buffer.size_bytes, used, gpu.vram_bytes)
    if buffer.pooled:
        world.write(("pool", gpu), max(0, pool_bytes(world, gpu) - buffer.size_bytes))
    world.write(("live", gpu), in_order((*live_buffers(world, gpu), buffer)))
    return buffer


def give_back(world: World, buffer: Buffer) -> None:
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
    tells: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "memory"

    def ready(self, world, actor):
        if self.device_wide and not device_idle(world, self.gpu):
            return False
        return self.on_full == "fail" or self.free_bytes(world) >= self.size_bytes

    def kind_of_wait(self, world):
        return "device_sync" if self.device_wide and not device_idle(world, self.gpu) else self.wait_kind

    def start(self, world, actor):
        serial = (world.read(("serial", actor)) or 0) + 1
        buffer = Buffer(
            self.name, self.size_bytes, self.gpu, actor, serial, self.partition.name if self.partition else "",
            self.pooled,
        )  # fmt: skip
        take(world, buffer)
        world.write(("serial", actor), serial)
        return buffer

    def undo(self, result):
        return Free(result, device_wide=True)  # a clean-up knows nothing of the work that may still use it

    def blockers(self, world):
        return tuple(dict.fromkeys(buffer.owner for buffer in live_buffers(world, self.gpu)))

    def free_bytes(self, world: World) -> int:
        """Bytes that such an allocation could have now."""
        return free_for(world, self.gpu, self.pooled)

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
    """Give device memory back. Fails if it is not allocated, or if work under way uses it.

    `device_wide` (`cudaFree`) waits for an idle device first, so it never pulls memory away under a copy or a kernel.
    """

    buffer: Buffer
    device_wide: bool = False
    lasts: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "device_sync"

    def ready(self, world, actor):
        return not self.device_wide or device_idle(world, self.buffer.gpu)

    def start(self, world, actor):
        user = user_of(world, self.buffer)
        if user is not None and self.buffer in live_buffers(world, self.buffer.gpu):
            raise UseAfterFree(f"{self.buffer.name} of {self.buffer.owner} is freed under {user.what}")
        give_back(world, self.buffer)

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

"""Host memory, copies to the device, and the events of streams."""

from dataclasses import dataclass
from typing import ClassVar

from cuzklab.policies.effect import DoubleFree, Effect, UseAfterFree, World, WrongDevice
from cuzklab.policies.effects.memory import live_buffers
from cuzklab.policies.model import Buffer, Event, HostBuffer, Partition, Stream


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


def begin_on(world: World, stream: Stream, buffers: tuple[Buffer, ...], what: str) -> None:
    """Work enters a stream: its buffers must be live and on the stream's device."""
    for buffer in buffers:
        if buffer.gpu != stream.gpu:
            raise WrongDevice(f"{what} on gpu{stream.gpu.index} uses {buffer.name} of gpu{buffer.gpu.index}")
        if buffer not in live_buffers(world, buffer.gpu):
            raise UseAfterFree(f"{what} uses {buffer.name} of {buffer.owner}, which was freed")
    world.write(("busy", stream.gpu), (world.read(("busy", stream.gpu)) or 0) + 1)
    world.write(("issued", stream), (world.read(("issued", stream)) or 0) + 1)


def end_on(world: World, stream: Stream) -> None:
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
        begin_on(world, self.stream, self.targets, f"upload of {self.source.name}")

    def finish(self, world, actor):
        end_on(world, self.stream)

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

"""Host memory, copies to the device, and the events of streams."""

from dataclasses import dataclass
from typing import ClassVar

from cuzklab.policies.effect import DoubleFree, Effect, UseAfterFree, World, WrongDevice
from cuzklab.policies.effects.data import UPLOAD, reads_of, refuse_early, writes_of, written
from cuzklab.policies.effects.in_flight import (
    Work,
    awaited,
    enter,
    fired,
    head_of,
    leave,
    stream_clear,
    user_of,
)
from cuzklab.policies.effects.memory import live_buffers
from cuzklab.policies.model import Buffer, Event, HostBuffer, Partition, Stream, program


class UseBeforeCopied(UseAfterFree):
    """Work was given a buffer that an upload of another stream has yet to fill."""


def copies_of(world: World, source: HostBuffer) -> int:
    """Copies under way from host memory."""
    return world.read(("read", source)) or 0


def _refuse_under_copy(world: World, source: HostBuffer, what: str) -> None:
    if copies_of(world, source):
        raise UseAfterFree(f"{source.name} is {what} while an upload copies from it")


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
    """Undo `Pin`; no copy from it may be under way.

    `pooled` memory goes back to those who synthesise, and stays pinned.
    """

    buffer: HostBuffer
    pooled: bool = False
    lasts: ClassVar[bool] = True
    local: ClassVar[bool] = True

    def start(self, world, actor):
        _refuse_under_copy(world, self.buffer, "unpinned")
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

    What is not freed so is freed when the partition has its outcome. An upload from freed memory fails, and so does a
    free while an upload copies from it.
    """

    buffer: HostBuffer
    partition: Partition
    local: ClassVar[bool] = True

    def start(self, world, actor):
        _refuse_under_copy(world, self.buffer, "freed")
        if world.read(("freed", self.buffer)):
            raise DoubleFree(f"{self.buffer.name} was freed before")
        world.write(("freed", self.buffer), True)

    def perform(self, live):
        live.free_host(self)

    @property
    def on(self):
        return self.buffer.name


def begin_on(world: World, stream: Stream, buffers: tuple[Buffer, ...], what: str, writes: bool = False) -> Work:
    """Work enters a stream: its buffers must be live, on the stream's device, and filled unless it fills them."""
    for buffer in buffers:
        if buffer.gpu != stream.gpu:
            raise WrongDevice(f"{what} on gpu{stream.gpu.index} uses {buffer.name} of gpu{buffer.gpu.index}")
        if buffer not in live_buffers(world, buffer.gpu):
            raise UseAfterFree(f"{what} uses {buffer.name} of {buffer.owner}, which was freed")
        copy = None if writes else user_of(world, buffer, writing=True)
        if copy is not None:
            raise UseBeforeCopied(f"{what} uses {buffer.name} of {buffer.owner}, which {copy.what} has yet to fill")
    return enter(world, stream, what, buffers, writes)


@dataclass(frozen=True)
class Copy(Effect):
    """The device's part of an upload from pinned memory: it ends by itself, when its turn in the stream has come.

    No policy yields it. Interpreters carry it out beside the program that queued the upload (`Upload.beside`).
    """

    upload: "Upload"
    number: int
    after: tuple[Event, ...] = ()
    lasts: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "event"

    def ready(self, world, actor):
        head = head_of(world, self.upload.stream)
        return head is not None and head.number == self.number and all(fired(world, event) for event in self.after)

    def finish(self, world, actor):
        self.upload.finish(world, actor)

    @property
    def on(self):
        return self.upload.on


@program
def copying(copy: Copy):
    """What a device does with a copy."""
    yield copy


@dataclass(frozen=True)
class Upload(Effect):
    """Copy host memory to the device, in order on a stream.

    From pinned memory it is asynchronous: the policy goes on as soon as the copy is queued, the copy ends by itself
    some time later, and an event tells when. From pageable memory the call returns when the copy is done, at the lower
    rate; it waits for its turn in the stream. While a copy is under way its source must not be freed nor unpinned, its
    targets neither freed nor used by work of other streams. Fails if the source has yet to be written.
    """

    source: HostBuffer
    targets: tuple[Buffer, ...]
    stream: Stream
    partition: Partition
    lasts: ClassVar[bool] = True
    two_steps: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "event"

    def asynchronous(self, world: World) -> bool:
        return bool(world.read(("pinned", self.source)))

    def ready(self, world, actor):
        return self.asynchronous(world) or stream_clear(world, self.stream)

    @property
    def reads(self):
        return reads_of(self.partition, UPLOAD)

    @property
    def writes(self):
        return writes_of(self.partition, UPLOAD)

    def start(self, world, actor):
        refuse_early(world, self)
        if world.read(("freed", self.source)):
            raise UseAfterFree(f"upload uses {self.source.name}, which was freed")
        begin_on(world, self.stream, self.targets, f"the upload of {self.source.name}", writes=True)
        world.write(("read", self.source), copies_of(world, self.source) + 1)
        if not self.asynchronous(world):
            world.write(("after", self.stream), None)

    def beside(self, world):
        if not self.asynchronous(world):
            return None
        after = awaited(world, self.stream)
        world.write(("after", self.stream), None)  # what enters the stream later waits for the copy, and so for these
        return copying(Copy(self, world.read(("issued", self.stream)), after))

    def finish(self, world, actor):
        leave(world, self.stream)
        world.write(("read", self.source), copies_of(world, self.source) - 1 or None)
        written(world, self)

    def perform(self, live):
        live.upload(self)

    @property
    def on(self):
        return f"gpu{self.stream.gpu.index} {self.source.name}"


@dataclass(frozen=True)
class RecordEvent(Effect):
    """Mark a point in a stream; the result is an `Event` that fires when the work before it is done."""

    stream: Stream
    tells: ClassVar[bool] = True

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
            world.write(("after", self.stream), (*awaited(world, self.stream), self.event))

    def perform(self, live):
        live.wait_event(self)

    @property
    def on(self):
        return self.event.stream.name

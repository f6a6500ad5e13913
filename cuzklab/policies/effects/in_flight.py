"""Work that is under way on a device: what entered its streams and is not done yet."""

from collections.abc import Iterable
from dataclasses import dataclass

from cuzklab.policies.effect import World
from cuzklab.policies.model import Buffer, Event, Gpu, Stream


@dataclass(frozen=True)
class Work:
    """One piece of work that entered a stream and is not done.

    Attributes
    ----------
    number : int
        Its place in the stream, from 1; the stream does its work in this order.
    what : str
        In words, for messages.
    buffers : tuple of Buffer
        What it reads or writes.
    writes : bool
        It fills them: whoever reads them before it is done reads what is not there yet.
    """

    stream: Stream
    number: int
    what: str
    buffers: tuple[Buffer, ...] = ()
    writes: bool = False


def works(world: World, gpu: Gpu) -> tuple[Work, ...]:
    """What is under way on a device."""
    return world.read(("busy", gpu)) or ()


def in_stream_order(pieces: Iterable[Work]) -> tuple[Work, ...]:
    """Work in an order that is not that of time: streams that were filled in another order leave the same state."""
    return tuple(sorted(pieces, key=lambda work: (work.stream.name, work.number)))


def device_idle(world: World, gpu: Gpu) -> bool:
    return not works(world, gpu)


def user_of(world: World, buffer: Buffer, writing: bool = False) -> Work | None:
    """A piece of work under way that uses a buffer, or that fills it."""
    return next(
        (work for work in works(world, buffer.gpu) if buffer in work.buffers and (work.writes or not writing)), None
    )


def head_of(world: World, stream: Stream) -> Work | None:
    """The piece of work that a stream is at."""
    return next((work for work in works(world, stream.gpu) if work.stream == stream), None)


def enter(world: World, stream: Stream, what: str, buffers: tuple[Buffer, ...], writes: bool) -> Work:
    """Put a piece of work into a stream."""
    number = (world.read(("issued", stream)) or 0) + 1
    work = Work(stream, number, what, buffers, writes)
    world.write(("issued", stream), number)
    world.write(("busy", stream.gpu), in_stream_order((*works(world, stream.gpu), work)))
    return work


def leave(world: World, stream: Stream) -> None:
    """The piece of work that a stream is at is done."""
    head = head_of(world, stream)
    world.write(("busy", stream.gpu), tuple(work for work in works(world, stream.gpu) if work != head) or None)
    world.write(("done", stream), (world.read(("done", stream)) or 0) + 1)


def fired(world: World, event: Event) -> bool:
    """Whether the work before an event is done."""
    return (world.read(("done", event.stream)) or 0) >= event.count


def awaited(world: World, stream: Stream) -> tuple[Event, ...]:
    """Events that whatever enters a stream next must wait for."""
    return world.read(("after", stream)) or ()


def stream_clear(world: World, stream: Stream) -> bool:
    """Whether what enters a stream now could begin at once: the stream is idle, and what it waits for has happened."""
    return head_of(world, stream) is None and all(fired(world, event) for event in awaited(world, stream))

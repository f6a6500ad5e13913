"""Names of the global variables that stand for what actors share, in a translation to Promela."""

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from cuzklab.check.promela.points import ClosedSystem
from cuzklab.errors import BadInput
from cuzklab.policies.effects import (
    Acquire,
    Effect,
    Launch,
    Pin,
    RecordEvent,
    Release,
    Reserve,
    Unpin,
    Unreserve,
    Upload,
    WaitEvent,
)
from cuzklab.policies.model import Buffer, Datum, Event, Flag, Gpu, HostBuffer, Queue, Semaphore, Slot, Stream

_MAX_UNITS = 2**30  # sums of two amounts must fit in 31 bits


class Variables:
    """Global variables, all 0 at first; systems of one model share those of one name."""

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}
        self._types: dict[str, str] = {}
        self._values: dict[Hashable, list] = {}

    def name(self, kind: str, *key: Hashable, type: str = "byte", size: str = "") -> str:
        """The variable that stands for a thing: its kind, and what it is."""
        if (kind, key) not in self._names:
            words = "_".join([kind, *(re.sub(r"\W+", "_", str(getattr(part, "name", part))) for part in key)])
            name, number = words, 1
            while name in self._types:
                number += 1
                name = f"{words}_{number}"
            self._names[kind, key] = name
            self._types[name] = f"{type} {name}{size};"
        return self._names[kind, key]

    def number(self, place: Queue | Slot, value: object) -> int:
        """What stands for a value in a queue or in a slot; an empty slot is 0."""
        known = self._values.setdefault(place, [None] if isinstance(place, Slot) else [])
        if value not in known:
            known.append(value)
        return known.index(value)

    def declarations(self) -> Iterable[str]:
        return self._types.values()


@dataclass
class Names:
    """The variables of one system.

    Attributes
    ----------
    identities : dict of str to int
        What stands for an actor as the holder of a lock.
    initial : dict of str to int
        Variables with their values at the start; filled as they are named, and 0 for the others.
    kept : dict of str to set of str
        Of variables of buffers: expressions under which they are not left; filled as they are named.
    observed : set of Stream
        Streams whose pieces of work are counted, because of their events.
    pinnable : set of HostBuffer
        Host memory that somebody pins, so that copies from it are asynchronous.
    entries : dict of Stream to list
        What may stand in a stream's queue: uploads, and events that what comes later waits for.
    used, filled : set of Buffer
        Those that work may be under way on, and that a copy may be under way to.
    read : set of Datum
        Data that some step reads.
    left : dict
        Things that can be left at the end, each with a variable that is 0 without it; filled as they are named.
    """

    system: ClosedSystem
    variables: Variables
    queue_bound: int
    left: dict[tuple[str, str], None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.identities = {actor: number for number, actor in enumerate(self.system.actors(), 1)}
        self.initial: dict[str, int] = {}
        self.kept: dict[str, set[str]] = {}
        effects = [point.effect for point in self.system.points]
        waits = [effect for effect in effects if isinstance(effect, WaitEvent)]
        self.observed = {effect.stream for effect in effects if isinstance(effect, RecordEvent)}
        self.observed |= {effect.event.stream for effect in waits}
        self.pinnable = {effect.buffer for effect in effects if isinstance(effect, Pin)}
        self.entries: dict[Stream, list[Upload | Event]] = {}
        self.used = {buffer for effect in effects for buffer in _buffers(effect)}
        self.read = {datum for effect in effects for datum in effect.reads}
        self.filled: set[Buffer] = set()
        for effect in effects:
            entry: Upload | Event | None = None
            if isinstance(effect, Upload):
                self.filled.update(effect.targets)
                entry = effect if effect.source in self.pinnable else None
            elif isinstance(effect, WaitEvent) and effect.stream is not None:
                entry = effect.event
            if entry is not None and entry not in self.entries.setdefault(effect.stream, []):
                self.entries[effect.stream].append(entry)

    def units(self, size_bytes: int) -> int:
        units = size_bytes // self.system.unit_bytes
        if units >= _MAX_UNITS:
            raise BadInput(f"{size_bytes} B are too many of {self.system.unit_bytes} B, the unit of all sizes")
        return units

    def task(self, actor: str) -> str:
        return self.variables.name("task", actor)

    def starts(self, actor: str) -> str:
        return self.variables.name("starts", actor, type="short")

    def of(self, kind: str, gpu: Gpu) -> str:
        return self.variables.name(f"{kind}_gpu{gpu.index}", type="byte" if kind == "busy" else "int")

    def live(self, buffer: Buffer) -> str:
        name = self.variables.name("live", buffer.owner, buffer.serial, buffer)
        self.left[f"device memory {buffer.name}", name] = None
        return name

    def stream(self, kind: str, stream: Stream) -> str:
        return self.variables.name(kind, stream.gpu.index, stream)

    def fifo(self, stream: Stream) -> str:
        """The queue of a stream: what was put there without waiting for it."""
        room = self.system.longest(
            lambda point: isinstance(point.effect, Upload | WaitEvent) and point.effect.stream == stream
        )
        if not 0 < room < 255:
            raise BadInput(f"stream {stream.name}: {room} pieces of work have no translation")
        key = (stream.gpu.index, stream, room)
        return self.variables.name("stream", *key, type="chan", size=f" = [{room}] of {{ byte }}")

    def entry(self, stream: Stream, entry: Upload | Event) -> int:
        """What stands for a piece of work in the queue of its stream."""
        return self.entries[stream].index(entry) + 1

    def clear(self, stream: Stream) -> tuple[str, ...]:
        """That a stream has no work and waits for nothing."""
        queued = (f"len({self.fifo(stream)}) == 0",) if stream in self.entries else ()
        return (f"{self.stream('at_work', stream)} == 0", *queued)

    def source(self, kind: str, source: HostBuffer) -> str:
        return self.variables.name(kind, source)

    def on_buffer(self, kind: str, buffer: Buffer) -> str:
        return self.variables.name(kind, buffer.owner, buffer.serial, buffer)

    def lock(self, effect: Acquire | Release) -> str:
        name = self.variables.name("lock", effect.lock)
        self.left[f"lock {effect.lock.name}", name] = None
        return name

    def promised(self, actor: str, effect: Reserve | Unreserve) -> str:
        name = self.variables.name("promised", effect.gpu.index, self.identities[actor], self.units(effect.size_bytes))
        self.left[f"reservation gpu{effect.gpu.index}", name] = None
        return name

    def pinned(self, effect: Pin | Unpin) -> str:
        name = self.variables.name("pinned", effect.buffer)
        bare = re.sub(r"\bp\d+\.\d+\.", "", effect.buffer.name)
        self.left[f"pinned memory {bare}", name] = None
        return name

    def permits(self, semaphore: Semaphore) -> str:
        name = self.variables.name("permits", semaphore, type="short")
        self.initial[name] = semaphore.initial
        return name

    def queue(self, queue: Queue) -> str:
        capacity = self.queue_bound + 1 if queue.capacity is None else queue.capacity
        if not 0 < capacity < 255:
            raise BadInput(f"queue {queue.name}: a capacity of {capacity} has no translation")
        return self.variables.name("queue", queue.name, capacity, type="chan", size=f" = [{capacity}] of {{ byte }}")

    def flag(self, flag: Flag) -> str:
        return self.variables.name("flag", flag)

    def freed(self, buffer: HostBuffer) -> str:
        return self.variables.name("freed", buffer)

    def datum(self, datum: Datum) -> str:
        return self.variables.name("datum", datum, type="bit")

    def slot(self, slot: Slot) -> str:
        return self.variables.name("slot", slot)

    def keep(self, slot: Slot, value: object) -> int:
        """The number of a value in a slot; a buffer that lies there is not left."""
        number = self.variables.number(slot, value)
        if isinstance(value, Buffer):
            self.kept.setdefault(self.live(value), set()).add(f"{self.slot(slot)} == {number}")
        return number


def _buffers(effect: Effect) -> tuple[Buffer, ...]:
    """Device memory that an effect works on."""
    if isinstance(effect, Upload):
        return effect.targets
    return effect.uses if isinstance(effect, Launch) else ()

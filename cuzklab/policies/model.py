"""What a policy is given, and the names of what it shares: partitions, devices, locks, buffers, queues.

All of these are plain values. A lock or a semaphore exists as soon as an effect names it: nothing is registered.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import wraps
from typing import Any, Protocol


class Priority(IntEnum):
    """Which proofs go first. Nothing that has begun is interrupted: a higher priority goes first where others wait."""

    NORMAL = 0
    HIGH = 1
    CRITICAL = 2


def priority_of(item: Any) -> int:
    """Priority of what is put into a queue; what says nothing about it is normal."""
    return getattr(item, "priority", Priority.NORMAL)


@dataclass(frozen=True)
class Lock:
    """A mutual exclusion lock; one holder at a time."""

    name: str


@dataclass(frozen=True)
class Semaphore:
    """A counting semaphore; a notification before the wait is kept. `initial` permits are there at the start."""

    name: str
    initial: int = 0


@dataclass(frozen=True)
class Flag:
    """One boolean that everybody can set, clear and read."""

    name: str


@dataclass(frozen=True)
class Slot:
    """One shared variable, None at the start: what outlives a partition is kept here for the next."""

    name: str


@dataclass(frozen=True)
class Queue:
    """A queue: first in, first out among items of one priority, and higher priorities first.

    `capacity` None means that nothing bounds it. Otherwise it is full for an item once it holds so many that do not
    come after that item: a queue full of normal work does not hold up what is urgent.
    """

    name: str
    capacity: int | None = None


@dataclass(frozen=True)
class HostBuffer:
    """Host memory of a partition that can be pinned and uploaded."""

    name: str
    size_bytes: int


@dataclass(frozen=True)
class Gpu:
    """One device as a policy sees it.

    Attributes
    ----------
    vram_bytes : int
        Memory that allocations can use.
    margin_bytes : int
        What the engine leaves free when it decides by the amount of free memory (512 MiB on a 16 GiB card).
    """

    index: int
    vram_bytes: int
    margin_bytes: int = 512 << 20

    @property
    def lock(self) -> Lock:
        """The device's one lock."""
        return self.mutex("lock")

    def mutex(self, name: str) -> Lock:
        """A lock of this device with a name of its own, for designs that have several."""
        return Lock(f"gpu{self.index}.{name}")

    def slot(self, name: str) -> Slot:
        """A shared variable of this device."""
        return Slot(f"gpu{self.index}.{name}")


@dataclass(frozen=True)
class Stream:
    """An in-order queue of device work."""

    gpu: Gpu
    name: str


@dataclass(frozen=True)
class Buffer:
    """A live or dead device allocation: a handle, compared by identity of allocation.

    `owner` is the actor that allocated it and `serial` counts that owner's allocations.
    """

    name: str
    size_bytes: int
    gpu: Gpu
    owner: str
    serial: int
    partition: str = ""
    pooled: bool = False


@dataclass(frozen=True)
class Event:
    """A point in a stream: it has fired once the first `count` pieces of work of that stream are done."""

    stream: Stream
    count: int


@dataclass(frozen=True)
class Task:
    """A program started by `Fork`: the name of its actor."""

    actor: str


class Sizes(Protocol):
    """Bytes of a partition's buffers (`cuzklab.stages.PartitionSizes` is one).

    It may have a `flow`: names of the data that each (stage, part) reads and writes. Without one no order is asked of
    the stages.
    """

    abc: int
    d_a: int
    d_bc: int
    scratch: Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class Partition:
    """One circuit of one proof, as a policy sees it.

    `kind` names the circuit where it is not that of the batch. A `synthesised` one has a, b, c and aux from the start;
    the partitions of an engine do not, its synthesis workers make them.
    """

    proof: int
    index: int
    sizes: Sizes = field(compare=False, repr=False)
    priority: int = field(default=Priority.NORMAL, compare=False)
    kind: str = field(default="", compare=False)
    synthesised: bool = field(default=True, compare=False)

    @property
    def name(self) -> str:
        return f"p{self.proof}.{self.index}"

    @property
    def abc(self) -> HostBuffer:
        """The evaluations a, b, c in host memory."""
        return HostBuffer(f"{self.name}.abc", self.sizes.abc)

    @property
    def staged_bytes(self) -> int:
        """Device memory that a, b and c need: d_a and d_bc together."""
        return self.sizes.d_a + self.sizes.d_bc

    def stream(self, gpu: Gpu, name: str) -> Stream:
        """A stream of the device for this partition's work alone."""
        return Stream(gpu, f"{self.name}.{name}")

    @property
    def barrier(self) -> Semaphore:
        """Notified when prep_msm is done, so that the sums of ones may start."""
        return Semaphore(f"{self.name}.barrier")


@dataclass(frozen=True)
class Datum:
    """Something that a step of a partition leaves and others read: a key of the world, True once it is written."""

    partition: Partition
    what: str

    @property
    def name(self) -> str:
        return f"{self.partition.name}.{self.what}"

    def __str__(self) -> str:
        return f"{self.what} of {self.partition.name}"


@dataclass(frozen=True)
class WaitFor:
    """One edge, or several, of a wait-for graph: an actor, what it waits for, and who has that.

    `kind` is that of the trace's waits: lock, memory, barrier, queue, event, device_sync or join.
    """

    actor: str
    kind: str
    on: str
    holders: tuple[str, ...]

    def __str__(self) -> str:
        held = f" (held by {', '.join(self.holders)})" if self.holders else ""
        return f"{self.actor} waits for {self.kind} {self.on}{held}"


@dataclass(frozen=True)
class Program:
    """A generator function with its arguments: something that can be run from the start as often as one likes."""

    function: Callable[..., Generator[Any, Any, Any]]
    arguments: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return self.function.__name__

    def __iter__(self) -> Iterator[Any]:
        return self.start()

    def start(self) -> Generator[Any, Any, Any]:
        return self.function(*self.arguments, **dict(self.options))


def program(function: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Program]:
    """Make a generator function return a `Program`, so that it can be forked, repeated and delegated to."""

    @wraps(function)
    def make(*arguments: Any, **options: Any) -> Program:
        return Program(function, arguments, tuple(sorted(options.items())))

    return make

"""What a device offers to whoever runs stages on it: memory under a limit, streams, events, device-wide calls.

`Device` is the whole interface; `emulated` implements it on the CPU. A stage's function is given the memory that it
works on as arrays of the device's own kind (`Memory.array`) and runs where and when its stream says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class DeviceMemoryExhausted(MemoryError):
    """An allocation did not fit: what `cudaErrorMemoryAllocation` says, with the numbers.

    Attributes
    ----------
    size_bytes, in_use_bytes, limit_bytes : int
        `in_use_bytes` is what the allocation could not use: live memory and, unless it is pooled, the pool's.
    """

    def __init__(self, size_bytes: int, in_use_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"{size_bytes} B asked for, {in_use_bytes} B of {limit_bytes} B in use")
        self.size_bytes, self.in_use_bytes, self.limit_bytes = size_bytes, in_use_bytes, limit_bytes


@dataclass(eq=False)
class Memory:
    """One live allocation, known by identity.

    Attributes
    ----------
    array : array of uint64 or None
        Its words, of the device's own kind of array; None where memory was only set aside (`backed=False`).
    """

    size_bytes: int
    pooled: bool
    array: Any


@dataclass(frozen=True)
class Piece:
    """One contiguous part of an upload: where it comes from, and where it goes.

    Attributes
    ----------
    source : (n, k) uint64
        Host memory.
    target : Memory
    offset_bytes, extent_bytes : int
        The part of the target that it fills; what `source` does not cover becomes zero.
    """

    source: np.ndarray
    target: Memory
    offset_bytes: int
    extent_bytes: int


def target_words(piece: Piece) -> Any:
    """The words that a piece of an upload fills; looked up at once, since memory may be freed under a copy.

    Raises
    ------
    ValueError
        The piece does not fit.
    """
    first, extent = piece.offset_bytes // 8, piece.extent_bytes // 8
    target = piece.target.array[first : first + extent]
    if len(target) != extent or piece.source.size > extent:
        raise ValueError(
            f"{piece.source.nbytes} B do not fit into {piece.extent_bytes} B at {piece.offset_bytes} of "
            f"{piece.target.size_bytes} B"
        )
    return target


@dataclass(frozen=True)
class KernelTime:
    """One kernel of a stage, and when the device was at it."""

    name: str
    start_ns: int
    end_ns: int


class Work(Protocol):
    """Something that was put into a stream. Its figures are known once `wait` has returned.

    Attributes
    ----------
    start_ns, end_ns : int
        When the device was at it, on the machine's monotonic clock. Found when they are first asked for.
    transfer_ns : (int, int) or None
        When its bytes crossed the link.
    transfer_bytes : int
        How many did.
    kernels : tuple of KernelTime
        The kernels that a stage consisted of, where the device tells them apart.
    """

    start_ns: int
    end_ns: int
    transfer_ns: tuple[int, int] | None
    transfer_bytes: int
    kernels: tuple[KernelTime, ...]

    @property
    def done(self) -> bool: ...

    def wait(self) -> Any:
        """Block until it is done; the result of its function. Raises what the function raised."""


class Event(Protocol):
    """A point in a stream."""

    @property
    def fired(self) -> bool: ...

    def wait(self) -> None:
        """Block until the work before it is done."""


class Stream(Protocol):
    """An in-order queue of device work."""

    def upload(self, pieces: Sequence[Piece], *, pinned: bool) -> Work:
        """Queue a copy from host memory."""

    def run(
        self,
        function: Callable[[], Any],
        *,
        streamed_bytes: int = 0,
        arriving: Sequence[Work] = (),
        awaited: bool = False,
    ) -> Work:
        """Queue a stage; `streamed_bytes` cross to the device meanwhile, and it lasts at least as long as they do.

        An emulated device takes the number; a real one moves the bytes in the function, and counts them itself.
        `arriving` are uploads of any stream under way: where the device takes arrivals, the function is called at once
        and says of each array when it needs it, and the device waits for that array's copy alone. `awaited`: whoever
        calls waits for the work next, so no other thread needs to be woken for it.
        """

    def record(self) -> Event:
        """An event that fires when all that is in the stream now is done."""

    def wait(self, event: Event) -> None:
        """Make what is put into the stream later wait for an event of any stream of the device."""


class Device(Protocol):
    """One device.

    Attributes
    ----------
    limit_bytes : int
        Allocations beyond it fail, whatever the card has.
    takes_arrivals : bool
        Whether a stage can begin before the uploads that it waits for are done (`Stream.run`, `arriving`).
    observing : bool
        Whether anybody wants to know the times of kernels; their watching costs time where it is real.
    """

    index: int
    name: str
    limit_bytes: int
    takes_arrivals: bool
    observing: bool

    def alloc(self, size_bytes: int, *, pooled: bool = False, backed: bool = True) -> Memory:
        """Allocate; from the stream-ordered pool where `pooled`. Its contents are undefined.

        Raises
        ------
        DeviceMemoryExhausted
        """

    def free(self, memory: Memory) -> None:
        """Give back; the pool keeps what was pooled."""

    def free_bytes(self) -> int:
        """Bytes neither allocated nor kept by the pool."""

    def trim(self) -> None:
        """Give the pool's unused memory back."""

    def host_array(self, *shape: int, pinned: bool = False) -> np.ndarray:
        """Host memory that this device can page-lock, uint64, undefined; `pinned`: it is page-locked for good."""

    def pin(self, memory: Sequence[np.ndarray], *, keep: bool = False) -> None:
        """Page-lock host memory. `keep`: it stays so when it is unpinned, so a second time costs nothing."""

    def unpin(self, memory: Sequence[np.ndarray], *, keep: bool = False) -> None:
        """Undo `pin`, unless the memory is kept."""

    def keeps(self, memory: Sequence[np.ndarray]) -> bool:
        """Whether pinning memory that is to be kept costs nothing."""

    def stream(self, name: str) -> Stream: ...

    @property
    def idle(self) -> bool:
        """Whether no stream has work."""

    def sync(self) -> None:
        """Block until no stream has work."""

    def close(self) -> None:
        """Finish all work and give up all memory."""

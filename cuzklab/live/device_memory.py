"""The allocations of one device: who has what, recorded as it changes, and waits for room."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuzklab.backends.device import Device, DeviceMemoryExhausted, Memory, Work
from cuzklab.live.board import Board
from cuzklab.live.instruments import Instruments, Who
from cuzklab.policies.effects import DoubleFree, OutOfDeviceMemory, UseAfterFree, UseBeforeCopied, WrongDevice
from cuzklab.policies.model import Buffer, Gpu
from cuzklab.trace.recorders.names import OWNERS, Owner
from cuzklab.trace.recorders.tables import VRAM_OPS
from cuzklab.trace.recorders.vram import ALLOC, FAIL, FREE


@dataclass(frozen=True)
class _UnderWay:
    """Work of the device that may not be done yet: in words, and the buffers that it uses or fills."""

    work: Work
    what: str
    buffers: tuple[Buffer, ...]
    writes: bool


class DeviceMemory:
    """Live allocations of a device, by the policy's handles.

    Attributes
    ----------
    live : dict of Buffer to Memory
        Oldest first.
    frees : int
        How often memory has become free; whoever waits for room waits for it to change.
    freed : Condition
        On the board's mutex, notified then.
    """

    def __init__(self, device: Device, board: Board, instruments: Instruments) -> None:
        self.device = device
        self.live: dict[Buffer, Memory] = {}
        self.frees = 0
        self.freed = board.condition()
        self._board = board
        self._instruments = instruments
        self._mutex = threading.Lock()  # what is live and what is recorded about it change together
        self._under_way: list[_UnderWay] = []
        if instruments.vram:
            instruments.vram.limit(device.index, device.limit_bytes)

    def allocate(self, who: Who, buffer: Buffer, *, backed: bool = True, will_wait: bool = False) -> None:
        """Allocate memory for a handle. A failure of a request that will wait is no failure to record.

        Raises
        ------
        OutOfDeviceMemory
        """
        with self._mutex:
            try:
                memory = self.device.alloc(buffer.size_bytes, pooled=buffer.pooled, backed=backed)
            except DeviceMemoryExhausted as full:
                if not will_wait:
                    self._record(who, FAIL, buffer)
                raise OutOfDeviceMemory(buffer.name, full.size_bytes, full.in_use_bytes, full.limit_bytes) from full
            self.live[buffer] = memory
            self._record(who, ALLOC, buffer)

    def free(self, who: Who, buffer: Buffer) -> None:
        """Give the memory of a handle back.

        Raises
        ------
        DoubleFree
        UseAfterFree
            Work under way uses it.
        """
        with self._mutex:
            user = self._user_of(buffer)
            if user is not None and buffer in self.live:
                raise UseAfterFree(f"{buffer.name} of {buffer.owner} is freed under {user.what}")
            memory = self.live.pop(buffer, None)
            if memory is None:
                raise DoubleFree(f"{buffer.name} of {buffer.owner} is not allocated")
            self.device.free(memory)
            self._record(who, FREE, buffer)
        self.became_free()

    def became_free(self) -> None:
        """Let those who wait for room try again."""
        with self._board.mutex:
            self.frees += 1
            self.freed.notify_all()

    def begin(
        self, gpu: Gpu, buffers: Sequence[Buffer], what: str, start: Callable[[dict[str, Memory]], Work], writes: bool,
        after: Sequence[Work] = (),
    ) -> Work:  # fmt: skip
        """Start work of a device on the memory of some buffers, by their names; it is under way until it is done.

        `after` is work that the device itself makes it wait for.

        Raises
        ------
        WrongDevice, UseAfterFree
        """
        found = {}
        with self._mutex:
            for buffer in buffers:
                if buffer.gpu != gpu:
                    raise WrongDevice(f"{what} on gpu{gpu.index} uses {buffer.name} of gpu{buffer.gpu.index}")
                if buffer not in self.live:
                    raise UseAfterFree(f"{what} uses {buffer.name} of {buffer.owner}, which was freed")
                copy = None if writes else self._user_of(buffer, writing=True, but=after)
                if copy is not None:
                    raise UseBeforeCopied(
                        f"{what} uses {buffer.name} of {buffer.owner}, which {copy.what} has yet to fill"
                    )
                found[buffer.name] = self.live[buffer]
            work = start(found)
            self._under_way.append(_UnderWay(work, what, tuple(buffers), writes))
        return work

    def _user_of(self, buffer: Buffer, writing: bool = False, but: Sequence[Work] = ()) -> "_UnderWay | None":
        """Work under way that uses a buffer, or fills it; what is done is forgotten. The mutex is held."""
        self._under_way = [one for one in self._under_way if not one.work.done]
        return next(
            (
                one
                for one in self._under_way
                if buffer in one.buffers and (one.writes or not writing) and one.work not in but
            ),
            None,
        )

    def holdings(self) -> tuple[Buffer, ...]:
        """What is allocated, oldest first."""
        with self._mutex:
            return tuple(self.live)

    def owners(self) -> tuple[str, ...]:
        """The actors that have memory allocated."""
        with self._mutex:
            return tuple(dict.fromkeys(buffer.owner for buffer in self.live))

    def promise(self, who: Who, op: str, size_bytes: int) -> None:
        """Record a reservation (``reserve``), or that one was given back (``unreserve``)."""
        if vram := self._instruments.vram:
            owner = self._instruments.owner(who)
            vram.promised(VRAM_OPS.index(op), size_bytes, device=self.device.index, owner=owner)

    def _record(self, who: Who, op: int, buffer: Buffer) -> None:
        """Record a change; the mutex is held."""
        vram = self._instruments.vram
        if not vram:
            return
        number = self._instruments.owner(who)
        if buffer.partition and buffer.partition != who.partition:
            number = OWNERS.number(Owner(who.worker, buffer.partition, who.proof))
        device = self.device.index
        if op == ALLOC:
            vram.allocated(buffer, buffer.size_bytes, device=device, buffer=buffer.name, owner=number)
        elif op == FREE:
            vram.freed(buffer, device=device, owner=number)
        else:
            vram.failed(buffer.size_bytes, device=device, buffer=buffer.name, owner=number)

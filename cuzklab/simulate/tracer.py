"""What a simulation records: the rows that a live run would have, in virtual nanoseconds.

Locks, device memory, reservations and queues are recorded by watching the world, so an effect needs no line here to be
seen. With `everything` off only what the figures of a run need is kept: spans, kernels, device and host memory.
"""

from collections.abc import Callable
from typing import Any

from cuzklab.policies.effects import Acquire, Alloc, Compute, Free, Launch, OutOfDeviceMemory, Upload
from cuzklab.policies.model import Buffer, Gpu, Lock, Partition, Queue
from cuzklab.policies.schedule import SCHEDULE
from cuzklab.simulate.actor import Actor
from cuzklab.simulate.world import Waiting, World
from cuzklab.trace import Counter, Kernel, LockUse, Recorder, Span, Transfer, VramEvent, WaitInterval
from cuzklab.trace.metrics import CALL, FAILED, HOST_MEMORY, PROVED

# Tables without which the figures of a run can be computed.
OPTIONAL_TABLES = ("locks", "transfers", "waits")


class Tracer:
    """Turns what happens in a world into rows.

    Parameters
    ----------
    clock : callable returning int
        Virtual nanoseconds.
    everything : bool
        Whether to fill the optional tables and the queues' counters.

    Attributes
    ----------
    recorder : Recorder
    actor : Actor or None
        Whose effect takes place; set by the interpreter before each change of the world.
    """

    def __init__(self, world: World, clock: Callable[[], int], everything: bool = True) -> None:
        self.recorder = Recorder(clock)
        self.actor: Actor | None = None
        self._clock, self._everything = clock, everything
        self._live_bytes: dict[Gpu, int] = {}
        world.observers["live"] = self._device_memory
        world.observers["reserved"] = self._reservations
        world.observers[Lock] = self._lock
        if everything:
            world.observers[Queue] = self._queue

    # --- told by the interpreter -------------------------------------------------------------------------------------

    def waited(self, waiting: Waiting) -> None:
        """An actor could not go on and now can."""
        now = self._clock()
        if self._everything and now > waiting.since_ns and waiting.kind != SCHEDULE:
            actor = waiting.actor
            self.recorder.add(
                WaitInterval(
                    waiting.since_ns, now, waiting.kind, waiting.effect.on, waiting.holder, actor.worker,
                    actor.partition_name,
                )
            )  # fmt: skip

    def never_went_on(self, waiting: Waiting) -> None:
        """An actor waits when nothing more can happen: its wait lasts to the end, and a lock was asked for in vain."""
        self.waited(waiting)
        if self._everything and isinstance(waiting.effect, Acquire):
            actor = waiting.actor
            self.recorder.add(
                LockUse(
                    waiting.effect.lock.name, waiting.since_ns, None, None, actor.name, actor.worker,
                    actor.partition_name, waiting.holder,
                )
            )  # fmt: skip

    def span(self, actor: Actor, start_ns: int, name: str, category: str, device: int = -1) -> None:
        parent = PROVED if actor.in_call else ""
        self.recorder.add(
            Span(
                start_ns, self._clock(), name, category, 0, actor.name, actor.worker, actor.proof,
                actor.partition_name, device, parent,
            )
        )  # fmt: skip

    def lasted(self, actor: Actor, effect: Any, start_ns: int) -> None:
        """An effect that lasts has ended: a stage, or a call that changes memory."""
        match effect:
            case Compute():
                self.span(actor, start_ns, effect.label, "cpu")
            case Launch():
                self.span(actor, start_ns, effect.label, "gpu", effect.gpu.index)
            case Upload():
                self.span(actor, start_ns, "upload", "transfer", effect.stream.gpu.index)
            case Alloc():
                self.span(actor, start_ns, f"alloc {effect.name}", "memory", effect.gpu.index)
            case Free():
                self.span(actor, start_ns, f"free {effect.buffer.name}", "memory", effect.buffer.gpu.index)
            case _:
                self.span(actor, start_ns, _words(type(effect).__name__), "memory", actor.device)

    def kernel(self, actor: Actor, effect: Launch, start_ns: int, launch_ns: int) -> None:
        self.recorder.add(
            Kernel(
                start_ns, self._clock(), effect.label, effect.stream.name, effect.gpu.index, launch_ns, effect.label,
                actor.worker, effect.partition.name,
            )
        )  # fmt: skip

    def transfer(
        self, actor: Actor, effect: Launch | Upload, start_ns: int, issue_ns: int, size_bytes: int, pinned: bool
    ) -> None:
        if self._everything and size_bytes:
            stream = effect.stream
            self.recorder.add(
                Transfer(
                    start_ns, self._clock(), issue_ns, size_bytes, "h2d", pinned, stream.name, stream.gpu.index,
                    actor.worker, effect.partition.name,
                )
            )  # fmt: skip

    def call(self, actor: Actor, partition: Partition, proved: bool) -> None:
        """A worker has an outcome for the partition that it took."""
        self.recorder.add(
            Span(
                actor.took_ns, self._clock(), PROVED if proved else FAILED, CALL, 0, actor.name, actor.worker,
                partition.proof, partition.name, actor.device,
            )
        )  # fmt: skip

    def out_of_memory(self, actor: Actor, gpu: Gpu, fault: OutOfDeviceMemory, live_bytes: int) -> None:
        self._vram("fail", actor, gpu, fault.name, fault.size_bytes, live_bytes, actor.partition_name)

    def host_memory(self, size_bytes: int) -> None:
        self.recorder.add(Counter(self._clock(), HOST_MEMORY, size_bytes))

    # --- seen in the world -------------------------------------------------------------------------------------------

    def _lock(self, lock: Lock, old: str | None, new: str | None) -> None:
        actor, now = self.actor, self._clock()
        if old is not None and (use := actor.locks.pop(lock, None)) is not None:
            use.released = now
        if new is not None:
            use = LockUse(
                lock.name, actor.requested_ns, now, None, actor.name, actor.worker, actor.partition_name,
                actor.holder_at_request,
            )  # fmt: skip
            actor.locks[lock] = use
            if self._everything:
                self.recorder.add(use)

    def _device_memory(
        self, key: tuple[str, Gpu], old: tuple[Buffer, ...] | None, new: tuple[Buffer, ...] | None
    ) -> None:
        old, new = old or (), new or ()
        live_bytes = self._live_bytes[key[1]] = sum(buffer.size_bytes for buffer in new)
        for op, buffers in (("free", _without(old, new)), ("alloc", _without(new, old))):
            for buffer in buffers:
                self._vram(op, self.actor, key[1], buffer.name, buffer.size_bytes, live_bytes, buffer.partition)

    def _reservations(self, key: tuple[str, Gpu], old: tuple | None, new: tuple | None) -> None:
        change = sum(size for _, size in new or ()) - sum(size for _, size in old or ())
        op = "reserve" if change > 0 else "unreserve"
        live_bytes = self._live_bytes.get(key[1], 0)  # a promise allocates nothing
        self._vram(op, self.actor, key[1], "reservation", abs(change), live_bytes, self.actor.partition_name)

    def _vram(
        self, op: str, actor: Actor, gpu: Gpu, name: str, size_bytes: int, live_bytes: int, partition: str
    ) -> None:
        if not self._everything and op == "free":
            return  # peaks are at allocations
        held = ", ".join(lock.name for lock in actor.locks)
        self.recorder.add(
            VramEvent(
                self._clock(),
                op,
                name,
                size_bytes,
                gpu.index,
                live_bytes,
                gpu.vram_bytes,
                actor.worker,
                partition,
                held,
            )
        )

    def _queue(self, queue: Queue, old: tuple | None, new: tuple | None) -> None:
        self.recorder.add(Counter(self._clock(), f"queue {queue.name}", len(new or ())))


def _without(some: tuple[Buffer, ...], others: tuple[Buffer, ...]) -> list[Buffer]:
    return [buffer for buffer in some if buffer not in others]


def _words(name: str) -> str:
    """``TrimPool`` as ``trim pool``."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).lstrip()

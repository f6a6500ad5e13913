"""One actor of a live run: drives its program in a thread, and does what each effect says.

The public methods of `Actor` are what effects call (`effect.perform(actor)`), but for `stage`; what they share with
other actors is in the `Run` that they belong to. Uploads and waits for them are in `copies`.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cuzklab.backends import device as devices
from cuzklab.live import copies
from cuzklab.live.board import Blocked, Stopped, raise_pending
from cuzklab.live.copies import RecordedEvent
from cuzklab.live.instruments import LockUses
from cuzklab.live.rows import Launched
from cuzklab.live.trail import Trail
from cuzklab.live.work import StageFailed
from cuzklab.policies import effects
from cuzklab.policies.effects import DoubleFree, OutOfDeviceMemory, PolicyFault
from cuzklab.policies.engine import Outcome
from cuzklab.policies.model import (
    Buffer,
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

if TYPE_CHECKING:
    from cuzklab.live.run import Run


class Actor:
    """A thread that runs a program.

    Attributes
    ----------
    name, worker : str
        ``gpu0.w1/prep`` works for ``gpu0.w1``.
    subject : Partition or None
        The partition that it is at work on, as far as its effects tell.
    effect : Effect or None
        What it is at.
    result : object
        What the program returned.
    run : Run
    trail : Trail
        What it records.
    """

    def __init__(self, run: "Run", name: str, program: Program, parent: "Actor | None" = None) -> None:
        self.name = name
        self.worker = name.partition("/")[0]
        self.subject = parent.subject if parent else None
        self.effect: effects.Effect | None = None
        self.result: Any = None
        self.ended = self.joined = False
        self.pending_fault: PolicyFault | None = None
        self.parent = parent
        own = (argument.index for argument in program.arguments if isinstance(argument, Gpu))
        self.device: int | None = next(own, None) if parent is None else parent.device
        self.locks: dict[Lock, LockUses | None] = {}
        self.thread = threading.Thread(target=self._drive, name=name, daemon=True)
        self.run = run
        self.trail = Trail(self, parent.trail if parent else None)
        self._program = program
        self._allocations = 0

    @property
    def partition(self) -> str:
        return self.subject.name if self.subject else ""

    @property
    def proof(self) -> int:
        return self.subject.proof if self.subject else -1

    # --- driving -----------------------------------------------------------------------------------------------------

    def _drive(self) -> None:
        failure: BaseException | None = None
        generator = self._program.start()
        try:
            effect = next(generator)
            while True:
                try:
                    result = self._perform(effect)
                except PolicyFault as fault:
                    effect = generator.throw(fault)
                else:
                    effect = generator.send(result)
        except StopIteration as end:
            self.result = end.value
        except Stopped:
            pass
        except BaseException as error:
            failure = error
        finally:
            self.run.ended(self, failure)

    def _perform(self, effect: effects.Effect) -> Any:
        self.run.board.check()
        raise_pending(self)
        self.effect = effect
        pacing = self.run.pacing
        pacing.enter(self, effect)
        subject = getattr(effect, "partition", None)
        if subject is not None:
            self.subject = subject
        try:
            result = effect.perform(self)
        except PolicyFault as fault:
            pacing.leave(self, effect, fault.at(self.name, effect))
            raise
        pacing.leave(self, effect, None)
        return result

    # --- locks -------------------------------------------------------------------------------------------------------

    def acquire(self, lock: Lock) -> None:
        mutex = self.run.mutex(lock)
        uses = self.run.instruments.lock(self, lock.name)
        requested = self.run.now()
        try:
            found_with = mutex.acquire(self)
        except Stopped:
            if uses:
                uses.left(requested, mutex.holder)
            raise
        if uses:
            uses.acquired(requested, found_with)
        self.locks[lock] = uses

    def release(self, lock: Lock) -> None:
        released = self.run.now()
        self.run.mutex(lock).release(self)
        if uses := self.locks.pop(lock):
            uses.released(released)

    # --- device memory -----------------------------------------------------------------------------------------------

    def alloc(self, effect: effects.Alloc) -> Buffer:
        memory = self.run.memory(effect.gpu)
        partition = effect.partition.name if effect.partition else ""
        serial = self._allocations + 1
        buffer = Buffer(effect.name, effect.size_bytes, effect.gpu, self.name, serial, partition, effect.pooled)
        will_wait = effect.on_full == "wait"
        while True:
            if effect.device_wide:
                self._wait_for_idle(effect.gpu)
            frees = memory.frees
            try:
                with self.trail.span("alloc", "memory", effect.gpu):
                    memory.allocate(self, buffer, will_wait=will_wait)
                self._allocations = serial
                return buffer
            except OutOfDeviceMemory:
                if not will_wait:
                    raise
            self._wait_for_room(effect, frees)

    def _wait_for_room(self, effect: effects.Alloc, frees: int) -> None:
        memory = self.run.memory(effect.gpu)
        blocked = Blocked("memory", effect.on, lambda: memory.frees != frees, memory.owners, memory.freed)
        with self.run.board.mutex:
            self.run.board.wait(self, blocked)

    def free(self, effect: effects.Free) -> None:
        gpu = effect.buffer.gpu
        if effect.device_wide:
            self._wait_for_idle(gpu)
        with self.trail.span("free", "memory", gpu):
            self.run.memory(gpu).free(self, effect.buffer)

    def reserve(self, gpu: Gpu, size_bytes: int) -> None:
        self.run.reservations(gpu).reserve(self, size_bytes)
        self.run.memory(gpu).promise(self, "reserve", size_bytes)

    def unreserve(self, gpu: Gpu, size_bytes: int) -> None:
        self.run.reservations(gpu).unreserve(self, size_bytes)
        self.run.memory(gpu).promise(self, "unreserve", size_bytes)

    # --- host memory and transfers -----------------------------------------------------------------------------------

    def pin(self, buffer: HostBuffer, pooled: bool) -> None:
        device, memory = self.run.host_memory, self.run.workload.host_memory(buffer)
        if not (pooled and device.keeps(memory)):
            with self.trail.span("pin", "memory"):
                device.pin(memory, keep=pooled)
        self.run.pinned[buffer] = memory

    def unpin(self, buffer: HostBuffer, pooled: bool) -> None:
        copies.refuse_under_copy(self.run, buffer, "unpinned")
        memory = self.run.pinned.pop(buffer, ())
        if not pooled:
            with self.trail.span("unpin", "memory"):
                self.run.host_memory.unpin(memory)

    def free_host(self, effect: effects.FreeHost) -> None:
        copies.refuse_under_copy(self.run, effect.buffer, "freed")
        if effect.buffer in self.run.freed:
            raise DoubleFree(f"{effect.buffer.name} was freed before")
        self.run.freed.add(effect.buffer)
        self.run.workload.free_host(effect.partition, effect.buffer)
        self.trail.host_memory()

    def upload(self, effect: effects.Upload) -> None:
        copies.upload(self, effect)

    def record_event(self, stream: Stream) -> RecordedEvent:
        return copies.record_event(self.run, stream)

    def wait_event(self, effect: effects.WaitEvent) -> None:
        copies.wait_event(self, effect)

    # --- work --------------------------------------------------------------------------------------------------------

    def launch(self, effect: effects.Launch) -> None:
        gpu, partition, label = effect.gpu, effect.partition, effect.label
        ledger, stream = self.run.memory(gpu), self.run.stream(effect.stream)
        with self.run.turn(effect.stream):
            arriving = copies.arriving_for(self.run, effect)
            if not arriving:
                copies.wait_for_stream(self, effect.stream)
            data = self.run.data.step(effect)
            with data, self._scratch(effect), self.trail.span(label, "gpu", gpu), self.stage(label, partition):
                launched = self.run.now()
                streamed_bytes = self.run.workload.streamed_bytes(partition, effect.stage, effect.part)

                def start(memory: dict[str, devices.Memory]) -> devices.Work:
                    self.run.pacing.before_work(self, stream)
                    return stream.run(
                        lambda: self.run.workload.launch(partition, effect.stage, effect.part, memory),
                        streamed_bytes=streamed_bytes,
                        arriving=arriving,
                        awaited=True,
                    )

                work = ledger.begin(gpu, effect.uses, label, start, writes=False, after=arriving)
                self.run.pacing.work_begun(self, effect, work)
                work.wait()
        self.run.launched.append(Launched(work, effect, self.worker, launched))

    @contextmanager
    def _scratch(self, effect: effects.Launch) -> Iterator[None]:
        """Device memory that a stage has while it runs."""
        if not effect.scratch_bytes:
            yield
            return
        memory = self.run.memory(effect.gpu)
        buffer = Buffer(
            f"{effect.label} scratch", effect.scratch_bytes, effect.gpu, self.name, 0, effect.partition.name
        )
        memory.allocate(self, buffer, backed=False)
        try:
            yield
        finally:
            memory.free(self, buffer)

    @contextmanager
    def stage(self, label: str, partition: Partition) -> Iterator[None]:
        """Turn what a stage raises into a fault of its partition."""
        try:
            yield
        except PolicyFault:
            raise
        except Exception as error:
            raise StageFailed(label, partition.name, error) from error

    def compute(self, effect: effects.Compute) -> None:
        data = self.run.data.step(effect)
        with data, self.trail.span(effect.label, "cpu"), self.stage(effect.label, effect.partition):
            self.run.workload.compute(effect.partition, effect.stage, effect.part, effect.threads)
        self.trail.host_memory()

    # --- device-wide calls -------------------------------------------------------------------------------------------

    def device_sync(self, gpu: Gpu) -> None:
        self._wait_for_idle(gpu)
        with self.trail.span("device_sync", "memory", gpu):
            self.run.memory(gpu).device.sync()

    def trim_pool(self, gpu: Gpu) -> None:
        self._wait_for_idle(gpu)
        with self.trail.span("trim_pool", "memory", gpu):
            self.run.memory(gpu).device.trim()
        self.run.memory(gpu).became_free()

    def query_free(self, gpu: Gpu) -> int:
        return self.run.memory(gpu).device.free_bytes()

    def _wait_for_idle(self, gpu: Gpu) -> None:
        device = self.run.memory(gpu).device
        if device.idle:
            return
        start = self.run.now()
        device.sync()
        self.trail.waited(start, "device_sync", device.name)

    # --- coordination ------------------------------------------------------------------------------------------------

    def notify(self, semaphore: Semaphore) -> None:
        self.run.permits(semaphore).notify()

    def wait(self, semaphore: Semaphore) -> None:
        self.run.permits(semaphore).wait(self)

    def set_flag(self, flag: Flag, value: bool) -> None:
        self.run.switch(flag).set(value)

    def read_flag(self, flag: Flag) -> bool:
        return self.run.switch(flag).value

    def wait_clear(self, flag: Flag) -> None:
        self.run.switch(flag).wait_clear(self)

    def exchange(self, slot: Slot, value: Any) -> Any:
        return self.run.exchange(slot, value)

    def put(self, queue: Queue, item: Any) -> None:
        if isinstance(item, Outcome):
            self.trail.end_call(item.ok)
            self.run.workload.finished(item.partition)
            self.trail.host_memory()
        self.run.latencies.passed(item, self.run.now())
        length = self.run.channel(queue).put(self, item)
        self.trail.queue_length(queue, length)
        if isinstance(item, Outcome):
            self.run.outcomes += 1

    def get(self, queue: Queue) -> Any:
        item, length = self.run.channel(queue).get(self)
        self.trail.queue_length(queue, length)
        if isinstance(item, Partition):
            self.subject = item
            if self.device is not None:
                self.trail.begin_call()
        return item

    def fork(self, effect: effects.Fork) -> Task:
        return Task(self.run.fork(self, effect))

    def join(self, task: Task) -> None:
        self.run.join(self, task.actor)

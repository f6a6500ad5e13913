"""One actor of a live run: drives its program in a thread, and does what each effect says.

The public methods of `Actor` are what effects call (`effect.perform(actor)`); what they share with other actors is in
the `Run` that they belong to.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cuzklab.backends import device as devices
from cuzklab.live.board import Blocked, Stopped, raise_pending
from cuzklab.live.copies import RecordedEvent, arriving_for, copies_in
from cuzklab.live.instruments import LockUses
from cuzklab.live.rows import Launched
from cuzklab.live.work import StageFailed
from cuzklab.policies import effects
from cuzklab.policies.effects import DoubleFree, OutOfDeviceMemory, PolicyFault, UseAfterFree
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
from cuzklab.trace.metrics import CALL, FAILED, HOST_MEMORY, PROVED
from cuzklab.trace.schema import Counter, Span, Transfer, WaitInterval

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
        self._run = run
        self._program = program
        self._allocations = 0
        # A forked program works for its parent's call, and may be the one that ends it.
        self._call_start: int | None = parent._call_start if parent else None
        self._call_range: Any = parent._call_range if parent else None

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
            self._run.ended(self, failure)

    def _perform(self, effect: effects.Effect) -> Any:
        self._run.board.check()
        raise_pending(self)
        self.effect = effect
        pacing = self._run.pacing
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
        mutex = self._run.mutex(lock)
        uses = self._run.instruments.lock(self, lock.name)
        requested = self._run.now()
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
        released = self._run.now()
        self._run.mutex(lock).release(self)
        if uses := self.locks.pop(lock):
            uses.released(released)

    # --- device memory -----------------------------------------------------------------------------------------------

    def alloc(self, effect: effects.Alloc) -> Buffer:
        memory = self._run.memory(effect.gpu)
        partition = effect.partition.name if effect.partition else ""
        serial = self._allocations + 1
        buffer = Buffer(effect.name, effect.size_bytes, effect.gpu, self.name, serial, partition, effect.pooled)
        will_wait = effect.on_full == "wait"
        while True:
            if effect.device_wide:
                self._wait_for_idle(effect.gpu)
            frees = memory.frees
            try:
                with self._span("alloc", "memory", effect.gpu):
                    memory.allocate(self, buffer, will_wait=will_wait)
                self._allocations = serial
                return buffer
            except OutOfDeviceMemory:
                if not will_wait:
                    raise
            self._wait_for_room(effect, frees)

    def _wait_for_room(self, effect: effects.Alloc, frees: int) -> None:
        memory = self._run.memory(effect.gpu)
        blocked = Blocked("memory", effect.on, lambda: memory.frees != frees, memory.owners, memory.freed)
        with self._run.board.mutex:
            self._run.board.wait(self, blocked)

    def free(self, effect: effects.Free) -> None:
        gpu = effect.buffer.gpu
        if effect.device_wide:
            self._wait_for_idle(gpu)
        with self._span("free", "memory", gpu):
            self._run.memory(gpu).free(self, effect.buffer)

    def reserve(self, gpu: Gpu, size_bytes: int) -> None:
        self._run.reservations(gpu).reserve(self, size_bytes)
        self._run.memory(gpu).promise(self, "reserve", size_bytes)

    def unreserve(self, gpu: Gpu, size_bytes: int) -> None:
        self._run.reservations(gpu).unreserve(self, size_bytes)
        self._run.memory(gpu).promise(self, "unreserve", size_bytes)

    # --- host memory and transfers -----------------------------------------------------------------------------------

    def pin(self, buffer: HostBuffer, pooled: bool) -> None:
        device, memory = self._run.host_memory, self._run.workload.host_memory(buffer)
        if not (pooled and device.keeps(memory)):
            with self._span("pin", "memory"):
                device.pin(memory, keep=pooled)
        self._run.pinned[buffer] = memory

    def unpin(self, buffer: HostBuffer, pooled: bool) -> None:
        self._refuse_under_copy(buffer, "unpinned")
        memory = self._run.pinned.pop(buffer, ())
        if not pooled:
            with self._span("unpin", "memory"):
                self._run.host_memory.unpin(memory)

    def free_host(self, effect: effects.FreeHost) -> None:
        self._refuse_under_copy(effect.buffer, "freed")
        if effect.buffer in self._run.freed:
            raise DoubleFree(f"{effect.buffer.name} was freed before")
        self._run.freed.add(effect.buffer)
        self._run.workload.free_host(effect.partition, effect.buffer)
        self._count_host_memory()

    def upload(self, effect: effects.Upload) -> None:
        run, gpu = self._run, effect.stream.gpu
        pinned = effect.source in run.pinned
        if pinned:
            self._wait_in_stream(effect.stream)
            run.pacing.copy_begun(self, self._put_upload(effect, pinned))
            return
        with run.turn(effect.stream):
            self._wait_for_stream(effect.stream)
            work = self._put_upload(effect, pinned)
            run.pacing.work_begun(self, effect, work)
            with self._span("upload", "transfer", gpu):
                work.wait()

    def _put_upload(self, effect: effects.Upload, pinned: bool) -> devices.Work:
        """Queue the copy on its stream."""
        run, gpu = self._run, effect.stream.gpu
        if effect.source in run.freed:
            raise UseAfterFree(f"upload uses {effect.source.name}, which was freed")

        def start(memory: dict[str, devices.Memory]) -> devices.Work:
            targets = tuple(memory[buffer.name] for buffer in effect.targets)
            with self._stage("upload", effect.partition):
                pieces = run.workload.pieces(effect.partition, effect.source, targets)
                size_bytes = sum(piece.source.nbytes for piece in pieces)
                issue = run.now()
                run.pacing.before_work(self, run.stream(effect.stream))
                work = run.stream(effect.stream).upload(pieces, pinned=pinned)
            row = Transfer(
                0, 0, issue, size_bytes, "h2d", pinned, effect.stream.name, gpu.index, self.worker,
                effect.partition.name,
            )  # fmt: skip
            run.transfers.append((row, work))
            run.reading.setdefault(effect.source, []).append(work)
            run.copies.setdefault(effect.stream, []).append(work)
            return work

        with run.data.step(effect):
            return run.memory(gpu).begin(gpu, effect.targets, f"the upload of {effect.source.name}", start, writes=True)

    def record_event(self, stream: Stream) -> RecordedEvent:
        self._wait_in_stream(stream)
        return RecordedEvent(stream, self._run.stream(stream).record(), copies_in(self._run, stream))

    def wait_event(self, effect: effects.WaitEvent) -> None:
        if effect.stream is None:
            self._wait_for_event(effect.event)
        elif not effect.event.event.fired:
            self._run.after.setdefault(effect.stream, []).append(effect.event)

    def _wait_in_stream(self, stream: Stream) -> None:
        """Put the waits that a stream was told of into it, for what follows there."""
        for waited in self._run.after.get(stream, ()):
            self._run.stream(stream).wait(waited.event)

    # --- work --------------------------------------------------------------------------------------------------------

    def launch(self, effect: effects.Launch) -> None:
        gpu, partition, label = effect.gpu, effect.partition, effect.label
        ledger, stream = self._run.memory(gpu), self._run.stream(effect.stream)
        with self._run.turn(effect.stream):
            arriving = arriving_for(self._run, effect)
            if not arriving:
                self._wait_for_stream(effect.stream)
            data = self._run.data.step(effect)
            with data, self._scratch(effect), self._span(label, "gpu", gpu), self._stage(label, partition):
                launched = self._run.now()
                streamed_bytes = self._run.workload.streamed_bytes(partition, effect.stage, effect.part)

                def start(memory: dict[str, devices.Memory]) -> devices.Work:
                    self._run.pacing.before_work(self, stream)
                    return stream.run(
                        lambda: self._run.workload.launch(partition, effect.stage, effect.part, memory),
                        streamed_bytes=streamed_bytes,
                        arriving=arriving,
                        awaited=True,
                    )

                work = ledger.begin(gpu, effect.uses, label, start, writes=False, after=arriving)
                self._run.pacing.work_begun(self, effect, work)
                work.wait()
        self._run.launched.append(Launched(work, effect, self.worker, launched))

    @contextmanager
    def _scratch(self, effect: effects.Launch) -> Iterator[None]:
        """Device memory that a stage has while it runs."""
        if not effect.scratch_bytes:
            yield
            return
        memory = self._run.memory(effect.gpu)
        buffer = Buffer(
            f"{effect.label} scratch", effect.scratch_bytes, effect.gpu, self.name, 0, effect.partition.name
        )
        memory.allocate(self, buffer, backed=False)
        try:
            yield
        finally:
            memory.free(self, buffer)

    def compute(self, effect: effects.Compute) -> None:
        data = self._run.data.step(effect)
        with data, self._span(effect.label, "cpu"), self._stage(effect.label, effect.partition):
            self._run.workload.compute(effect.partition, effect.stage, effect.part, effect.threads)
        self._count_host_memory()

    # --- device-wide calls -------------------------------------------------------------------------------------------

    def device_sync(self, gpu: Gpu) -> None:
        self._wait_for_idle(gpu)
        with self._span("device_sync", "memory", gpu):
            self._run.memory(gpu).device.sync()

    def trim_pool(self, gpu: Gpu) -> None:
        self._wait_for_idle(gpu)
        with self._span("trim_pool", "memory", gpu):
            self._run.memory(gpu).device.trim()
        self._run.memory(gpu).became_free()

    def query_free(self, gpu: Gpu) -> int:
        return self._run.memory(gpu).device.free_bytes()

    # --- coordination ------------------------------------------------------------------------------------------------

    def notify(self, semaphore: Semaphore) -> None:
        self._run.permits(semaphore).notify()

    def wait(self, semaphore: Semaphore) -> None:
        self._run.permits(semaphore).wait(self)

    def set_flag(self, flag: Flag, value: bool) -> None:
        self._run.switch(flag).set(value)

    def read_flag(self, flag: Flag) -> bool:
        return self._run.switch(flag).value

    def wait_clear(self, flag: Flag) -> None:
        self._run.switch(flag).wait_clear(self)

    def exchange(self, slot: Slot, value: Any) -> Any:
        return self._run.exchange(slot, value)

    def put(self, queue: Queue, item: Any) -> None:
        if isinstance(item, Outcome):
            self._end_call(item)
        self._run.latencies.passed(item, self._run.now())
        length = self._run.channel(queue).put(self, item)
        self._add(Counter(self._run.now(), f"queue {queue.name}", length))
        if isinstance(item, Outcome):
            self._run.outcomes += 1

    def get(self, queue: Queue) -> Any:
        item, length = self._run.channel(queue).get(self)
        self._add(Counter(self._run.now(), f"queue {queue.name}", length))
        if isinstance(item, Partition):
            self.subject = item
            if self.device is not None:
                self._call_start = self._run.now()
                self._call_range = self._run.instruments.begin_range(PROVED, CALL)
        return item

    def fork(self, effect: effects.Fork) -> Task:
        return Task(self._run.fork(self, effect))

    def join(self, task: Task) -> None:
        self._run.join(self, task.actor)

    # --- recording ---------------------------------------------------------------------------------------------------

    def _add(self, row: Any) -> None:
        self._run.instruments.add(row)

    def _span(self, name: str, category: str, gpu: Gpu | None = None) -> Any:
        parent = PROVED if self._call_start is not None else ""
        return self._run.instruments.span(self, name, category, gpu.index if gpu else -1, parent)

    @contextmanager
    def _stage(self, label: str, partition: Partition) -> Iterator[None]:
        """Turn what a stage raises into a fault of its partition."""
        try:
            yield
        except PolicyFault:
            raise
        except Exception as error:
            raise StageFailed(label, partition.name, error) from error

    def _wait_for_idle(self, gpu: Gpu) -> None:
        device = self._run.memory(gpu).device
        if device.idle:
            return
        start = self._run.now()
        device.sync()
        self._waited(start, "device_sync", device.name)

    def _wait_for_stream(self, stream: Stream) -> None:
        """Wait for what a stream waits for, and for the work that it has."""
        for event in self._run.after.pop(stream, ()):
            self._wait_for_event(event)
        self._wait_for_event(self.record_event(stream))

    def _refuse_under_copy(self, source: HostBuffer, what: str) -> None:
        if any(not work.done for work in self._run.reading.get(source, ())):
            raise UseAfterFree(f"{source.name} is {what} while an upload copies from it")

    def _wait_for_event(self, event: RecordedEvent) -> None:
        if event.event.fired:
            return
        start = self._run.now()
        event.event.wait()
        self._waited(start, "event", event.stream.name)

    def _waited(self, start: int, kind: str, on: str) -> None:
        self._add(WaitInterval(start, self._run.now(), kind, on, "", self.worker, self.partition))

    def _count_host_memory(self) -> None:
        self._add(Counter(self._run.now(), HOST_MEMORY, self._run.workload.host_bytes))

    def _end_call(self, outcome: Outcome) -> None:
        """The GPU call of a partition is over, or its synthesis has failed."""
        start, self._call_start = self._call_start, None
        if start is not None:
            self._run.instruments.end_range(self._call_range)
            name = PROVED if outcome.ok else FAILED
            self._add(
                Span(
                    start, self._run.now(), name, CALL, 0, self.name, self.worker, self.proof, self.partition,
                    self.device,
                )
            )  # fmt: skip
        self._run.workload.finished(outcome.partition)
        self._count_host_memory()

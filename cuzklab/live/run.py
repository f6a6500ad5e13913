"""What the actors of one live run share, and the watch over them until the last has ended.

`Run.execute` starts a thread for every program and returns when all have ended: by themselves, or because the run was
stopped (a deadlock, a fault that nobody caught, the deadline, Ctrl-C). It leaves no thread behind.
"""

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzklab.backends.device import Device, Stream, Work
from cuzklab.live.actor import Actor
from cuzklab.live.board import Blocked, Board, Verdict, Waited, raise_pending
from cuzklab.live.copies import RecordedEvent
from cuzklab.live.data import Data
from cuzklab.live.device_memory import DeviceMemory
from cuzklab.live.instruments import Instruments
from cuzklab.live.order import pacing_of
from cuzklab.live.primitives import Channel, Mutex, Permits, Reservations, Switch
from cuzklab.live.rows import Launched, rows_of
from cuzklab.live.work import Workload
from cuzklab.policies import model
from cuzklab.policies.effects import Fork, OutOfDeviceMemory, PolicyFault
from cuzklab.policies.engine import Latencies
from cuzklab.policies.model import WaitFor
from cuzklab.policies.schedule import SCHEDULE, Order
from cuzklab.trace.recorders import Recording
from cuzklab.trace.schema import Transfer, WaitInterval

_WATCH_S = 0.1


@dataclass(frozen=True)
class Ended:
    """How programs ended.

    Attributes
    ----------
    outcome : {"ok", "device_oom", "deadlock", "fault"}
    explanation : str
        One sentence where it is not ok.
    results : mapping
        What each program returned; those that were stopped are missing.
    waits_for : tuple of WaitFor
        At a deadlock and at the deadline: who waited for what.
    fault : Exception or None
        What nobody caught.
    leaks : tuple of str
        Device memory, locks, reservations and pinned memory that nobody gave back, but for buffers kept in slots.
    took_s : float
        Start of the first thread to the end of the last and of the devices' work, whatever is recorded afterwards.
    """

    outcome: str
    explanation: str
    results: Mapping[str, Any]
    waits_for: tuple[WaitFor, ...] = ()
    fault: BaseException | None = None
    leaks: tuple[str, ...] = ()
    took_s: float = 0.0


class Run:
    """One run of programs on devices.

    Parameters
    ----------
    devices : sequence of Device
        By their index.
    workload : Workload
        The stages and their data.
    recorder : Recording or None
        None records nothing.
    order : Order, optional
        A schedule that the programs are made to follow.
    """

    def __init__(
        self, devices: tuple[Device, ...], workload: Workload, recorder: Recording | None, order: Order | None = None
    ) -> None:
        self.now: Callable[[], int] = recorder.clock if recorder else time.monotonic_ns
        self.board = Board(self.now, self._record_wait)
        self.pacing = pacing_of(order, self.board)
        self._names_are_used_once = order is not None  # as in the checker, so that its names are these
        self.instruments = Instruments(recorder)
        for device in devices:
            device.observing = recorder is not None
        self.workload = workload
        self.data = Data()
        self.host_memory = devices[0]
        self.pinned: dict[model.HostBuffer, tuple[np.ndarray, ...]] = {}
        self.freed: set[model.HostBuffer] = set()
        self.after: dict[model.Stream, list[RecordedEvent]] = {}
        self.transfers: list[tuple[Transfer, Work]] = []
        self.launched: list[Launched] = []
        self.reading: dict[model.HostBuffer, list[Work]] = {}
        self.copies: dict[model.Stream, list[Work]] = {}
        self.outcomes = 0
        self.latencies = Latencies()
        self._devices = devices
        self._memories = {device.index: DeviceMemory(device, self.board, self.instruments) for device in devices}
        self._things: dict[Any, Any] = {}
        self._slots: dict[model.Slot, Any] = {}
        self._actors: list[Actor] = []
        self._tasks: dict[str, Actor] = {}
        self._task_ended = self.board.condition()
        self._fault: BaseException | None = None

    # --- what policies name ------------------------------------------------------------------------------------------

    def mutex(self, lock: model.Lock) -> Mutex:
        return self._thing(lock, lambda: Mutex(self.board, lock.name))

    def permits(self, semaphore: model.Semaphore) -> Permits:
        return self._thing(semaphore, lambda: Permits(self.board, semaphore.name, semaphore.initial))

    def switch(self, flag: model.Flag) -> Switch:
        return self._thing(flag, lambda: Switch(self.board, flag.name))

    def exchange(self, slot: model.Slot, value: Any) -> Any:
        """Put a value into a slot; what was there."""
        with self.board.mutex:
            before = self._slots.get(slot)
            self._slots[slot] = value
        return before

    def channel(self, queue: model.Queue) -> Channel:
        return self._thing(queue, lambda: Channel(self.board, queue))

    def reservations(self, gpu: model.Gpu) -> Reservations:
        return self._thing(gpu, lambda: Reservations(self.board, f"gpu{gpu.index}", gpu.vram_bytes))

    def stream(self, stream: model.Stream) -> Stream:
        return self._thing(stream, lambda: self.memory(stream.gpu).device.stream(stream.name))

    def turn(self, stream: model.Stream) -> threading.Lock:
        """Held by whoever puts work into a stream and waits for its end, so that such work comes one by one."""
        return self._thing(("turn", stream), threading.Lock)

    def memory(self, gpu: model.Gpu) -> DeviceMemory:
        return self._memories[gpu.index]

    @property
    def actors(self) -> tuple[Actor, ...]:
        """Those that have been started; the board's mutex is held."""
        return tuple(self._actors)

    @property
    def things(self) -> tuple[Any, ...]:
        """The shared things that exist; the board's mutex is held."""
        return tuple(self._things.values())

    @property
    def memories(self) -> tuple[DeviceMemory, ...]:
        return tuple(self._memories.values())

    def _thing(self, key: Any, make: Callable[[], Any]) -> Any:
        """A shared thing exists as soon as somebody names it."""
        thing = self._things.get(key)
        if thing is None:
            with self.board.mutex:
                thing = self._things.get(key)
                if thing is None:
                    thing = self._things[key] = make()
        return thing

    # --- actors ------------------------------------------------------------------------------------------------------

    def fork(self, parent: Actor, effect: Fork) -> str:
        """Start a program in a thread of its own; the name of its actor."""
        with self.board.mutex:
            self.board.check()
            raise_pending(parent)  # so that no fault of an adopted task is left with the one that gives it away
            wanted = child = f"{parent.name}/{effect.on}"
            number = 1
            while child in self._tasks and (self._names_are_used_once or not self._tasks[child].joined):
                number += 1
                child = f"{wanted}#{number}"
            actor = self._tasks[child] = Actor(self, child, effect.program, parent)
            for task in effect.adopts:
                self._tasks[task.actor].parent = actor
            self._start(actor)
        return child

    def join(self, actor: Actor, name: str) -> None:
        """Wait until a forked program has ended."""
        task = self._tasks[name]
        blocked = Blocked("join", name, lambda: task.ended, lambda: (name,), self._task_ended)
        with self.board.mutex:
            self.board.wait(actor, blocked)
            task.joined = True
            raise_pending(actor)  # of the task itself, when it failed after this effect began and before the wait

    def ended(self, actor: Actor, failure: BaseException | None) -> None:
        """An actor's last words, from its own thread."""
        with self.board.mutex:
            actor.ended = True
            self._task_ended.notify_all()
            failure = failure or actor.pending_fault  # told too late for any effect to raise it
            parent = actor.parent
            if isinstance(failure, PolicyFault) and parent is not None and not parent.ended:
                self.board.deliver(parent, failure)
            elif failure is not None and self.board.verdict is None:
                self._fault = failure
                self.board.stop(_uncaught(actor, failure))
            self.pacing.ended(actor, failure)
            self.board.leave()

    def _start(self, actor: Actor) -> Actor:
        """Start an actor's thread; the board's mutex is held, so it is entered before it can block or end."""
        actor.thread.start()
        self.board.enter()
        self._actors.append(actor)
        return actor

    # --- the run -----------------------------------------------------------------------------------------------------

    def execute(
        self,
        programs: Mapping[str, model.Program],
        deadline_s: float | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Ended:
        """Run programs to their end.

        Parameters
        ----------
        programs : mapping
            By the names of their actors.
        deadline_s : float, optional
            After so many seconds the run is stopped.
        progress : callable, optional
            Called now and then, in this thread, with the number of partitions that have an outcome.
        """
        began = time.monotonic()
        self.instruments.start()
        roots = [Actor(self, name, program) for name, program in programs.items()]
        # In a thread of its own, so that Ctrl-C, which only the main thread gets, finds nothing half started.
        done = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(roots, done), name="keeper", daemon=True)
        try:
            keeper.start()
            self._watch(done, deadline_s, progress)
        except BaseException:
            with self.board.mutex:
                self.board.stop(Verdict("fault", "interrupted"))
            raise
        finally:
            if keeper.ident is not None:
                keeper.join()
            took_s = time.monotonic() - began
            self.instruments.stop()
        self._record_device()
        verdict = self.board.verdict or Verdict("ok", "")
        leaks = self._leaks()
        if verdict.outcome == "ok" and leaks:
            verdict = Verdict("fault", "never given back: " + ", ".join(leaks))
        results = {actor.name: actor.result for actor in roots}
        return Ended(verdict.outcome, verdict.explanation, results, verdict.waits_for, self._fault, leaks, took_s)

    def _keep(self, roots: list[Actor], done: threading.Event) -> None:
        """Start the programs, and wait for every thread and for the devices."""
        try:
            with self.board.mutex:
                try:
                    for actor in roots:
                        self._start(actor)
                except RuntimeError as error:  # the system gives no more threads
                    self.board.stop(Verdict("fault", f"not started: {error}"))
            for actor in self._actors:  # grows meanwhile; who forks stands before what it forks
                actor.thread.join()
            self.pacing.let_go()
            for device in self._devices:
                device.sync()
        except Exception as error:  # the device itself has failed
            with self.board.mutex:
                self.board.stop(Verdict("fault", f"{type(error).__name__}: {error}"))
        finally:
            done.set()

    def _watch(self, done: threading.Event, deadline_s: float | None, progress: Callable[[int], None] | None) -> None:
        # Not `Thread.join` with a timeout: interrupted, it takes a running thread for ended (CPython 3.11).
        deadline = time.monotonic() + deadline_s if deadline_s is not None else None
        while not done.wait(_WATCH_S):
            if deadline is not None and time.monotonic() > deadline:
                with self.board.mutex:
                    if self.board.active:
                        edges = self.board.waits_for()
                        text = f"not done after {deadline_s:g} s; " + ("; ".join(map(str, edges)) or "nobody waits")
                        self.board.stop(Verdict("fault", text, edges))
            if progress:
                progress(self.outcomes)

    def _record_device(self) -> None:
        """Record what the devices did: asynchronous copies have had an end only now, and times of kernels take long."""
        for one in self.launched:
            for row in rows_of(one):
                self.instruments.add(row)
        for row, work in self.transfers:
            try:
                work.wait()
            except Exception as error:
                text = f"a copy of {row.bytes} B for {row.partition} failed: {type(error).__name__}: {error}"
                with self.board.mutex:
                    self.board.stop(Verdict("fault", text))
                continue
            row.start, row.end = work.transfer_ns
            self.instruments.add(row)

    def _leaks(self) -> tuple[str, ...]:
        found, kept = [], [*self._slots.values()]
        for memory in self._memories.values():
            found += [
                f"{buffer.name} ({buffer.size_bytes} B of gpu{buffer.gpu.index}, {buffer.owner})"
                for buffer in memory.live
                if buffer not in kept
            ]
        for actor in self._actors:
            found += [f"lock {lock.name} ({actor.name})" for lock in actor.locks]
        for thing in self._things.values():
            if isinstance(thing, Reservations):
                found += [f"reservation of {size} B ({owner})" for owner, size in thing.promises]
        found += [f"pinned {buffer.name}" for buffer in self.pinned]
        return tuple(found)

    def _record_wait(self, actor: Actor, waited: Waited) -> None:
        if waited.kind == SCHEDULE:
            return
        self.instruments.add(
            WaitInterval(
                waited.start, waited.end, waited.kind, waited.on, ", ".join(waited.holders), actor.worker,
                actor.partition,
            )
        )  # fmt: skip


def _uncaught(actor: Actor, failure: BaseException) -> Verdict:
    if isinstance(failure, OutOfDeviceMemory):
        return Verdict("device_oom", f"{actor.name}: {failure}")
    if isinstance(failure, PolicyFault):
        return Verdict("fault", f"{actor.name}: {failure}")
    place = traceback.extract_tb(failure.__traceback__)[-1]
    where = f"{place.filename.rpartition('/')[2]}:{place.lineno}"
    return Verdict("fault", f"{actor.name}: {type(failure).__name__} at {where}: {failure}")

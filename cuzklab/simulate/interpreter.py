"""Runs programs of effects in virtual time.

Every program is a SimPy process. An effect that is ready takes place at once; one that is not makes its actor wait for
what it reads, and whoever changes that carries the waiting effect out on the spot, first come first served, so nobody
slips in between. What goes on while an effect lasts stands in `cuzklab.simulate.activities`.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import simpy
from simpy.core import EmptySchedule

from cuzklab.policies.effects import (
    Copy,
    Effect,
    Fork,
    FreeHost,
    Get,
    Join,
    Launch,
    OutOfDeviceMemory,
    PolicyFault,
    Put,
    Upload,
    live_bytes,
)
from cuzklab.policies.engine import Latencies, Outcome
from cuzklab.policies.model import Gpu, Partition, Program, WaitFor
from cuzklab.policies.schedule import Order
from cuzklab.simulate.activities import Activities
from cuzklab.simulate.actor import Actor
from cuzklab.simulate.costs import Machine, upload
from cuzklab.simulate.host_memory import HostMemory, HostMemoryExhausted
from cuzklab.simulate.pacing import Ended, Pacing, ScheduleOver
from cuzklab.simulate.tracer import Tracer
from cuzklab.simulate.world import Waiting, World
from cuzklab.trace import Recorder

# An actor that does so many things without time passing is taken to spin for ever.
MAX_EFFECTS_AT_ONE_TIME = 100_000
_WOKEN = {"lock", "barrier", "join", "memory"}  # waits for what another thread does
_EVENTS_BETWEEN = 200  # looks of whoever watches: a few milliseconds

Watch = Callable[[Recorder, int], None]


class NoProgress(PolicyFault):
    """A program does one thing after another without time passing, as a loop over a flag does."""

    kind = "starvation"


@dataclass
class Ending:
    """How programs ended.

    Attributes
    ----------
    outcomes : list of Outcome
        Of the partitions that workers passed on, in order.
    faults : dict of str to PolicyFault
        Programs that a fault ended, by actor.
    results : dict of str to object
        What programs returned, by actor.
    stuck : tuple of WaitFor
        Actors that could not go on when nothing more could happen: a deadlock if there are any.
    host_memory_exhausted : str
        What was too much for the host; then everything stopped there.
    end_ns : int
        Virtual time at which the last actor ended, or everything stopped.
    latencies : Latencies
        Of the proofs whose partitions were queued.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    faults: dict[str, PolicyFault] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    stuck: tuple[WaitFor, ...] = ()
    host_memory_exhausted: str = ""
    end_ns: int = 0
    latencies: Latencies = field(default_factory=Latencies)


class Interpreter:
    """Interprets programs on a machine, once.

    Parameters
    ----------
    machine : Machine
    host_memory : HostMemory or None
        None: host memory is neither counted nor limited.
    everything : bool
        Whether to record more than the figures need.
    order : Order, optional
        A schedule that the programs are made to follow.
    watch : callable (Recorder, int), optional
        Told now and then what is recorded so far, and the virtual time.
    """

    def __init__(
        self, machine: Machine, host_memory: HostMemory | None = None, everything: bool = True,
        order: Order | None = None, watch: Watch | None = None,
    ) -> None:  # fmt: skip
        self.machine, self.env = machine, machine.env
        self.pacing = Pacing(order)
        self.world = World(order)
        self.tracer = Tracer(self.world, lambda: self.env.now, everything)
        self.ending = Ending()
        self._activities = Activities(machine, self.world, self.tracer, self.pacing, host_memory, self._wake)
        self._watch = watch
        self._tasks: dict[str, Actor] = {}
        if machine.hardware.device.idle_s:
            self.world.may_wake = self._notices_at_once

    def run(self, programs: Mapping[str, Program]) -> Ending:
        """Run programs until they have ended or none can go on."""
        for name, program in programs.items():
            device = next((argument.index for argument in program.arguments if isinstance(argument, Gpu)), -1)
            self.env.process(self._act(Actor(name, device=device), program))
        try:
            self._activities.host_memory_changed()
            self._go_on()
            while self.pacing.let_go(self.world, self.env.now):
                self._wake()
                self._go_on()
        except ScheduleOver:
            pass
        except HostMemoryExhausted as error:
            self.ending.host_memory_exhausted = str(error)
            self.ending.end_ns = self.env.now
            return self.ending
        for waiting in self.world.blocked():
            self.tracer.never_went_on(waiting)
        self.ending.stuck = tuple(
            WaitFor(
                waiting.actor.name, waiting.effect.kind_of_wait(self.world), waiting.effect.on,
                tuple(name for name in waiting.effect.blockers(self.world) if name),
            )
            for waiting in self.world.blocked()
        )  # fmt: skip
        return self.ending

    def _go_on(self) -> None:
        """Let time pass until nothing more can happen."""
        if self._watch is None:
            self.env.run()
            return
        try:
            while True:
                for _ in range(_EVENTS_BETWEEN):
                    self.env.step()
                self._watch(self.tracer.recorder, self.env.now)
        except EmptySchedule:
            return

    # --- one actor ---------------------------------------------------------------------------------------------------

    def _act(self, actor: Actor, program: Program) -> Generator[simpy.Event, Any, None]:
        """Drive one program from its first effect to its end."""
        running = program.start()
        answer: Any = None
        fault: PolicyFault | None = None
        moment, effects_now = -1, 0
        try:
            while True:
                effect = running.throw(fault) if fault is not None else running.send(answer)
                moment, effects_now = self.env.now, effects_now + 1 if moment == self.env.now else 0
                if effects_now > MAX_EFFECTS_AT_ONE_TIME:
                    raise NoProgress(f"{actor.name} goes on and on at one moment, last with {effect}")
                answer, fault = None, None
                try:
                    answer = yield from self._interpret(actor, effect)
                except PolicyFault as raised:
                    fault = raised
        except StopIteration as end:
            self.ending.results[actor.name] = end.value
            self._end(actor, actor.pending_fault)
        except PolicyFault as raised:
            self._end(actor, raised)

    def _end(self, actor: Actor, fault: PolicyFault | None) -> None:
        """An actor is done. A fault goes to the program that forked it: where that waits, or at its next effect."""
        actor.ended = True
        self.ending.end_ns = self.env.now
        self.pacing.ended(actor.name, fault)
        self.tracer.actor = actor
        parent = actor.parent
        if fault is not None:
            if parent is None or parent.ended:
                self.ending.faults[actor.name] = fault
            elif (waiting := self.world.waiting_of(parent)) is not None:
                self.world.dismiss(waiting)
                self.tracer.waited(waiting)
                waiting.granted.succeed((None, fault))
            else:
                parent.pending_fault = fault
        if parent:
            del self._tasks[actor.name]
            self.world.write(("task", actor.name), "ended")
            self._wake()

    def _interpret(self, actor: Actor, effect: Effect) -> Generator[simpy.Event, Any, Any]:
        """Carry one effect out: wait until it is ready, start it, and let it last."""
        if actor.pending_fault is not None:
            fault, actor.pending_fault = actor.pending_fault, None
            raise fault
        if type(effect) is Launch:
            yield from self.machine.before_launch(effect)
        elif self.machine.mappings.takes_turns(effect):
            return (yield from self._call_driver(actor, effect))
        return (yield from self._carry_out(actor, effect))

    def _call_driver(self, actor: Actor, effect: Effect) -> Generator[simpy.Event, Any, Any]:
        """A call that has its turn before it takes place; but one that has to wait for the device waits before that."""
        if self.world.may_go(actor.name, effect):
            yield self.machine.mappings.enter_driver()
            try:
                if self.world.may_go(actor.name, effect):
                    return (yield from self._carry_out(actor, effect))
            finally:
                self.machine.mappings.leave_driver()
        return (yield from self._carry_out(actor, effect, in_driver=False))

    def _carry_out(self, actor: Actor, effect: Effect, *, in_driver: bool = True) -> Generator[simpy.Event, Any, Any]:
        """Wait until an effect is ready, start it, and let it last; outside of the driver's lock, take that for it."""
        if self.world.may_go(actor.name, effect):
            actor.requested_ns, actor.holder_at_request = self.env.now, ""
            try:
                result = self._start(actor, effect)
            finally:
                self._wake()
        else:
            holder = next((name for name in effect.blockers(self.world) if name), "")
            granted = self.env.event()
            kind = self.pacing.kind_of_wait(self.world, actor.name, effect)
            self.world.wait(actor, effect, self.env.now, kind, holder, granted)
            result, fault = yield granted
            if fault is not None:
                raise fault
            if kind in _WOKEN:
                yield from self.machine.wake(effect, actor.partition_name)
        if type(effect) is FreeHost:
            yield from self._activities.free_host(actor, effect)
        elif type(effect) is Get and isinstance(result, Partition) and actor.in_call:
            yield from self._activities.set_up_call(actor)
        elif effect.lasts and not effect.asynchronous(self.world):
            if in_driver:
                yield from self._activities.last(actor, effect)
                return result
            yield self.machine.mappings.enter_driver()
            try:
                yield from self._activities.last(actor, effect)
            finally:
                self.machine.mappings.leave_driver()
        return result

    def _start(self, actor: Actor, effect: Effect) -> Any:
        """The change as an effect takes place."""
        self.tracer.actor = actor
        self.pacing.check(actor.name, effect)
        try:
            result = effect.start(self.world, actor.name)
        except PolicyFault as fault:
            if isinstance(fault, OutOfDeviceMemory):
                self.tracer.out_of_memory(actor, effect.gpu, fault, live_bytes(self.world, effect.gpu))
            self.pacing.passed(self.world, actor.name, effect, self.env.now, fault.at(actor.name, effect))
            raise
        self.pacing.passed(self.world, actor.name, effect, self.env.now)
        if isinstance(effect, Join) and self.pacing.order is not None:
            self.world.write(("task", effect.task.actor), "ended")  # in a schedule a name is used once only
        if isinstance(effect, Fork):
            child = Actor(result.actor, actor, actor.device, actor.partition, actor.took_ns)
            self._tasks[child.name] = child
            for task in effect.adopts:
                if task.actor in self._tasks:  # it has not ended
                    self._tasks[task.actor].parent = child
            self.env.process(self._act(child, effect.program))
        elif isinstance(effect, Upload):
            if (beside := effect.beside(self.world)) is not None:
                (copy,) = beside.arguments
                self.env.process(self._copy(actor, copy, self.pacing.name_of_copy(actor.name, copy)))
        elif isinstance(effect, Get):
            if isinstance(result, Partition):
                actor.partition, actor.took_ns = result, self.env.now
                if actor.in_call:
                    self._activities.begin_call(result)
        elif isinstance(effect, Put):
            self._passed_on(actor, effect.item)
        return result

    def _wake(self) -> None:
        """Carry out what others wait for and what has become possible, in the order of their arrival."""
        while (waiting := self.world.next_ready()) is not None:
            self._let_go_on(waiting)

    def _let_go_on(self, waiting: Waiting) -> None:
        actor = waiting.actor
        self.tracer.waited(waiting)
        actor.requested_ns, actor.holder_at_request = waiting.since_ns, waiting.holder
        try:
            result = None if waiting.ends else self._start(actor, waiting.effect)
            waiting.granted.succeed((result, None))
        except PolicyFault as fault:
            waiting.granted.succeed((None, fault))

    def _notices_at_once(self, waiting: Waiting) -> bool:
        """Who waits for an idle device looks again after the time that the profile says."""
        if waiting.kind != "device_sync":
            return True
        self.env.process(self._look_again(waiting))
        return False

    def _look_again(self, waiting: Waiting) -> Generator[simpy.Event, Any, None]:
        yield from self.machine.notice(waiting.effect, waiting.actor.partition_name)
        if self.world.wakes(waiting):
            self._let_go_on(waiting)
            self._wake()

    def _passed_on(self, actor: Actor, item: Any) -> None:
        """An actor has handed on what it worked on; with an outcome, the partition is over."""
        self.ending.latencies.passed(item, self.env.now)
        if isinstance(item, Outcome):
            self.ending.outcomes.append(item)
            if actor.in_call:
                self.tracer.call(actor, item.partition, item.ok)
            self.world.forget_partition(item.partition.name)
            self._activities.end_partition(item.partition)
        if isinstance(item, Outcome | Partition):
            actor.partition = None

    def _copy(self, issuer: Actor, copy: Copy, name: str) -> Generator[simpy.Event, Any, None]:
        """A copy from pinned memory, which goes on by itself when its turn in the stream has come."""
        effect, issue_ns = copy.upload, self.env.now
        device = effect.stream.gpu.index
        who = Actor(f"gpu{device}", device=device)
        if not copy.ready(self.world, who.name):
            granted = self.env.event()
            self.world.wait(who, copy, issue_ns, copy.kind_of_wait(self.world), "", granted)
            yield granted
        start_ns = self.env.now
        yield from upload(self.machine, effect, pinned=True)
        if name:
            yield from self._interpret(Actor(name, device=device), Ended(copy))
            self.pacing.copied(name)
        self.tracer.transfer(issuer, effect, start_ns, issue_ns, effect.source.size_bytes, pinned=True)
        self._activities.finish(who, copy)

"""Effects that last, between their start and their end: time passes on the machine, memory comes and goes, rows arise.

The time that each takes is its cost (`cuzklab.simulate.costs`). Who may begin one, and what its end makes possible, is
the interpreter's; here an actor has begun, and goes on to the end. Host memory (`cuzklab.simulate.host_memory`) is in
use from one such moment to another, so it is counted, recorded and held against its limit here, too.
"""

from collections.abc import Callable, Generator
from typing import Any

import simpy

from cuzklab.policies.effects import Compute, Effect, FreeHost, Launch, Upload
from cuzklab.policies.model import Partition
from cuzklab.policies.schedule import SCHEDULE
from cuzklab.simulate.actor import Actor
from cuzklab.simulate.costs import COSTS, Machine, compute, launch, upload
from cuzklab.simulate.host_memory import HostMemory
from cuzklab.simulate.pacing import Pacing
from cuzklab.simulate.tracer import Tracer
from cuzklab.simulate.world import World
from cuzklab.stages import STAGES

_SYNTHESES = {stage.name for stage in STAGES.values() if {"a", "b", "c"} <= set(stage.writes)}


class Activities:
    """What goes on while effects last.

    Parameters
    ----------
    machine : Machine
    world : World
    tracer : Tracer
    pacing : Pacing
        Where a schedule says when an effect ends, it does not end before.
    host_memory : HostMemory or None
        None: host memory is neither counted nor limited.
    wake : callable ()
        Called when the end of an effect has changed the world.
    """

    def __init__(
        self, machine: Machine, world: World, tracer: Tracer, pacing: Pacing, host_memory: HostMemory | None,
        wake: Callable[[], None],
    ) -> None:  # fmt: skip
        self._machine, self._env = machine, machine.env
        self._world, self._tracer, self._pacing = world, tracer, pacing
        self._host_memory, self._wake = host_memory, wake

    def last(self, actor: Actor, effect: Effect) -> Generator[simpy.Event, Any, None]:
        """From the start of an effect to its end."""
        start_ns = self._env.now
        if isinstance(effect, Upload):
            yield from self._upload(actor, effect)
        elif isinstance(effect, Launch):
            yield from self._launch(actor, effect)
        elif isinstance(effect, Compute) and effect.stage in _SYNTHESES and self._host_memory:
            yield from self._synthesise(effect, self._host_memory)
        else:
            yield from COSTS[type(effect)](self._machine, effect)
        yield from self._end_of_work(actor, effect)
        self._tracer.lasted(actor, effect, start_ns)

    def _launch(self, actor: Actor, effect: Launch) -> Generator[simpy.Event, Any, None]:
        """Kernels, which begin once they are launched since their stream is idle; the actor waits for their end."""
        changing_ns = self._machine.mappings.changing_ns()
        launch_s, kernels_s = self._machine.launch_times(effect, self._env.now - actor.requested_ns)
        turn = yield from self._machine.begin_launch(effect.gpu.index, launch_s)
        start_ns = self._env.now
        yield from launch(self._machine, effect, kernels_s)
        yield from self._machine.mappings.delayed(changing_ns)
        self._machine.end_launch(effect.gpu.index, turn)
        _, streamed_bytes = self._machine.launched(effect)
        self._tracer.kernel(actor, effect, start_ns, actor.requested_ns)
        self._tracer.transfer(actor, effect, start_ns, actor.requested_ns, streamed_bytes, pinned=True)

    def _upload(self, actor: Actor, effect: Upload) -> Generator[simpy.Event, Any, None]:
        """A copy from pageable memory, for whose end the actor waits."""
        start_ns = self._env.now
        yield from upload(self._machine, effect, pinned=False)
        self._tracer.transfer(actor, effect, start_ns, actor.requested_ns, effect.source.size_bytes, pinned=False)

    def _synthesise(self, effect: Compute, host_memory: HostMemory) -> Generator[simpy.Event, Any, None]:
        """A stage that allocates the partition's host memory as it goes."""
        job = compute(self._machine, effect)
        host_memory.begin(effect.partition, job.progress)
        self.host_memory_changed()
        yield job.done
        host_memory.synthesised(effect.partition)
        self.host_memory_changed()

    def _end_of_work(self, actor: Actor, effect: Effect) -> Generator[simpy.Event, Any, None]:
        """An effect that lasts is over, at the end of its time or, by a schedule, when its turn has come."""
        if self._pacing.ends_by_turn(effect):
            if not self._world.may_go(actor.name, effect, ends=True):
                granted = self._env.event()
                self._world.wait(actor, effect, self._env.now, SCHEDULE, "", granted, ends=True)
                yield granted
            self._pacing.passed(self._world, actor.name, effect, self._env.now)
        self.finish(actor, effect)

    def finish(self, actor: Actor, effect: Effect) -> None:
        """What the end of an effect changes, and who can go on by that."""
        self._tracer.actor = actor
        effect.finish(self._world, actor.name)
        self._wake()

    # --- host memory, from a worker's call to the end of the partition ------------------------------------------------

    def begin_call(self, partition: Partition) -> None:
        """A worker has taken a partition: from now on there is what a call needs of host memory."""
        if self._host_memory:
            self._host_memory.call(partition)
            self.host_memory_changed()

    def set_up_call(self, actor: Actor) -> Generator[simpy.Event, Any, None]:
        """What a worker does between taking a partition and the policy's first step."""
        if self._machine.hardware.engine.pickup_s:
            yield self._machine.pause(self._machine.hardware.engine.pickup_s)
            actor.took_ns = self._env.now  # the call begins here
        start_ns = self._env.now
        yield self._machine.call_setup(actor.partition).done
        if self._env.now > start_ns:
            self._tracer.span(actor, start_ns, "split vectors", "memory", actor.device)

    def free_host(self, actor: Actor, effect: FreeHost) -> Generator[simpy.Event, Any, None]:
        """The thread that frees gives the memory back itself."""
        start_ns = self._env.now
        claimed_bytes = self._host_memory.claim(effect.partition, effect.buffer.size_bytes) if self._host_memory else 0
        yield from COSTS[FreeHost](self._machine, effect)
        self._tracer.lasted(actor, effect, start_ns)
        if self._host_memory:
            self._given_back(claimed_bytes)

    def end_partition(self, partition: Partition) -> None:
        """A partition has its outcome: what it still holds of host memory goes back in the background."""
        if self._host_memory:
            self._host_memory.synthesised(partition)
            self._env.process(self._give_back(self._host_memory.claim(partition)))

    def _give_back(self, size_bytes: int) -> Generator[simpy.Event, Any, None]:
        """Memory of a partition that is done goes back in the background, and is in use until it has."""
        yield from self._machine.mappings.deallocate(size_bytes)
        self._given_back(size_bytes)

    def _given_back(self, size_bytes: int) -> None:
        self.host_memory_changed()
        self._host_memory.given_back(size_bytes)
        self.host_memory_changed()

    def host_memory_changed(self) -> None:
        """Record the memory in use; it grows between two such moments, so one is recorded before every decrease.

        Raises
        ------
        HostMemoryExhausted
            It is more than the host has.
        """
        if self._host_memory is None:
            return
        self._machine.processor.advance()
        in_use_bytes = self._host_memory.in_use_bytes
        self._tracer.host_memory(in_use_bytes)
        self._host_memory.check(in_use_bytes)

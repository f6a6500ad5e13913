"""How long effects last: the cost model, one function an effect, each with its formula.

Constants come from a hardware profile (`cuzklab.profiles.Hardware`, which says where each was taken from), amounts of
work and bytes from the table of stages. An effect that is not here takes no time. What work asks of the host stands in
`cuzklab.simulate.demands`, what CPU stages, pageable copies and deallocations do to each other in `host`, what changes
of memory mappings hold up in `mappings`, and host memory in `host_memory`.

The model leaves out: host memory traffic of the device's own copies, the direction from device to host (what these
engines fetch is a few points), and kernels that slow each other down beyond sharing the device.
"""

import math
import random
from collections.abc import Callable, Generator, Mapping
from functools import lru_cache
from typing import Any

import simpy

from cuzklab.errors import BadInput
from cuzklab.policies.effects import (
    Alloc,
    Compute,
    DeviceSync,
    Effect,
    Free,
    FreeHost,
    Launch,
    Pin,
    TrimPool,
    Unpin,
    Upload,
)
from cuzklab.policies.model import Partition
from cuzklab.profiles import LAUNCHING, PAGE_LOCKING, WAKING, Hardware
from cuzklab.simulate.demands import pageable_copy_demand, pool_seconds, stage_demand
from cuzklab.simulate.fluid import NS_PER_S, Fluid
from cuzklab.simulate.host import Demand, Job, Processor
from cuzklab.simulate.host_memory import call_bytes
from cuzklab.simulate.mappings import Mappings
from cuzklab.stages import STAGES, UPLOADED, CircuitShape

Lasting = Generator[simpy.Event, Any, None]
_LAUNCHING = Demand(1, in_bursts=1.0)
_HELD = 2.0  # times what a thread does between two stages: by then it has launched, unless it has lost its core


@lru_cache(maxsize=1 << 14)
def _standard_normal(name: str) -> float:
    """The draw of that name: searches and fits ask for the same ones over and over."""
    return random.Random(name).gauss(0.0, 1.0)


@lru_cache(maxsize=1 << 14)
def _uniform(name: str) -> float:
    return random.Random(name).random()


class Machine:
    """The resources that lasting effects share.

    Attributes
    ----------
    processor : Processor
        Cores and memory of the host.
    mappings : Mappings
        Memory mappings of the engine's process.
    kernels, pcie : dict of int to Fluid
        Of each device: seconds of kernels a second, and bytes a second across the bus to it, whatever the stream.
    shapes : mapping
        Circuits of other kinds than the batch's, by the kind of their partitions.
    """

    def __init__(
        self, env: simpy.Environment, hardware: Hardware, shape: CircuitShape, seed: int = 0,
        shapes: Mapping[str, CircuitShape] | None = None,
    ) -> None:  # fmt: skip
        self.env, self.hardware, self.shape, self.seed = env, hardware, shape, seed
        self.shapes = dict(shapes or {})
        self.processor = Processor(env, hardware.host)
        self.kernels: dict[int, Fluid] = {}
        self.pcie: dict[int, Fluid] = {}
        self._emulated: dict[int, simpy.Resource] = {}
        self.mappings = Mappings(env, hardware, self.processor)
        self._has_interpreter_ns: dict[int, int] = {}
        self._demands: dict[tuple[str, str, str, int], tuple[float, Demand]] = {}
        self._launched: dict[tuple[str, str, str], tuple[float, int]] = {}
        self._pageable = pageable_copy_demand(hardware, hardware.transfer.pageable_bytes_per_s)

    def launched(self, effect: Launch) -> tuple[float, int]:
        """Seconds of kernels of a GPU stage, and bytes that it streams."""
        key = (effect.partition.kind, effect.stage, effect.part)
        if key not in self._launched:
            row, shape = STAGES[effect.stage], self.shape_of(effect.partition)
            kernels_s = row.work(shape, effect.part) / self.hardware.rate(effect.stage, shape.domain)
            self._launched[key] = kernels_s, row.streamed_bytes(shape, effect.part)
        return self._launched[key]

    def shape_of(self, partition: Partition) -> CircuitShape:
        """The circuit of a partition."""
        return self.shapes.get(partition.kind, self.shape)

    def device_kernels(self, index: int) -> Fluid:
        if index not in self.kernels:
            self.kernels[index] = Fluid(self.env, 1.0)
        return self.kernels[index]

    def device_pcie(self, index: int) -> Fluid:
        if index not in self.pcie:
            self.pcie[index] = Fluid(self.env, self.hardware.transfer.pinned_bytes_per_s)
        return self.pcie[index]

    def pause(self, seconds: float) -> simpy.Event:
        return self.env.timeout(round(seconds * NS_PER_S))

    def spread(self, stage: str, of: str) -> float:
        """Factor of a stage's duration for one partition or buffer: log-normal with mean 1.

        It depends on the seed, the stage and that name alone, not on the order of events, so two policies are
        compared on the same draws.
        """
        sigma = self.hardware.stage_spread(stage)
        if not sigma:
            return 1.0
        # A standard normal draw times sigma: fits compare constants on the same draws, too.
        return math.exp(sigma * _standard_normal(f"{self.seed}/{stage}/{of}") - sigma * sigma / 2)

    def demand(self, effect: Compute) -> tuple[float, Demand]:
        """Seconds that a CPU stage takes alone with its threads, and what it asks of the host.

        With the profile's threads n: t = work / rate. With others the core seconds stay the same, but for the part
        that one thread does alone and for what each further thread adds: t' = t · T(threads) / T(n), T as
        `pool_seconds`. Traffic by the stage table, over that time. The working set of a pool is the buckets of a
        Pippenger MSM over each thread's part of the points.
        """
        key = (effect.partition.kind, effect.stage, effect.part, effect.threads)
        if key not in self._demands:
            stage, part = effect.stage, effect.part
            if effect.threads < 0:
                raise BadInput(f"{effect.threads} threads for {stage}; write 0 for those of the profile, or more")
            row, hardware, shape = STAGES[stage], self.hardware, self.shape_of(effect.partition)
            default = hardware.stage_threads(stage)
            threads = effect.threads or default
            work = row.work(shape, part)
            alone_s = work / hardware.rate(stage, shape.domain)
            alone_s *= pool_seconds(hardware, stage, threads, work) / pool_seconds(hardware, stage, default, work)
            self._demands[key] = alone_s, stage_demand(hardware, shape, stage, part, threads, alone_s)
        return self._demands[key]

    def burst(self, alone_s: float, name: str) -> Job:
        """One burst of work of a thread that waits in between; where threads are too many, it may lose its core."""
        share = self.hardware.host.lost_core_share
        lost = share >= 1 or _uniform(f"{self.seed}/core/{name}") < share
        return self.processor.run(alone_s, Demand(1, in_bursts=1 / share) if lost else Demand(1))

    def before_launch(self, effect: Launch) -> Lasting:
        """What a thread does before it launches a stage; the device may be idle meanwhile."""
        if self.hardware.device.between_s:
            self._has_interpreter_ns[effect.gpu.index] = self.env.now + round(
                _HELD * self.hardware.device.between_s * NS_PER_S
            )
            yield self.burst(self.hardware.device.between_s, f"{effect.on} {effect.partition.name}").done
        yield from self.mappings.before_launch()

    def notice(self, effect: Effect, who: str) -> Lasting:
        """From the device becoming idle until a thread that waits for that notices: not while another is to launch."""
        index = (effect.buffer.gpu if isinstance(effect, Free) else effect.gpu).index
        idle_s = self.hardware.device.idle_s * self.spread(WAKING, f"{effect.on} {who}")
        yield self.burst(idle_s, f"{effect.on} {who}").done
        while (wait_ns := self._has_interpreter_ns.get(index, 0) - self.env.now) > 0:
            yield self.env.timeout(wait_ns)

    def wake(self, effect: Effect, who: str) -> Lasting:
        """From what a thread has waited for until it goes on: it has to get a core, and the interpreter's lock."""
        if wake_s := self.hardware.engine.wake_s:
            name = f"{effect.on} {who}"
            yield self.burst(wake_s * self.spread(WAKING, name), name).done

    def launch_times(self, effect: Launch, waited_ns: int) -> tuple[float, float]:
        """Seconds that a stage takes on the thread that launches it, and of its kernels, once its data are there.

        Where a stage begins with the first array, it has waited for the copy of all three, taking the time C, and was
        launched before. Of its 7 transforms, 2 are of each array and the last is of what they give. So of launch h and
        kernels K, with a wait of w, what is left is the longest of h + K − w, K − 2 C / 3, 5 K / 7 − C / 3, 3 K / 7.
        """
        launch_s, (kernels_s, _) = self.hardware.stage_launch_s(effect.stage), self.launched(effect)
        if launch_s:
            launch_s *= self.spread(LAUNCHING, f"{effect.on} {effect.partition.name}")
        if waited_ns and self.hardware.device.begins_with_first_array and STAGES[effect.stage].reads == UPLOADED:
            copy_s = effect.partition.sizes.abc / self.hardware.transfer.pinned_bytes_per_s
            left_s = max(
                launch_s + kernels_s - waited_ns / NS_PER_S,
                kernels_s - 2 * copy_s / 3, 5 * kernels_s / 7 - copy_s / 3, 3 * kernels_s / 7,
            )  # fmt: skip
            launch_s, kernels_s = min(launch_s, max(0.0, left_s - kernels_s)), min(kernels_s, left_s)
        return launch_s, kernels_s

    def begin_launch(
        self, index: int, launch_s: float
    ) -> Generator[simpy.Event, Any, simpy.resources.resource.Request | None]:
        """Launch a stage: the wait for mappings, the launch itself, and on an emulated device the wait for its turn.

        Launching is work of the thread that calls, in bursts between waits for what it has launched.
        """
        yield from self.mappings.begin_stage()
        if launch_s:
            yield self.processor.run(launch_s, _LAUNCHING).done
        if not self.hardware.device.kernels_on_host:
            return None
        turn = self._emulated.setdefault(index, simpy.Resource(self.env)).request()
        yield turn
        return turn

    def end_launch(self, index: int, turn: simpy.resources.resource.Request | None) -> None:
        """A stage is over: mappings may be changed, and the next stage of an emulated device has its turn."""
        self.mappings.end_stage()
        if turn is not None:
            self._emulated[index].release(turn)

    def driver_call(self, seconds: float) -> Lasting:
        """A call of the driver, which the caller has entered (`Mappings.enter_driver`)."""
        yield self.pause(seconds)

    def call_setup(self, partition: Partition) -> Job:
        """What a GPU worker does before it proves a partition: its split vectors are allocated and first touched."""
        return self.processor.run(
            call_bytes(self.shape_of(partition)) * self.hardware.host.first_touch_s_per_byte, Demand(1)
        )


def compute(machine: Machine, effect: Compute) -> Job:
    """A CPU stage: its time alone, times the partition's spread, on a processor that others use, too."""
    alone_s, demand = machine.demand(effect)
    return machine.processor.run(alone_s * machine.spread(effect.stage, effect.partition.name), demand)


def _compute(machine: Machine, effect: Compute) -> Lasting:
    yield compute(machine, effect).done


def launch(machine: Machine, effect: Launch, kernels_s: float) -> Lasting:
    """A GPU stage: kernels take work / rate, streamed bytes cross the bus at the pinned rate; the longer counts.

    Kernels of several streams share the device, copies of several streams the bus. On an emulated device a thread of
    the host computes them.
    """
    _, streamed_bytes = machine.launched(effect)
    if machine.hardware.device.kernels_on_host:
        ends = [machine.processor.run(kernels_s, Demand(1)).done]
    else:
        ends = [machine.device_kernels(effect.gpu.index).serve(kernels_s, 1.0)]
    if streamed_bytes:
        rate = machine.hardware.transfer.pinned_bytes_per_s
        ends.append(machine.device_pcie(effect.gpu.index).serve(streamed_bytes, rate))
    yield from ends


def upload(machine: Machine, effect: Upload, pinned: bool) -> Lasting:
    """A copy: bytes at the rate of its kind of memory, on a bus that is shared.

    From pageable memory a thread of the host copies first, at the pageable rate at most, and is slowed down as CPU
    stages are.
    """
    transfer, size_bytes = machine.hardware.transfer, effect.source.size_bytes
    rate = transfer.pinned_bytes_per_s if pinned else transfer.pageable_bytes_per_s
    arrived = machine.device_pcie(effect.stream.gpu.index).serve(size_bytes, rate)
    if not pinned:
        yield machine.processor.run(size_bytes / rate, machine._pageable).done
    yield arrived


def pin(machine: Machine, effect: Pin) -> Lasting:
    """Page-locking costs a time for each byte, on the thread that does it; pooled memory has it."""
    size_bytes = 0 if effect.pooled else effect.buffer.size_bytes * machine.spread(PAGE_LOCKING, f"+{effect.on}")
    yield from machine.mappings.lock_pages(size_bytes, machine.hardware.transfer.pin_s_per_byte)


def unpin(machine: Machine, effect: Unpin) -> Lasting:
    size_bytes = 0 if effect.pooled else effect.buffer.size_bytes * machine.spread(PAGE_LOCKING, f"-{effect.on}")
    yield from machine.mappings.lock_pages(size_bytes, machine.hardware.transfer.unpin_s_per_byte)


def free_host(machine: Machine, effect: FreeHost) -> Lasting:
    """The thread that frees does it."""
    yield from machine.mappings.deallocate(effect.buffer.size_bytes)


def alloc(machine: Machine, effect: Alloc) -> Lasting:
    """A constant, whatever the size; from the pool it is cheaper."""
    device = machine.hardware.device
    yield from machine.driver_call(device.pooled_s if effect.pooled else device.alloc_s)


def free(machine: Machine, effect: Free) -> Lasting:
    device = machine.hardware.device
    pooled_s = device.pooled_free_s or device.pooled_s
    yield from machine.driver_call(pooled_s if effect.buffer.pooled else device.free_s)


def trim_pool(machine: Machine, effect: TrimPool) -> Lasting:
    """A constant; the wait for an idle device comes before it."""
    yield from machine.driver_call(machine.hardware.device.trim_s)


def device_sync(machine: Machine, effect: DeviceSync) -> Lasting:
    yield from machine.driver_call(machine.hardware.device.sync_s)


COSTS: dict[type[Effect], Callable[[Machine, Any], Lasting]] = {
    Compute: _compute,
    Pin: pin,
    Unpin: unpin,
    FreeHost: free_host,
    Alloc: alloc,
    Free: free,
    TrimPool: trim_pool,
    DeviceSync: device_sync,
}

"""How long effects last: the whole cost model, one function an effect, each with its formula.

Constants come from a hardware profile (`cuzklab.profiles.Hardware`, which says where each was taken from), amounts of
work and bytes from the table of stages. An effect that is not here takes no time. The model leaves out: what the
processor does to drive pageable copies, host memory bandwidth taken by copies, kernels that slow each other down
beyond sharing the device evenly, and cores that wait for memory, which are not counted as busy.
"""

import random
from collections.abc import Callable, Generator, Mapping
from typing import Any

import simpy

from cuzklab.policies.effects import (
    Alloc,
    Compute,
    DeviceSync,
    Effect,
    Free,
    Launch,
    Pin,
    TrimPool,
    Unpin,
    Upload,
)
from cuzklab.policies.model import Partition
from cuzklab.profiles import Hardware
from cuzklab.simulate.fluid import NS_PER_S, Fluid
from cuzklab.stages import STAGES, CircuitShape

Lasting = Generator[simpy.Event, Any, None]


class Machine:
    """The resources that lasting effects share.

    Attributes
    ----------
    cores : Fluid
        Core seconds a second.
    memory : Fluid
        Bytes a second that CPU stages move to and from host memory.
    kernels, pcie : dict of int to Fluid
        Of each device: seconds of kernels a second, and bytes a second across the bus to it.
    shapes : mapping
        Circuits of other kinds than the batch's, by the kind of their partitions.
    """

    def __init__(
        self, env: simpy.Environment, hardware: Hardware, shape: CircuitShape, seed: int = 0,
        shapes: Mapping[str, CircuitShape] | None = None,
    ) -> None:  # fmt: skip
        self.env, self.hardware, self.shape, self.seed = env, hardware, shape, seed
        self.shapes = dict(shapes or {})
        self.cores = Fluid(env, hardware.host.cores)
        self.memory = Fluid(env, hardware.host.shared_bandwidth_bytes_per_s)
        self.kernels: dict[int, Fluid] = {}
        self.pcie: dict[int, Fluid] = {}

    def shape_of(self, partition: Partition) -> CircuitShape:
        """The circuit of a partition."""
        return self.shapes.get(partition.kind, self.shape)

    def device_kernels(self, index: int) -> Fluid:
        return self.kernels.setdefault(index, Fluid(self.env, 1.0))

    def device_pcie(self, index: int) -> Fluid:
        return self.pcie.setdefault(index, Fluid(self.env, self.hardware.transfer.pinned_bytes_per_s))

    def pause(self, seconds: float) -> simpy.Event:
        return self.env.timeout(round(seconds * NS_PER_S))

    def spread(self, stage: str, partition: str) -> float:
        """Factor of a stage's duration for one partition: log-normal with mean 1.

        It depends on the seed, the stage and the partition alone, not on the order of events, so two policies are
        compared on the same draws.
        """
        sigma = self.hardware.stage_spread(stage)
        if not sigma:
            return 1.0
        return random.Random(f"{self.seed}/{stage}/{partition}").lognormvariate(-sigma * sigma / 2, sigma)


def compute(machine: Machine, effect: Compute) -> Lasting:
    """A CPU stage: first what the processor limits, then what host memory limits.

    Alone, with the profile's number of threads n, it takes t = work / rate · spread. Of this, traffic / (n · b) is
    spent on memory, b being what a thread can draw, and at most t. The rest is n cores for the remaining time; with
    another number of threads the core seconds stay the same. Cores and memory are each shared fluidly with the other
    CPU stages that run.
    """
    stage, shape = STAGES[effect.stage], machine.shape_of(effect.partition)
    default = machine.hardware.stage_threads(effect.stage)
    threads = effect.threads or default
    alone_s = stage.work(shape, effect.part) / machine.hardware.rate(effect.stage)
    alone_s *= machine.spread(effect.stage, effect.partition.name)
    traffic_bytes = stage.host_traffic_bytes(shape, effect.part)
    thread_bytes_per_s = machine.hardware.host.thread_bandwidth_bytes_per_s
    memory_s = min(alone_s, traffic_bytes / (default * thread_bytes_per_s))
    if alone_s > memory_s:
        yield machine.cores.serve((alone_s - memory_s) * default, threads)
    if memory_s:
        yield machine.memory.serve(traffic_bytes, traffic_bytes / memory_s * threads / default)


def launch(machine: Machine, effect: Launch) -> Lasting:
    """A GPU stage: kernels take work / rate, streamed bytes cross the bus at the pinned rate; the longer counts.

    Kernels of several streams share the device, copies of several streams the bus.
    """
    stage, shape = STAGES[effect.stage], machine.shape_of(effect.partition)
    kernels_s = stage.work(shape, effect.part) / machine.hardware.rate(effect.stage)
    ends = [machine.device_kernels(effect.gpu.index).serve(kernels_s, 1.0)]
    streamed_bytes = stage.streamed_bytes(shape, effect.part)
    if streamed_bytes:
        rate = machine.hardware.transfer.pinned_bytes_per_s
        ends.append(machine.device_pcie(effect.gpu.index).serve(streamed_bytes, rate))
    yield from ends


def upload(machine: Machine, effect: Upload, pinned: bool) -> Lasting:
    """A copy: bytes at the rate of its kind of memory, on a bus that is shared."""
    transfer = machine.hardware.transfer
    rate = transfer.pinned_bytes_per_s if pinned else transfer.pageable_bytes_per_s
    yield machine.device_pcie(effect.stream.gpu.index).serve(effect.source.size_bytes, rate)


def pin(machine: Machine, effect: Pin) -> Lasting:
    """Page-locking costs a time for each byte, on the thread that does it and on nobody else; pooled memory has it."""
    size_bytes = 0 if effect.pooled else effect.buffer.size_bytes
    yield machine.pause(size_bytes * machine.hardware.transfer.pin_s_per_byte)


def unpin(machine: Machine, effect: Unpin) -> Lasting:
    size_bytes = 0 if effect.pooled else effect.buffer.size_bytes
    yield machine.pause(size_bytes * machine.hardware.transfer.unpin_s_per_byte)


def alloc(machine: Machine, effect: Alloc) -> Lasting:
    """A constant, whatever the size; from the pool it is cheaper."""
    device = machine.hardware.device
    yield machine.pause(device.pooled_s if effect.pooled else device.alloc_s)


def free(machine: Machine, effect: Free) -> Lasting:
    device = machine.hardware.device
    yield machine.pause(device.pooled_s if effect.buffer.pooled else device.free_s)


def trim_pool(machine: Machine, effect: TrimPool) -> Lasting:
    """A constant; the wait for an idle device comes before it."""
    yield machine.pause(machine.hardware.device.trim_s)


def device_sync(machine: Machine, effect: DeviceSync) -> Lasting:
    yield machine.pause(machine.hardware.device.sync_s)


COSTS: dict[type[Effect], Callable[[Machine, Any], Lasting]] = {
    Compute: compute,
    Launch: launch,
    Pin: pin,
    Unpin: unpin,
    Alloc: alloc,
    Free: free,
    TrimPool: trim_pool,
    DeviceSync: device_sync,
}

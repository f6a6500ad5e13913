"""Work on the device and on the CPU, and the calls that wait for a whole device."""

from dataclasses import dataclass
from typing import ClassVar

from cuzklab.policies.effect import Effect
from cuzklab.policies.effects.data import StageRun, refuse_early, written
from cuzklab.policies.effects.in_flight import device_idle, leave, stream_clear
from cuzklab.policies.effects.memory import free_for, give_back, take
from cuzklab.policies.effects.transfers import begin_on
from cuzklab.policies.model import Buffer, Gpu, Partition, Stream


@dataclass(frozen=True)
class Launch(StageRun, Effect):
    """Run a GPU stage of a partition and wait for its end, as these engines do at the end of each stage.

    It blocks until the earlier work of its stream is done and the events that the stream waits for have fired. Its
    scratch memory is allocated at its start, which may raise `OutOfDeviceMemory`, and freed at its end. Fails if a
    buffer that it uses was freed, or has yet to be filled by an upload on another stream, and if what the stage reads
    has yet to be written.
    """

    gpu: Gpu
    stage: str
    partition: Partition
    part: str = ""
    uses: tuple[Buffer, ...] = ()
    lasts: ClassVar[bool] = True
    two_steps: ClassVar[bool] = True
    tells: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "event"

    @property
    def stream(self) -> Stream:
        """A partition's kernels run on a stream of its own."""
        return self.partition.stream(self.gpu, "compute")

    @property
    def scratch_bytes(self) -> int:
        return self.partition.sizes.scratch.get((self.stage, self.part), 0)

    def _scratch(self, actor: str) -> Buffer:
        return Buffer(f"{self.label} scratch", self.scratch_bytes, self.gpu, actor, 0, self.partition.name)

    def ready(self, world, actor):
        return stream_clear(world, self.stream)

    def start(self, world, actor):
        refuse_early(world, self)
        if self.scratch_bytes:
            take(world, self._scratch(actor))
        world.write(("after", self.stream), None)
        begin_on(world, self.stream, self.uses, self.label)

    def finish(self, world, actor):
        leave(world, self.stream)
        if self.scratch_bytes:
            give_back(world, self._scratch(actor))
        written(world, self)

    def perform(self, live):
        live.launch(self)

    @property
    def on(self):
        return f"gpu{self.gpu.index} {self.label}"


@dataclass(frozen=True)
class Compute(StageRun, Effect):
    """Run a CPU stage of a partition; the policy goes on when it is done. `threads` 0 means the engine's default.

    Fails if what the stage reads has yet to be written.
    """

    stage: str
    partition: Partition
    part: str = ""
    threads: int = 0
    lasts: ClassVar[bool] = True
    local: ClassVar[bool] = True

    def start(self, world, actor):
        refuse_early(world, self)

    def finish(self, world, actor):
        written(world, self)

    def perform(self, live):
        live.compute(self)

    @property
    def on(self):
        return self.label


@dataclass(frozen=True)
class DeviceSync(Effect):
    """Wait until no work of any actor is under way on the device."""

    gpu: Gpu
    lasts: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "device_sync"

    def ready(self, world, actor):
        return device_idle(world, self.gpu)

    def perform(self, live):
        live.device_sync(self.gpu)

    @property
    def on(self):
        return f"gpu{self.gpu.index}"


@dataclass(frozen=True)
class TrimPool(Effect):
    """Give the pool's unused memory back to the device. Device-wide: it waits until the device is idle."""

    gpu: Gpu
    lasts: ClassVar[bool] = True
    wait_kind: ClassVar[str] = "device_sync"

    def ready(self, world, actor):
        return device_idle(world, self.gpu)

    def start(self, world, actor):
        world.write(("pool", self.gpu), 0)

    def perform(self, live):
        live.trim_pool(self.gpu)

    @property
    def on(self):
        return f"gpu{self.gpu.index}"


@dataclass(frozen=True)
class QueryFree(Effect):
    """Bytes of the device that are neither allocated nor kept by the pool, as `cudaMemGetInfo` tells."""

    gpu: Gpu
    tells: ClassVar[bool] = True

    def start(self, world, actor):
        return free_for(world, self.gpu, pooled=False)

    def perform(self, live):
        return live.query_free(self.gpu)

    @property
    def on(self):
        return f"gpu{self.gpu.index}"

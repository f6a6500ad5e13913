"""The sections that every profile of a machine has, host, device, transfer and engine: a dataclass each.

What each constant does in the model, with its formula, stands in `cuzklab.simulate.costs` and the modules it names.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cuzklab.profiles.fields import bounds
from cuzklab.stages import DeviceModel


@dataclass(frozen=True)
class Host:
    """Processor and memory.

    Attributes
    ----------
    cores, threads_per_core : int
        Cores that CPU stages share, and hardware threads of each.
    smt_yield : float
        Throughput of a core with all its hardware threads busy, over that with one.
    llc_bytes : int
        Last-level cache, of all chips together.
    memory_bytes, reserved_bytes : int
        Memory of the machine, and what of it others hold, so that an engine is killed before it has all.
    memory_bandwidth_bytes_per_s : float
        What the memory can deliver in order.
    memory_efficiency : float
        Part of it that the CPU stages' irregular accesses reach together.
    overload_exponent : float
        How fast memory stalls grow with the traffic of others; 1 is in proportion, more is superlinear.
    cache_pressure : float
        How much longer memory stalls last while pools of threads fill the last-level cache.
    first_touch_s_per_byte, dealloc_s_per_byte : float
        Fresh memory when it is first used (page faults and zeroing), and giving memory back to the operating system.
    wakeup_penalty : float
        How much longer a thread that works in bursts takes while twice as many threads are runnable as there are.
    lost_core_share : float
        Part of the short bursts, such as what a thread does between two stages, that lose their core while more threads
        are runnable than there are; they bear the whole of the wake-up penalty, and the others nothing. 1: all alike.
    """

    cores: int = bounds(1)
    threads_per_core: int = bounds(1, 8)
    smt_yield: float = bounds(1, 8)
    llc_bytes: int = bounds(0, above=True)
    memory_bytes: int = bounds(0, above=True)
    reserved_bytes: int = bounds(0)
    memory_bandwidth_bytes_per_s: float = bounds(0, above=True)
    memory_efficiency: float = bounds(0, 1, above=True)
    overload_exponent: float = bounds(0.1, 8)
    cache_pressure: float = bounds(0)
    first_touch_s_per_byte: float = bounds(0)
    dealloc_s_per_byte: float = bounds(0)
    source: str = bounds()
    wakeup_penalty: float = bounds(default=0.0)
    lost_core_share: float = bounds(0, 1, above=True, default=1.0)

    @property
    def shared_bandwidth_bytes_per_s(self) -> float:
        """What concurrent CPU stages share."""
        return self.memory_bandwidth_bytes_per_s * self.memory_efficiency

    @property
    def hardware_threads(self) -> int:
        return self.cores * self.threads_per_core

    @property
    def available_bytes(self) -> int:
        """Memory that an engine can have."""
        return self.memory_bytes - self.reserved_bytes


@dataclass(frozen=True)
class Device:
    """One GPU, real or emulated: memory, and what the calls around it cost.

    Attributes
    ----------
    margin_bytes : int
        What an engine leaves free when it decides by the amount of free memory.
    alloc_s, free_s : float
        An allocation outside the pool, and `cudaFree` of it, once the device is idle.
    pooled_s, pooled_free_s : float
        A stream-ordered allocation, and such a free; 0 for the free: it takes as long as the allocation.
    trim_s, sync_s : float
        Trimming the pool, and a device-wide synchronisation, once the device is idle.
    kernels_on_host : bool
        Whether kernels are computed by threads of the host, one stage at a time, as on an emulated device.
    begins_with_first_array : bool
        Whether the stage that reads a, b and c begins once a is there, beside the copy of b and c from page-locked
        memory; otherwise it waits for the whole copy.
    launch_s : float
        What launching a stage takes on the thread that calls, beside the kernels; `[launch]` may say it by stage.
    idle_s : float
        How long after the device has become idle a call that waits for that notices it. It does not where a thread is
        about to launch the next stage, which has the interpreter's lock until it has launched.
    between_s : float
        What a thread that launches does between two stages.
    """

    vram_bytes: int = bounds(0, above=True)
    margin_bytes: int = bounds(0)
    multiprocessors: int = bounds(1)
    alloc_s: float = bounds(0)
    free_s: float = bounds(0)
    pooled_s: float = bounds(0)
    trim_s: float = bounds(0)
    sync_s: float = bounds(0)
    source: str = bounds()
    kernels_on_host: bool = bounds(default=False)
    pooled_free_s: float = bounds(default=0.0)
    begins_with_first_array: bool = bounds(default=False)
    launch_s: float = bounds(default=0.0)
    idle_s: float = bounds(default=0.0)
    between_s: float = bounds(default=0.0)

    @property
    def model(self) -> DeviceModel:
        """What of the device the byte formulas of the stages depend on."""
        return DeviceModel(self.multiprocessors)


@dataclass(frozen=True)
class TransferRates:
    """Copies from host to device, and the cost of page-locking.

    Attributes
    ----------
    pin_excludes_kernels : bool
        Whether changes of memory mappings (locking and unlocking pages, giving memory back) go one at a time, and never
        beside a stage's kernels.
    pin_delays_launches : bool
        Whether a stage on a device makes no progress while mappings are changed beside it, since nothing can be
        launched then; the change waits for no stage, but has its turn at the driver as other calls have. It is one or
        the other.
    """

    pinned_bytes_per_s: float = bounds(0, above=True)
    pageable_bytes_per_s: float = bounds(0, above=True)
    pin_s_per_byte: float = bounds(0)
    unpin_s_per_byte: float = bounds(0)
    source: str = bounds()
    pin_excludes_kernels: bool = bounds(default=False)
    pin_delays_launches: bool = bounds(default=False)


@dataclass(frozen=True)
class Engine:
    """What the engine's own code adds on this host, around the stages.

    Attributes
    ----------
    early_memory_share : float
        Part of a partition's memory that is in use from the start of its synthesis; the rest comes with its progress.
    pickup_s : float
        On a GPU worker, from taking a partition to the start of its call: two workers hide each other's.
    wake_s : float
        From what a thread has waited for (a lock, a semaphore, another thread's end, a promise of memory) until it goes
        on, on a host with a core to spare; longer on a busy one.
    """

    early_memory_share: float = bounds(0, 1)
    source: str = bounds()
    pickup_s: float = bounds(default=0.0)
    wake_s: float = bounds(default=0.0)


SECTIONS: Mapping[str, type] = {"host": Host, "device": Device, "transfer": TransferRates, "engine": Engine}

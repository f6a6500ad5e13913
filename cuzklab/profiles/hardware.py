"""Machines as the simulator and the emulated device see them: `lab/hardware/NAME.toml`.

What each constant does in the model, with its formula, stands in `cuzklab.simulate.costs`, `host` and `host_memory`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from cuzklab.errors import BadInput
from cuzklab.profiles.calibration import Calibration, read_calibration
from cuzklab.profiles.fields import (
    StageNumbers,
    bounds,
    find_profile,
    profile_names,
    read_section,
    read_stage_numbers,
    read_toml,
    read_value,
    refuse_unknown,
)
from cuzklab.stages import STAGES, DeviceModel

# What host memory slows down beside the CPU stages: copies from pageable memory, and locking and unlocking pages.
PAGEABLE_COPY, PAGE_LOCKING, LAUNCHING, WAKING = "pageable_copy", "page_locking", "launching", "waking"
LOG2_DOMAIN = "log2_domain"  # of the circuits that [rates] are of


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
        launched then; the change begins at once. It is one or the other.
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


@dataclass(frozen=True)
class Hardware:
    """A machine as the simulator and the emulated device see it.

    Attributes
    ----------
    name : str
        The file's name without its suffix.
    rates : StageNumbers or None
        Work a second of each stage run alone, in the stage's `work_unit`. For a GPU stage: its kernels alone, with its
        data on the device already. None: not known, so the profile cannot be simulated.
    threads : StageNumbers or None
        Threads of each CPU stage; one where it says nothing.
    spread : StageNumbers or None
        Standard deviation of the logarithm of a CPU stage's duration, of page-locking's, of what a stage on a device
        takes on the thread that launches it, and of how long a thread takes to wake; none where it says nothing.
    serial_share : StageNumbers or None
        Part of a CPU stage's work that one thread of its pool does alone; none where it says nothing.
    split_work : StageNumbers or None
        Work that each thread of a CPU stage's pool adds beyond the first, in the stage's `work_unit`: a part of an MSM
        has buckets of its own, which are added up once more. None where it says nothing.
    launch : StageNumbers or None
        Seconds that a part of a GPU stage takes on the thread that launches it, beside its kernels: the same for every
        size, and longer on a busy host. `device.launch_s` where it says nothing.
    size_exponent : StageNumbers or None
        How a stage's rate grows with the circuit: as (domain / 2^log2_domain)^exponent; 0 where it says nothing.
    memory_share : StageNumbers or None
        Part of the time alone of a CPU stage, of a pageable copy and of page-locking that waits for host memory; 0
        where it says nothing.
    calibration : Calibration or None
        What fitted the constants to measured runs of this machine, with the near-equal fits.
    digest : str
        SHA-256 of the file.
    """

    name: str
    title: str
    source: str
    host: Host
    device: Device
    transfer: TransferRates
    engine: Engine
    rates: StageNumbers | None
    threads: StageNumbers | None
    spread: StageNumbers | None
    memory_share: StageNumbers | None
    serial_share: StageNumbers | None = None
    split_work: StageNumbers | None = None
    launch: StageNumbers | None = None
    size_exponent: StageNumbers | None = None
    calibration: Calibration | None = None
    digest: str = ""

    @property
    def calibrated(self) -> bool:
        """Whether the constants were fitted to measured runs of this machine."""
        return self.calibration is not None

    def rate(self, stage: str, domain: int | None = None) -> float:
        """Work a second of a stage, for circuits of that domain.

        Raises
        ------
        BadInput
            The profile states no rates.
        """
        if self.rates is None:
            raise BadInput(f"hardware profile {self.name}: it has no [rates], so nothing can be timed with it")
        rate = self.rates.values[stage]
        exponent = self.size_exponent.values.get(stage, 0.0) if self.size_exponent else 0.0
        if not exponent or domain is None:
            return rate
        return rate * 2 ** (exponent * (math.log2(domain) - self.size_exponent.values[LOG2_DOMAIN]))

    def stage_launch_s(self, stage: str) -> float:
        return self.launch.values.get(stage, self.device.launch_s) if self.launch else self.device.launch_s

    def stage_threads(self, stage: str) -> int:
        return int(self.threads.values.get(stage, 1)) if self.threads else 1

    def stage_spread(self, stage: str) -> float:
        return self.spread.values.get(stage, 0.0) if self.spread else 0.0

    def stage_serial_share(self, stage: str) -> float:
        return self.serial_share.values.get(stage, 0.0) if self.serial_share else 0.0

    def stage_split_work(self, stage: str) -> float:
        return self.split_work.values.get(stage, 0.0) if self.split_work else 0.0

    def stage_memory_share(self, stage: str) -> float:
        return self.memory_share.values.get(stage, 0.0) if self.memory_share else 0.0

    def constant(self, name: str) -> float:
        """A constant by its dotted name, as ``host.memory_efficiency`` or ``spread.synthesis``."""
        section, _, key = name.partition(".")
        part = getattr(self, section)
        return part.values.get(key, 0.0) if isinstance(part, StageNumbers) else getattr(part, key)

    def with_constants(self, values: Mapping[str, float]) -> "Hardware":
        """The same machine with other constants, by their dotted names."""
        parts: dict[str, Any] = {}
        for name, value in values.items():
            section, _, key = name.partition(".")
            part = parts.get(section, getattr(self, section))
            if isinstance(part, StageNumbers):
                parts[section] = replace(part, values={**part.values, key: value})
            else:
                parts[section] = replace(part, **{key: value})
        return replace(self, **parts)


SECTIONS: Mapping[str, type] = {"host": Host, "device": Device, "transfer": TransferRates, "engine": Engine}
_CPU_STAGES = {name for name, stage in STAGES.items() if stage.processor == "cpu"}
_STAGE_TABLES: Mapping[str, tuple[set[str], set[str], type, Mapping[str, Any]]] = {
    "rates": (set(STAGES), set(STAGES), float, {"above": True}),
    "threads": (_CPU_STAGES, set(), int, {"least": 1}),
    "spread": (_CPU_STAGES | {PAGE_LOCKING, LAUNCHING, WAKING}, set(), float, {"most": 1}),
    "memory_share": (_CPU_STAGES | {PAGEABLE_COPY, PAGE_LOCKING}, set(), float, {"most": 1}),
    "serial_share": (_CPU_STAGES, set(), float, {"most": 1}),
    "split_work": (_CPU_STAGES, set(), float, {}),
    "launch": (set(STAGES) - _CPU_STAGES, set(), float, {}),
    "size_exponent": (set(STAGES) | {LOG2_DOMAIN}, {LOG2_DOMAIN}, float, {"least": -2, "most": 64}),
}


def may_stand(section: str, key: str) -> bool:
    """Whether a profile's section may have such a field."""
    if section in SECTIONS:
        return key in {one.name for one in fields(SECTIONS[section])}
    return section in _STAGE_TABLES and key in _STAGE_TABLES[section][0]


def hardware_names() -> tuple[str, ...]:
    """Names of the hardware profiles that are shipped."""
    return profile_names("hardware")


def load_hardware(name_or_path: str | Path) -> Hardware:
    """A hardware profile by name, or from a TOML file.

    Raises
    ------
    BadInput
        No such profile, or a field is unknown, missing, of the wrong type, out of range or contradicts another.
    """
    path = find_profile("hardware", name_or_path)
    return hardware_of(path, *read_toml(path))


def hardware_of(path: Path, document: Mapping[str, Any], digest: str) -> Hardware:
    """A hardware profile from the content of its file; errors as `load_hardware`."""
    parts: dict[str, Any] = {"title": "", "source": ""}
    refuse_unknown(path, "", document, {*parts, *SECTIONS, *_STAGE_TABLES, "calibration"})
    for key in parts:
        parts[key] = read_value(path, key, document, str, {})
    for key, kind in SECTIONS.items():
        parts[key] = read_section(path, key, document, kind)
    for key, arguments in _STAGE_TABLES.items():
        parts[key] = read_stage_numbers(path, key, document, *arguments)
    hardware = Hardware(name=path.stem, digest=digest, **parts)
    _refuse_contradictions(path, hardware)
    if "calibration" not in document:
        return hardware
    return replace(hardware, calibration=read_calibration(path, document, hardware))


def _refuse_contradictions(path: Path, hardware: Hardware) -> None:
    host, device, transfer = hardware.host, hardware.device, hardware.transfer
    if host.smt_yield > host.threads_per_core:
        raise BadInput(f"{path}: field host.smt_yield is {host.smt_yield}, above host.threads_per_core")
    if host.reserved_bytes >= host.memory_bytes:
        raise BadInput(f"{path}: field host.reserved_bytes leaves nothing of host.memory_bytes")
    if device.margin_bytes >= device.vram_bytes:
        raise BadInput(f"{path}: field device.margin_bytes leaves nothing of device.vram_bytes")
    if transfer.pageable_bytes_per_s > transfer.pinned_bytes_per_s:
        raise BadInput(f"{path}: field transfer.pageable_bytes_per_s is above transfer.pinned_bytes_per_s")
    if transfer.pin_excludes_kernels and transfer.pin_delays_launches:
        raise BadInput(f"{path}: field transfer.pin_delays_launches is true, and so is transfer.pin_excludes_kernels")
    for stage, threads in (hardware.threads.values if hardware.threads else {}).items():
        if threads > host.hardware_threads:
            raise BadInput(
                f"{path}: field threads.{stage} is {threads}, but host.cores and host.threads_per_core make "
                f"{host.hardware_threads}"
            )

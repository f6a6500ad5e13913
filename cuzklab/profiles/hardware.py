"""Machines as the simulator and the emulated device see them: `lab/hardware/NAME.toml`.

A machine has sections of constants (`cuzklab.profiles.sections`) and tables with a number for each stage; here the two
come together, and what would contradict each other is refused.
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
    find_profile,
    profile_names,
    read_section,
    read_stage_numbers,
    read_toml,
    read_value,
    refuse_unknown,
)
from cuzklab.profiles.sections import SECTIONS, Device, Engine, Host, TransferRates
from cuzklab.stages import STAGES

# What host memory slows down beside the CPU stages: copies from pageable memory, and locking and unlocking pages.
PAGEABLE_COPY, PAGE_LOCKING, LAUNCHING, WAKING = "pageable_copy", "page_locking", "launching", "waking"
LOG2_DOMAIN = "log2_domain"  # of the circuits that [rates] are of


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
            The profile states no rates, or makes this one too small to be told from nothing.
        """
        if self.rates is None:
            raise BadInput(f"hardware profile {self.name}: it has no [rates], so nothing can be timed with it")
        rate = self.rates.values[stage]
        exponent = self.size_exponent.values.get(stage, 0.0) if self.size_exponent else 0.0
        if not exponent or domain is None:
            return rate
        rate *= 2 ** (exponent * (math.log2(domain) - self.size_exponent.values[LOG2_DOMAIN]))
        if not rate:
            raise BadInput(
                f"hardware profile {self.name}: size_exponent.{stage} makes the rate of a circuit of "
                f"2^{math.log2(domain):g} rows nothing"
            )
        return rate

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

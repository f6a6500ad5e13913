"""Profiles of machines and of workloads, read from TOML and trusted in nothing.

A profile is a file that a person edits: `lab/hardware/NAME.toml`, `lab/workloads/NAME.toml`, or any path. Sizes are
bytes (``"16GiB"`` or a number), rates are base units a second, and every group of constants says in `source` where
they come from. The dataclasses below are the schema: a field without a default must be there, and no other may.
"""

import dataclasses
import hashlib
import math
import re
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuzklab import resources
from cuzklab.errors import BadInput
from cuzklab.stages import POREP_32G, STAGES, CircuitShape, DeviceModel
from cuzklab.units import parse_size

_MAX_FILE_BYTES = 1 << 20
_SCALED_NAME = re.compile(r"porep-shaped-([0-9]{1,2})")
MIN_LOG2_DOMAIN, MAX_LOG2_DOMAIN = 6, 32
PRIORITIES = ("normal", "high", "critical")


def _bounds(least: float = 0, most: float = math.inf, *, above: bool = False, **options: Any) -> Any:
    """A field whose number must lie in [least, most], or above `least`."""
    return field(metadata={"least": least, "most": most, "above": above}, **options)


@dataclass(frozen=True)
class Host:
    """Processor and memory.

    Attributes
    ----------
    cores : int
        Cores that CPU stages share.
    memory_bandwidth_bytes_per_s : float
        What the memory can deliver in order.
    memory_efficiency : float
        Part of it that the CPU stages' irregular accesses reach together.
    thread_bandwidth_bytes_per_s : float
        What one thread can draw by itself with such accesses.
    """

    cores: int = _bounds(1)
    memory_bytes: int = _bounds(0, above=True)
    memory_bandwidth_bytes_per_s: float = _bounds(0, above=True)
    memory_efficiency: float = _bounds(0, 1, above=True)
    thread_bandwidth_bytes_per_s: float = _bounds(0, above=True)
    source: str = field()

    @property
    def shared_bandwidth_bytes_per_s(self) -> float:
        """What concurrent CPU stages share."""
        return self.memory_bandwidth_bytes_per_s * self.memory_efficiency


@dataclass(frozen=True)
class Device:
    """One GPU, real or emulated: memory, and what the calls around it cost.

    Attributes
    ----------
    margin_bytes : int
        What an engine leaves free when it decides by the amount of free memory.
    alloc_s, free_s : float
        An allocation outside the pool, and `cudaFree` of it, once the device is idle.
    pooled_s : float
        A stream-ordered allocation or free.
    trim_s, sync_s : float
        Trimming the pool, and a device-wide synchronisation, once the device is idle.
    """

    vram_bytes: int = _bounds(0, above=True)
    margin_bytes: int = _bounds(0)
    multiprocessors: int = _bounds(1)
    alloc_s: float = _bounds(0)
    free_s: float = _bounds(0)
    pooled_s: float = _bounds(0)
    trim_s: float = _bounds(0)
    sync_s: float = _bounds(0)
    source: str = field()

    @property
    def model(self) -> DeviceModel:
        """What of the device the byte formulas of the stages depend on."""
        return DeviceModel(self.multiprocessors)


@dataclass(frozen=True)
class TransferRates:
    """Copies from host to device, and the cost of page-locking."""

    pinned_bytes_per_s: float = _bounds(0, above=True)
    pageable_bytes_per_s: float = _bounds(0, above=True)
    pin_s_per_byte: float = _bounds(0)
    unpin_s_per_byte: float = _bounds(0)
    source: str = field()


@dataclass(frozen=True)
class StageNumbers:
    """A number for each stage of `cuzklab.stages.STAGES`, and where the numbers come from."""

    values: Mapping[str, float]
    source: str


@dataclass(frozen=True)
class Hardware:
    """A machine as the simulator and the emulated device see it.

    Attributes
    ----------
    name : str
        The file's name without its suffix.
    calibrated : bool
        Whether the constants were fitted to measured runs of this machine.
    rates : StageNumbers or None
        Work a second of each stage run alone, in the stage's `work_unit`. For a GPU stage: its kernels alone, with its
        data on the device already. None: not known, so the profile cannot be simulated.
    threads : StageNumbers or None
        Threads of each CPU stage; one where it says nothing.
    spread : StageNumbers or None
        Standard deviation of the logarithm of a stage's duration; none where it says nothing.
    digest : str
        SHA-256 of the file.
    """

    name: str
    title: str
    calibrated: bool
    source: str
    host: Host
    device: Device
    transfer: TransferRates
    rates: StageNumbers | None
    threads: StageNumbers | None
    spread: StageNumbers | None
    digest: str = ""

    def rate(self, stage: str) -> float:
        """Work a second of a stage.

        Raises
        ------
        BadInput
            The profile states no rates.
        """
        if self.rates is None:
            raise BadInput(f"hardware profile {self.name}: it has no [rates], so nothing can be timed with it")
        return self.rates.values[stage]

    def stage_threads(self, stage: str) -> int:
        return int(self.threads.values.get(stage, 1)) if self.threads else 1

    def stage_spread(self, stage: str) -> float:
        return self.spread.values.get(stage, 0.0) if self.spread else 0.0


@dataclass(frozen=True)
class Workload:
    """What is proved: the circuit of a partition, and how many partitions make a proof.

    `priority` is normal, high or critical: which goes first where proofs of several kinds wait.
    """

    name: str
    title: str
    source: str
    partitions_per_proof: int
    shape: CircuitShape
    digest: str = ""
    priority: str = "normal"


def hardware_names() -> tuple[str, ...]:
    """Names of the hardware profiles that are shipped."""
    return _names("hardware")


def workload_names() -> tuple[str, ...]:
    """Names of the workloads that are shipped; `porep-shaped-N` is one for every N too."""
    return _names("workloads")


def load_hardware(name_or_path: str | Path) -> Hardware:
    """A hardware profile by name, or from a TOML file.

    Raises
    ------
    BadInput
        No such profile, or a field is unknown, missing, of the wrong type, out of range or contradicts another.
    """
    path = _find("hardware", name_or_path)
    document, digest = read_toml(path)
    parts: dict[str, Any] = {"title": "", "calibrated": False, "source": ""}
    _refuse_unknown(path, "", document, {*parts, "host", "device", "transfer", "rates", "threads", "spread"})
    for key in parts:
        parts[key] = _value(path, key, document, type(parts[key]), {})
    for key, kind in (("host", Host), ("device", Device), ("transfer", TransferRates)):
        parts[key] = _section(path, key, document, kind)
    every = set(STAGES)
    processors = {name for name, stage in STAGES.items() if stage.processor == "cpu"}
    parts["rates"] = _stage_numbers(path, "rates", document, every, every, float, {"above": True})
    parts["threads"] = _stage_numbers(path, "threads", document, processors, set(), int, {"least": 1})
    parts["spread"] = _stage_numbers(path, "spread", document, processors, set(), float, {"most": 1})
    hardware = Hardware(name=path.stem, digest=digest, **parts)
    _refuse_contradictions(path, hardware)
    return hardware


def load_workload(name_or_path: str | Path) -> Workload:
    """A workload by name, from a TOML file, or `porep-shaped-N` for a small one with a domain of 2^N rows.

    A file has either a section [circuit] with every number of the shape, or a section [scaled] with `log2_domain`.

    Raises
    ------
    BadInput
        As `load_hardware`.
    """
    if (match := _SCALED_NAME.fullmatch(str(name_or_path))) and name_or_path not in workload_names():
        return scaled_workload(int(match[1]))
    path = _find("workloads", name_or_path)
    document, digest = read_toml(path)
    _refuse_unknown(path, "", document, {"title", "source", "partitions_per_proof", "priority", "circuit", "scaled"})
    if ("circuit" in document) == ("scaled" in document):
        raise BadInput(f"{path}: write one of the sections [circuit] and [scaled]")
    title, source = (_value(path, key, document, str, {}) for key in ("title", "source"))
    partitions = _value(path, "partitions_per_proof", document, int, {"least": 1, "most": 10_000})
    priority = _value(path, "priority", {"priority": PRIORITIES[0], **document}, str, {})
    if priority not in PRIORITIES:
        raise BadInput(f"{path}: field priority is {priority!r}; write one of {', '.join(PRIORITIES)}")
    if "scaled" in document:
        section = _table(path, "scaled", document)
        _refuse_unknown(path, "scaled.", section, {"log2_domain"})
        limits = {"least": MIN_LOG2_DOMAIN, "most": MAX_LOG2_DOMAIN}
        shape = scaled_shape(_value(path, "scaled.log2_domain", section, int, limits), path.stem)
    else:
        shape = _circuit(path, _table(path, "circuit", document))
    return Workload(path.stem, title, source, partitions, shape, digest, priority)


def scaled_shape(log2_domain: int, name: str = "") -> CircuitShape:
    """A circuit with the ratios of the 32 GiB PoRep partition and a domain of 2^`log2_domain` rows.

    Raises
    ------
    BadInput
        The domain is outside 2^6 … 2^32.
    """
    if not MIN_LOG2_DOMAIN <= log2_domain <= MAX_LOG2_DOMAIN:
        raise BadInput(f"log2_domain {log2_domain}: a PoRep-shaped circuit has {MIN_LOG2_DOMAIN} to {MAX_LOG2_DOMAIN}")
    ratio = 2.0 ** (log2_domain - POREP_32G.domain.bit_length() + 1)
    counts = {
        key: max(1, round(getattr(POREP_32G, key) * ratio))
        for key in ("constraints", "aux", "a_density", "b_density", "nonzeros")
    }
    inputs = max(2, round(POREP_32G.inputs * ratio))
    return CircuitShape(
        name=name or f"porep-shaped-{log2_domain}", inputs=inputs, tail_share=POREP_32G.tail_share, **counts
    )


def scaled_workload(log2_domain: int, partitions_per_proof: int = 10) -> Workload:
    """A PoRep-shaped workload of any size, for live runs on small machines."""
    shape = scaled_shape(log2_domain)
    title = f"PoRep-shaped, domain 2^{log2_domain}"
    return Workload(shape.name, title, "the ratios of the 32 GiB PoRep partition", partitions_per_proof, shape)


# --- reading ---------------------------------------------------------------------------------------------------------


def _names(kind: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (resources.folder("lab") / kind).glob("*.toml")))


def _find(kind: str, name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if text.endswith(".toml"):
        return Path(text)
    if text not in _names(kind):
        known = ", ".join(_names(kind))
        raise BadInput(f"no {kind} profile {text!r}; there are: {known}, or give the path of a .toml file")
    return resources.folder("lab") / kind / f"{text}.toml"


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """A TOML document and the SHA-256 of its bytes.

    Raises
    ------
    BadInput
        The file cannot be read, is far too large, or is not TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise BadInput(f"{path}: larger than {_MAX_FILE_BYTES} bytes, which no profile is")
        return tomllib.loads(content.decode()), hashlib.sha256(content).hexdigest()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    except BadInput:
        raise
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, numbers of thousands of digits
        raise BadInput(f"{path}: not TOML: {' '.join(str(error).split())}") from error


def _table(path: Path, key: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    if key not in document:
        raise BadInput(f"{path}: section [{key}] is missing")
    if not isinstance(document[key], dict):
        raise BadInput(f"{path}: {key} must be a section [{key}]")
    return document[key]


def _refuse_unknown(path: Path, prefix: str, section: Mapping[str, Any], known: set[str]) -> None:
    for key in section:
        if key not in known:
            raise BadInput(f"{path}: unknown field {prefix}{key}; there are: {', '.join(sorted(known))}")


def _value(path: Path, name: str, section: Mapping[str, Any], kind: type, limits: Mapping[str, Any]) -> Any:
    """One field, of the wanted type and in its range; sizes (names that end in _bytes) may be text."""
    key = name.rpartition(".")[2]
    if key not in section:
        raise BadInput(f"{path}: field {name} is missing")
    value = section[key]
    if kind is int and key.endswith("_bytes") and isinstance(value, str):
        try:
            value = parse_size(value)
        except ValueError as error:
            raise BadInput(f"{path}: field {name}: {error}") from error
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 2**62 else math.inf
    if type(value) is not kind:
        expected = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}[kind]
        raise BadInput(f"{path}: field {name} must be {expected}, not {type(value).__name__}")
    if kind is str and not value.strip():
        raise BadInput(f"{path}: field {name} must not be empty")
    if kind in (int, float):
        least, most, above = limits.get("least", 0), limits.get("most", math.inf), limits.get("above", False)
        if not abs(value) < 2**62:  # not-a-number included
            raise BadInput(f"{path}: field {name} is too large or not a number")
        if value < least or value > most or (above and value <= least):
            wanted = f"{'above' if above else 'at least'} {least}" + ("" if most == math.inf else f", at most {most}")
            raise BadInput(f"{path}: field {name} is {value}; it must be {wanted}")
    return value


def _section(path: Path, name: str, document: Mapping[str, Any], kind: type) -> Any:
    """A section as the dataclass that describes it."""
    section = _table(path, name, document)
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    _refuse_unknown(path, f"{name}.", section, {entry.name for entry in fields})
    return kind(
        **{
            entry.name: _value(path, f"{name}.{entry.name}", section, hints[entry.name], entry.metadata)
            for entry in fields
        }
    )


def _stage_numbers(
    path: Path,
    name: str,
    document: Mapping[str, Any],
    allowed: set[str],
    required: set[str],
    kind: type,
    limits: Mapping[str, Any],
) -> StageNumbers | None:
    """An optional section with a number a stage."""
    if name not in document:
        return None
    section = _table(path, name, document)
    _refuse_unknown(path, f"{name}.", section, allowed | {"source"})
    source = _value(path, f"{name}.source", section, str, {})
    wanted = [stage for stage in STAGES if stage in required or stage in section]
    return StageNumbers({stage: _value(path, f"{name}.{stage}", section, kind, limits) for stage in wanted}, source)


def _refuse_contradictions(path: Path, hardware: Hardware) -> None:
    host, device, transfer = hardware.host, hardware.device, hardware.transfer
    if device.margin_bytes >= device.vram_bytes:
        raise BadInput(f"{path}: field device.margin_bytes leaves nothing of device.vram_bytes")
    if transfer.pageable_bytes_per_s > transfer.pinned_bytes_per_s:
        raise BadInput(f"{path}: field transfer.pageable_bytes_per_s is above transfer.pinned_bytes_per_s")
    if host.thread_bandwidth_bytes_per_s > host.memory_bandwidth_bytes_per_s:
        raise BadInput(f"{path}: field host.thread_bandwidth_bytes_per_s is above host.memory_bandwidth_bytes_per_s")
    for stage, threads in (hardware.threads.values if hardware.threads else {}).items():
        if threads > host.cores:
            raise BadInput(f"{path}: field threads.{stage} is {threads}, but host.cores is {host.cores}")


def _circuit(path: Path, section: Mapping[str, Any]) -> CircuitShape:
    limits = dict.fromkeys(("constraints", "aux", "inputs", "a_density", "b_density"), 1 << MAX_LOG2_DOMAIN)
    limits["nonzeros"] = 1 << 40
    _refuse_unknown(path, "circuit.", section, {*limits, "tail_share"})
    values = {
        key: _value(path, f"circuit.{key}", section, int, {"least": 1, "most": most}) for key, most in limits.items()
    }
    tail_share = _value(path, "circuit.tail_share", section, float, {"most": 1})
    variables = values["aux"] + values["inputs"]
    for key in ("a_density", "b_density"):
        if values[key] > variables:
            raise BadInput(f"{path}: field circuit.{key} is {values[key]}, but there are {variables} variables")
    if values["constraints"] + values["inputs"] > 1 << MAX_LOG2_DOMAIN:
        raise BadInput(f"{path}: field circuit.constraints: the field has no domain above 2^{MAX_LOG2_DOMAIN} rows")
    return CircuitShape(name=path.stem, tail_share=tail_share, **values)

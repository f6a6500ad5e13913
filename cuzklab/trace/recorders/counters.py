"""Values that change on their own: sampled by a thread at an interval, as rows of the counters table.

A source is a function that returns values by name; `gpu_source`, `host_memory_source` and `memory_bandwidth_source`
read the machine's, `depth_source` a queue's. What this machine does not tell is an `Unreadable` with the reason, which
goes into the run's notes, so that an empty counter is not taken for zero.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuzklab.trace.recorders.recording import DEFAULT, Recording
from cuzklab.trace.schema import Counter

Source = Callable[[], Mapping[str, float]]


@dataclass(frozen=True)
class Unreadable:
    """A counter that cannot be read here, and why."""

    what: str
    reason: str


class Sampler:
    """Samples sources until the recording stops.

    Parameters
    ----------
    sources : sequence of Source or Unreadable
    interval_s : float
    max_samples : int
        Rows kept; further ones are counted as lost.
    recording : Recording

    Attributes
    ----------
    lost : int
        Samples that found no room.
    """

    def __init__(
        self,
        sources: Sequence[Source | Unreadable],
        *,
        interval_s: float = 0.1,
        max_samples: int = 1_000_000,
        recording: Recording = DEFAULT,
    ) -> None:
        if interval_s <= 0:
            raise ValueError(f"interval {interval_s} s: must be more than 0")
        self.lost = 0
        self._sources = [source for source in sources if not isinstance(source, Unreadable)]
        self._interval_s = interval_s
        self._room = max_samples
        self._recording = recording
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cuzklab sampler", daemon=True)
        for source in sources:
            if isinstance(source, Unreadable):
                recording.note(f"{source.what}: not captured ({source.reason})")

    def start(self) -> "Sampler":
        """Sample in the background, once at once; ends with the recording at the latest."""
        self._recording.at_end(self.stop)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Sample no more."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def sample(self) -> None:
        """Read every source once. One that fails is read no more, which becomes a note."""
        for source in list(self._sources):
            try:
                values = source()
            except Exception as error:
                self._sources.remove(source)
                name = getattr(source, "__name__", type(source).__name__)
                self._recording.note(f"{name}: failed and is sampled no more ({type(error).__name__}: {error})")
                continue
            now = self._recording.clock()
            for name, value in values.items():
                if self._room:
                    self._room -= 1
                    self._recording.add(Counter(now, name, float(value)))
                else:
                    self.lost += 1
                    self._recording.lose("counters", 1)

    def _run(self) -> None:
        self.sample()
        while not self._stop.wait(self._interval_s):
            self.sample()


def machine_sources() -> list[Source | Unreadable]:
    """All that this module can read of a machine: GPUs, host memory and its bandwidth."""
    return [*gpu_sources(), host_memory_source, memory_bandwidth_source()]


def host_memory_source() -> dict[str, float]:
    """Memory of this process and what the host has left, in bytes."""
    values = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            values["process_resident_bytes"] = int(line.split()[1]) * 1024
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            values["host_available_bytes"] = int(line.split()[1]) * 1024
    return values


def memory_bandwidth_source(
    folder: Path = Path("/sys/fs/resctrl/mon_data"), clock: Callable[[], float] = time.monotonic
) -> Source | Unreadable:
    """Bytes a second between the processor's caches and memory, where the kernel's resctrl counts them.

    Parameters
    ----------
    folder : Path
        Monitoring groups of the resctrl file system.
    clock : callable returning float
        Seconds.
    """
    what = "host memory bandwidth"
    files = sorted(folder.glob("mon_L3_*/mbm_total_bytes"))
    if not files:
        return Unreadable(
            what, f"{folder} has no mbm_total_bytes: resctrl is not mounted, or the processor cannot tell"
        )
    before: list[tuple[float, int]] = []

    def host_memory_bandwidth() -> dict[str, float]:
        now, count = clock(), sum(int(file.read_text()) for file in files)
        found = {}
        if before and now > before[0][0]:
            found["host_memory_bytes_per_s"] = (count - before[0][1]) / (now - before[0][0])
        before[:] = [(now, count)]
        return found

    try:
        host_memory_bandwidth()
    except (OSError, ValueError) as error:
        return Unreadable(what, f"{files[0]}: {error}")
    return host_memory_bandwidth


def gpu_sources(nvml: Any = None) -> list[Source | Unreadable]:
    """A source for each GPU: use of processors and memory, bytes, PCIe traffic, power, temperature, clock.

    Parameters
    ----------
    nvml : module, optional
        `pynvml` unless given.
    """
    if nvml is None:
        import pynvml as nvml
    try:
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        return [Unreadable("GPU counters", f"NVML: {error}")]
    if not count:
        return [Unreadable("GPU counters", "NVML finds no GPU")]
    return [source for index in range(count) for source in _of_gpu(nvml, index)]


def _of_gpu(nvml: Any, index: int) -> list[Source | Unreadable]:
    device = nvml.nvmlDeviceGetHandleByIndex(index)
    readings: dict[str, Callable[[], dict[str, float]]] = {
        "utilisation": lambda: _named(
            nvml.nvmlDeviceGetUtilizationRates(device), gpu="utilisation_percent", memory="memory_utilisation_percent"
        ),
        "memory": lambda: _named(nvml.nvmlDeviceGetMemoryInfo(device), used="used_bytes", free="free_bytes"),
        "PCIe receive rate": lambda: {  # NVML gives KB/s
            "pcie_receive_bytes_per_s": 1000.0 * nvml.nvmlDeviceGetPcieThroughput(device, nvml.NVML_PCIE_UTIL_RX_BYTES)
        },
        "PCIe send rate": lambda: {
            "pcie_send_bytes_per_s": 1000.0 * nvml.nvmlDeviceGetPcieThroughput(device, nvml.NVML_PCIE_UTIL_TX_BYTES)
        },
        "power": lambda: {"power_w": nvml.nvmlDeviceGetPowerUsage(device) / 1000},
        "temperature": lambda: {"temperature_c": nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU)},
        "clock": lambda: {"sm_clock_hz": 1e6 * nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM)},
    }
    found: list[Source | Unreadable] = []
    readable = []
    for what, read in readings.items():
        try:
            read()
        except nvml.NVMLError as error:
            found.append(Unreadable(f"gpu{index} {what}", f"NVML: {error}"))
        else:
            readable.append(read)

    def gpu() -> dict[str, float]:
        return {f"gpu{index} {name}": value for read in readable for name, value in read().items()}

    gpu.__name__ = f"gpu{index}"
    return [gpu, *found]


def _named(values: Any, **names: str) -> dict[str, float]:
    return {name: float(getattr(values, attribute)) for attribute, name in names.items()}


def depth_source(name: str, depth: Callable[[], int]) -> Source:
    """How many items a queue holds: `depth_source("results", queue.qsize)`."""

    def queue_depth() -> dict[str, float]:
        return {f"queue {name}": float(depth())}

    return queue_depth

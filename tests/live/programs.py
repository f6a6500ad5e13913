"""Small programs of effects, a workload without arithmetic, and a device whose time passes at once."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cuzklab.backends.device import Memory, Piece
from cuzklab.backends.emulated import EmulatedDevice
from cuzklab.live.run import Ended, Run
from cuzklab.policies.model import Gpu, HostBuffer, Partition, Program
from cuzklab.profiles import TransferRates
from cuzklab.stages import PartitionSizes
from cuzklab.trace.recorders import Recording

GPU = Gpu(0, 1000, margin_bytes=10)
RATES = TransferRates(
    pinned_bytes_per_s=1e9, pageable_bytes_per_s=1e8, pin_s_per_byte=2e-9, unpin_s_per_byte=1e-9, source="round numbers"
)


class FakeClock:
    """Time that passes only by being waited for, or a nanosecond by being looked at."""

    def __init__(self) -> None:
        self.time_ns = 0
        self._mutex = threading.Lock()

    def now_ns(self) -> int:
        with self._mutex:
            self.time_ns += 1
            return self.time_ns

    def wait_until_ns(self, moment_ns: int) -> None:
        with self._mutex:
            self.time_ns = max(self.time_ns, moment_ns)


@dataclass
class SmallWorkload:
    """Stages that remember that they ran; `fails` names one that raises; `meanwhile` is called in each GPU stage."""

    fails: str = ""
    meanwhile: Callable[[str], None] = lambda label: None
    ran: list[str] = field(default_factory=list)
    finished_partitions: list[str] = field(default_factory=list)
    host_bytes: int = 0

    def compute(self, partition: Partition, stage: str, part: str, threads: int) -> None:
        self._run(partition, stage)

    def launch(self, partition: Partition, stage: str, part: str, memory: Mapping[str, Memory]) -> None:
        self.meanwhile(f"{partition.name} {stage}.{part}")
        self._run(partition, f"{stage}.{part}" if part else stage)

    def takes_arrivals(self, stage: str) -> bool:
        return stage == "ntt_h"

    def streamed_bytes(self, partition: Partition, stage: str, part: str) -> int:
        return 64 if stage == "h_msm" else 0

    def pieces(self, partition: Partition, source: HostBuffer, targets: tuple[Memory, ...]) -> list[Piece]:
        return [
            Piece(np.full(target.size_bytes // 8, 7, np.uint64), target, 0, target.size_bytes) for target in targets
        ]

    def host_memory(self, buffer: HostBuffer) -> tuple[np.ndarray, ...]:
        return (np.zeros(buffer.size_bytes // 8, np.uint64),)

    def free_host(self, partition: Partition, buffer: HostBuffer) -> None:
        self.ran.append(f"{partition.name} free {buffer.name}")

    def finished(self, partition: Partition) -> None:
        self.finished_partitions.append(partition.name)

    def _run(self, partition: Partition, label: str) -> None:
        if f"{partition.name} {label}" == self.fails:
            raise ValueError("made to fail")
        self.ran.append(f"{partition.name} {label}")


def small_partition(proof: int = 0, index: int = 0, scratch: Mapping[tuple[str, str], int] | None = None) -> Partition:
    """A partition with d_a of 320 bytes and d_bc of 640, of a device with 1000."""
    return Partition(proof, index, PartitionSizes(960, 320, 640, scratch or {}))


@dataclass
class Ran:
    """A run of small programs and what it left."""

    ended: Ended
    recorder: Recording
    device: EmulatedDevice
    workload: SmallWorkload
    run: Run

    def rows(self, table: str) -> list:
        return self.recorder.rows[table]


def run_small(
    programs: Mapping[str, Program],
    workload: SmallWorkload | None = None,
    vram_bytes: int = 1000,
    device_class: type[EmulatedDevice] = EmulatedDevice,
    **options,
) -> Ran:
    """Run programs on one emulated device with a fake clock; no thread of it is left."""
    clock = FakeClock()
    device = device_class(0, vram_bytes, RATES, clock)
    recorder = Recording(clock.now_ns)
    workload = workload or SmallWorkload()
    before = threading.active_count()
    run = Run((device,), workload, recorder)
    ended = run.execute(programs, **options)
    assert threading.active_count() == before
    return Ran(ended, recorder, device, workload, run)

"""What the interpreter needs of a workload: what the stages of a partition do, and its data's places.

`stages.Groth16` is the real one; tests bring small ones of their own.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from cuzklab.backends.device import Memory, Piece
from cuzklab.policies.effects import PolicyFault
from cuzklab.policies.model import HostBuffer, Partition


class StageFailed(PolicyFault):
    """A stage raised something; the message names the stage and the partition."""

    def __init__(self, stage: str, partition: str, error: BaseException) -> None:
        super().__init__(f"stage {stage} of partition {partition} failed: {type(error).__name__}: {error}")
        self.stage, self.partition, self.error = stage, partition, error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.stage, self.partition, self.error)


class Workload(Protocol):
    """The stages of partitions, on their data. Called from many threads, for one partition by few."""

    def compute(self, partition: Partition, stage: str, part: str, threads: int) -> None:
        """Run a CPU stage. `threads` 0 means the default."""

    def launch(self, partition: Partition, stage: str, part: str, memory: Mapping[str, Memory]) -> None:
        """Run a GPU stage, called where the device says; `memory` are the buffers that it was given, by name."""

    def takes_arrivals(self, stage: str) -> bool:
        """Whether a GPU stage says of each array when it needs it, so that it may begin before all are copied."""

    def streamed_bytes(self, partition: Partition, stage: str, part: str) -> int:
        """Bytes that cross to the device while a GPU stage runs."""

    def pieces(self, partition: Partition, source: HostBuffer, targets: tuple[Memory, ...]) -> list[Piece]:
        """The parts of an upload."""

    def host_memory(self, buffer: HostBuffer) -> tuple[np.ndarray, ...]:
        """The arrays that a host buffer consists of, to be page-locked; none where it has not been made yet."""

    def free_host(self, partition: Partition, buffer: HostBuffer) -> None:
        """Give up one buffer of a partition that is still being proved."""

    def finished(self, partition: Partition) -> None:
        """Give up what a partition needs no more, proved or not."""

    @property
    def host_bytes(self) -> int:
        """Host memory that the data of all partitions takes at this moment, the key included."""

"""Host memory of a proving engine: what is always there, and what each synthesised partition adds.

In use = key + compiled constraints + Σ over partitions (a, b, c, aux), the partition's part from the start of its
synthesis, which allocates it, to the end of its GPU call; a policy may free a, b, c earlier. For the 32 GiB PoRep that
is 69.8 GiB + 15.5 GiB for each partition that is being synthesised, waits for a worker, or is being proved; published
peaks follow 69 + 20·pw GiB. Not counted: the split vectors and tails of a call, what a lazy deallocation holds on to,
and the operating system.
"""

from collections.abc import Mapping

from cuzklab.policies.effects import Compute, Effect
from cuzklab.policies.model import Partition
from cuzklab.stages import STAGES, CircuitShape
from cuzklab.units import format_size

_SYNTHESES = {stage.name for stage in STAGES.values() if {"a", "b", "c"} <= set(stage.writes)}


class HostMemoryExhausted(Exception):
    """More host memory was needed than the machine has: the operating system ends the engine."""


class HostMemory:
    """Counts host memory in use.

    Parameters
    ----------
    limit_bytes : int
        Memory of the machine.
    shape : CircuitShape
    others : mapping
        Circuits of other kinds, whose keys are there too, by the kind of their partitions.
    """

    def __init__(self, limit_bytes: int, shape: CircuitShape, others: Mapping[str, CircuitShape] | None = None) -> None:
        self.limit_bytes = limit_bytes
        self._shapes = {"": shape, **(others or {})}
        self._fixed_bytes = sum(one.key_bytes + one.constraint_bytes for one in self._shapes.values())
        self._partitions: dict[Partition, int] = {}

    @property
    def in_use_bytes(self) -> int:
        return self._fixed_bytes + sum(self._partitions.values())

    def begins(self, effect: Effect) -> bool:
        """Count a partition whose synthesis begins with this effect; whether it does."""
        if isinstance(effect, Compute) and effect.stage in _SYNTHESES:
            self._partitions[effect.partition] = self._shapes[effect.partition.kind].synthesised_bytes
            return True
        return False

    def done(self, partition: Partition) -> None:
        """A partition's GPU call has ended: its memory is free."""
        self._partitions.pop(partition, None)

    def freed(self, partition: Partition, size_bytes: int) -> None:
        """A part of a partition's memory is free before its call has ended."""
        if partition in self._partitions:
            self._partitions[partition] -= size_bytes

    def check(self) -> None:
        """
        Raises
        ------
        HostMemoryExhausted
        """
        if self.in_use_bytes > self.limit_bytes:
            sizes = " or ".join(format_size(size) for size in sorted(set(self._partitions.values()), reverse=True))
            raise HostMemoryExhausted(
                f"host memory: {format_size(self._fixed_bytes)} of key and constraints and {len(self._partitions)} "
                f"synthesised partitions of {sizes} exceed {format_size(self.limit_bytes)}"
            )

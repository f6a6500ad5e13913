"""Host memory of a proving engine: what is always there, and what each partition adds while it is under way.

In use = key + compiled constraints + Σ over partitions. A partition's a, b, c and aux (15.5 GiB for the 32 GiB PoRep)
come with its synthesis: a share of them at the start (`early_memory_share` of the profile), the rest in proportion to
its progress. While a GPU worker has it, the call's split vectors are there too: tails (points and scalars of L, A, B_G1
and B_G2) and bitmaps. All of it is given back when the partition has its outcome, or a, b, c earlier if the policy
frees them, and stays in use until the deallocation, which takes a time for each byte, is over.

An engine is killed when it needs more than the machine's memory less what others hold. Not counted: what the allocator
keeps, page tables, the operating system.
"""

from collections.abc import Callable, Mapping

from cuzklab.policies.model import Partition
from cuzklab.stages import G1_BYTES, G2_BYTES, SCALAR_BYTES, CircuitShape
from cuzklab.units import format_size


class HostMemoryExhausted(Exception):
    """More host memory was needed than the machine has: the operating system ends the engine."""


def call_bytes(shape: CircuitShape) -> int:
    """Split vectors of a call: tails of L, A, B_G1 and B_G2 with their scalars, and a bit for each point."""
    tails = sum(shape.tail(query) * (G1_BYTES + SCALAR_BYTES) for query in ("l", "a", "b_g1"))
    bitmaps = sum(-(-shape.points(query) // 8) for query in ("l", "a", "b_g1"))
    return tails + shape.tail("b_g2") * (G2_BYTES + SCALAR_BYTES) + bitmaps


class HostMemory:
    """Counts host memory in use.

    Parameters
    ----------
    limit_bytes : int
        Memory that the engine can have.
    shape : CircuitShape
    early_share : float
        Part of a partition's memory that is there from the start of its synthesis.
    others : mapping
        Circuits of other kinds, whose keys are there too, by the kind of their partitions.
    """

    def __init__(
        self, limit_bytes: int, shape: CircuitShape, early_share: float = 1.0,
        others: Mapping[str, CircuitShape] | None = None,
    ) -> None:  # fmt: skip
        self.limit_bytes = limit_bytes
        shapes = {"": shape, **(others or {})}
        self._fixed_bytes = sum(one.key_bytes + one.constraint_bytes for one in shapes.values())
        self._partition_bytes = {kind: one.synthesised_bytes for kind, one in shapes.items()}
        self._call_bytes = {kind: call_bytes(one) for kind, one in shapes.items()}
        self._early_share = early_share
        self._held: dict[Partition, int] = {}
        self._growing: dict[Partition, Callable[[], float]] = {}
        self._held_bytes = 0

    @property
    def in_use_bytes(self) -> int:
        """Bytes in use now; progress of syntheses as last brought up to date."""
        to_come = sum(
            (1 - progress()) * self._partition_bytes[partition.kind] for partition, progress in self._growing.items()
        )
        return self._fixed_bytes + self._held_bytes - round((1 - self._early_share) * to_come)

    @property
    def partitions(self) -> int:
        """Partitions that hold memory."""
        return len(self._held)

    def begin(self, partition: Partition, progress: Callable[[], float]) -> None:
        """A partition's synthesis begins; `progress` tells how far it is, 0 to 1."""
        if partition not in self._held:
            self._hold(partition, self._partition_bytes[partition.kind])
        self._growing[partition] = progress

    def synthesised(self, partition: Partition) -> None:
        self._growing.pop(partition, None)

    def call(self, partition: Partition) -> None:
        """A GPU worker has taken a partition."""
        self._hold(partition, self._call_bytes[partition.kind])

    def claim(self, partition: Partition, size_bytes: int | None = None) -> int:
        """Begin to give back memory of a partition, all that it still holds unless a size is given.

        Returns
        -------
        int
            Bytes that the caller gives back, and nobody else will; in use until `given_back`.
        """
        held_bytes = self._held.pop(partition, 0)
        claimed_bytes = held_bytes if size_bytes is None else min(size_bytes, held_bytes)
        if held_bytes > claimed_bytes:
            self._held[partition] = held_bytes - claimed_bytes
        return claimed_bytes

    def given_back(self, size_bytes: int) -> None:
        """Memory that was claimed is no longer in use."""
        self._held_bytes -= size_bytes

    def _hold(self, partition: Partition, size_bytes: int) -> None:
        self._held[partition] = self._held.get(partition, 0) + size_bytes
        self._held_bytes += size_bytes

    def check(self, in_use_bytes: int) -> None:
        """
        Raises
        ------
        HostMemoryExhausted
        """
        if in_use_bytes > self.limit_bytes:
            largest_bytes = max(self._partition_bytes.values())
            raise HostMemoryExhausted(
                f"host memory: {format_size(self._fixed_bytes)} of key and constraints and {len(self._held)} "
                f"partitions of up to {format_size(largest_bytes)} exceed {format_size(self.limit_bytes)}"
            )

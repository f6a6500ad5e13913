"""What an engine is asked for, and how a policy is employed for it: a batch of proofs, and urgent ones in between."""

from dataclasses import dataclass, field

from cuzklab.policies.model import Gpu, Partition, Priority, Sizes


@dataclass(frozen=True)
class Urgent:
    """A proof that arrives while the batch is under way and goes before it wherever something waits.

    A batch is not held up for it by `in_flight`: it comes from somebody else.

    Attributes
    ----------
    kind : str
        Name of its circuit, as ``winningpost``.
    sizes : Sizes
        Bytes of the buffers of each of its partitions.
    after : int
        It arrives when so many partitions have an outcome; 0 means at the start.
    """

    kind: str
    sizes: Sizes = field(repr=False)
    partitions: int = 1
    priority: int = Priority.CRITICAL
    after: int = 0


@dataclass(frozen=True)
class EngineConfig:
    """How a policy is employed.

    Attributes
    ----------
    proofs, partitions : int
        Proofs of a batch (c); partitions of one proof.
    in_flight : int
        Proofs that may be under way at a time (j).
    synthesis_workers : int
        Partitions synthesised at a time (pw).
    gpu_workers : int
        Workers a device (gw).
    lookahead : int
        Synthesised partitions that may wait for a GPU worker.
    urgent : tuple of Urgent
        Proofs beside the batch; their numbers follow those of the batch.
    """

    proofs: int
    partitions: int
    gpus: tuple[Gpu, ...]
    in_flight: int
    synthesis_workers: int
    gpu_workers: int
    lookahead: int
    urgent: tuple[Urgent, ...] = ()

    def __post_init__(self) -> None:
        for name in ("proofs", "partitions", "in_flight", "synthesis_workers", "gpu_workers", "lookahead"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not self.gpus:
            raise ValueError("an engine needs at least one device")
        for proof in self.urgent:
            if proof.partitions < 1:
                raise ValueError(f"urgent {proof.kind}: partitions must be at least 1, not {proof.partitions}")
            if not 0 <= proof.after <= self.proofs * self.partitions:
                raise ValueError(
                    f"urgent {proof.kind} arrives after {proof.after} partitions; "
                    f"the batch has {self.proofs * self.partitions}"
                )

    @property
    def total_partitions(self) -> int:
        """Partitions of the batch and of the urgent proofs."""
        return self.proofs * self.partitions + sum(proof.partitions for proof in self.urgent)

    def partitions_of(self, proof: int) -> int:
        """Partitions of a proof by its number."""
        return self.partitions if proof < self.proofs else self.urgent[proof - self.proofs].partitions


def batch_partitions(config: EngineConfig, sizes: Sizes) -> tuple[tuple[Partition, ...], ...]:
    """The partitions of every proof of the batch."""
    return tuple(
        tuple(Partition(proof, index, sizes, synthesised=False) for index in range(config.partitions))
        for proof in range(config.proofs)
    )


def urgent_partitions(config: EngineConfig) -> tuple[tuple[Partition, ...], ...]:
    """The partitions of every urgent proof."""
    return tuple(
        tuple(
            Partition(config.proofs + number, index, proof.sizes, proof.priority, proof.kind, synthesised=False)
            for index in range(proof.partitions)
        )
        for number, proof in enumerate(config.urgent)
    )

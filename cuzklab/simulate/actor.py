"""Who runs in a simulation: a thread with a name, and what it is at."""

from dataclasses import dataclass, field

from cuzklab.policies.effects import PolicyFault
from cuzklab.policies.model import Lock, Partition
from cuzklab.trace import LockUse


@dataclass(slots=True, eq=False)
class Actor:
    """One running program.

    Attributes
    ----------
    name : str
        As in the programs that were given; a forked one is called ``parent/name``.
    device : int
        Device that it works on, −1 if it is not known.
    partition : Partition or None
        What it works on: what it last took from a queue and has not passed on.
    took_ns : int
        When it took it.
    requested_ns, holder_at_request : int, str
        When the effect that takes place now was asked for, and who had what it wanted.
    locks : dict
        Uses of locks that are not over.
    pending_fault : PolicyFault or None
        Of a program that it forked; raised at its next effect.
    """

    name: str
    parent: "Actor | None" = None
    device: int = -1
    partition: Partition | None = None
    took_ns: int = 0
    requested_ns: int = 0
    holder_at_request: str = ""
    locks: dict[Lock, LockUse] = field(default_factory=dict)
    pending_fault: PolicyFault | None = None
    ended: bool = False

    @property
    def in_call(self) -> bool:
        """Whether it works on a partition on a device, that is, within a GPU call."""
        return self.device >= 0 and self.partition is not None

    @property
    def worker(self) -> str:
        """The thread that works the queue, for a forked program too."""
        return self.name.partition("/")[0]

    @property
    def partition_name(self) -> str:
        return self.partition.name if self.partition else ""

    @property
    def proof(self) -> int:
        return self.partition.proof if self.partition else -1

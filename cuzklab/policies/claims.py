"""Claims: what an author says of every state that a design can come to, for the checker to prove or refute.

A policy's module may define ``claims``, a sequence of `Claim`:

    claims = (Claim("never two kernels at once", lambda state: all(len(state.kernels(gpu)) < 2 for gpu in state.gpus)),)

A claim is judged in every state that some schedule leads to, between any two steps. It looks at a `ClaimState` and at
nothing else, and must give the same answer for the same state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cuzklab.policies.effect import Effect, World
from cuzklab.policies.effects.coordination import permits_of
from cuzklab.policies.effects.in_flight import Work, works
from cuzklab.policies.effects.memory import free_for, live_buffers, live_bytes
from cuzklab.policies.model import Buffer, Flag, Gpu, Lock, Queue, Semaphore, Slot


@dataclass(frozen=True)
class Claim:
    """One assertion over states.

    Attributes
    ----------
    text : str
        The claim in words, as it stands in a report.
    holds : callable
        Whether it holds in a `ClaimState`.
    """

    text: str
    holds: Callable[["ClaimState"], bool]


@dataclass(frozen=True)
class ClaimState:
    """A state as claims see it; every method reads one thing.

    Attributes
    ----------
    gpus : tuple of Gpu
        The devices of the programs.
    """

    world: World
    gpus: tuple[Gpu, ...]
    at: Callable[[], Mapping[str, Effect]]

    def doing(self) -> Mapping[str, Effect]:
        """Of each actor that has started and not ended: the effect that it is at, or will come to next."""
        return self.at()

    def holder(self, lock: Lock) -> str | None:
        """Name of the actor that holds a lock."""
        return self.world.read(lock)

    def holds(self, actor: str, lock: Lock) -> bool:
        return self.world.read(lock) == actor

    def buffers(self, gpu: Gpu) -> tuple[Buffer, ...]:
        """What is allocated on a device."""
        return live_buffers(self.world, gpu)

    def live_bytes(self, gpu: Gpu) -> int:
        """Bytes that are allocated on a device."""
        return live_bytes(self.world, gpu)

    def free_bytes(self, gpu: Gpu) -> int:
        """Bytes of a device that are neither allocated nor kept by its pool."""
        return free_for(self.world, gpu, pooled=False)

    def reserved_bytes(self, gpu: Gpu) -> int:
        return sum(size for _, size in self.world.read(("reserved", gpu)) or ())

    def kernels(self, gpu: Gpu) -> tuple[Work, ...]:
        """Kernels under way on a device."""
        return tuple(work for work in works(self.world, gpu) if not work.writes)

    def copies(self, gpu: Gpu) -> tuple[Work, ...]:
        """Uploads under way on a device."""
        return tuple(work for work in works(self.world, gpu) if work.writes)

    def permits(self, semaphore: Semaphore) -> int:
        return permits_of(self.world, semaphore)

    def is_set(self, flag: Flag) -> bool:
        return bool(self.world.read(flag))

    def queued(self, queue: Queue) -> tuple[Any, ...]:
        """What lies in a queue, oldest first."""
        return self.world.read(queue) or ()

    def kept(self, slot: Slot) -> Any:
        """What lies in a slot."""
        return self.world.read(slot)

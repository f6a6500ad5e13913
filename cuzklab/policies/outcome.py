"""How a partition ends, and the clean-up after one that fails."""

from collections.abc import Generator, Hashable
from dataclasses import dataclass, field
from typing import Any

from cuzklab.policies.effects import Effect, OutOfDeviceMemory, PolicyFault
from cuzklab.policies.model import Partition, Program, program


@dataclass(frozen=True)
class Outcome:
    """How a partition ended: `fault` is None, or what went wrong and at which effect of its program."""

    partition: Partition
    fault: PolicyFault | None = field(default=None, compare=False)
    effect: Effect | None = field(default=None, compare=False)

    @property
    def ok(self) -> bool:
        return self.fault is None


@dataclass
class Latencies:
    """For each proof, when its first partition was queued, and when the last outcome so far came; nanoseconds."""

    queued_ns: dict[int, int] = field(default_factory=dict)
    done_ns: dict[int, int] = field(default_factory=dict)

    def passed(self, item: Any, now_ns: int) -> None:
        """Something was put into a queue of the engine."""
        if isinstance(item, Partition):
            self.queued_ns.setdefault(item.proof, now_ns)
        elif isinstance(item, Outcome):
            self.done_ns[item.partition.proof] = now_ns

    def seconds(self, proof: int) -> float | None:
        """From a proof's arrival to its last outcome; None if there is none."""
        if proof not in self.done_ns:
            return None
        return (self.done_ns[proof] - self.queued_ns[proof]) * 1e-9


@dataclass(frozen=True)
class Failure:
    """A partition without a proof: where it failed and why.

    Attributes
    ----------
    proof, partition : int, str
        Number of the proof, name of the partition.
    kind : str
        ``oom``, ``fault`` or, for a proof that does not verify, ``invalid``.
    effect : str
        What was being done: a stage, an allocation, a call.
    worker : str
        The actor that was doing it, as ``gpu0.w1/prep``.
    message : str
        The whole in a sentence.
    """

    proof: int
    partition: str
    kind: str
    message: str
    effect: str = ""
    worker: str = ""


def failure_of(outcome: Outcome) -> Failure:
    """The failure of a partition that has failed, from where its fault was met first."""
    fault, partition = outcome.fault, outcome.partition
    effect = str(fault.effect or outcome.effect or "")
    kind = "oom" if isinstance(fault, OutOfDeviceMemory) else "fault"
    place = ", ".join(filter(None, (effect and f"at {effect}", fault.actor and f"by {fault.actor}")))
    which = f"{partition.kind} " if partition.kind else ""
    what = str(fault) if fault.kind in ("oom", "fault") else f"{fault.kind}: {fault}"
    message = f"{which}proof {partition.proof}, partition {partition.index}{', ' if place else ''}{place}: {what}"
    return Failure(partition.proof, partition.name, kind, message, effect, fault.actor)


@program
def guarded(inner: Program, partition: Partition) -> Generator[Effect, Any, Outcome]:
    """Run a partition's program; if it fails, give back all that it held, newest first.

    Faults that the program does not catch end it. What it took and has not given back is known from the effects that
    passed: each says what undoes it.
    """
    held: dict[Hashable, Effect] = {}
    running = inner.start()
    effect: Effect | None = None
    try:
        effect = next(running)
        while True:
            try:
                result = yield effect
            except PolicyFault as fault:
                effect = running.throw(fault)
                continue
            held.pop(effect.settles, None)
            undo = effect.undo(result)
            if undo is not None:
                held[undo.settles] = undo
            effect = running.send(result)
    except StopIteration:
        return Outcome(partition)
    except PolicyFault as fault:
        for undo in reversed(held.values()):
            yield undo
        return Outcome(partition, fault, effect)

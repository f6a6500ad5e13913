"""A policy some of whose calls do without the lock: the dose of "less exclusion" that a what-if replay gives.

For a chosen part of the partitions every `Acquire` and `Release` of a lock is left out, in the call and in the programs
that it forks; everything else is as the policy says. They are every so many of the batch, whatever the seed, so that
replays are compared on the same.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from cuzklab.policies import Policy
from cuzklab.policies.effects import Acquire, Fork, Release
from cuzklab.policies.model import Gpu, Partition, Program


@dataclass(frozen=True)
class RelaxedPolicy(Policy):
    """A policy whose locks exclude nobody for every `period`-th partition of a batch.

    Attributes
    ----------
    period : int
    partitions : int
        Of a proof.
    """

    period: int = 1
    partitions: int = 1

    def prove_partition(self, partition: Partition, gpu: Gpu) -> Program:
        program = super().prove_partition(partition, gpu)
        return _without_locks(program) if self._exempt(partition) else program

    def call(self, hook: str, *arguments: Any) -> Any:
        found = super().call(hook, *arguments)
        if isinstance(found, Program) and isinstance(arguments[0], Partition) and self._exempt(arguments[0]):
            return _without_locks(found)
        return found

    def _exempt(self, partition: Partition) -> bool:
        return (partition.proof * self.partitions + partition.index) % self.period == self.period // 2


def relaxed(policy: Policy, period: int, partitions: int) -> Policy:
    """The policy with its locks left out for every `period`-th partition, of so many a proof."""
    return RelaxedPolicy(policy.name, policy.intent, policy.module, policy.options, period, partitions)


def _without_locks(program: Program) -> Program:
    """The same program without its locks, under the same name."""

    def run() -> Generator[Any, Any, Any]:
        inner = program.start()
        answer: Any = None
        fault: BaseException | None = None
        while True:
            try:
                effect = inner.send(answer) if fault is None else inner.throw(fault)
            except StopIteration as end:
                return end.value
            answer = fault = None
            if isinstance(effect, Acquire | Release):
                continue
            if isinstance(effect, Fork):
                effect = replace(effect, program=_without_locks(effect.program), name=effect.name)
            try:
                answer = yield effect
            except GeneratorExit:
                inner.close()
                raise
            except Exception as raised:
                fault = raised

    run.__name__ = program.name
    return Program(run)

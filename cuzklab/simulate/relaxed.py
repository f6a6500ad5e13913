"""A policy some of whose calls do without the lock: the dose of "less exclusion" that a what-if replay gives.

For a chosen part of the partitions every `Acquire` and `Release` of a lock is left out, in the call and in the programs
that it forks; everything else is as the policy says. Which partitions these are depends on their names alone, so that
replays of several policies and seeds leave out the same.
"""

import random
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from cuzklab.policies import Policy
from cuzklab.policies.effects import Acquire, Fork, Release
from cuzklab.policies.model import Gpu, Partition, Program


@dataclass(frozen=True)
class RelaxedPolicy(Policy):
    """A policy whose locks exclude nobody for a share of the partitions.

    Attributes
    ----------
    share : float
        Part of the partitions, 0 to 1.
    """

    share: float = 0.0

    def prove_partition(self, partition: Partition, gpu: Gpu) -> Program:
        program = super().prove_partition(partition, gpu)
        return _without_locks(program) if _chosen(partition, self.share) else program


def relaxed(policy: Policy, share: float) -> Policy:
    """The policy with its locks left out for a share of the partitions."""
    return RelaxedPolicy(policy.name, policy.intent, policy.module, policy.options, share)


def _chosen(partition: Partition, share: float) -> bool:
    return random.Random(f"relaxed/{partition.name}").random() < share


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

"""The engine around a policy, as programs of the same effects: proofs, queues, synthesis workers, GPU workers.

`engine_programs` gives the actors of a whole proving engine, for a batch and for urgent proofs beside it (`requests`);
every interpreter runs these. `guarded` (`outcome`) makes a failed partition give back what it held and fail nothing but
its own proof. What a policy may add to the engine (a finaliser, a synthesis of its own) it says in functions of its
module, which are picked up here: see `cuzklab.policies`.
"""

from collections.abc import Generator
from typing import Any

from cuzklab.policies.effects import Compute, Effect, Fork, Get, Join, Notify, Put, Wait
from cuzklab.policies.model import Gpu, Partition, Program, Queue, Semaphore, Sizes, Task, program
from cuzklab.policies.outcome import Failure, Latencies, Outcome, failure_of, guarded
from cuzklab.policies.requests import EngineConfig, Urgent, batch_partitions, urgent_partitions

__all__ = [
    "EngineConfig",
    "Failure",
    "Latencies",
    "Outcome",
    "Urgent",
    "engine_programs",
    "failure_of",
    "guarded",
    "split_call",
]

_JOBS, _RESULTS = Queue("jobs"), Queue("results")


def _ready_queue(policy: Any, config: EngineConfig) -> Queue:
    capacity = config.lookahead
    if policy.has("queue_capacity"):
        capacity = policy.call("queue_capacity", config.lookahead, config.synthesis_workers)
    return Queue("synthesised", capacity)


def _in_flight(config: EngineConfig) -> Semaphore:
    return Semaphore("proofs in flight", config.in_flight)


def _arrival(number: int) -> Semaphore:
    return Semaphore(f"arrival of urgent proof {number}")


@program
def source(config: EngineConfig, partitions: tuple[tuple[Partition, ...], ...]) -> Generator[Effect, Any, None]:
    """Admits proofs, at most `in_flight` at a time, and queues their partitions for synthesis."""
    for proof in partitions:
        yield Wait(_in_flight(config))
        for partition in proof:
            yield Put(_JOBS, partition)


@program
def urgent_source(number: int, after: int, partitions: tuple[Partition, ...]) -> Generator[Effect, Any, None]:
    """Queues the partitions of an urgent proof when its time has come."""
    if after:
        yield Wait(_arrival(number))
    for partition in partitions:
        yield Put(_JOBS, partition)


@program
def synthesise(partition: Partition) -> Generator[Effect, Any, None]:
    """The synthesis of a policy that does not define one."""
    yield Compute("synthesis", partition)


@program
def synthesis_worker(config: EngineConfig, policy: Any) -> Generator[Effect, Any, None]:
    """Synthesises one partition after another and hands them to the GPU workers."""
    ready = _ready_queue(policy, config)
    while (partition := (yield Get(_JOBS))) is not None:
        own = policy.call("synthesise", partition) if policy.has("synthesise") else synthesise(partition)
        outcome = yield from guarded(own, partition)
        if outcome.ok:
            yield Put(ready, partition)
        else:
            yield Put(_RESULTS, outcome)


@program
def gpu_worker(config: EngineConfig, policy: Any, gpu: Gpu) -> Generator[Effect, Any, None]:
    """Proves one partition after another by the policy; if the call is split, finalisers end the proofs."""
    ready, split = _ready_queue(policy, config), policy.has("finish_partition")
    finaliser: list[Task] = []
    while (partition := (yield Get(ready))) is not None:
        if split:
            outcome = yield from guarded(split_call(policy, partition, gpu, _RESULTS, finaliser), partition)
        else:
            outcome = yield from guarded(policy.prove_partition(partition, gpu), partition)
        if not (split and outcome.ok):
            yield Put(_RESULTS, outcome)
    for task in finaliser:
        yield Join(task)


@program
def split_call(
    policy: Any, partition: Partition, gpu: Gpu, results: Queue | None = None, before: list[Task] | None = None
) -> Generator[Effect, Any, None]:
    """A call that returns when its kernels have ended and leaves the rest to a finaliser.

    Parameters
    ----------
    results : Queue, optional
        Where the finaliser puts the outcome; without one its faults are its own.
    before : list of Task, optional
        The finaliser before this one, to be replaced by this one. Each waits for the one before it at its very end, so
        the worker need only wait for the last.
    """
    task = yield from policy.prove_partition(partition, gpu)
    last = tuple(before or ())
    rest = finalise(policy, partition, task, results, last)
    finaliser = yield Fork(rest, "finaliser", adopts=(task,))
    if before is not None:
        before[:] = [finaliser]


@program
def finalise(
    policy: Any, partition: Partition, task: Task, results: Queue | None, before: tuple[Task, ...]
) -> Generator[Effect, Any, None]:
    """What follows a split call, in a thread of its own."""
    rest = policy.call("finish_partition", partition, task)
    if results is None:
        yield from rest
    else:
        yield Put(results, (yield from guarded(rest, partition)))
    for task in before:
        yield Join(task)


@program
def collector(config: EngineConfig, policy: Any) -> Generator[Effect, Any, tuple[Outcome, ...]]:
    """Gathers results; a finished proof makes room for the next; at the end everybody is sent home."""
    outcomes: list[Outcome] = []
    missing = {proof: config.partitions_of(proof) for proof in range(config.proofs + len(config.urgent))}
    while missing:
        outcome = yield Get(_RESULTS)
        outcomes.append(outcome)
        for number, urgent in enumerate(config.urgent):
            if urgent.after == len(outcomes):
                yield Notify(_arrival(number))
        proof = outcome.partition.proof
        missing[proof] -= 1
        if not missing[proof]:
            del missing[proof]
            if proof < config.proofs:
                yield Notify(_in_flight(config))
    for _ in range(config.synthesis_workers):
        yield Put(_JOBS, None)
    for _ in range(config.gpu_workers * len(config.gpus)):
        yield Put(_ready_queue(policy, config), None)
    return tuple(outcomes)


def engine_programs(policy: Any, config: EngineConfig, sizes: Sizes) -> dict[str, Program]:
    """The actors of an engine under a policy: name → program. They end when every partition has an outcome.

    Parameters
    ----------
    policy : cuzklab.policies.Policy
    config : EngineConfig
    sizes : Sizes
        Bytes of the buffers of a partition of the batch.
    """
    programs = {"source": source(config, batch_partitions(config, sizes))}
    for number, partitions in enumerate(urgent_partitions(config)):
        programs[f"urgent{number}"] = urgent_source(number, config.urgent[number].after, partitions)
    for number in range(config.synthesis_workers):
        programs[f"synth{number}"] = synthesis_worker(config, policy)
    for gpu in config.gpus:
        for number in range(config.gpu_workers):
            programs[f"gpu{gpu.index}.w{number}"] = gpu_worker(config, policy, gpu)
    programs["collector"] = collector(config, policy)
    return programs

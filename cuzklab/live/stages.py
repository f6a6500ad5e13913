"""Which function carries out which stage, and the data of each partition on its way through them.

`STAGE_FUNCTIONS` is the one place where the names of `cuzklab.stages` meet the functions of `cuzklab.prover.stages`.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from cuzklab.backends.backend import HOST, Backend, Sum
from cuzklab.backends.device import Memory, Piece
from cuzklab.policies.model import HostBuffer, Partition
from cuzklab.prover import stages as prover
from cuzklab.prover.constraints import Evaluations
from cuzklab.prover.model import Proof
from cuzklab.prover.stages import DenseKey, Empty, ScaledPoints, SplitMsm


@dataclass
class Job:
    """One partition: what it starts from, what its stages have made so far, and in the end its proof.

    Attributes
    ----------
    witness : (wires, 4) uint64, plain
    r, s : int
        The proof's randomness.
    h : Sum or None
    ones, tails : dict
        Sums by query. A device's last additions are left for the epilogue, so that nobody waits for it meanwhile.
    """

    key: DenseKey
    witness: np.ndarray
    r: int
    s: int
    evaluations: Evaluations | None = None
    split: dict[str, SplitMsm] = field(default_factory=dict)
    h: Sum | None = None
    ones: dict[str, Sum] = field(default_factory=dict)
    tails: dict[str, Sum] = field(default_factory=dict)
    proof: Proof | None = None

    @property
    def public(self) -> np.ndarray:
        """Public values, (public, 4) uint64, plain, without the constant one."""
        return self.witness[1 : 1 + self.key.public]

    @property
    def host_bytes(self) -> int:
        """Host memory that the synthesised partition takes: a, b, c and the witness."""
        return self.evaluations.nbytes + self.witness.nbytes if self.evaluations else 0

    def drop_intermediates(self) -> None:
        """Keep the witness and the proof."""
        self.evaluations, self.split, self.h, self.ones, self.tails = None, {}, None, {}, {}


Arrays = Mapping[str, Any]
"""Words of the device buffers that a stage was given, by name: arrays of the device's own kind."""


@dataclass(frozen=True)
class Means:
    """What stages are carried out with.

    Attributes
    ----------
    threads : int
        CPU threads.
    gpu : Backend
        Where GPU stages execute.
    abc, tails : callable, optional
        Make the host arrays of a, b and c, and of what a partition's tails are gathered into.
    """

    threads: int
    gpu: Backend = HOST
    abc: Empty | None = None
    tails: Empty | None = None


@dataclass(frozen=True)
class StageFunction:
    """How a stage is carried out.

    Attributes
    ----------
    run : (job, part, arrays, means) -> None
    streamed_bytes : (job, part) -> int
        Bytes that cross to the device while it runs.
    takes_arrivals : bool
        It says of each array when it needs it (`backends.cuda.arrivals`), so it may begin before all are copied.
    """

    run: Callable[[Job, str, Arrays, Means], None]
    streamed_bytes: Callable[[Job, str], int] = lambda job, part: 0
    takes_arrivals: bool = False


def _synthesis(job: Job, part: str, arrays: Arrays, means: Means) -> None:
    job.evaluations = prover.synthesis(job.key.constraints, job.witness, threads=means.threads, empty=means.abc)


def _prep_msm(job: Job, part: str, arrays: Arrays, means: Means) -> None:
    job.split = prover.prep_msm(job.key, job.witness, threads=1, empty=means.tails)  # the modelled engine has one


def _ntt_h(job: Job, part: str, arrays: Arrays, means: Means) -> None:
    d_a, d_bc = arrays["d_a"].reshape(job.key.domain, 4), arrays["d_bc"].reshape(2, job.key.domain, 4)
    prover.ntt_h(d_a, d_bc, threads=means.threads, on=means.gpu)


def _h_msm(job: Job, part: str, arrays: Arrays, means: Means) -> None:
    scalars = arrays["d_a"].reshape(job.key.domain, 4)
    job.h = prover.h_msm(ScaledPoints(job.key.h, scalars), threads=means.threads, on=means.gpu, later=True)


def _batch_add(job: Job, part: str, arrays: Arrays, means: Means) -> None:
    if (ones := job.split[part].ones) is not None:
        job.ones[part] = prover.batch_add(ones, threads=means.threads, on=means.gpu, later=True)


def _batch_add_bytes(job: Job, part: str) -> int:
    ones = job.split[part].ones
    return ones.streamed_bytes if ones is not None else 0


def _tail_msm(job: Job, part: str, arrays: Arrays, means: Means) -> None:
    job.tails[part] = prover.tail_msm(job.split[part].tail, threads=means.threads, on=means.gpu, later=True)


def _b_g2_msm(job: Job, part: str, arrays: Arrays, means: Means) -> None:
    job.tails["b_g2"] = prover.b_g2_msm(job.split["b_g2"].tail, threads=means.threads)


def _epilogue(job: Job, part: str, arrays: Arrays, means: Means) -> None:
    job.proof = prover.epilogue(job.key, prover.add_up(job.h, job.ones, job.tails), job.r, job.s)


STAGE_FUNCTIONS: Mapping[str, StageFunction] = MappingProxyType(
    {
        "synthesis": StageFunction(_synthesis),
        "prep_msm": StageFunction(_prep_msm),
        "ntt_h": StageFunction(_ntt_h, takes_arrivals=True),
        "h_msm": StageFunction(_h_msm, lambda job, part: job.key.h.nbytes),
        "batch_add": StageFunction(_batch_add, _batch_add_bytes),
        "tail_msm": StageFunction(_tail_msm, lambda job, part: job.split[part].tail.streamed_bytes),
        "b_g2_msm": StageFunction(_b_g2_msm),
        "epilogue": StageFunction(_epilogue),
    }
)


def _fixed_bytes(key: DenseKey) -> int:
    """Host memory of a key with its compiled constraints."""
    return key.query_bytes + key.constraints.nbytes


class Groth16:
    """The real workload of a live run: see `work.Workload`.

    Parameters
    ----------
    key : DenseKey
    make_job : callable
        Makes the job of a partition: its witness and randomness.
    means : Means
        Its threads are those of an emulated device's kernel, and of a CPU stage that does not say otherwise.
    other_keys : tuple of DenseKey
        Of partitions of other kinds.
    """

    def __init__(
        self, key: DenseKey, make_job: Callable[[Partition], Job], means: Means, other_keys: tuple[DenseKey, ...] = ()
    ) -> None:
        self._key, self._make_job, self._means = key, make_job, means
        self._jobs: dict[Partition, Job] = {}
        self._making: dict[Partition, threading.Lock] = {}
        self._by_buffer: dict[str, Job] = {}
        self._mutex = threading.Lock()
        self._fixed_bytes = sum(_fixed_bytes(one) for one in (key, *other_keys))

    def job(self, partition: Partition) -> Job:
        """A partition's data, made when it is first asked for; who asks for another's does not wait for it."""
        with self._mutex:
            job = self._jobs.get(partition)
            making = self._making.setdefault(partition, threading.Lock()) if job is None else None
        if making is None:
            return job
        with making:
            if (job := self._jobs.get(partition)) is None:
                job = self._make_job(partition)
                with self._mutex:
                    self._jobs[partition] = job
                    self._by_buffer[partition.abc.name] = job
                    self._making.pop(partition, None)
        return job

    def make_jobs(self, partitions: Iterable[Partition]) -> None:
        """Make the data of partitions now, before anything is timed."""
        for partition in partitions:
            self.job(partition)

    def compute(self, partition: Partition, stage: str, part: str, threads: int) -> None:
        means = replace(self._means, threads=threads) if threads else self._means
        self._function(stage).run(self.job(partition), part, {}, means)

    def launch(self, partition: Partition, stage: str, part: str, memory: Mapping[str, Memory]) -> None:
        arrays = {name: it.array for name, it in memory.items()}
        self._function(stage).run(self.job(partition), part, arrays, self._means)

    def takes_arrivals(self, stage: str) -> bool:
        return self._function(stage).takes_arrivals

    def streamed_bytes(self, partition: Partition, stage: str, part: str) -> int:
        return self._function(stage).streamed_bytes(self.job(partition), part)

    def pieces(self, partition: Partition, source: HostBuffer, targets: tuple[Memory, ...]) -> list[Piece]:
        """a, b and c, one domain after the other over the targets: a to d_a, b and c to d_bc."""
        job = self.job(partition)
        if source.name != partition.abc.name or job.evaluations is None:
            raise LookupError(f"{source.name} holds nothing that could be uploaded")
        extent_bytes = 32 * job.key.domain
        places = [(it, at) for it in targets for at in range(0, it.size_bytes - extent_bytes + 1, extent_bytes)]
        evaluations = (job.evaluations.a, job.evaluations.b, job.evaluations.c)
        if len(places) < len(evaluations):
            raise ValueError(f"{source.name} does not fit into the buffers it is uploaded to")
        return [Piece(array, target, at, extent_bytes) for array, (target, at) in zip(evaluations, places)]

    def host_memory(self, buffer: HostBuffer) -> tuple[np.ndarray, ...]:
        job = self._by_buffer.get(buffer.name)
        evaluations = job.evaluations if job else None
        return (evaluations.a, evaluations.b, evaluations.c) if evaluations else ()

    def free_host(self, partition: Partition, buffer: HostBuffer) -> None:
        if buffer.name != partition.abc.name:
            raise LookupError(f"{partition.name} has no host buffer {buffer.name}")
        self.job(partition).evaluations = None

    def finished(self, partition: Partition) -> None:
        self.job(partition).drop_intermediates()

    def forget(self) -> None:
        """Give up the data of all partitions, witnesses too, whoever still refers to this."""
        with self._mutex:
            self._jobs.clear()
            self._by_buffer.clear()

    @property
    def host_bytes(self) -> int:
        with self._mutex:
            return self._fixed_bytes + sum(job.host_bytes for job in self._jobs.values())

    @staticmethod
    def _function(stage: str) -> StageFunction:
        try:
            return STAGE_FUNCTIONS[stage]
        except KeyError:
            raise LookupError(f"no such stage; there are: {', '.join(STAGE_FUNCTIONS)}") from None

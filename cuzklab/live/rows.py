"""What a stage's work on a device leaves in the trace: its kernels, and the copy that went with it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cuzklab.backends.device import KernelTime, Work
from cuzklab.policies.effects import Launch
from cuzklab.trace.schema import Kernel, Transfer


@dataclass(frozen=True)
class Launched:
    """A stage's work that is done, whose it was, and when it was launched."""

    work: Work
    effect: Launch
    worker: str
    launched_ns: int


def rows_of(one: Launched) -> Iterator[Any]:
    """The rows of work that is done; a device that does not tell kernels apart leaves one for the stage."""
    work, effect = one.work, one.effect
    stream, device, partition = effect.stream.name, effect.gpu.index, effect.partition.name
    for kernel in work.kernels or (KernelTime(effect.label, work.start_ns, work.end_ns),):
        yield Kernel(
            kernel.start_ns, kernel.end_ns, kernel.name, stream, device, one.launched_ns, effect.label, one.worker,
            partition,
        )  # fmt: skip
    if work.transfer_ns:
        start_ns, end_ns = work.transfer_ns
        yield Transfer(
            start_ns, end_ns, one.launched_ns, work.transfer_bytes, "h2d", True, stream, device, one.worker, partition
        )

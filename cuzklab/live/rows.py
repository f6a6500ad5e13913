"""What a stage's work on a device leaves in the trace: its kernels, and the copy that went with it."""

from collections.abc import Iterator
from typing import Any

from cuzklab.backends.device import KernelTime, Work
from cuzklab.live.instruments import Who
from cuzklab.policies.effects import Launch
from cuzklab.trace.schema import Kernel, Transfer


def rows_of(work: Work, effect: Launch, who: Who, launched_ns: int) -> Iterator[Any]:
    """The rows of work that is done; a device that does not tell kernels apart leaves one for the stage."""
    stream, device = effect.stream.name, effect.gpu.index
    for kernel in work.kernels or (KernelTime(effect.label, work.start_ns, work.end_ns),):
        yield Kernel(
            kernel.start_ns, kernel.end_ns, kernel.name, stream, device, launched_ns, effect.label, who.worker,
            effect.partition.name,
        )  # fmt: skip
    if work.transfer_ns:
        start_ns, end_ns = work.transfer_ns
        yield Transfer(
            start_ns, end_ns, launched_ns, work.transfer_bytes, "h2d", True, stream, device, who.worker,
            effect.partition.name,
        )  # fmt: skip

"""What simulate and run share about the engine: urgent proofs, and partitions that failed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from cuzklab.cli.options import print_table
from cuzklab.errors import BadInput

_MOST_FAILURES = 10

Urgent = Annotated[
    list[str] | None,
    typer.Option(
        "--urgent",
        metavar="WORKLOAD@N",
        help="A proof of another kind, like winningpost@5: it arrives when N partitions of the batch are done, and "
        "goes first wherever something waits. May be given several times.",
    ),
]


def urgent_of(given: Sequence[str] | None) -> list[tuple[str, int]]:
    """Workload and arrival of each urgent proof."""
    found = []
    for text in given or ():
        workload, at, after = text.rpartition("@")
        if not (at and workload and after.isascii() and after.isdigit() and len(after) < 8):
            raise BadInput(f"--urgent {text}: write WORKLOAD@N, like winningpost@5")
        found.append((workload, int(after)))
    return found


def print_urgent(urgent: Sequence[tuple[str, int]], proofs: int, latency_s: Mapping[int, float]) -> None:
    """How long the urgent proofs took, from their arrival."""
    print_table(
        [
            {"urgent proof": workload, "arrived after": f"{after} partitions",
             "took": f"{latency_s[proof]:.3g} s" if proof in latency_s else "was not completed"}
            for proof, (workload, after) in enumerate(urgent, proofs)
        ]
    )  # fmt: skip


def print_failures(failures: Sequence[Any]) -> None:
    """Where the first partitions failed, and how many more did."""
    from cuzklab.units import sizes_in_words

    print_table(
        [
            {"failed proof": str(failure.proof), "partition": failure.partition, "worker": failure.worker,
             "at": sizes_in_words(failure.effect), "why": failure.kind}
            for failure in failures[:_MOST_FAILURES]
        ]
    )  # fmt: skip
    if len(failures) > _MOST_FAILURES:
        print(f"and {len(failures) - _MOST_FAILURES} more partitions that failed")


def status_to(descriptor: int | None) -> Callable[[Mapping[str, Any]], None] | None:
    """Who is told what a live run is at: the reader of a pipe, with the GPU's own counters, where there is one."""
    if descriptor is None:
        return None
    from cuzklab.live.status import StatusPipe
    from cuzklab.trace.recorders.counters import Unreadable, gpu_sources, host_memory_source

    if descriptor < 3:
        raise BadInput(f"--status-fd {descriptor}: give the number of an open pipe, 3 or more")
    try:
        pipe = StatusPipe(descriptor)
    except OSError as error:
        raise BadInput(f"--status-fd {descriptor}: {error.strerror}") from None
    sources = [*gpu_sources(), host_memory_source]
    missing = [f"{source.what}: {source.reason}" for source in sources if isinstance(source, Unreadable)]
    readable = [source for source in sources if not isinstance(source, Unreadable)]

    def tell(state: Mapping[str, Any]) -> None:
        counters: dict[str, float] = {}
        for source in list(readable):
            try:
                counters.update(source())
            except Exception as error:  # a counter that fails must not end the run; its reader is told
                readable.remove(source)
                missing.append(f"{source.__name__}: {type(error).__name__}: {error}")
        pipe.write({**state, "counters": counters, "not_captured": missing})

    return tell

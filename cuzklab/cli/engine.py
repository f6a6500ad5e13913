"""What simulate and run share about the engine: urgent proofs, and partitions that failed."""

from collections.abc import Mapping, Sequence
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

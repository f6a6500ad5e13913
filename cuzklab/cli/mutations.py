"""`cuzklab check POLICY --mutations`: how many single mutations of a safe policy the checker refuses."""

from collections import Counter
from pathlib import Path
from typing import Any

import typer

from cuzklab.cli.options import INTERRUPTED, emit, print_table
from cuzklab.progress import progress


def check_mutations(
    policy: str, options: dict[str, Any], vram_bytes: int, processes: int | None, journal: Path | None, as_json: bool
) -> None:
    """Print what became of every mutant, and why each survivor is harmless.

    Exit status 0 if each was refused or is harmless for a reason on record, 1 if not, 130 after Ctrl-C.
    """
    from cuzklab.mutation_sweep import mutants

    with progress(f"mutations of {policy}", quiet=as_json) as report:
        found = mutants(policy, vram_bytes, options=options, processes=processes, journal=journal, progress=report)
    if as_json:
        emit(found.to_json())
    else:
        _print(found)
    raise typer.Exit(INTERRUPTED if not found.complete else 1 if found.unexplained or found.undecided else 0)


def _print(found: Any) -> None:
    from cuzklab.check.judging import PARTITIONS, WORKERS
    from cuzklab.units import format_size

    if not found.complete:
        print(f"Interrupted: {len(found.judged)} of {found.total} mutants were judged.")
    print(
        f"{found.policy}, {WORKERS} workers × {PARTITIONS} partitions on {format_size(found.vram_bytes)}: the checker "
        f"refuses {len(found.refused)} of {len(found.judged)} single mutations."
    )
    print_table(
        [
            {
                "mutation": kind,
                "mutants": sum(one.mutation.kind == kind for one in found.judged),
                "refused": sum(one.mutation.kind == kind for one in found.refused),
            }
            for kind in sorted({one.mutation.kind for one in found.judged})
        ]
    )
    print_table(
        [
            {"found": kind, "mutants": count}
            for kind, count in Counter(kind for one in found.refused for kind in one.kinds).most_common()
        ]
    )
    print(f"\n{len(found.survivors)} survivors, each with the reason why it is harmless:")
    none = "NO REASON ON RECORD: has the checker missed something?"
    print_table([{"mutation": str(one.mutation), "harmless because": one.reason or none} for one in found.survivors])
    if found.undecided:
        print(f"\n{len(found.undecided)} have too many states to be checked to the end:")
        print_table([{"mutation": str(one.mutation), "checked": one.undecided} for one in found.undecided])

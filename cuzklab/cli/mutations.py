"""`cuzklab check POLICY --mutations`: how many single mutations of a safe policy the checker refuses."""

from collections import Counter
from typing import Any

from cuzklab.cli.options import emit, print_table
from cuzklab.progress import progress


def check_mutations(design: Any, vram_bytes: int, as_json: bool) -> None:
    """Print what became of every mutant, and why each survivor is harmless."""
    from cuzklab.check.mutations import PARTITIONS, WORKERS, judge_all
    from cuzklab.units import format_size

    with progress(f"mutations of {design.name}", quiet=as_json) as report:
        judged = judge_all(
            design, vram_bytes, progress=lambda done, total: report(done / total, f"{done} of {total} mutants")
        )
    refused = [one for one in judged if one.refused]
    survivors = [one for one in judged if not one.refused]
    if as_json:
        emit(
            {
                "policy": design.name, "vram_bytes": vram_bytes, "workers": WORKERS, "partitions": PARTITIONS,
                "mutants": len(judged), "refused": len(refused),
                "kinds": dict(Counter(kind for one in refused for kind in one.kinds)),
                "survivors": [{"mutation": str(one.mutation), "reason": one.reason} for one in survivors],
            }
        )  # fmt: skip
        return
    print(
        f"{design.name}, {WORKERS} workers × {PARTITIONS} partitions on {format_size(vram_bytes)}: the checker refuses "
        f"{len(refused)} of {len(judged)} single mutations."
    )
    kinds = sorted({one.mutation.kind for one in judged})
    print_table(
        [
            {
                "mutation": kind,
                "mutants": sum(one.mutation.kind == kind for one in judged),
                "refused": sum(one.mutation.kind == kind for one in refused),
            }
            for kind in kinds
        ]
    )
    print_table(
        [
            {"found": kind, "mutants": count}
            for kind, count in Counter(kind for one in refused for kind in one.kinds).most_common()
        ]
    )
    print(f"\n{len(survivors)} survivors, each with the reason why it is harmless:")
    print_table([{"mutation": str(one.mutation), "harmless because": one.reason} for one in survivors])

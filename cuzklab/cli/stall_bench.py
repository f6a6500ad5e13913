"""The benchmark of calls that stop other streams' kernels: bench stalls."""

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from cuzklab.cli.benches import bench
from cuzklab.cli.options import Json, emit, print_table
from cuzklab.errors import BadInput
from cuzklab.progress import progress

_MOST_GIB = 64.0


@bench.command("stalls")
def bench_stalls(
    sizes: Annotated[str, typer.Option(help="GiB that are page-locked, with commas between.")] = "1,4,11.65",
    repeats: Annotated[int, typer.Option(min=1, help="Calls of each, of which the median counts.")] = 3,
    as_json: Json = False,
) -> None:
    """Which calls of the host stop the kernels of other streams on this GPU: page-locking, allocating, copying.

    One stream is kept busy meanwhile. A share of 1 means that its kernels ran as without the call, 0 that none did.
    """
    from cuzklab.backends.cuda.bench import device_facts
    from cuzklab.backends.cuda.stalls import measure, measure_work
    from cuzklab.units import format_size

    chosen = sizes_of(sizes)
    facts = device_facts()
    with progress("bench stalls", quiet=as_json and not sys.stderr.isatty()) as show:
        rows = measure(chosen, repeats, show)
        works = measure_work(size_gib=min(chosen))
    if as_json:
        emit(
            {
                "backend": "cuda", "device": facts.pop("device"), "versions": facts,
                "rows": [asdict(row) for row in rows],
                "work": [{**asdict(row), "ratio": row.ratio} for row in works],
            }
        )  # fmt: skip
        return
    versions = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in facts.items() if name != "device")
    print(f"{facts['device']} ({versions}); medians of {repeats} calls, milliseconds")
    print_table(
        [
            {"call": row.name, "size": format_size(row.size_bytes), "beside": row.queue,
             "alone": f"{row.alone_ms:.3g}", "took": f"{row.call_ms:.3g}",
             "share of kernels": f"{row.kernel_share:.2f}",
             "longest gap": f"{row.longest_gap_ms:.3g}", "longest launch": f"{row.longest_issue_ms:.3g}"}
            for row in rows
        ]
    )  # fmt: skip
    print_table(
        [
            {"work": row.work, "beside": row.call, "size": format_size(row.size_bytes), "runs/s": f"{row.per_s:.1f}",
             "alone": f"{row.alone_per_s:.1f}", "ratio": f"{row.ratio:.2f}"}
            for row in works
        ]
    )  # fmt: skip


def sizes_of(text: str) -> list[float]:
    """Sizes in GiB given by the user."""
    try:
        found = [float(part) for part in text.split(",") if part]
    except ValueError:
        found = []
    if not found or not all(0 < size <= _MOST_GIB for size in found):
        raise BadInput(f"--sizes {text!r}: write sizes in GiB, up to {_MOST_GIB:g}, like 1,4")
    return found

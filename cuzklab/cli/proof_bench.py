"""The benchmark of whole proofs and of verification in batches."""

import sys
from typing import Annotated

from typer import Option

from cuzklab.cli.benches import bench
from cuzklab.cli.options import Json, Threads, emit, print_table
from cuzklab.progress import progress


@bench.command("prove")
def bench_prove(
    work: Annotated[
        str, Option(help="Comma-separated: sha256-1-block, sha256-4-blocks, porep-shaped-17, verify; all by default.")
    ] = "",
    proofs: Annotated[int, Option(min=4, help="Proofs of a batch.")] = 1000,
    threads: Threads = None,
    repeats: Annotated[int, Option(min=1, help="Counted runs of each, of which the median counts.")] = 3,
    as_json: Json = False,
) -> None:
    """Time whole proofs beside snarkjs, and batch verification beside one by one, in turns on the same cores.

    snarkjs is found in CUZKLAB_NODE_MODULES, or where `npm root` points.
    """
    from cuzklab.prover.bench import bench_prove as run_bench
    from cuzklab.trace.store import machine_facts
    from cuzklab.units import format_seconds

    with progress("bench", quiet=as_json and not sys.stderr.isatty()) as show:
        rows, peer = run_bench(
            circuits=[name for name in work.split(",") if name], proofs=proofs, threads=threads, repeats=repeats,
            progress=show,
        )  # fmt: skip
    device = str(machine_facts()["processor"])
    if as_json:
        emit({"backend": "host", "device": device, "peer": peer, "rows": rows})
        return
    print(f"host backend on {device}; medians of {repeats}, in turns with the peer; test keys\npeer: {peer}")
    print_table(
        [
            {
                "work": row["work"], "form": row["dialect"], "constraints": row["constraints"],
                "threads": row["threads"], "median": format_seconds(row["median_s"]),
                "peer": row["peer"] or "", "peer time": format_seconds(row["peer_s"]) if row["peer_s"] else "",
                "of peer": f"{row['ratio']:.3f}" if row["ratio"] else "",
            }
            for row in rows
        ]
    )  # fmt: skip

"""Verbs on instruments: what recording costs, and what a crashed recording left."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cuzklab.cli.benches import bench
from cuzklab.cli.options import Backend, Json, backend_in_force, emit, print_table
from cuzklab.cli.places import output_folder
from cuzklab.cli.stored import runs
from cuzklab.progress import progress
from cuzklab.units import percent

MAX_VOLUME_BYTES, MAX_WRITE_S = 1_500_000_000, 5.0


@bench.command("instruments")
def bench_instruments(
    rounds: Annotated[
        int, typer.Option(min=3, help="Measurements of each operation, of which the median counts.")
    ] = 15,
    loops: Annotated[int, typer.Option(min=10, help="Times 16 operations a measurement.")] = 4000,
    events: Annotated[
        int, typer.Option(min=0, help="Events recorded and written in a process of its own; 0 leaves it out.")
    ] = 10_000_000,
    spill: Annotated[bool, typer.Option(help="Stream those events to disk instead of memory.")] = False,
    runs_of_each: Annotated[
        int, typer.Option("--runs", min=0, help="Live runs with and without recording, in turn; 0 leaves them out.")
    ] = 5,
    log2_domain: Annotated[int, typer.Option(min=9, max=22, help="Size of the circuit of those runs.")] = 12,
    proofs: Annotated[int, typer.Option("-c", "--proofs", min=1, help="Proofs of each of those runs.")] = 2,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of each of their proofs.")] = 2,
    workers: Annotated[int, typer.Option(min=1, help="GPU workers of those runs.")] = 2,
    synthesis_workers: Annotated[int, typer.Option(min=1, help="Partitions synthesised at a time.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads of a CPU stage.")] = 1,
    backend: Backend = "host",
    as_json: Json = False,
) -> None:
    """Measure what recording costs: a lock, a span, an allocation, a real run, and very many events.

    Exit status 1 where a bound is exceeded: 600 ns a lock round trip or a span, 2 us an allocation (for the thread that
    records), 1 % of a real run, 1.5 GB and 5 s of processor time for the events.
    """
    from cuzklab.live.recording_cost import cost_of_recording
    from cuzklab.trace.recorders.bench import costs, tool_attached, volume
    from cuzklab.trace.store import machine_facts

    where = backend_in_force(backend)
    with progress("bench instruments", quiet=as_json and not sys.stderr.isatty()) as show:
        measured = costs(rounds, loops, progress=lambda share, words: show(share * 0.3, words))
        cost_ns = {one.operation: one.total_ns for one in measured}
        if runs_of_each and where == "cuda":
            from cuzklab.backends.cuda.latency import costs as of_events

            cost_ns |= of_events()
        run = cost_of_recording(
            runs_of_each, log2_domain, cost_ns, proofs=proofs,
            partitions=partitions, gpu_workers=workers, synthesis_workers=synthesis_workers, threads=threads,
            backend=where, progress=lambda share: show(0.3 + 0.4 * share, "live runs"),
        ) if runs_of_each else None  # fmt: skip
        show(0.7, f"{events:,} events")
        many = volume(events, spill) if events else None
    rows = [
        {
            "operation": cost.operation, "bare_ns": round(cost.bare_ns, 1), "added_ns": round(cost.caller_ns, 1),
            "added_with_draining_ns": round(cost.total_ns, 1), "bound_ns": cost.bound_ns, "within": cost.within,
        }
        for cost in measured
    ]  # fmt: skip
    within = all(row["within"] for row in rows) and (run is None or run.within)
    found: dict[str, Any] = {
        "device": str(machine_facts()["processor"]), "cores": machine_facts()["cores"],
        "profiler_attached": tool_attached(), "rows": rows,
        "run": vars(run) | {"within": run.within, "event_ns": cost_ns.get("device event")} if run else None,
        "volume": None,
    }  # fmt: skip
    if many is not None:
        fits = many.peak_bytes <= MAX_VOLUME_BYTES and many.write_cpu_s <= MAX_WRITE_S and not many.lost
        within = within and fits
        found["volume"] = {**vars(many), "within": fits}
    found["within"] = within
    if as_json:
        emit(found)
    else:
        _print(found, rounds)
    raise typer.Exit(0 if within else 1)


def _print(found: dict[str, Any], rounds: int) -> None:
    attached = "a profiler takes" if found["profiler_attached"] else "no profiler takes"
    print(f"{found['device']}, {found['cores']} cores; {attached} NVTX ranges; medians of {rounds}, processor time")
    print_table(
        [
            {"operation": row["operation"], "bare ns": row["bare_ns"], "added ns": row["added_ns"],
             "with draining": row["added_with_draining_ns"], "bound ns": row["bound_ns"] or "",
             "within": "yes" if row["within"] else "NO"}
            for row in found["rows"]
        ]
    )  # fmt: skip
    if (run := found["run"]) is not None:
        print(
            f"live run on {run['backend']} ({', '.join(f'{rows} {table}' for table, rows in run['rows'].items())}):"
            f" what was recorded costs {percent(run['share'], 2)} of its time (at most"
            f" {percent(run['bound_share'], 0)}); of {run['pairs']} pairs, recorded and not, the median"
            f" ratio is {run['ratio']:.3f} (95 %:"
            f" {run['ratio_low']:.3f} to {run['ratio_high']:.3f})"
        )
        if run["event_ns"] is not None:
            print(f"an event around a kernel or a copy costs its thread {run['event_ns']:,.0f} ns")
    if (many := found["volume"]) is not None:
        print(
            f"{many['events']:,} events ({', '.join(f'{rows:,} {table}' for table, rows in many['rows'].items())}): "
            f"peak {many['peak_bytes'] / 1e9:.2f} GB resident ({many['base_bytes'] / 1e9:.2f} before), recorded in "
            f"{many['record_s']:.1f} s, written in {many['write_s']:.1f} s ({many['write_cpu_s']:.1f} s of processor "
            f"time), {many['stored_bytes'] / 1e6:.0f} MB on disk, lost {sum(many['lost'].values())}"
        )
    print("within all bounds" if found["within"] else "NOT within all bounds")


@runs.command("recover")
def runs_recover(
    folder: Annotated[Path, typer.Argument(help="Folder that the recording was spilled to.")],
    out: Annotated[Path, output_folder("Run to make.")],
    as_json: Json = False,
) -> None:
    """Make a run of what a program had recorded before it crashed."""
    from cuzklab.trace.recorders import recover

    run = recover(folder, out)
    if as_json:
        emit({"run": str(run.path), "availability": run.availability})
    else:
        print(f"{run.path}: " + ", ".join(f"{facts['rows']:,} {table}" for table, facts in run.availability.items()))

"""The verb run: a design for real, with locks, kernels and proofs."""

from dataclasses import asdict
from typing import Annotated

import typer

from cuzklab.cli.engine import Urgent, print_failures, print_urgent, urgent_of
from cuzklab.cli.options import (
    DEFAULT_STORE,
    Backend,
    Json,
    Out,
    Parameters,
    Policy,
    Vram,
    app,
    emit,
    format_metric,
    host_only,
    parameters_of,
    print_table,
    size_of,
)
from cuzklab.progress import progress


@app.command()
def run(
    policy: Policy,
    workload: Annotated[
        str, typer.Option(help="porep-shaped-N: a circuit with 2^N rows, made together with a test key.")
    ] = "porep-shaped-15",
    workers: Annotated[int, typer.Option(help="GPU workers.")] = 2,
    proofs: Annotated[int, typer.Option("-c", "--proofs", help="Proofs of the batch.")] = 1,
    partitions: Annotated[int, typer.Option(help="Partitions of each proof.")] = 6,
    vram: Vram = "16GiB",
    urgent: Urgent = None,
    hardware: Annotated[str, typer.Option(help="Profile of the emulated device.")] = "emulated",
    parameters: Parameters = None,
    backend: Backend = "auto",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads of each kernel and of each CPU stage.")] = 1,
    seed: Annotated[int, typer.Option(help="Of circuit, key, witnesses and randomness.")] = 1,
    stacks: Annotated[bool, typer.Option("--stacks", help="Sample the stacks of CPU stages.")] = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Run a policy for real, with threads, locks, kernels and proofs: exit status 1 if a partition or a proof failed.

    Device memory is given for a 32 GiB PoRep partition; the run gets it in proportion to its circuit's domain.
    """
    from cuzklab import policies
    from cuzklab.live import run_live
    from cuzklab.trace.store import new_run_place

    host_only(backend)
    design = policies.load(policy, **parameters_of(parameters))
    with progress(f"run {design.name}") as report:
        result = run_live(
            design, workload, proofs=proofs, partitions=partitions, gpu_workers=workers,
            vram_bytes=size_of(vram, "--vram"), urgent=urgent_of(urgent), hardware=hardware, threads=threads, seed=seed,
            sample_stacks=stacks,
            progress=lambda done, total: report(done / max(total, 1), f"{done} of {total} partitions"),
        )  # fmt: skip
        stored = result.write(out or new_run_place(DEFAULT_STORE, design.name))
    made, verified, asked_for = len(result.proofs), len(result.verified), proofs + len(urgent or [])
    if as_json:
        emit(
            {
                "run": str(stored.path), "outcome": result.outcome, "explanation": result.explanation, "proofs": made,
                "verified": verified, "latency_s": dict(result.latency_s),
                "failures": [asdict(failure) for failure in result.failures],
                "metrics": {name: metric.value for name, metric in result.metrics.items()},
                "conditions": dict(result.conditions),
            }
        )  # fmt: skip
    else:
        counted = f"{verified} of {made} proofs verified, {asked_for} asked for"
        print(f"{result.outcome}: {counted}. {result.explanation}".rstrip())
        print_table(
            [
                {"figure": metric.kind.replace("_", " "), "value": format_metric(metric)}
                for metric in result.metrics.values()
            ]
        )
        print_urgent(urgent_of(urgent), proofs, result.latency_s)
        print_failures(result.failures)
        for note in result.notes:
            print(f"note: {note}")
        print(f"run  {stored.path}")
    raise typer.Exit(0 if result.outcome == "ok" and verified == asked_for else 1)

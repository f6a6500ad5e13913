"""Verbs on designs: check, simulate, run."""

import sys
from typing import Annotated

import typer

from cuzklab.cli.options import (
    DEFAULT_STORE,
    Backend,
    Json,
    Out,
    Parameters,
    Policy,
    Vram,
    app,
    count_of,
    emit,
    format_metric,
    host_only,
    parameters_of,
    print_table,
    size_of,
)
from cuzklab.progress import progress


@app.command()
def check(
    policy: Policy,
    workers: Annotated[int, typer.Option(help="Workers of each device.")] = 2,
    partitions: Annotated[int, typer.Option(help="Partitions that each worker proves, one after another.")] = 1,
    vram: Vram = "16GiB",
    devices: Annotated[int, typer.Option(help="Devices.")] = 1,
    parameters: Parameters = None,
    schedules: Annotated[int, typer.Option(help="Findings to show step by step.")] = 1,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Explore every interleaving of a policy at 32 GiB PoRep sizes: exit status 0 safe, 1 unsafe or not covered."""
    from cuzklab import check as checker
    from cuzklab import policies

    design = policies.load(policy, **parameters_of(parameters))
    with progress(f"check {design.name}", quiet=as_json) as report:
        result = checker.check(
            design, workers=workers, partitions=partitions, vram_bytes=size_of(vram, "--vram"), devices=devices,
            progress=lambda states, *_: report(0.0, f"{states:,} states") if sys.stderr.isatty() else None,
        )  # fmt: skip
    if out and result.findings:
        checker.counterexample_run(result, min(result.findings, key=lambda finding: len(finding.schedule)), out)
    elif out:
        checker.check_run(result, out)
    if as_json:
        emit(result.to_json())
    else:
        print(checker.render_text(result, schedules))
    raise typer.Exit(0 if result.verdict == "safe" else 1)


@app.command()
def simulate(
    policy: Policy,
    hardware: Annotated[
        str, typer.Option(help="Hardware profile: a name, or the path of a TOML file.")
    ] = "rtx5070ti-7995wx",
    workload: Annotated[
        str, typer.Option(help="Workload: a name, porep-shaped-N, or the path of a TOML file.")
    ] = "porep-32g",
    proofs: Annotated[int, typer.Option("-c", "--proofs", help="Proofs of the batch.")] = 20,
    in_flight: Annotated[
        int | None, typer.Option("-j", "--in-flight", help="Proofs at a time; as many as proofs by default.")
    ] = None,
    parameters: Parameters = None,
    vram: Annotated[str | None, typer.Option(help="Device memory, if not the hardware's.")] = None,
    seed: Annotated[int, typer.Option(help="Of the spread of stage times.")] = 0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Run a policy's whole engine in virtual time. -p gw=2 -p pw=10 -p lookahead=10, or an option of the policy."""
    from cuzklab import policies
    from cuzklab.simulate import simulate as run_simulation

    values = parameters_of(parameters)
    knobs = {name: count_of(values.pop(name), f"-p {name}") for name in ("gw", "pw", "lookahead") if name in values}
    result = run_simulation(
        policies.load(policy, **values), hardware, workload, proofs=proofs, in_flight=in_flight or proofs,
        gpu_workers=knobs.get("gw", 2), synthesis_workers=knobs.get("pw", 10), lookahead=knobs.get("lookahead"),
        vram_bytes=size_of(vram, "--vram") if vram else None, seed=seed,
    )  # fmt: skip
    if out:
        result.to_run(out)
    if as_json:
        emit(result.to_json())
        return
    print(f"SIMULATION of {policy} on {hardware}, {workload}: {result.outcome}. {result.explanation}".rstrip())
    print_table(
        [
            {"figure": metric.kind.replace("_", " "), "value": format_metric(metric)}
            for metric in result.metrics.values()
        ]
        + [{"figure": name, "value": f"none: {why}"} for name, why in result.reasons.items()]
    )
    for note in result.notes:
        print(f"note: {note}")


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
            vram_bytes=size_of(vram, "--vram"), hardware=hardware, threads=threads, seed=seed,
            sample_stacks=stacks,
            progress=lambda done, total: report(done / max(total, 1), f"{done} of {total} partitions"),
        )  # fmt: skip
        stored = result.write(out or new_run_place(DEFAULT_STORE, design.name))
    made, verified = len(result.proofs), len(result.verified)
    if as_json:
        emit(
            {
                "run": str(stored.path), "outcome": result.outcome, "explanation": result.explanation, "proofs": made,
                "verified": verified,
                "metrics": {name: metric.value for name, metric in result.metrics.items()},
                "conditions": dict(result.conditions),
            }
        )  # fmt: skip
    else:
        counted = f"{verified} of {made} proofs verified, {proofs} asked for"
        print(f"{result.outcome}: {counted}. {result.explanation}".rstrip())
        print_table(
            [
                {"figure": metric.kind.replace("_", " "), "value": format_metric(metric)}
                for metric in result.metrics.values()
            ]
        )
        for note in result.notes:
            print(f"note: {note}")
        print(f"run  {stored.path}")
    raise typer.Exit(0 if result.outcome == "ok" and verified == proofs else 1)

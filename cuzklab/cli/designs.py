"""Verbs on designs: check, simulate, run."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cuzklab.cli.options import (
    Json,
    Parameters,
    Vram,
    app,
    count_of,
    emit,
    format_metric,
    parameters_of,
    print_table,
    size_of,
)
from cuzklab.progress import progress


@app.command()
def check(
    policy: Annotated[str, typer.Argument(help="Name of a policy, or path of a Python file.")],
    workers: Annotated[int, typer.Option(help="Workers of each device.")] = 2,
    partitions: Annotated[int, typer.Option(help="Partitions that each worker proves, one after another.")] = 1,
    vram: Vram = "16GiB",
    devices: Annotated[int, typer.Option(help="Devices.")] = 1,
    parameters: Parameters = None,
    schedules: Annotated[int, typer.Option(help="Findings to show step by step.")] = 1,
    out: Annotated[
        Path | None, typer.Option("-o", "--output", help="Store the counterexample or the check here.")
    ] = None,
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
    policy: Annotated[str, typer.Argument(help="Name of a policy, or path of a Python file.")],
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
    out: Annotated[Path | None, typer.Option("-o", "--output", help="Store the run here.")] = None,
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

"""The verb tune: the best configuration for a workload and machines, by simulation."""

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuzklab.cli.help import DESIGNS
from cuzklab.cli.options import DEFAULT_STORE, Json, Parameters, app, emit, parameters_of, print_table, resumable
from cuzklab.cli.places import output_folder
from cuzklab.progress import progress, seldom

if TYPE_CHECKING:
    from cuzklab.tuning import Space, Tuning


@app.command(rich_help_panel=DESIGNS)
def tune(
    hardware: Annotated[
        list[str] | None,
        typer.Option(
            help="Hardware profile: a name, or the path of a TOML file. Several times: machines are compared.",
            show_default="rtx5070ti-7995wx",
        ),
    ] = None,
    workload: Annotated[
        str, typer.Option(help="Workload: a name, porep-shaped-N, or the path of a TOML file.")
    ] = "porep-32g",
    parameters: Parameters = None,
    proofs: Annotated[int, typer.Option("-c", "--proofs", help="Proofs of the batch that decides.")] = 20,
    in_flight: Annotated[
        int | None, typer.Option("-j", "--in-flight", help="Proofs at a time; as many as proofs by default.")
    ] = None,
    price: Annotated[
        list[float] | None,
        typer.Option(help="What an hour of the machine costs; for several machines once each, in their order."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Rows of the ranking to print.")] = 12,
    confirm: Annotated[
        int, typer.Option(help="Configurations to rank, beside the best of each design and the fronts.")
    ] = 12,
    seeds: Annotated[int, typer.Option(help="Seeds of the simulations that are ranked.")] = 5,
    fits: Annotated[int, typer.Option(help="Near-equal fits of a calibrated profile, in the ranking too.")] = 3,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Do not ask the checker; a configuration may then be unsafe.")
    ] = False,
    processes: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A running dask scheduler (tcp://host:8786), or `local`. Policies and profiles that are files must "
            "lie at the same paths there.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        output_folder("Folder for the journal and tune.json; by default one of the question."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search policies and knobs for the fastest and the cheapest configuration of a machine.

    cuzklab tune --hardware rtx5070ti-7995wx --workload porep-32g --price 1.2

    -p policy=phase9,phase12 -p gw=1,2 -p pw=8,10,12 -p gt=16,32 -p lookahead=auto,10 -p vram=12GiB,16GiB say what is
    searched; what is not given has default values. What runs out of memory, and what the checker finds unsafe, is
    refused. Many short simulations choose a few, which are simulated at full length with several seeds; ties are called
    ties. What was interrupted (Ctrl-C) goes on when it is started again with the same question. Exit status 1: no
    configuration can run.
    """
    from cuzklab import tuning

    space = tuning.space_of(
        hardware or ["rtx5070ti-7995wx"], workload, knobs=parameters_of(parameters), prices=price or (), proofs=proofs,
        in_flight=in_flight,
    )  # fmt: skip
    place = out or DEFAULT_STORE / "tune" / _name(space)
    journal = place / "journal.jsonl"
    title, kept = f"tune {len(space.configurations):,} configurations", f"what is done is kept in {journal}"
    again, on_terminal = f"{kept}: the same command goes on there", sys.stderr.isatty()
    with resumable(again), progress(title, quiet=as_json and not on_terminal) as report:
        found = tuning.tune(
            space, journal=journal, seeds=seeds, fits=fits, confirm=confirm, check=not unchecked,
            processes=processes, cluster=cluster, progress=report if on_terminal else seldom(report),
        )  # fmt: skip
    _store(found, place)
    if as_json:
        emit(found.to_json())
    else:
        _print(found, top, place)
    raise typer.Exit(0 if found.throughput else 1)


def _name(space: "Space") -> str:
    """The folder of a question: machines and workload in words, and what makes up its simulations but the space."""
    machines = "-".join(machine.hardware.name for machine in space.machines)
    digests = [machine.hardware.digest for machine in space.machines]
    key = json.dumps([digests, space.workload.digest, space.proofs, space.in_flight])
    return f"{machines}-{space.workload.name}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _store(found: "Tuning", place: Path) -> None:
    from cuzklab.atomic import atomic_write

    with atomic_write(place / "tune.json", "w") as file:
        file.write(json.dumps(found.to_json(), indent=1) + "\n")


def _print(found: "Tuning", top: int, place: Path) -> None:
    from cuzklab.tuning import tables

    several = len(found.space.machines) > 1
    print(tables.sentence(found))
    print(f"{tables.conditions_words(found)}.")
    if found.throughput:
        print("\nby throughput")
        print_table(tables.ranking_rows(found.throughput[:top], several))
        if several and found.cost:
            print("\nby cost a proof")
            print_table(tables.ranking_rows(found.cost[:top], several))
        print("\nthe best of each design")
        print_table(tables.ranking_rows(found.designs, several))
        for name, front in found.fronts.items():
            words = {"peak_host_bytes": "host memory", "peak_vram_bytes": "device memory"}[name]
            print(f"\nPareto front of s/proof against {words}, from the least memory upwards")
            print_table(tables.front_rows(front, several))
    if found.refused:
        print("\nrefused")
        print_table(tables.refusal_rows(found))
    if found.throughput:
        print(f"\nsimulate it  {found.space.command(found.throughput[0].found.configuration)}")
        print("why not faster: the same command with --explain")
    print(
        f"{found.simulations:,} simulations and {found.checks:,} checks ({found.resumed:,} of them from the journal) "
        f"in {found.seconds:.0f} s; record {place / 'tune.json'}"
    )

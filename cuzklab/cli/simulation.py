"""The verb simulate: a policy in virtual time, and the calibration of the profile that it rests on."""

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from cuzklab.cli.engine import Urgent, print_failures, print_urgent, urgent_of
from cuzklab.cli.explain import explain_policy, explain_stored
from cuzklab.cli.help import DESIGNS
from cuzklab.cli.options import (
    Json,
    Out,
    Parameters,
    app,
    count_of,
    emit,
    parameters_of,
    print_table,
    resumable,
    size_of,
)
from cuzklab.errors import BadInput
from cuzklab.progress import progress

CALIBRATED = Path("reports") / "calibrated"
_MOST = {"gw": 64, "pw": 10_000, "lookahead": 100_000}  # of the engine's knobs


@app.command(rich_help_panel=DESIGNS)
def simulate(
    things: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="POLICY | RUNS...",
            help="Name of a policy, or path of a Python file. With --calibrate: stored live runs, or files of "
            "published rows like lab/published/phases.toml; that one if none is given.",
            show_default=False,
        ),
    ] = None,
    hardware: Annotated[
        str | None,
        typer.Option(
            help="Hardware profile: a name, or the path of a TOML file; rtx5070ti-7995wx, and for --calibrate what the "
            "rows or runs name.",
            show_default=False,
        ),
    ] = None,
    workload: Annotated[
        str,
        typer.Option(
            "-w",
            "--workload",
            help="Workload: a name (mixed: a batch with arrivals), porep-shaped-N, or the path of a TOML file.",
        ),
    ] = "porep-32g",
    proofs: Annotated[int, typer.Option("-c", "--proofs", help="Proofs of the batch.")] = 20,
    in_flight: Annotated[
        int | None, typer.Option("-j", "--in-flight", help="Proofs at a time; as many as proofs by default.")
    ] = None,
    parameters: Parameters = None,
    vram: Annotated[str | None, typer.Option(help="Device memory, if not the hardware's.")] = None,
    urgent: Urgent = None,
    seed: Annotated[int, typer.Option(help="First seed of the spread of stage times.")] = 0,
    seeds: Annotated[
        int, typer.Option(help="Seeds to average over; 1 is a single simulation. For --calibrate 3 are usual.")
    ] = 5,
    fits: Annotated[
        int, typer.Option(min=0, help="Near-equal fits of a calibrated profile that the interval takes in.")
    ] = 8,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Take the profile's constants from runs or rows, and write a profile.")
    ] = False,
    iterations: Annotated[
        int, typer.Option(min=1, max=50, help="Of --calibrate to rows: steps of the fit, at most.")
    ] = 4,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Say what limits it: replay a policy, or a stored live or simulated run, with a "
            "tenth more of each resource.",
        ),
    ] = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Run a policy's whole engine in virtual time, or calibrate the profile that this rests on.

    cuzklab simulate phase9 -c 20 -j 15 -p gw=2 -p pw=10; further -p are lookahead and options of the policy. Prints the
    mean over seeds and a 90 % interval for a single run. -o stores the first seed's trace. Exit status 1: the design
    does not get through with every seed.

    cuzklab simulate --calibrate RUNS... -o mine.toml measures constants in stored live runs, or fits them to published
    rows, reports each with an interval and which of them the data cannot tell, and writes the profile. A fit that was
    interrupted goes on when it is started again. cuzklab validate compares the profile with further runs.

    cuzklab simulate POLICY --explain, or cuzklab simulate RUN --explain for a stored run, says what limits it.
    """
    if calibrate:
        if explain or urgent or vram or parameters or in_flight is not None:
            raise BadInput(
                "--calibrate goes with none of --explain, --urgent, --vram, -p and -j: rows and runs say theirs"
            )
        _calibrate(things or [], hardware, min(seeds, 3) if seeds == 5 else seeds, iterations, out, as_json)
        return
    if explain and things and len(things) == 1 and (Path(things[0]) / "run.json").is_file():
        explain_stored(Path(things[0]), hardware, seeds, as_json)
        return
    if not things or len(things) > 1:
        raise BadInput(f"simulate takes one policy, not {len(things or [])}; `cuzklab simulate --help` tells more")
    from cuzklab import policies
    from cuzklab.profiles import load_workload
    from cuzklab.simulate import predict

    policy, hardware = things[0], hardware or "rtx5070ti-7995wx"
    values = parameters_of(parameters)
    knobs = {name: count_of(values.pop(name), f"-p {name}", most) for name, most in _MOST.items() if name in values}
    if explain:
        if urgent or out:
            raise BadInput("--explain goes with neither --urgent nor --output")
        explain_policy(
            policies.load(policy, **values), hardware, workload, proofs, in_flight, knobs,
            size_of(vram, "--vram") if vram else None, seed, seeds, as_json,
        )  # fmt: skip
        return
    with progress(f"simulate {policy}", quiet=as_json) as report:
        found = predict(
            policies.load(policy, **values), hardware, workload, proofs=proofs,
            in_flight=proofs if in_flight is None else in_flight,
            gpu_workers=knobs.get("gw", 2), synthesis_workers=knobs.get("pw", 10), lookahead=knobs.get("lookahead"),
            vram_bytes=size_of(vram, "--vram") if vram else None, urgent=urgent_of(urgent),
            first_seed=seed, seeds=seeds, members=fits, record=out is not None, report=report,
        )  # fmt: skip
    stored = found.first.to_run(out) if out else None
    if as_json:
        emit(found.to_json() | ({"run": str(stored.path)} if stored else {}))
        _exit_with(found.outcome)
    print(f"SIMULATION of {policy} on {hardware}, {workload}: {found.outcome}. {found.explanation}".rstrip())
    print_table(
        [_figure(name, metric, found.intervals.get(name)) for name, metric in found.metrics.items()]
        + [
            {"figure": name.removesuffix("_s").replace("_", " "), "value": f"none: {why}", "90 % of runs": ""}
            for name, why in found.reasons.items()
        ]
    )
    mixed_in = load_workload(workload).arriving(proofs * found.conditions["partitions"])
    arrived = urgent_of(urgent) + [(kind.name, after) for kind, after in mixed_in]
    print_urgent(arrived, proofs, found.first.latency_s)
    print_failures(found.first.failures)
    for note in found.notes:
        print(f"note: {note}")
    if stored:
        print(f"run  {stored.path}")
    _exit_with(found.outcome)


def _exit_with(outcome: str) -> NoReturn:
    raise typer.Exit(0 if outcome == "ok" else 1)


def _figure(name: str, metric: Any, interval: tuple[float, float] | None) -> dict[str, str]:
    from cuzklab.units import format_value

    words = " to ".join(format_value(value, metric.unit) for value in interval) if interval else ""
    return {
        "figure": metric.kind.replace("_", " "),
        "value": format_value(metric.value, metric.unit),
        "90 % of runs": words,
    }


def _calibrate(
    things: list[str], hardware: str | None, seeds: int, iterations: int, out: Path | None, as_json: bool
) -> None:
    from cuzklab.simulate.calibrate import calibrate

    with resumable("the same command goes on where it was"), progress("calibrate") as report:
        found = calibrate(
            [Path(thing) for thing in things], hardware, out, default_folder=CALIBRATED, seeds=tuple(range(seeds)),
            iterations=iterations, report=report,
        )  # fmt: skip
    if as_json:
        emit(found.to_json())
        return
    print(f"CALIBRATION of {found.hardware}: {found.words}")
    print_table(found.figure_rows())
    print("constants: the interval is over near-equal fits; what is marked the data cannot tell")
    print_table(found.constant_rows())
    if rows := found.member_rows():
        print(f"near-equal fits: {len(found.fit.members)}, the best and the most different ones")
        print_table(rows)
    print(f"profile  {found.place}")

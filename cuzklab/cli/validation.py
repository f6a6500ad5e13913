"""The verb validate: a hardware profile against stored live runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuzklab.cli.help import DESIGNS
from cuzklab.cli.options import Json, app, emit, print_table
from cuzklab.progress import progress
from cuzklab.units import percent

if TYPE_CHECKING:
    from cuzklab.simulate.validate_runs import Compared, KindOfRun

_TITLES = {"batch_average_s": "batch average", "lock_wait_s": "wait for locks", "peak_vram_bytes": "peak VRAM"}


@app.command(rich_help_panel=DESIGNS)
def validate(
    places: Annotated[
        list[Path], typer.Argument(metavar="RUNS...", help="Stored live runs, or folders in which some lie.")
    ],
    hardware: Annotated[
        str, typer.Option(help="Hardware profile: a name, or the path of a TOML file, as --calibrate writes it.")
    ],
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Seeds to average over.")] = 5,
    fits: Annotated[int, typer.Option(min=0, help="Near-equal fits of the profile that intervals take in.")] = 6,
    as_json: Json = False,
) -> None:
    """Simulate the conditions of stored live runs, and print what was measured, what is simulated, and the error.

    Repetitions of a run stand in one row. Runs that the profile was fitted to are counted apart: rows are predictions
    where none was, and repetitions where the profile was fitted to others under the same conditions. The runs are of
    designs that come with cuzklab, without urgent proofs.

    cuzklab simulate --calibrate runs/*-r1 --hardware h200-16core-live-start -o mine.toml

    cuzklab validate runs --hardware mine.toml
    """
    from cuzklab.profiles import load_hardware
    from cuzklab.simulate.validate_runs import TOLERANCE, summary, validate_runs

    machine = load_hardware(hardware)
    with progress("validate", quiet=as_json) as report:
        kinds = validate_runs(places, machine, tuple(range(seeds)), fits, report)
    kinds = sorted(kinds, key=lambda kind: (kind.words.rpartition(" ")[2], kind.words))
    lines = summary(kinds)
    if as_json:
        emit({"hardware": machine.name, "kinds": [kind.to_json() for kind in kinds], "summary": lines})
        return
    print(f"SIMULATION on {machine.name} beside live runs: means, in brackets lowest to highest of the runs and seeds")
    if rows := [_row(kind) for kind in kinds if kind.figures]:
        print(
            "errors: simulated over measured; * no run lies within the simulation's 90 % interval, nor among its seeds"
        )
        print_table(rows)
    for words in dict.fromkeys(kind.elsewhere for kind in kinds if kind.elsewhere):
        count = sum(kind.elsewhere == words for kind in kinds)
        print(
            f"note: {count} of {len(kinds)} kinds of run are of a machine other than {machine.name} ({words});"
            " errors are of that as well"
        )
    failed = [kind for kind in kinds if {*kind.outcomes, *kind.simulated_outcomes} != {"ok"}]
    for kind in failed:
        print(f"{kind.words}: measured {_counted(kind.outcomes)}; simulated {_counted(kind.simulated_outcomes)}")
    if failures := [kind for kind in failed if {*kind.outcomes} != {"ok"}]:
        print(f"failures that some seed shows: {sum(kind.shown for kind in failures)} of {len(failures)}")
    print_table(
        [
            {
                "use": line["use"], "figure": _TITLES[line["figure"]],
                f"within {percent(TOLERANCE['batch_average_s'], 0)} (waits {percent(TOLERANCE['lock_wait_s'], 0)},"
                f" VRAM {percent(TOLERANCE['peak_vram_bytes'], 0)})": f"{line['within']} of {line['kinds']}",
                "expected": f"{line['expected']} of {line['kinds']}",
                "median error": percent(line["median_error"], 1), "largest": percent(line["largest_error"], 1),
            }
            for line in lines
        ]
    )  # fmt: skip


def _row(kind: "KindOfRun") -> dict[str, str]:
    average, wait = kind.figures.get("batch_average_s"), kind.figures.get("lock_wait_s")
    peak = kind.figures.get("peak_vram_bytes")
    return {
        "run": kind.words,
        "use": f"{kind.use} ({len(kind.runs)})",
        "s/proof": _measured(average),
        "simulated": _simulated(average),
        "error": _error(average),
        "lock wait, s": _measured(wait),
        "simulated ": _simulated(wait),
        "error ": _error(wait),
        "peak VRAM": _error(peak),
    }


def _measured(one: "Compared | None") -> str:
    from statistics import fmean

    if one is None:
        return ""
    spread = f" ({min(one.measured):.3g} to {max(one.measured):.3g})" if len(one.measured) > 1 else ""
    return f"{fmean(one.measured):.3g}{spread}"


def _simulated(one: "Compared | None") -> str:
    if one is None:
        return ""
    low, high = (f"{end:.3g}" for end in one.range)
    return f"{one.simulated:.3g}" + (f" ({low} to {high})" if low != high else "")


def _counted(outcomes: tuple[str, ...]) -> str:
    """Outcomes, and of how many runs each if there are several."""
    from collections import Counter

    counts = Counter(outcomes)
    return ", ".join(f"{outcome} {count}×" if len(counts) > 1 else outcome for outcome, count in counts.items())


def _error(one: "Compared | None") -> str:
    return percent(one.error, 1, signed=True) + " *" * (not one.expected) if one else ""

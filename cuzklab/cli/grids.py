"""The verb that makes many live runs in one process: grid."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cuzklab.cli.help import DESIGNS
from cuzklab.cli.options import (
    Backend,
    Json,
    Parameters,
    app,
    backend_in_force,
    emit,
    parameters_of,
    print_table,
    resumable,
)
from cuzklab.cli.places import output_folder
from cuzklab.errors import BadInput
from cuzklab.progress import progress
from cuzklab.units import percent


@app.command(rich_help_panel=DESIGNS)
def grid(
    name: Annotated[str, typer.Argument(metavar="GRID", help="Name of a grid (h200), or path of a TOML file.")],
    parameters: Parameters = None,
    backend: Backend = "auto",
    out: Annotated[
        Path,
        output_folder("Folder of the runs; those that are there are not made again."),
    ] = Path("reports/grid"),
    only: Annotated[str, typer.Option(help="Runs whose name contains this; several with commas between.")] = "",
    stop_after: Annotated[
        float | None, typer.Option("--for", min=1, metavar="SECONDS", help="No run is started later than this.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make live runs of many designs and conditions in one process, which keeps circuit, key and witnesses.

    Repetitions come in rounds. An interrupted grid goes on where it stopped. Ends with a table, one row a run; times
    are medians over its partitions. Exit status 1: runs are left over. A run that fails is a result, not a failure.
    """
    from cuzklab import grid as grids

    todo = grids.runs_of(grids.load(name, parameters_of(parameters)), backend_in_force(backend))
    wanted = [word for word in only.split(",") if word]
    if wanted:
        names = [step.name for step in todo]
        todo = [step for step in todo if any(word in step.name for word in wanted)]
        if not todo:
            raise BadInput(f"--only {only}: no run's name contains it; they are like {', '.join(names[:3])}")
    again = f"the same command goes on in {out}"
    with resumable(again), progress(f"grid {name}", quiet=as_json and not sys.stderr.isatty()) as show:
        made = grids.make(todo, out, stop_after_s=stop_after, report=show)
    rows = [_row(one.run) for one in made if one.run is not None]
    left = [one.step.name for one in made if one.run is None]
    if as_json:
        emit({"runs": rows, "left": left})
    else:
        print_table([_shown(row) for row in rows])
        for label in left:
            print(f"left over: {label}", file=sys.stderr)
    if left:
        raise typer.Exit(1)


def _row(run: Any) -> dict[str, Any]:
    from cuzklab.analysis import partition_times

    figures = {metric["kind"]: metric["value"] for metric in run.info.metrics}
    return {
        "run": str(run.path), "name": run.path.name, "outcome": run.info.outcome, **figures,
        **partition_times.of_run(run),
    }  # fmt: skip


def _shown(row: dict[str, Any]) -> dict[str, str]:
    def figure(name: str, form: str = ".1f") -> str:
        return format(row[name], form) if name in row else ""

    def share(name: str, decimals: int = 0) -> str:
        return percent(row[name], decimals) if name in row else ""

    return {
        "run": row["name"], "outcome": row["outcome"], "s/proof": figure("batch_average", ".3f"),
        "steady s": figure("steady_interval", ".3f"), "device ms": figure("device_ms"),
        "gpu total ms": figure("gpu_total_ms"), "lock wait ms": figure("lock_wait_ms"),
        "prep ms": figure("prep_msm_ms"), "kernels busy": share("kernel_occupancy", 1),
        "g2 hidden": share("b_g2_msm_hidden"), "vram": share("peak_vram_share"),
    }  # fmt: skip

"""Runs as files for other programs: runs export."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cuzklab.cli.options import Json, emit
from cuzklab.cli.places import output_file
from cuzklab.cli.stored import runs
from cuzklab.errors import BadInput
from cuzklab.progress import progress


@runs.command("export")
def runs_export(
    run: Annotated[Path, typer.Argument(help="Directory of a run.")],
    out: Annotated[
        Path,
        output_file("NAME.json, or NAME.json.gz to have it packed."),
    ] = Path("trace.json"),
    as_json: Json = False,
) -> None:
    """Write a run as trace events, for ui.perfetto.dev or chrome://tracing.

    Lanes are threads, locks and streams. `cuzklab import` makes the run of the file again.
    """
    from cuzklab.trace.perfetto import export_perfetto
    from cuzklab.trace.store import load_run

    if not out.name.endswith((".json", ".json.gz")):
        raise BadInput(f"-o {out}: must end in .json or .json.gz")
    with progress(f"export {run.name}", quiet=as_json and not sys.stderr.isatty()) as show:
        events = export_perfetto(load_run(run), out, show)
    size = out.stat().st_size
    if as_json:
        emit({"file": str(out), "events": events, "bytes": size})
    else:
        print(f"{events:,} events  {out}\nopen it in ui.perfetto.dev")

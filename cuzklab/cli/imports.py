"""The verb that makes a run of somebody else's file: import."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from cuzklab.cli.help import ENGINES
from cuzklab.cli.options import DEFAULT_STORE, Json, Out, app, emit, print_table
from cuzklab.errors import BadInput
from cuzklab.progress import progress


@app.command("import", rich_help_panel=ENGINES)
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="An Nsight Systems export (.sqlite, or a folder of type parquetdir), an engine's log, trace events"
            " (.json, .json.gz), or a memory snapshot of PyTorch (.pickle)."
        ),
    ],
    out: Out = None,
    format_name: Annotated[
        str, typer.Option("--format", metavar="NAME", help="Its format; told from the file by default.")
    ] = "",
    lock: Annotated[
        list[str] | None,
        typer.Option(
            "--lock", metavar="NAME=WAIT,HOLD",
            help="A lock whose ranges are not named by the convention: the range of waiting and that of holding.",
        ),
    ] = None,
    keep_private: Annotated[
        bool, typer.Option("--keep-private", help="Keep the command line, and secrets in names; left out by default.")
    ] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Import a capture as a run: what happened, what was not captured and why. Secrets are left out."""
    from cuzklab.ingest import Options, import_file
    from cuzklab.trace.store import new_run_place

    place = out or new_run_place(DEFAULT_STORE / "imported", file.name.partition(".")[0] or "capture")
    with progress(f"import {file.name}", quiet=as_json and not sys.stderr.isatty()) as show:
        run = import_file(file, place, Options(keep_private, _locks(lock), show), format_name)
    if as_json:
        emit({"run": str(run.path), "availability": run.availability, "notes": list(run.info.notes)})
        return
    print_table(
        [
            {"table": name, "state": one["state"], "rows": one["rows"], "why": one.get("reason", "")}
            for name, one in run.availability.items()
        ]
    )
    for note in run.info.notes:
        print(f"note: {note}")
    print(f"run      {run.path}\nreport   cuzklab report capture -p run={shlex.quote(str(run.path))}")


def _locks(given: list[str] | None) -> dict[str, tuple[str, str]]:
    """Locks by name with their two ranges."""
    found = {}
    for text in given or ():
        name, equals, pair = text.partition("=")
        wait, comma, hold = pair.partition(",")
        if not (name and equals and wait and comma and hold):
            raise BadInput(f"--lock {text!r}: write it NAME=WAIT,HOLD, with the names of two ranges")
        found[name] = (wait, hold)
    return found

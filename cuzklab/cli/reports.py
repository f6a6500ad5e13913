"""The verb that ends in a document: report."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from cuzklab.cli.options import Backend, Json, Parameters, app, emit, host_only, parameters_of
from cuzklab.progress import progress


@app.command()
def report(
    experiment: Annotated[str, typer.Argument(help="Name of a report (phase10, capture), or path of a notebook.")],
    parameters: Parameters = None,
    backend: Backend = "auto",
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder of the report; an interrupted one goes on. A new one by default."),
    ] = None,
    deadline: Annotated[int, typer.Option(min=1, help="Seconds that the whole report may take.")] = 1800,
    as_json: Json = False,
) -> None:
    """Run a notebook and write its post-mortem: one HTML file, the verdict as JSON, and the runs that it made.

    `phase10` makes its runs as an experiment states; `capture -p run=DIRECTORY` is about a stored run.
    """
    from cuzklab.report import NotebookFailed, write_report

    host_only(backend)
    place = out or Path("reports") / f"{Path(experiment).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        with progress(f"report {experiment}") as show:
            written = write_report(experiment, place, parameters_of(parameters), deadline_s=deadline, progress=show)
    except NotebookFailed as error:
        print(f"cuzklab: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    if as_json:
        emit(
            {
                "html": str(written.html), "verdict": str(written.verdict_file), "findings": len(written.findings),
                "decision": written.verdict["decision"], "notebook": str(written.notebook),
                "runs": [str(path) for path in written.runs],
            }
        )  # fmt: skip
    else:
        print(f"{written.verdict['decision']}: {written.verdict['sentence']}")
        print(f"report   {written.html}\nverdict  {written.verdict_file}")
        for folder in sorted({path.parent for path in written.runs}):
            print(f"runs     {folder}")

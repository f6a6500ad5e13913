"""The verb that ends in a document: report."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from cuzklab.cli.options import BackendOrSim, Json, Parameters, app, backend_in_force, emit, parameters_of
from cuzklab.errors import BadInput
from cuzklab.progress import progress


@app.command()
def report(
    experiment: Annotated[str, typer.Argument(help="Name of a report (phase10, capture), or path of a notebook.")],
    parameters: Parameters = None,
    backend: BackendOrSim = "auto",
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
    from cuzklab.report.notebook import parameters_of as declared_parameters
    from cuzklab.report.write import notebook_of

    given = parameters_of(parameters)
    if "backend" in declared_parameters(notebook_of(experiment)):
        # Runs of a GPU that lie there already can be reported on where there is none.
        stored = backend == "cuda" and out is not None and (out / "runs").is_dir()
        given.setdefault("backend", "cuda" if stored else backend_in_force(backend, simulated=True))
    elif backend != "auto":
        raise BadInput(f"--backend {backend}: {experiment} has no parameter `backend`; it runs where it says itself")
    place = out or Path("reports") / f"{Path(experiment).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        with progress(f"report {experiment}") as show:
            written = write_report(experiment, place, given, deadline_s=deadline, progress=show)
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

"""The verb that ends in a document: report."""

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuzklab.cli.help import RECORDS, Verbs
from cuzklab.cli.options import (
    BackendOrSim,
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

if TYPE_CHECKING:
    from cuzklab.report.overview import Made

ONE = "EXPERIMENT"  # stands in the list of commands for the name of any report


class _Reports(Verbs):
    """`report NAME` makes one report; `report all` and `report sweep NAME` make many."""

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        if arguments and arguments[0] not in (*self.commands, *context.help_option_names):
            arguments = [ONE, *arguments]
        return super().parse_args(context, arguments)

    def format_options(self, context: Any, formatter: Any) -> None:
        """The options of the common case too: nobody should have to ask for help twice."""
        super().format_options(context, formatter)
        one = self.commands[ONE]
        inner = one.make_context(ONE, [], parent=context, resilient_parsing=True)
        records = [record for parameter in one.get_params(inner) if (record := parameter.get_help_record(inner))]
        with formatter.section(f"With {ONE}"):
            formatter.write_dl(records)


reports = typer.Typer(
    cls=_Reports,
    help="Run a notebook and write its post-mortem: one HTML file, the verdict as JSON, and the runs that it made.\n\n"
    "`cuzklab report phase10` makes its runs as an experiment states; `cuzklab report capture -p run=DIRECTORY` is"
    " about a stored run.",
    no_args_is_help=True,
    subcommand_metavar="EXPERIMENT|all|sweep [ARGS]...",
)
app.add_typer(reports, name="report", rich_help_panel=RECORDS)

Deadline = Annotated[int, typer.Option(min=1, help="Seconds that a report may take.")]
Cluster = Annotated[
    str | None,
    typer.Option(help="Address of a running dask scheduler (tcp://host:8786), or local for one on this machine."),
]
Processes = Annotated[int | None, typer.Option(min=1, help="Of this machine.")]
Gpus = Annotated[str, typer.Option(help="Indices or UUIDs with commas between: each process gets one of its own.")]


@reports.command(ONE)
def report(
    experiment: Annotated[str, typer.Argument(help="Name of a report (phase10, capture), or path of a notebook.")],
    parameters: Parameters = None,
    backend: BackendOrSim = "auto",
    out: Annotated[
        Path | None,
        output_folder("Folder of the report; an interrupted one goes on. A new one by default."),
    ] = None,
    capture: Annotated[
        Path | None,
        typer.Option(
            "--capture",
            metavar="FILE",
            help="Nsight Systems capture of the very run that the report is about (-p run=DIRECTORY): joined first.",
        ),
    ] = None,
    deadline: Deadline = 1800,
    as_json: Json = False,
) -> None:
    """Any name: run that notebook and write its post-mortem.

    Exit status 1: the notebook failed, or its verdict is that something got worse.
    """
    from cuzklab.report import NotebookFailed, write_report
    from cuzklab.report.decisions import FAILING

    chosen = parameters_of(parameters)
    if capture is not None:
        chosen["run"] = _joined(experiment, chosen.get("run", ""), capture)
    given = _with_backend(experiment, chosen, backend, out)
    _refuse_values(experiment, [given])
    place = out or Path("reports") / f"{Path(experiment).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        again = f"`cuzklab report {experiment} -o {place}` with the same options goes on there"
        with resumable(again), progress(f"report {experiment}") as show:
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
    if written.verdict["decision"] in FAILING:
        raise typer.Exit(1)


def _joined(experiment: str, run: str, capture: Path) -> str:
    """The directory of a run joined with its capture; stored beside the run's own."""
    from cuzklab.cli.captures import attached

    if not run:
        raise BadInput(
            f"--capture: {experiment} is not about one stored run; say which with -p run=DIRECTORY, or take the capture"
            " with `cuzklab run --capture`"
        )
    return str(attached(Path(run), capture).path)


def _with_backend(experiment: str, given: dict[str, str], backend: str, out: Path | None) -> dict[str, str]:
    """Given parameters, with where live runs execute, if the notebook can be told."""
    from cuzklab.report.notebook import parameters_of as declared_parameters
    from cuzklab.report.write import notebook_of

    if "backend" in declared_parameters(notebook_of(experiment)):
        # Runs of a GPU that lie there already can be reported on where there is none.
        stored = backend == "cuda" and out is not None and (out / "runs").is_dir()
        given.setdefault("backend", "cuda" if stored else backend_in_force(backend, simulated=True))
    elif backend != "auto":
        raise BadInput(f"--backend {backend}: {experiment} has no parameter `backend`; it runs where it says itself")
    return given


def _refuse_values(experiment: str, given: Iterable[dict[str, str]]) -> None:
    """Refuse values that an experiment does not take, before its notebook is started."""
    from cuzklab import experiment as experiments

    if experiment not in experiments.names():
        return
    takes = experiments.load(experiment).parameters
    for values in given:
        experiments.load(experiment, {name: value for name, value in values.items() if name in takes})


@reports.command("all")
def report_all(
    out: Annotated[
        Path,
        output_folder("Folder of the reports; those that are there are not made again."),
    ] = Path("reports/all"),
    quick: Annotated[bool, typer.Option(help="Small runs: every part of every report, in minutes.")] = False,
    deadline: Deadline = 1800,
    processes: Annotated[
        int | None, typer.Option(min=1, help="1, so that times are not disturbed; with --quick all cores.")
    ] = None,
    cluster: Cluster = None,
    gpus: Gpus = "",
    as_json: Json = False,
) -> None:
    """Make every report that is shipped, each in a folder of its own, with an index page.

    Reports about stored runs take those that the others made. Exit status 1: one failed, or something got worse.
    """
    from cuzklab.experiment import sources_digest
    from cuzklab.report.many import make_all

    how = _how(processes or (None if quick else 1), cluster, gpus) | {"salt": sources_digest()}
    with resumable(f"the same command goes on in {out}"), progress("reports", quiet=as_json) as show:
        made = make_all(out, quick=quick, deadline_s=deadline, progress=show, **how)
    if quick and not as_json:
        print("Small runs (--quick): figures and decisions hold for those only.")
    _told(made, out, as_json)


@reports.command("sweep")
def report_sweep(
    experiment: Annotated[str, typer.Argument(help="Name of a report, or path of a notebook.")],
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            metavar="NAME=VALUE,VALUE,…",
            help="Values of a parameter; a report is made for each combination. A parameter that is a list itself takes"
            " semicolons.",
        ),
    ] = None,
    backend: BackendOrSim = "auto",
    out: Annotated[
        Path | None,
        output_folder("Folder of the reports; an interrupted sweep goes on there."),
    ] = None,
    deadline: Deadline = 1800,
    processes: Annotated[int | None, typer.Option(min=1, help="Of this machine; 1, or one a GPU, by default.")] = None,
    cluster: Cluster = None,
    gpus: Gpus = "",
    as_json: Json = False,
) -> None:
    """Make a report for each combination of listed values: `sweep phase10 -p vram=16GiB,24GiB -p workers=2,3`.

    Over processes, one GPU each, or over the workers of a dask cluster; the results are the same in any order. Ends
    with a table and an index page. Exit status 1: one failed.
    """  # fmt: skip
    from cuzklab.experiment import sources_digest
    from cuzklab.report.many import make_grid

    grid = _with_backend(experiment, parameters_of(parameters), backend, None)
    _refuse_values(experiment, ({name: one} for name, text in grid.items() for one in text.split(",")))
    place = out or Path("reports") / f"sweep-{Path(experiment).stem}"
    how = _how(processes or (None if gpus else 1), cluster, gpus) | {"salt": sources_digest()}
    with resumable(f"the same command goes on in {place}"), progress(f"sweep {experiment}", quiet=as_json) as show:
        made = make_grid(experiment, place, grid, deadline_s=deadline, progress=show, **how)
    _told(made, place, as_json)


def _how(processes: int | None, cluster: str | None, gpus: str) -> dict[str, Any]:
    return {
        "processes": processes, "cluster": cluster, "gpus": [gpu.strip() for gpu in gpus.split(",") if gpu.strip()],
    }  # fmt: skip


def _told(made: "list[Made]", out: Path, as_json: bool) -> None:
    """The table of many reports, and the exit status."""
    from cuzklab.report.many import INDEX, TABLE
    from cuzklab.report.overview import as_table

    if as_json:
        emit(
            {
                "index": str(out / INDEX), "table": str(out / TABLE),
                "reports": [
                    {"report": one.name, "parameters": dict(one.parameters), "decision": one.decision,
                     "sentence": one.sentence, "html": str(out / one.html) if one.html else None,
                     "findings": one.findings, "seconds": one.seconds, "resumed": one.resumed}
                    for one in made
                ],
            }
        )  # fmt: skip
    else:
        rows = as_table(made).rename(columns={"time_s": "took"}).to_dict("records")
        print_table([{**row, "sentence": _cut(row["sentence"]), "took": f"{row['took']:.0f} s"} for row in rows])
        print(f"index  {out / INDEX}")
    if any(one.failed for one in made):
        raise typer.Exit(1)


def _cut(text: str, length: int = 90) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"

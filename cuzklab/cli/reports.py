"""Verbs that end in a document or a table of figures: report and bench."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from cuzklab.cli.options import (
    Backend,
    BackendOrSim,
    Json,
    Parameters,
    Threads,
    app,
    backend_in_force,
    emit,
    parameters_of,
    print_table,
)
from cuzklab.errors import BadInput
from cuzklab.progress import progress

bench = typer.Typer(help="Benchmarks.", no_args_is_help=True)
app.add_typer(bench, name="bench")


@app.command()
def report(
    experiment: Annotated[str, typer.Argument(help="Name of a report (phase10), or path of a notebook.")],
    parameters: Parameters = None,
    backend: BackendOrSim = "auto",
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder of the report; an interrupted one goes on. A new one by default."),
    ] = None,
    deadline: Annotated[int, typer.Option(min=1, help="Seconds that the whole report may take.")] = 1800,
    as_json: Json = False,
) -> None:
    """Run an experiment and write its post-mortem: one HTML file, the verdict as JSON, and the runs beneath."""
    from cuzklab.report import NotebookFailed, write_report
    from cuzklab.report.notebook import parameters_of as declared_parameters
    from cuzklab.report.write import notebook_of

    given = parameters_of(parameters)
    if "backend" in declared_parameters(notebook_of(experiment)):
        given.setdefault("backend", backend_in_force(backend, simulated=True))
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
        print(f"report   {written.html}\nverdict  {written.verdict_file}\nruns     {written.html.parent / 'runs'}")


@bench.command("kernels")
def bench_kernels(
    backend: Backend = "auto",
    sizes: Annotated[
        str, typer.Option(help="Powers of two: 16,18 or a range 16:18; each kernel has its own by default.")
    ] = "",
    threads: Threads = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each, of which the median counts.")] = 5,
    as_json: Json = False,
) -> None:
    """Time the kernels: median, rate, ratio to the floor, and the peer (blst, extra `bench`) in the same run."""
    from cuzklab.backends.bench import bench_kernels as run_bench
    from cuzklab.trace.store import machine_facts
    from cuzklab.units import format_seconds

    kind = backend_in_force(backend)
    with progress("bench", quiet=as_json and not sys.stderr.isatty()) as show:
        rows = run_bench(log2_sizes=_powers(sizes), threads=threads, repeats=repeats, progress=show)
    device = str(machine_facts()["processor"])
    if as_json:
        emit({"backend": kind, "device": device, "rows": rows})
        return
    print(f"{kind} backend on {device}; medians of {repeats}, peers interleaved")
    print_table(
        [
            {
                "kernel": row["kernel"], "size": f"2^{row['log2n']}", "threads": row["threads"],
                "median": format_seconds(row["median_ms"] / 1e3), "rate": _rate(row["rate"], row["rate_unit"]),
                "of floor": f"{row['median_ms'] / row['floor_ms']:.2f}" if row["floor_ms"] else "",
                "peer": row["peer"] or "",
                "peer time": format_seconds(row["peer_ms"] / 1e3) if row["peer_ms"] else "",
                "of peer": f"{row['median_ms'] / row['peer_ms']:.2f}" if row["peer_ms"] else "",
            }
            for row in rows
        ]
    )  # fmt: skip


def _powers(text: str) -> list[int] | None:
    if not text:
        return None
    first, colon, last = text.partition(":")
    values = range(int(first), int(last) + 1) if colon and (first + last).isdigit() else None
    if values is None and all(part.isdigit() for part in text.split(",")):
        values = [int(part) for part in text.split(",")]
    if not values or not all(4 <= value <= 27 for value in values):
        raise BadInput(f"--sizes {text!r}: write powers of two between 4 and 27, like 16,18 or 16:18")
    return list(values)


def _rate(per_second: float, what: str) -> str:
    """A rate with three digits: ``104 k points/s``."""
    for name, unit in (("G ", 1e9), ("M ", 1e6), ("k ", 1e3)):
        if per_second >= unit:
            return f"{per_second / unit:.3g} {name}{what}/s"
    return f"{per_second:.3g} {what}/s"

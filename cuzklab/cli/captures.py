"""Verbs that take a capture with Nsight Systems, or join one with the run that it was taken of."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from cuzklab.cli.help import ENGINES
from cuzklab.cli.options import DEFAULT_STORE, Json, Out, app, emit, print_table
from cuzklab.cli.places import checked_file
from cuzklab.cli.stored import runs
from cuzklab.errors import BadInput
from cuzklab.units import percent

Nsys = Annotated[str, typer.Option("--nsys", help="The profiler; looked for by default.")]
KeepReport = Annotated[
    Path | None,
    typer.Option(
        "--keep-report", metavar="FILE", callback=checked_file,
        help="Keep the .nsys-rep for Nsight Systems' window. It HOLDS THE ENVIRONMENT and what was printed.",
    ),
]  # fmt: skip
_RESULT = re.compile(r"(?ms)^\{\n.*?^\}$")


@app.command(rich_help_panel=ENGINES)
def capture(
    command: Annotated[list[str], typer.Argument(help="The command, after --.")],
    out: Out = None,
    nsys: Nsys = "",
    traces: Annotated[str, typer.Option("--trace", help="What nsys traces.")] = "cuda,nvtx,osrt",
    keep_report: KeepReport = None,
    as_json: Json = False,
) -> None:
    """Run a command under Nsight Systems and import what it captured; secrets are left out.

    Says which of profiler, importer library or permission is missing. Exit status 1: the command failed.
    """
    from cuzklab.ingest.capturing import capture as take
    from cuzklab.trace.store import new_run_place

    place = out or new_run_place(DEFAULT_STORE / "imported", Path(command[0]).name or "capture")
    with tempfile.TemporaryDirectory(prefix="cuzklab-capture-") as folder:
        taken = take(command, Path(folder), _printing(sys.stderr if as_json else sys.stdout), nsys, traces)
        run = _imported(taken.export, place, Path(command[0]).name, keep_report)
        _keep(taken.report, keep_report)
    if as_json:
        emit({"run": str(run.path), "availability": run.availability, "notes": list(run.info.notes),
              "exit_status": taken.status, "report": str(keep_report) if keep_report else None})  # fmt: skip
    else:
        print_table(
            [
                {"table": name, "state": one["state"], "rows": one["rows"], "why": one.get("reason", "")}
                for name, one in run.availability.items()
            ]
        )
        for note in run.info.notes:
            print(f"note: {note}")
        print(f"run      {run.path}\nreport   cuzklab report capture -p run={run.path}")
    if taken.status:
        print(f"cuzklab: {command[0]} ended with status {taken.status}", file=sys.stderr)
        raise typer.Exit(1)


@runs.command("attach")
def runs_attach(
    run: Annotated[Path, typer.Argument(help="Directory of a run.")],
    captured: Annotated[Path, typer.Argument(help="Capture of that very run: an export, or an imported run.")],
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Join a run with an Nsight Systems capture of it: kernels, copies and memory events among the run's spans.

    Clocks are aligned by the NVTX ranges that both have.
    """
    joined = attached(run, captured, out)
    if as_json:
        emit({"run": str(joined.path), "availability": joined.availability,
              "capture": joined.info.conditions["capture"]})  # fmt: skip
    else:
        _print_agreement(joined.info.conditions["capture"])
        print(f"run      {joined.path}")


def _print_agreement(facts: dict[str, Any]) -> None:
    """What a run and its capture say of each stage, in milliseconds of all its calls together."""

    def change(own: int, captured: int) -> str:
        return percent(captured / own - 1, 2, signed=True) if own else ""

    print(f"{facts['matched']:,} ranges joined; of each stage, ms in all")
    print_table(
        [
            {
                "stage": row["stage"], "calls": row["count"], "run": f"{row['own_ns'] / 1e6:.3f}",
                "capture": f"{row['capture_ns'] / 1e6:.3f}", "difference": change(row["own_ns"], row["capture_ns"]),
            } | ({
                "on the device, run": f"{row['own_device_ns'] / 1e6:.3f}",
                "capture ": f"{row['capture_device_ns'] / 1e6:.3f}",
                "difference ": change(row["own_device_ns"], row["capture_device_ns"]),
            } if row["own_device_ns"] is not None else {"on the device, run": "", "capture ": "", "difference ": ""})
            for row in facts["agreement"]
        ]
    )  # fmt: skip


def attached(run: Path, captured: Path, out: Path | None = None, report_file: str = "") -> Any:
    """A run joined with a capture, which is imported first unless it is a run already."""
    from cuzklab.ingest.capturing import attach
    from cuzklab.trace.store import load_run

    own = load_run(run)
    place = out or own.path.with_name(f"{own.path.name}-captured")
    if (captured / "run.json").is_file():
        return attach(own, load_run(captured), place, report_file)
    with tempfile.TemporaryDirectory(prefix="cuzklab-capture-") as folder:
        return attach(own, _imported(captured, Path(folder) / "run"), place, report_file)


def run_captured(out: Path, keep_report: Path | None, as_json: bool, nsys: str = "") -> None:
    """The command under way once more, under Nsight Systems, and the run that it makes joined with the capture."""
    from cuzklab.ingest.capturing import capture as take

    with tempfile.TemporaryDirectory(prefix="cuzklab-capture-") as folder:
        made = Path(folder) / "run"
        again = [sys.executable, "-m", "cuzklab", *_without_capture(sys.argv[1:]), "--json", "-o", str(made)]
        said: list[bytes] = []
        taken = take(again, Path(folder), said.append, nsys)
        text = b"".join(said).decode(errors="replace")
        if not made.is_dir():
            raise BadInput(f"the run failed under the profiler (status {taken.status}): {_last_line(text)}")
        joined = attached(made, taken.export, out, str(keep_report.absolute()) if keep_report else "")
        _keep(taken.report, keep_report)
    found = _RESULT.findall(text)
    result = json.loads(found[-1]) if found else {}
    result |= {"run": str(joined.path), "capture": joined.info.conditions["capture"]}
    if as_json:
        emit(result)
    else:
        verified, proofs = result.get("verified", 0), result.get("proofs", 0)
        print(f"{joined.info.outcome}: {verified} of {proofs} proofs verified")
        for note in joined.info.notes:
            print(f"note: {note}")
        print(f"run  {joined.path}")
    raise typer.Exit(1 if taken.status else 0)


def _printing(stream: TextIO) -> Callable[[bytes], None]:
    """Passes on what a program printed, as it is where the stream takes bytes."""

    def write(piece: bytes) -> None:
        if hasattr(stream, "buffer"):
            stream.buffer.write(piece)
        else:
            stream.write(piece.decode("utf-8", "replace"))
        stream.flush()

    return write


def _without_capture(arguments: Sequence[str]) -> list[str]:
    """The arguments without those that ask for a capture, or say how the result is printed."""
    kept, skip = [], False
    for word in arguments:
        if skip:
            skip = False
        elif word in ("--keep-report", "--nsys"):
            skip = True
        elif word not in ("--capture", "--json") and not word.startswith(("--keep-report=", "--nsys=")):
            kept.append(word)
    return kept


def _imported(file: Path, place: Path, title: str = "", report: Path | None = None) -> Any:
    """An export as a run, without any secret of this process's environment."""
    from cuzklab.ingest import Options
    from cuzklab.ingest.privacy import secret_values
    from cuzklab.ingest.registry import importer_for, store

    secrets = tuple(secret_values([f"{name}={value}" for name, value in os.environ.items()]))
    read = importer_for(file, "nsys").read(file, Options(secrets=secrets))
    kept = {"report": str(report.absolute())} if report else {}
    info = replace(read.info, title=title or read.info.title, conditions={**read.info.conditions, **kept})
    return store(replace(read, info=info), file, place)


def _keep(report: Path, target: Path | None) -> None:
    from cuzklab.atomic import atomic_write

    if target:
        with report.open("rb") as content, atomic_write(target) as file:
            shutil.copyfileobj(content, file)
        target.chmod(0o600)
        print(f"cuzklab: {target} holds the environment and what was printed: do not pass it on", file=sys.stderr)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"

"""The verb check: every interleaving of a design; its counterexamples elsewhere; how much memory it needs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cuzklab.cli.help import DESIGNS
from cuzklab.cli.mutations import check_mutations
from cuzklab.cli.options import (
    INTERRUPTED,
    Json,
    Out,
    Parameters,
    Policy,
    Vram,
    app,
    backend_in_force,
    emit,
    policy_options,
    size_of,
)
from cuzklab.errors import BadInput
from cuzklab.progress import progress

_ENGINE = {"gw": "--workers", "gpus": "--devices"}


@app.command(rich_help_panel=DESIGNS)
def check(
    policy: Policy,
    workers: Annotated[
        int | None, typer.Option(help="Workers of each device; 2, or with --sweep 1 to 4, unless given.")
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(help="Partitions that each worker proves, one after another; 1 unless given.")
    ] = None,
    vram: Vram = "16GiB",
    devices: Annotated[int | None, typer.Option(help="Devices, each with workers of its own; 1 unless given.")] = None,
    parameters: Parameters = None,
    schedules: Annotated[int, typer.Option(min=0, help="Findings to show step by step.")] = 1,
    replay: Annotated[
        Literal["simulate", "live"] | None,
        typer.Option(
            help="Carry out the shortest counterexample: in virtual time, or by real threads on small circuits. "
            "It must happen there."
        ),
    ] = None,
    log2_domain: Annotated[
        int | None, typer.Option(help="Of a live replay: circuits with 2^N rows; 10 unless given.")
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            metavar="auto|cuda|host", help="Of a live replay: auto, the GPU where there is one, unless given."
        ),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="vram=FROM:TO[:STEP]",
            help="Instead: for 1 to --workers workers, from which device memory on the design is safe, and where it is "
            "unsafe again. Exact to the byte, unless a step is given.",
        ),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Of --sweep and --mutations; all cores by default.")
    ] = None,
    mutations: Annotated[
        bool,
        typer.Option(
            "--mutations",
            help="Instead: check every single mutation of the policy, which must be safe; 2 workers, 2 partitions.",
        ),
    ] = False,
    journal: Annotated[
        Path | None,
        typer.Option(help="Of --mutations: a file that keeps the verdicts, so that an interrupted run goes on."),
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Explore every interleaving of a policy at 32 GiB PoRep sizes.

    cuzklab check phase10_ordered --workers 3 --partitions 2 --vram 16GiB; cuzklab check ./mine.py; cuzklab check
    phase10_ordered --sweep vram=8GiB:48GiB.

    Exit status 0 safe (with --sweep: safe somewhere for each number of workers; with --mutations: each is refused or
    known to be harmless), 1 unsafe or not covered, 130 after Ctrl-C, which prints what was covered.
    """
    if journal is not None and not mutations:
        raise BadInput("--journal goes with --mutations")
    if replay != "live" and (log2_domain is not None or backend is not None):
        raise BadInput("--log2-domain and --backend go with --replay live")
    if processes is not None and sweep is None and not mutations:
        raise BadInput("--processes goes with --sweep and --mutations; a check is one search")
    if mutations:
        if sweep is not None or replay is not None or out is not None:
            raise BadInput("--mutations goes with none of --sweep, --replay and --output")
        if (workers, partitions, devices) != (None, None, None):
            raise BadInput("--mutations: always 2 workers with 2 partitions each on 1 device; leave those options out")
        check_mutations(
            policy, policy_options(parameters, _ENGINE), size_of(vram, "--vram"), processes, journal, as_json
        )
    elif sweep is not None:
        if replay is not None or out is not None:
            raise BadInput("--sweep goes with neither --replay nor --output")
        _sweep(
            policy, sweep, 4 if workers is None else workers, 1 if partitions is None else partitions,
            1 if devices is None else devices, parameters, processes, as_json,
        )  # fmt: skip
    else:
        replaying = Replaying(replay, 10 if log2_domain is None else log2_domain, backend or "auto") if replay else None
        _check(
            policy, 2 if workers is None else workers, 1 if partitions is None else partitions, vram,
            1 if devices is None else devices, parameters, schedules, replaying, out, as_json,
        )  # fmt: skip


def _check(
    policy: str, workers: int, partitions: int, vram: str, devices: int, parameters: Any, schedules: int,
    replaying: "Replaying | None", out: Any, as_json: bool,
) -> None:  # fmt: skip
    from cuzklab import check as checker
    from cuzklab import policies
    from cuzklab.check.interrupt import Interruptible

    design = policies.load(policy, **policy_options(parameters, _ENGINE))
    with progress(f"check {design.name}", quiet=as_json) as report:

        def told(states: int, seconds: float) -> None:
            if sys.stderr.isatty():
                report(0.0, f"{states:,} states")

        with Interruptible(told) as searching:
            result = checker.check(
                design, workers=workers, partitions=partitions, vram_bytes=size_of(vram, "--vram"), devices=devices,
                progress=searching.look,
            )  # fmt: skip
    if replaying is not None:
        _replay(result, replaying, out, schedules, as_json, searching.asked)
        return
    stored = None
    if out and not searching.asked:
        if result.findings:
            stored = checker.counterexample_run(result, shortest(result), out)
        else:
            stored = checker.check_run(result, out)
    if as_json:
        emit(result.to_json() | ({"run": str(stored.path)} if stored else {}))
    else:
        print(checker.render_text(result, schedules))
        if stored:
            print(f"run  {stored.path}")
        elif out:
            print("Nothing was stored: the check is not complete.")
    raise typer.Exit(INTERRUPTED if searching.asked else 0 if result.verdict == "safe" else 1)


def shortest(result: Any) -> Any:
    """The finding with the shortest schedule."""
    return min(result.findings, key=lambda finding: len(finding.schedule))


@dataclass(frozen=True)
class Replaying:
    """How a counterexample is carried out: in virtual time or live, on circuits of what size, where."""

    where: str
    log2_domain: int
    backend: str


def _replay(result: Any, replaying: Replaying, out: Any, schedules: int, as_json: bool, interrupted: bool) -> None:
    from cuzklab import check as checker
    from cuzklab.counterexamples import replay

    if not result.findings:
        if as_json:
            emit({**result.to_json(), "replay": None})
        else:
            print(checker.verdict_line(result))
            print("There is no counterexample to carry out.")
        raise typer.Exit(INTERRUPTED if interrupted else 0 if result.verdict == "safe" else 1)
    backend = backend_in_force(replaying.backend) if replaying.where == "live" else "host"
    again = replay(result, shortest(result), replaying.where, log2_domain=replaying.log2_domain, backend=backend)
    stored = again.write(out) if out else None
    if as_json:
        emit({**result.to_json(), "replay": again.to_json(), "run": str(stored.path) if stored else None})
    else:
        print(checker.render_text(result, schedules))
        print(again.sentence)
        for edge in again.waits_for:
            print(f"  {edge}")
        if stored:
            print(f"run  {stored.path}")
    raise typer.Exit(INTERRUPTED if interrupted else 1)


def _sweep(
    policy: str, sweep: str, workers: int, partitions: int, devices: int, parameters: Any, processes: int | None,
    as_json: bool,
) -> None:  # fmt: skip
    from cuzklab.feasibility import feasibility, parse_span, render_text

    span = parse_span(sweep)
    with progress(f"sweep {policy}", quiet=as_json) as report:
        found = feasibility(
            policy, span, options=policy_options(parameters, _ENGINE), workers=workers, partitions=partitions,
            devices=devices, processes=processes, progress=report,
        )  # fmt: skip
    if as_json:
        emit(found.to_json())
    else:
        print(render_text(found))
    if not found.complete:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(0 if all(row.smallest_safe_bytes is not None for row in found.rows) else 1)

"""Verbs on stored runs: list, show, query."""

from pathlib import Path
from typing import Annotated

import typer

from cuzklab.cli.options import DEFAULT_STORE, Json, app, emit, print_table

runs = typer.Typer(help="Stored runs: list, show, query.", no_args_is_help=True)
app.add_typer(runs, name="runs")

Store = Annotated[Path, typer.Option("--store", help="Folder that holds runs.")]


@runs.command("list")
def runs_list(store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """The stored runs, newest first."""
    from cuzklab.trace.store import list_runs

    found = list_runs(store)
    rows = [
        {
            "run": str(run.path), "origin": run.info.origin, "policy": run.info.policy, "outcome": run.info.outcome,
            "created": run.info.created, "title": run.info.title,
        }
        for run in found
    ]  # fmt: skip
    if as_json:
        emit(rows)
    elif not rows:
        print(f"no runs in {store}/; `cuzklab run` and `cuzklab report` store theirs there")
    else:
        print_table(rows)


@runs.command("show")
def runs_show(run: Annotated[Path, typer.Argument(help="Directory of a run.")], as_json: Json = False) -> None:
    """What a run was, how it ended, its figures, and what was captured."""
    from cuzklab.trace.store import load_run
    from cuzklab.units import format_value

    info = load_run(run).info
    if as_json:
        from dataclasses import asdict

        emit(asdict(info))
        return
    print(f"{info.title}\n{info.origin}, {info.outcome}, {info.created}")
    if info.explanation:
        print(info.explanation)
    for note in info.notes:
        print(f"note: {note}")
    print_table([{"condition": key, "value": str(value)} for key, value in info.conditions.items()])
    print_table(
        [
            {"figure": metric["label"] or metric["kind"], "value": format_value(metric["value"], metric["unit"]),
             "obtained": metric["obtained"]}
            for metric in info.metrics
        ]
    )  # fmt: skip
    print_table([{"table": name, **facts} for name, facts in info.availability.items()])


@runs.command("query")
def runs_query(
    sql: Annotated[
        str, typer.Argument(help="A SELECT over spans, locks, vram, transfers, kernels, waits, counters, runs.")
    ],
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Answer an SQL query over the tables of all stored runs; each table has a first column `run`."""
    from cuzklab.trace.query import query
    from cuzklab.trace.store import list_runs

    frame = query(list_runs(store), sql)
    if as_json:
        print(frame.to_json(orient="records", indent=1))
    else:
        print(frame.to_string(index=False))

"""Verbs on stored runs: list, show, compare, query, regressions."""

from pathlib import Path
from typing import Annotated

import typer

from cuzklab.cli.help import RECORDS, Verbs
from cuzklab.cli.options import DEFAULT_STORE, Json, app, emit, print_table
from cuzklab.errors import BadInput
from cuzklab.progress import progress

runs = typer.Typer(
    cls=Verbs, help="Stored runs: list, show, compare, query with SQL, export for Perfetto.", no_args_is_help=True
)
app.add_typer(runs, name="runs", rich_help_panel=RECORDS)

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
    print_table(
        [
            {"table": name, "state": entry["state"], "rows": entry["rows"], "why": entry.get("reason", "")}
            for name, entry in info.availability.items()
        ]
    )


@runs.command("query")
def runs_query(
    sql: Annotated[
        str,
        typer.Argument(help="A SELECT over spans, locks, vram, transfers, kernels, api_calls, waits, counters, runs."),
    ],
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Answer an SQL query over the tables of all stored runs; each table has a first column `run`.

    cuzklab runs query 'SELECT run, lock, sum(acquired - requested) / 1e6 wait_ms FROM locks GROUP BY ALL'; times are in
    nanoseconds, sizes in bytes.
    """
    from cuzklab.trace.query import query
    from cuzklab.trace.store import list_runs

    frame = query(list_runs(store), sql)
    if as_json:
        print(frame.to_json(orient="records", indent=1))
    else:
        print(frame.to_string(index=False))


@runs.command("compare")
def runs_compare(
    candidate: Annotated[Path, typer.Argument(help="Directory of a run.")],
    baseline: Annotated[Path, typer.Argument(help="Directory of the run to compare it with.")],
    as_json: Json = False,
) -> None:
    """Figures of two runs side by side, kind by kind, and the conditions in which they differ."""
    from cuzklab.analysis.case import metrics_of
    from cuzklab.analysis.compare import differing, unlike
    from cuzklab.analysis.designs import design
    from cuzklab.trace.store import load_run
    from cuzklab.units import format_value

    if candidate.resolve() == baseline.resolve():
        raise BadInput(f"{candidate}: both are this run; give another to compare it with")
    mine, theirs = load_run(candidate), load_run(baseline)
    if forbidden := unlike(mine, theirs):
        words = ", ".join(f"{name} ({a} and {b})" for name, (a, b) in forbidden.items())
        raise BadInput(f"{candidate} and {baseline} cannot be compared: they differ in {words}")
    others = {(figure.kind, figure.label): figure for figure in metrics_of(theirs)}
    rows = []
    for figure in metrics_of(mine):
        other = others.get((figure.kind, figure.label))
        if other is not None:
            ratio = figure.ratio(other) if other.value else None
            rows.append({"kind": figure.kind, "unit": figure.unit, "candidate": figure.value, "baseline": other.value,
                         "ratio": ratio, "obtained": [figure.obtained, other.obtained]})  # fmt: skip
    conditions = {name: list(values) for name, values in differing(mine, theirs).items()}
    designs = [design(run) or run.info.title for run in (mine, theirs)]
    if as_json:
        emit({"designs": designs, "figures": rows, "differing_conditions": conditions})
        return
    names = [mine.name, theirs.name] if mine.name != theirs.name else [str(candidate), str(baseline)]
    print_table([{"run": name, "design": words} for name, words in zip(names, designs, strict=True)])
    print_table(
        [
            {"figure": row["kind"].replace("_", " "), names[0]: format_value(row["candidate"], row["unit"]),
             names[1]: format_value(row["baseline"], row["unit"]),
             "ratio": "" if row["ratio"] is None else f"{row['ratio']:.3f}", "obtained": " / ".join(row["obtained"])}
            for row in rows
        ]
    )  # fmt: skip
    for name, (a, b) in conditions.items():
        print(f"differs: {name} {a} and {b}")
    print("one run of each: `cuzklab report` repeats runs to tell a difference from noise")


@runs.command("regressions")
def runs_regressions(
    store: Store = DEFAULT_STORE,
    every: Annotated[bool, typer.Option("--all", help="Unchanged figures too.")] = False,
    as_json: Json = False,
) -> None:
    """Every figure over the history of its runs: its newest runs judged against what was before.

    A figure is an alarm only after reruns confirmed it (`cuzklab schedule run` makes them); a suspect asks for one.
    Exit status 1: a figure got worse.
    """
    from dataclasses import asdict

    from cuzklab.analysis.history import history, judgements
    from cuzklab.analysis.phrases import counted
    from cuzklab.report.scheduling.night import confirmations, in_words
    from cuzklab.trace.store import list_runs

    with progress("reading runs", quiet=as_json) as show:
        found = list_runs(store.resolve())
        judged = judgements(history(found, show), confirmations(store))
    if as_json:
        emit([{**asdict(one), "alarm": one.judgement.alarm, "words": in_words(one)} for one in judged])
    else:
        shown = [one for one in judged if every or one.judgement.state not in ("unchanged", "too short")]
        for one in shown:
            print(f"{one.judgement.state:9}  {in_words(one)}")
            for change in one.changes:
                print(f"           level changed at {change}")
        counts = {state: sum(one.judgement.state == state for one in judged) for state in ("unchanged", "too short")}
        print(
            f"{counted(len(judged), 'figure')} of {counted(len(found), 'run')}: {counts['unchanged']} unchanged, "
            f"{counts['too short']} with too few runs"
        )
    if any(one.judgement.alarm for one in judged):
        raise typer.Exit(1)

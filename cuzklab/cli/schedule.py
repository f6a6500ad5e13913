"""Verbs on scheduled reports: list, run, install, remove, index."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from cuzklab.cli.help import RECORDS, Verbs
from cuzklab.cli.options import DEFAULT_STORE, Json, app, emit, print_table
from cuzklab.progress import progress

schedule = typer.Typer(
    cls=Verbs, help="Reports at night, with an alarm when something got slower.", no_args_is_help=True
)
app.add_typer(schedule, name="schedule", rich_help_panel=RECORDS)

Store = Annotated[Path, typer.Option("--store", help="Folder of the reports and their index page.")]
Name = Annotated[str, typer.Argument(help="Name of a schedule, or path of a TOML file.")]


@schedule.command("list")
def schedule_list(store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """The schedules of lab/schedules: when they are due, and what became of the last one."""
    from cuzklab.report.scheduling import load, schedules
    from cuzklab.report.scheduling.night import log_of

    now = datetime.now().astimezone()
    rows = []
    for name in schedules():
        plan = load(name)
        entries = [entry for entry in log_of(plan.name, store) if not entry.confirms]
        last = entries[-1] if entries else None
        rows.append(
            {
                "schedule": name, "report": plan.report, "when": plan.words,
                "next": plan.next_after(now).isoformat(sep=" ", timespec="minutes"),
                "last": last.started.replace("T", " ")[:16] if last else "never",
                "outcome": last.outcome if last else "", "made": len(entries),
            }
        )  # fmt: skip
    if as_json:
        emit(rows)
    elif rows:
        print_table(rows)
    else:
        print("no schedules: write one into lab/schedules/NAME.toml")


@schedule.command("run")
def schedule_run(name: Name, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Make a schedule's report now: one at a time, measured again where a figure is suspect.

    Exit status 1: the report failed, a figure got worse, or an earlier run has not ended.
    """
    from dataclasses import asdict

    from cuzklab.report.scheduling import load, make_scheduled
    from cuzklab.report.scheduling.index import write_index
    from cuzklab.report.scheduling.night import AlreadyRunning, folder_of, in_words

    plan = load(name)
    try:
        with progress(f"schedule {plan.name}", quiet=as_json and not sys.stderr.isatty()) as show:
            night = make_scheduled(plan, store, progress=show)
    except AlreadyRunning as error:
        print(f"cuzklab: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    index = write_index(store)
    notable = [one for one in night.judged if one.judgement.state not in ("unchanged", "too short")]
    if as_json:
        emit(
            asdict(night.entry)
            | {
                "html": [str(report.html) for report in night.reports], "index": str(index),
                "figures": [{"figure": in_words(one), "state": one.judgement.state} for one in night.judged],
                "removed": list(night.removed),
            }
        )  # fmt: skip
    else:
        print(f"{night.entry.outcome}: {night.entry.words}")
        for one in notable:
            print(f"{one.judgement.state}: {in_words(one)}")
        if night.entry.missed:
            print(f"{night.entry.missed} earlier times were missed")
        print(f"report  {folder_of(plan.name, store) / night.entry.folder}\nindex   {index}")
    if night.entry.outcome != "done":
        raise typer.Exit(1)


@schedule.command("install")
def schedule_install(
    name: Name,
    store: Store = DEFAULT_STORE,
    cron: Annotated[bool, typer.Option("--cron", help="A line in your crontab instead of a systemd timer.")] = False,
    units: Annotated[
        Path | None, typer.Option(help="Write the systemd units into this folder and start nothing.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print what would be written, and write nothing.")] = False,
) -> None:
    """Have the machine make a schedule's report: a timer of systemd (checked first), or cron."""
    from cuzklab.report.notebook import checked_parameters
    from cuzklab.report.scheduling import load, timers
    from cuzklab.report.write import notebook_of

    plan = load(name)
    checked_parameters(notebook_of(plan.report), plan.parameters)
    source = str(Path(name).resolve()) if name.endswith(".toml") else name
    arguments, folder = timers.command(source, store.resolve()), Path.cwd()
    if show:
        if cron:
            print(timers.cron_line(plan, arguments, folder))
        else:
            for file, text in timers.unit_texts(plan, arguments, folder).items():
                print(f"# {file}\n{text}")
        return
    done = (
        timers.install_cron(plan, arguments, folder) if cron else timers.install_systemd(plan, arguments, folder, units)
    )
    for file in done.files:
        print(file)
    print(done.words)


@schedule.command("remove")
def schedule_remove(name: Annotated[str, typer.Argument(help="Name of an installed schedule.")]) -> None:
    """Take a schedule's timer off the machine; reports stay."""
    from cuzklab.report.scheduling import timers

    removed = timers.remove(name.removesuffix(".toml").rpartition("/")[2])
    print("\n".join(f"removed {what}" for what in removed) if removed else f"no timer of {name} is installed")


@schedule.command("index")
def schedule_index(store: Store = DEFAULT_STORE) -> None:
    """Write the page of all scheduled reports anew."""
    from cuzklab.report.scheduling.index import write_index

    print(write_index(store))

"""The machine's own timers: systemd units of the user, or a line of the crontab. No daemon of ours."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cuzklab.atomic import atomic_write
from cuzklab.errors import BadInput
from cuzklab.report.scheduling.plan import WEEKDAYS, Schedule


@dataclass(frozen=True)
class Installed:
    """What an installation did and what is left to do.

    Attributes
    ----------
    files : tuple of Path
    active : bool
        Whether the timer runs now.
    words : str
        One sentence for people.
    """

    files: tuple[Path, ...]
    active: bool
    words: str


def command(schedule_source: str, store: Path) -> list[str]:
    """What a timer calls: this interpreter, so that it is this installation, whatever the PATH is at night."""
    return [sys.executable, "-m", "cuzklab", "schedule", "run", schedule_source, "--store", str(store)]


def on_calendar(schedule: Schedule) -> str:
    """The times in systemd's words: ``Mon,Tue *-*-* 02:30:00``."""
    days = "" if len(schedule.days) == 7 else ",".join(WEEKDAYS[day].capitalize() for day in schedule.days) + " "
    return f"{days}*-*-* {schedule.hour:02d}:{schedule.minute:02d}:00"


def unit_texts(schedule: Schedule, arguments: Sequence[str], folder: Path) -> dict[str, str]:
    """The service and the timer, by file name."""
    name = f"cuzklab-{schedule.name}"
    program = " ".join(_systemd_quoted(argument) for argument in arguments)
    title = " ".join(schedule.title.split()).replace("%", "%%")
    return {
        f"{name}.service": (
            f"[Unit]\nDescription={title}\n\n"
            f"[Service]\nType=oneshot\nWorkingDirectory={str(folder).replace('%', '%%')}\nExecStart={program}\n"
            # The report ends by itself at its deadline; systemd waits a little longer.
            f"TimeoutStartSec={int(schedule.deadline_s) + 300}\nNice=5\n"
        ),
        f"{name}.timer": (
            f"[Unit]\nDescription=When: {title}\n\n"
            # Persistent: a time at which the machine was off is made up for, once, when it is back.
            f"[Timer]\nOnCalendar={on_calendar(schedule)}\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
        ),
    }


def cron_line(schedule: Schedule, arguments: Sequence[str], folder: Path) -> str:
    """A line of a crontab, marked with the schedule's name."""
    days = "*" if len(schedule.days) == 7 else ",".join(str((day + 1) % 7) for day in schedule.days)
    line = f"cd {shlex.quote(str(folder))} && {shlex.join(arguments)}".replace("%", "\\%")
    return f"{schedule.minute} {schedule.hour} * * {days} {line} {_mark(schedule.name)}"


def install_systemd(schedule: Schedule, arguments: Sequence[str], folder: Path, units: Path | None = None) -> Installed:
    """Write the units, have systemd check them, and start the timer.

    Parameters
    ----------
    schedule : Schedule
    arguments : sequence of str
        The command.
    folder : Path
        Where it runs.
    units : Path, optional
        Where units belong; the user's folder by default. With another folder nothing is started.

    Raises
    ------
    BadInput
        systemd refuses the units; they are not left behind.
    """
    place = units or Path.home() / ".config/systemd/user"
    place.mkdir(parents=True, exist_ok=True)
    files = []
    for name, text in unit_texts(schedule, arguments, folder).items():
        with atomic_write(place / name, "w") as file:
            file.write(text)
        files.append(place / name)
    if complaint := verify(files):
        for file in files:
            file.unlink(missing_ok=True)
        raise BadInput(f"schedule {schedule.name}: systemd refuses its units: {complaint}")
    timer = files[1].name
    if units is None and shutil.which("systemctl"):
        calls = (["daemon-reload"], ["enable", "--now", timer])
        done = [subprocess.run(["systemctl", "--user", *call], capture_output=True, text=True) for call in calls]
        if all(call.returncode == 0 for call in done):
            return Installed(tuple(files), True, f"{timer} is on: {schedule.words}")
        why = " ".join(done[-1].stderr.split()) or "systemctl failed"
        return Installed(
            tuple(files), False, f"written, not started ({why}); type: systemctl --user enable --now {timer}"
        )
    return Installed(tuple(files), False, f"written; type: systemctl --user enable --now {timer}")


def verify(files: Sequence[Path]) -> str:
    """What systemd has against some units, in one line; empty where it has nothing, or is not there."""
    if not shutil.which("systemd-analyze"):
        return ""
    with tempfile.TemporaryDirectory(prefix="cuzklab-") as private:
        environment = {"XDG_RUNTIME_DIR": private} | os.environ  # a user without a session has none
        checked = subprocess.run(
            ["systemd-analyze", "--user", "--recursive-errors=no", "verify", *map(str, files)],
            capture_output=True, text=True, env=environment,
        )  # fmt: skip
    if checked.returncode == 0:
        return ""
    return "; ".join(line for line in checked.stderr.splitlines() if line.strip())[:500]


def install_cron(schedule: Schedule, arguments: Sequence[str], folder: Path) -> Installed:
    """Put the schedule's line into the user's crontab, in place of an older one.

    Raises
    ------
    BadInput
        There is no cron, or it refuses the table, which then stays as it was.
    """
    lines = [line for line in _crontab() if not line.rstrip().endswith(_mark(schedule.name))]
    _write_crontab([*lines, cron_line(schedule, arguments, folder)])
    return Installed((), True, f"in the crontab: {schedule.words} (cron does not make up for times when it was off)")


def remove(schedule_name: str, units: Path | None = None) -> list[str]:
    """Take a schedule's timer away, wherever it is; returns what was removed."""
    removed = []
    place = units or Path.home() / ".config/systemd/user"
    timer = place / f"cuzklab-{schedule_name}.timer"
    if timer.exists() and units is None and shutil.which("systemctl"):
        subprocess.run(["systemctl", "--user", "disable", "--now", timer.name], capture_output=True)
    for file in (timer, timer.with_suffix(".service")):
        if file.exists():
            file.unlink()
            removed.append(str(file))
    if shutil.which("crontab"):
        lines = _crontab()
        kept = [line for line in lines if not line.rstrip().endswith(_mark(schedule_name))]
        if kept != lines:
            _write_crontab(kept)
            removed.append("a line of the crontab")
    return removed


def _mark(name: str) -> str:
    return f"# cuzklab schedule {name}"


def _crontab() -> list[str]:
    if not shutil.which("crontab"):
        raise BadInput("there is no crontab on this machine; leave --cron out to use systemd")
    listed = subprocess.run(["crontab", "-l"], capture_output=True, text=True)
    return listed.stdout.splitlines() if listed.returncode == 0 else []


def _write_crontab(lines: Sequence[str]) -> None:
    written = subprocess.run(
        ["crontab", "-"], input="".join(f"{line}\n" for line in lines), capture_output=True, text=True
    )
    if written.returncode:
        raise BadInput(f"cron refuses the table: {' '.join(written.stderr.split())}")


def _systemd_quoted(argument: str) -> str:
    """An argument of ExecStart: quoted, with systemd's specifiers and variables taken literally."""
    text = argument.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"'

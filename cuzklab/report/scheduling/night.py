"""One scheduled report: alone, measured again where a figure is suspect, logged, old ones removed."""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from cuzklab.analysis.history import SeriesJudgement, history, judgements
from cuzklab.errors import BadInput
from cuzklab.report.naming import figure_name
from cuzklab.report.notebook import NotebookFailed, checked_parameters
from cuzklab.report.scheduling.log import Entry, Log
from cuzklab.report.scheduling.plan import Schedule
from cuzklab.report.write import Report, notebook_of, write_report
from cuzklab.trace.store import list_runs
from cuzklab.units import format_value, percent, percent_range

SCHEDULED = "scheduled"  # folder of a store that holds what schedules made
LOG = "log.jsonl"

Progress = Callable[[float, str], None]
Write = Callable[..., Report]


def confirmations(store: Path) -> dict[str, str]:
    """Of all schedules of a store: occasions that confirm an earlier one, and which."""
    logs = sorted((Path(store).resolve() / SCHEDULED).glob(f"*/{LOG}"))
    return {occasion: confirmed for log in logs for occasion, confirmed in Log(log).confirms().items()}


class AlreadyRunning(RuntimeError):
    """An earlier run of the same schedule has not ended. The message is one line."""


@dataclass(frozen=True)
class Night:
    """What a scheduled report came to.

    Attributes
    ----------
    entry : Entry
        As it stands in the log.
    reports : tuple of Report
        The report and its confirming reruns; empty where it failed.
    judged : tuple of SeriesJudgement
        Every figure against its history, the worst first.
    removed : tuple of str
        Folders of old reports that were removed.
    """

    entry: Entry
    reports: tuple[Report, ...]
    judged: tuple[SeriesJudgement, ...]
    removed: tuple[str, ...]


def folder_of(schedule_name: str, store: Path) -> Path:
    return Path(store).resolve() / SCHEDULED / schedule_name


def log_of(schedule_name: str, store: Path) -> Log:
    return Log(folder_of(schedule_name, store) / LOG)


def make_scheduled(
    schedule: Schedule,
    store: Path,
    *,
    write: Write = write_report,
    now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    monotonic: Callable[[], float] = time.monotonic,
    progress: Progress = lambda share, words="": None,
) -> Night:
    """Make a schedule's report now.

    The report lies in ``store/scheduled/NAME/DATE-TIME``. Where one of its figures looks slower or faster than before
    (`analysis.regression`), the whole report is made again, up to `Schedule.confirm` times and as long as the deadline
    allows, until no figure is suspect. A night that fails is logged as such; what it left is kept for a look.

    Raises
    ------
    BadInput
        The report or its parameters do not exist; nothing was started.
    AlreadyRunning
    """
    checked_parameters(notebook_of(schedule.report), schedule.parameters)
    place = folder_of(schedule.name, store)
    place.mkdir(parents=True, exist_ok=True)
    log = Log(place / LOG)
    with _alone(place, schedule.name):
        started = now()
        ends_at = monotonic() + schedule.deadline_s
        earlier = list(log)
        missed = schedule.missed(datetime.fromisoformat(earlier[-1].started), started) if earlier else 0
        first = _free_folder(place, f"{started:%Y%m%d-%H%M%S}")
        entry = Entry(started.isoformat(timespec="seconds"), "", "done", first.name, "", missed)
        reports: list[Report] = []
        judged: list[SeriesJudgement] = []
        confirms = log.confirms()
        try:
            for rerun in range(schedule.confirm + 1):
                left_s = ends_at - monotonic()
                # A rerun that would not end in time is not begun: it takes about as long as the first did.
                if rerun and left_s < 1.2 * (schedule.deadline_s - left_s) / rerun:
                    break
                folder = first if not rerun else first.with_name(f"{first.name}-confirm{rerun}")
                words = "the report" if not rerun else f"rerun {rerun} of at most {schedule.confirm}"
                reports.append(
                    write(schedule.report, folder, schedule.parameters, deadline_s=max(1.0, left_s),
                          progress=lambda share, more="", words=words: progress(share, f"{words}: {more}"))
                )  # fmt: skip
                if rerun:
                    confirms[str(folder)] = str(first)
                    ended = now().isoformat(timespec="seconds")
                    log.add(Entry(entry.started, ended, "done", folder.name, "a confirming rerun", 0, first.name))
                judged = judgements(history(list_runs(place)), confirms)
                if not any(one.judgement.state == "suspect" for one in judged):
                    break
        except NotebookFailed as error:
            entry = replace(entry, outcome="failed", words=str(error))
        else:
            alarms = [one for one in judged if one.judgement.alarm]
            entry = replace(
                entry,
                outcome="alarm" if alarms else "done",
                words="; ".join(map(in_words, alarms[:3])) if alarms else _verdict_words(reports[0]),
            )
        entry = replace(entry, ended=now().isoformat(timespec="seconds"))
        log.add(entry)
        removed = _remove_old(place, schedule.keep)
    return Night(entry, tuple(reports), tuple(judged), removed)


def in_words(one: SeriesJudgement) -> str:
    """A judged figure in words: ``phase9, 2 workers, live: batch average is 7.1 % slower (41.2 s/proof, before …)``."""
    judgement = one.judgement
    name = figure_name(one)
    less, more = ("smaller", "larger") if one.unit == "B" else ("faster", "slower")
    level = format_value(one.level, one.unit)
    if judgement.state == "too short":
        return f"{name} {level}: {judgement.baseline} runs before it, too few to judge"
    change = f"{percent(abs(judgement.effect), 1)} {more if judgement.effect > 0 else less}"
    before = format_value(one.baseline_level, one.unit)
    interval = "" if judgement.low is None else f", 95 % interval {percent_range(judgement.low, judgement.high)}"
    runs = f"{judgement.candidates} runs against {judgement.baseline}"
    return f"{name} is {change} ({level}, before {before}; {runs}{interval})"


def _verdict_words(report: Report) -> str:
    return f"{report.verdict.get('decision', '')}: {report.verdict.get('sentence', '')}"


@contextmanager
def _alone(place: Path, name: str) -> Iterator[None]:
    """Hold the schedule's lock; the system gives it back however the process ends."""
    descriptor = os.open(place / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 64, 0).decode(errors="replace").strip()
            since = f" (process {holder})" if holder.isdigit() else ""
            raise AlreadyRunning(
                f"schedule {name}: an earlier run has not ended{since}; this one is left out"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _free_folder(place: Path, name: str) -> Path:
    for number in range(1, 1000):
        folder = place / (name if number == 1 else f"{name}-{number}")
        if not folder.exists():
            return folder
    raise BadInput(f"{place}: there are a thousand reports of one second")


def _remove_old(place: Path, keep: int) -> tuple[str, ...]:
    """Remove all but the newest reports; a rerun goes with the report that it confirms.

    A folder is renamed out of sight first, so that a crash leaves no half of a report.
    """
    folders = sorted(path for path in place.iterdir() if path.is_dir() and not path.name.startswith("."))
    ordinary = [folder for folder in folders if "-confirm" not in folder.name]
    kept = {folder.name for folder in ordinary[-keep:]}
    removed = []
    for folder in folders:
        if folder.name.partition("-confirm")[0] not in kept:
            hidden = folder.with_name(f".removed-{folder.name}")
            folder.rename(hidden)
            removed.append(folder.name)
    for hidden in place.glob(".removed-*"):
        shutil.rmtree(hidden, ignore_errors=True)
    return tuple(removed)

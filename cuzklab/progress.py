"""One way to tell how far a long job is: a callable that takes a share done and a few words.

On a terminal it draws a bar on standard error; elsewhere it prints a plain line when the words change, so that a log
of a scheduled job reads well.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[float, str], None]


@contextmanager
def progress(title: str, quiet: bool = False) -> Iterator[Report]:
    """Show progress while the block runs.

    Yields
    ------
    callable (share, words)
        `share` is between 0 and 1.
    """
    if quiet:
        yield lambda share, words="": None
    elif sys.stderr.isatty():
        yield from _bar(title)
    else:
        yield from _lines(title)


def _bar(title: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[words]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0, words="")
        yield lambda share, words="": bar.update(task, completed=share, words=words)


def _lines(title: str) -> Iterator[Report]:
    start, last = time.monotonic(), ""

    def report(share: float, words: str = "") -> None:
        nonlocal last
        if words != last:
            last = words
            print(f"{title}: {100 * share:3.0f} %  {time.monotonic() - start:5.1f} s  {words}", file=sys.stderr)

    yield report


def seldom(report: Report, every_s: float = 10.0, clock: Callable[[], float] = time.monotonic) -> Report:
    """A progress report for a log, of a job with too many tasks for a line each.

    Told on is what comes when another tenth of the job is done, or `every_s` seconds after the last line.
    """
    tenth, told_s = -1, 0.0

    def told(share: float, words: str = "") -> None:
        nonlocal tenth, told_s
        if int(10 * share) > tenth or clock() - told_s >= every_s:
            tenth, told_s = int(10 * share), clock()
            report(share, words)

    return told


def part(report: Report, start: float, end: float, prefix: str = "") -> Report:
    """A progress report for a part of a job, between two shares of the whole."""
    return lambda share, words="": report(start + (end - start) * share, f"{prefix}{words}")

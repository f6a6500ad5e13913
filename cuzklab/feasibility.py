"""How much device memory a design needs, for each number of workers: a range covered in several processes.

`cuzklab.check.feasibility` covers a range exactly. Here the range is cut into parts that are covered side by side, put
together again, and summed up in the three figures that one asks for. What was covered before an interruption is kept.
"""

import json
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuzklab.atomic import atomic_write
from cuzklab.check.feasibility import Interval, Range, joined
from cuzklab.check.policy import refuse_counts
from cuzklab.errors import BadInput
from cuzklab.policies import load
from cuzklab.sweep import Task, sweep
from cuzklab.units import format_seconds, parse_size

PARTS = 4  # of a range, for each number of workers
MIB = 1 << 20
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Span:
    """The amounts of device memory to look at: from, to, and a step or 0 for every byte."""

    first_bytes: int
    last_bytes: int
    step_bytes: int = 0


def parse_span(text: str) -> Span:
    """``vram=8GiB:48GiB`` or ``vram=8GiB:48GiB:1GiB``.

    Raises
    ------
    BadInput
    """
    name, _, amounts = text.partition("=")
    sizes = amounts.split(":")
    if name != "vram" or len(sizes) not in (2, 3):
        raise BadInput(f"--sweep {text}: write vram=FROM:TO or vram=FROM:TO:STEP, like vram=8GiB:48GiB")
    try:
        first, last, step = (parse_size(size) for size in (*sizes, "0B")[:3])
    except ValueError as error:
        raise BadInput(f"--sweep {text}: {error}") from None
    if not 0 < first <= last or step < 0 or (len(sizes) == 3 and not step):
        raise BadInput(f"--sweep {text}: it must go up, from more than nothing, by a step of more than nothing")
    return Span(first, last, step)


@dataclass(frozen=True)
class Row:
    """One number of workers.

    Attributes
    ----------
    intervals : tuple of Interval
        What was covered, in order.
    covered : float
        Share of the range.
    checks : int
        Whole checks that it took.
    """

    workers: int
    intervals: tuple[Interval, ...]
    covered: float
    checks: int

    @property
    def smallest_safe_bytes(self) -> int | None:
        """The smallest amount at which the design is safe."""
        return next((one.from_bytes for one in self.intervals if one.verdict == "safe"), None)

    @property
    def unsafe_again(self) -> tuple[Interval, ...]:
        """Where it is not safe although it is with less memory."""
        smallest = self.smallest_safe_bytes
        if smallest is None:
            return ()
        return tuple(one for one in self.intervals if one.verdict != "safe" and one.from_bytes > smallest)

    @property
    def safe_from_bytes(self) -> int | None:
        """From where on it stays safe, as far as the range goes."""
        last = self.intervals[-1] if self.intervals else None
        return last.from_bytes if last is not None and last.verdict == "safe" and self.covered == 1.0 else None

    @property
    def for_good(self) -> bool:
        """Nothing changes above the range either."""
        return bool(self.intervals) and self.intervals[-1].to_bytes is None

    def to_json(self) -> dict[str, Any]:
        return {
            "workers": self.workers, "smallest_safe_bytes": self.smallest_safe_bytes,
            "safe_from_bytes": self.safe_from_bytes, "for_good": self.for_good, "covered": self.covered,
            "checks": self.checks, "intervals": [one.to_json() for one in self.intervals],
        }  # fmt: skip


@dataclass(frozen=True)
class Feasibility:
    """Verdicts over device memory, for each number of workers."""

    policy: str
    options: Mapping[str, Any]
    partitions: int
    devices: int
    span: Span
    rows: tuple[Row, ...]
    complete: bool
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """As `cuzklab check --sweep … --json` prints it."""
        return {
            "policy": self.policy, "options": dict(self.options), "partitions": self.partitions,
            "devices": self.devices, "from_bytes": self.span.first_bytes, "to_bytes": self.span.last_bytes,
            "step_bytes": self.span.step_bytes, "complete": self.complete, "seconds": round(self.seconds, 1),
            "rows": [row.to_json() for row in self.rows],
        }  # fmt: skip


def feasibility(
    policy: str, span: Span, *, options: Mapping[str, Any] | None = None, workers: int = 4, partitions: int = 1,
    devices: int = 1, processes: int | None = None, progress: Progress = lambda share, words="": None,
) -> Feasibility:  # fmt: skip
    """Cover a range of device memory for 1, 2, … `workers` workers of each device.

    Parameters
    ----------
    policy : str
        Name, or path of a Python file.
    span : Span
    options : mapping, optional
        Of the policy.
    workers, partitions, devices : int
    processes : int, optional
        All cores by default.
    progress : callable (share, words), optional

    Returns
    -------
    Feasibility
        After Ctrl-C what was covered until then, and `complete` is False.

    Raises
    ------
    BadInput
    """
    import time

    refuse_counts(workers=workers, partitions=partitions, devices=devices)
    options = dict(options or {})
    load(policy, **options)  # so that an unknown policy is refused here and not in each process
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cuzklab-sweep-") as folder:
        tasks = [
            Task(
                {"policy": policy, "options": options, "workers": count, "partitions": partitions,
                 "devices": devices, "first_bytes": first, "last_bytes": last, "grid_bytes": span.first_bytes,
                 "step_bytes": span.step_bytes, "folder": folder},
                f"{count} worker{'s' if count > 1 else ''}, {first / 2**30:.4g} GiB and more",
            )
            for count in range(workers, 0, -1)  # the longest first
            for first, last in _parts(span)
        ]  # fmt: skip
        complete = True
        with _stops(Path(folder)):
            try:
                for outcome in sweep(cover_part, tasks, processes=processes, progress=progress):
                    if outcome.error:
                        raise BadInput(outcome.error)
            except KeyboardInterrupt:
                complete = False
        rows = tuple(_row(count, span, Path(folder)) for count in range(1, workers + 1))
    complete = complete and all(row.covered == 1.0 for row in rows)
    return Feasibility(policy, options, partitions, devices, span, rows, complete, time.monotonic() - began)


def cover_part(
    policy: str, options: Mapping[str, Any], workers: int, partitions: int, devices: int, first_bytes: int,
    last_bytes: int, grid_bytes: int, step_bytes: int, folder: str,
) -> int:  # fmt: skip
    """Cover a part of a range; it is written to a file of the folder as far as it has come. In a worker process."""
    place = Path(folder)
    part = Range(load(policy, **options), workers, partitions, devices, step_bytes=step_bytes)
    part.stop = (place / "stop").exists

    def keep(intervals: list[Interval], reached_bytes: int) -> None:
        content = {
            "first_bytes": first_bytes, "last_bytes": last_bytes, "reached_bytes": reached_bytes,
            "checks": part.checks, "intervals": [one.to_json() for one in intervals],
        }  # fmt: skip
        with atomic_write(place / f"{workers}-{first_bytes}.json", "w") as file:
            json.dump(content, file)

    part.keep = keep
    part.cover(first_bytes, last_bytes, grid_bytes)
    return part.checks


def _parts(span: Span) -> Iterator[tuple[int, int]]:
    """The range in parts, both ends included; with a step they begin on its grid."""
    unit = span.step_bytes or MIB
    length = max(unit, -(-(span.last_bytes - span.first_bytes + 1) // (PARTS * unit)) * unit)
    first = span.first_bytes
    while first <= span.last_bytes:
        yield first, min(first + length - 1, span.last_bytes)
        first += length


def _row(workers: int, span: Span, folder: Path) -> Row:
    """Put the parts of one number of workers together, up to the first gap."""
    intervals: list[Interval] = []
    covered_bytes = checks = 0
    for first, last in _parts(span):
        path = folder / f"{workers}-{first}.json"
        if not path.is_file():
            break
        part = json.loads(path.read_text())
        for one in part["intervals"]:
            to_bytes = one["to_bytes"]
            if to_bytes is None and last < span.last_bytes:
                to_bytes = last
            kinds = tuple(one["kinds"])
            intervals.append(Interval(one["from_bytes"], to_bytes, one["verdict"], kinds, one["message"]))
        checks += part["checks"]
        covered_bytes += min(part["reached_bytes"], last + 1) - first
        if part["reached_bytes"] <= last:
            break
    return Row(workers, tuple(joined(intervals)), covered_bytes / (span.last_bytes - span.first_bytes + 1), checks)


@contextmanager
def _stops(folder: Path) -> Iterator[None]:
    """On Ctrl-C the processes that are at work are told to stop, too, wherever the signal went."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def told(number: int, frame: Any) -> None:
        (folder / "stop").touch()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, told)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def render_text(found: Feasibility) -> str:
    """The three figures of each number of workers, and why it is unsafe where it is."""
    from io import StringIO

    from rich.console import Console
    from rich.table import Table

    span = found.span
    console = Console(file=StringIO(), width=132, no_color=True, highlight=False, force_terminal=False)
    every = f"looked at every {exact(span.step_bytes)} only" if span.step_bytes else "every byte of it covered"
    devices = f" on each of {found.devices} devices" if found.devices > 1 else ""
    console.print(
        f"{found.policy}: {found.partitions} partition{'s' if found.partitions > 1 else ''} a worker{devices}, device "
        f"memory {exact(span.first_bytes)} to {exact(span.last_bytes)}, {every}."
    )
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in ("workers", "safe from", "unsafe again", "safe to the end from", "checks"):
        table.add_column(column, justify="right" if column in ("workers", "checks") else "left")
    for row in found.rows:
        smallest, lasting = row.smallest_safe_bytes, row.safe_from_bytes
        again = "\n".join(f"{exact(one.from_bytes)} to {upper_end(one, span)}" for one in row.unsafe_again)
        beyond = "" if lasting is None or not row.for_good else ", and with any more"
        unknown = "" if row.covered == 1.0 else f"(not known: {100 * row.covered:.0f} % covered)"
        table.add_row(
            str(row.workers), exact(smallest) if smallest is not None else unknown or "nowhere", again or "nowhere",
            unknown if row.covered < 1.0 else exact(lasting) + beyond if lasting is not None else "nowhere",
            str(row.checks),
        )  # fmt: skip
    console.print(table)
    for row in found.rows:
        for one in row.intervals:
            if one.verdict != "safe":
                what = ", ".join(one.kinds) or one.verdict
                console.print(
                    f"{row.workers} worker{'s' if row.workers > 1 else ''}, {exact(one.from_bytes)} to "
                    f"{upper_end(one, span)}: {what}; at its lower end {one.message}"
                )
    if not found.complete:
        console.print("Not the whole range was covered.")
    console.print(f"{sum(row.checks for row in found.rows)} checks, {format_seconds(found.seconds)}")
    return console.file.getvalue()


def upper_end(interval: Interval, span: Span) -> str:
    """Where an interval ends, in words that follow "from … to"."""
    if interval.to_bytes is None:
        return "any amount"
    if interval.to_bytes >= span.last_bytes:
        return f"{exact(span.last_bytes)}, the end"
    return f"below {exact(interval.to_bytes + (span.step_bytes or 1))}"


def exact(size_bytes: int) -> str:
    """An amount of memory without rounding: in GiB where that is short, else in bytes with the rounded GiB."""
    gib = size_bytes / 2**30
    if float(f"{gib:.4f}") * 2**30 == size_bytes:
        return f"{gib:.4f}".rstrip("0").rstrip(".") + " GiB"
    return f"{size_bytes:,} B ({gib:.3f} GiB)"

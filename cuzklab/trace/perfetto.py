"""A run as trace events in JSON, the format that Perfetto's window and Chrome's open.

Lanes stand for threads, locks, and streams of a device. The format wants what shares a lane to lie in each other, so
whatever crosses gets a lane of its own. Every row of the run is in the file once, whole, as the arguments of one event:
so importing the file gives the run back. Times are microseconds since the run's first moment, to the nanosecond; that
moment is in `otherData`.
"""

import gzip
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from cuzklab import __version__
from cuzklab.atomic import atomic_write
from cuzklab.trace.schema import TABLES
from cuzklab.trace.store import Run

FORMAT = 1
PRODUCER = "cuzklab"
WORKERS, LOCKS, COUNTERS, DEVICES = 1, 2, 3, 10  # process numbers; devices count on from the last
_MOST_LANES = 64
_INFO = ("origin", "title", "outcome", "explanation", "policy", "conditions", "devices", "metrics", "inputs", "notes",
         "time_unit", "availability", "created", "machine", "versions")  # fmt: skip
_TIMES = ("start", "end", "time", "requested", "acquired", "released")


def export_perfetto(run: Run, target: Path, report: Callable[[float, str], None] = lambda share, words="": None) -> int:
    """Write a run as trace events, packed if `target` ends in ``.gz``.

    Returns
    -------
    int
        How many events it has.

    Raises
    ------
    cuzklab.trace.store.RunError
        A table of the run is damaged.
    """
    with atomic_write(target) as file, _packed(file, target.suffix == ".gz") as stream:
        return _Writer(run, stream).write(report)


@contextmanager
def _packed(file: IO[bytes], gz: bool) -> Iterator[IO[bytes]]:
    if not gz:
        yield file
        return
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as stream:
        yield stream


@dataclass
class _Lane:
    """Lanes side by side, in each of which what is drawn lies in each other."""

    ends: list[list[int]] = field(default_factory=list)

    def place(self, start: int, end: int) -> int:
        """The first lane in which an extent can be drawn; asked in order of start, longer ones first."""
        for number, stack in enumerate(self.ends):
            while stack and stack[-1] <= start:
                stack.pop()
            if not stack or end <= stack[-1]:
                stack.append(end)
                return number
        if len(self.ends) < _MOST_LANES:
            self.ends.append([end])
        return len(self.ends) - 1


class _Writer:
    def __init__(self, run: Run, stream: IO[bytes]) -> None:
        self._run, self._stream = run, stream
        self._lanes: dict[tuple[int, str], _Lane] = {}
        self._threads: dict[tuple[int, str, int], int] = {}
        self._processes: dict[int, str] = {}
        self._base, self._end = _window(run)
        self._events = 0

    def write(self, report: Callable[[float, str], None]) -> int:
        info = {name: getattr(self._run.info, name) for name in _INFO}
        head = {"producer": f"{PRODUCER} {__version__}", "format": FORMAT, "base_ns": self._base, "run": info}
        self._stream.write(b'{"displayTimeUnit":"ns","otherData":')
        self._stream.write(_json(head).encode())
        self._stream.write(b',"traceEvents":[')
        for share, words, part in (
            (0.0, "threads", self._workers), (0.4, "locks", self._locks), (0.5, "devices", self._devices),
            (0.9, "counters", self._counters), (1.0, "names", self._names),
        ):  # fmt: skip
            report(share, words)
            part()
        self._stream.write(b"\n]}\n")
        return self._events

    # What is drawn where

    def _workers(self) -> None:
        """Spans, waits and API calls on the lanes of their threads."""
        parts = []
        for name in ("spans", "waits", "api_calls"):
            rows = self._run.table(name)
            if name == "waits":
                lane, title, category = rows["worker"], "wait: " + rows["on"], "wait:" + rows["kind"]
            elif name == "spans":
                lane = rows["thread"].where(rows["thread"] != "", rows["worker"])
                title, category = rows["name"], rows["category"]
            else:
                lane, title, category = rows["thread"], rows["name"], "api:" + rows["api"]
            parts.append(_Bars(name, rows, lane, title, category))
        self._bars(parts, lambda bars, row: (WORKERS, "threads"))

    def _devices(self) -> None:
        """Kernels and copies on the lanes of their streams; events of device memory."""
        kernels, copies = self._run.table("kernels"), self._run.table("transfers")
        moved = copies["direction"] + copies["pinned"].map({True: " pinned", False: " pageable"})
        parts = [
            _Bars("kernels", kernels, "stream " + kernels["stream"], kernels["name"], "kernel"),
            _Bars("transfers", copies, "stream " + copies["stream"], moved, "copy"),
        ]
        numbers = [part.rows["device"].tolist() for part in parts]

        def process(bars: int, row: int) -> tuple[int, str]:
            device = max(int(numbers[bars][row]), 0)
            return DEVICES + device, f"GPU {device}"

        self._bars(parts, process)
        rows = self._run.table("vram")
        for row in _records(rows):
            device = max(row["device"], 0)
            where = {"pid": DEVICES + device, "ts": self._us(row["time"])}
            self._processes[where["pid"]] = f"GPU {device}"
            tid = self._thread(where["pid"], "memory events", 0)
            self._emit(name=f"{row['op']} {row['buffer']}", cat="memory", ph="i", s="t", tid=tid, **where,
                       args=_arguments("vram", row))  # fmt: skip
            self._emit(
                name=f"GPU {device} live bytes", cat="memory", ph="C", tid=0, **where, args={"bytes": row["live"]}
            )

    def _locks(self) -> None:
        """Holds and waits of each lock; a request that was given up is a wait."""
        uses = [
            (row, *(None if pd.isna(row[name]) else int(row[name]) for name in ("acquired", "released")))
            for row in _records(self._run.table("locks"))
        ]
        extents = []
        for row, acquired, released in uses:
            end = self._end if released is None else released
            who = f"{row['worker'] or row['thread']} {row['partition']}".strip()
            if acquired is not None:
                extents.append((acquired, max(end, acquired), row, f"{who}", "hold", True))
                if acquired > row["requested"]:
                    extents.append((row["requested"], acquired, row, f"{who} waits", "wait:lock", False))
            else:
                extents.append(
                    (row["requested"], max(end, row["requested"]), row, f"{who} gives up", "wait:lock", True)
                )
        for start, end, row, title, category, whole in sorted(extents, key=lambda one: (one[0], -one[1])):
            lane = f"{row['lock']} {'held' if category == 'hold' else 'waiting'}"
            arguments = _arguments("locks", row) if whole else {"holder": row["holder_at_request"]}
            self._slice(LOCKS, "locks", lane, start, end, title, category, arguments)

    def _counters(self) -> None:
        self._processes[COUNTERS] = "counters"
        for row in _records(self._run.table("counters")):
            value = row["value"] if math.isfinite(row["value"]) else 0.0
            self._emit(name=row["name"], cat="counter", ph="C", pid=COUNTERS, tid=0, ts=self._us(row["time"]),
                       args={"value": value})  # fmt: skip

    def _names(self) -> None:
        for pid, name in sorted(self._processes.items()):
            self._emit(name="process_name", ph="M", pid=pid, tid=0, args={"name": name})
            self._emit(name="process_sort_index", ph="M", pid=pid, tid=0, args={"sort_index": pid})
        for (pid, name, number), tid in self._threads.items():
            title = f"{name} ({number + 1})" if number else name
            self._emit(name="thread_name", ph="M", pid=pid, tid=tid, args={"name": title})
            self._emit(name="thread_sort_index", ph="M", pid=pid, tid=tid, args={"sort_index": tid})

    # Events

    def _bars(self, parts: "list[_Bars]", process: Callable[[int, int], tuple[int, str]]) -> None:
        starts = np.concatenate([part.rows["start"].to_numpy(np.int64) for part in parts])
        ends = np.concatenate([part.rows["end"].to_numpy(np.int64) for part in parts])
        of = np.concatenate([np.full(len(part.rows), place) for place, part in enumerate(parts)])
        row = np.concatenate([np.arange(len(part.rows)) for part in parts])
        columns = [part.columns() for part in parts]
        for place in np.lexsort((-ends, starts)).tolist():
            bars, number = int(of[place]), int(row[place])
            part = columns[bars]
            values = {name: column[number] for name, column in part["values"].items()}
            pid, title = process(bars, number)
            self._slice(pid, title, part["lane"][number], values["start"], values["end"], part["title"][number],
                        part["category"][number], _arguments(parts[bars].table, values))  # fmt: skip

    def _slice(
        self, pid: int, process: str, lane: str, start: int, end: int, title: str, category: str, arguments: dict
    ) -> None:
        self._processes[pid] = process
        number = self._lanes.setdefault((pid, lane), _Lane()).place(start, end)
        self._emit(
            name=title or "(no name)", cat=category, ph="X", ts=self._us(start), dur=_Number(_us(end - start)), pid=pid,
            tid=self._thread(pid, lane or "(unnamed)", number), args=arguments,
        )  # fmt: skip

    def _thread(self, pid: int, lane: str, number: int) -> int:
        return self._threads.setdefault((pid, lane, number), len(self._threads) + 1)

    def _us(self, time_ns: int) -> "_Number":
        return _Number(_us(time_ns - self._base))

    def _emit(self, **event: Any) -> None:
        text = ",".join(
            f'"{key}":{value if isinstance(value, _Number) else _json(value)}' for key, value in event.items()
        )
        self._stream.write((",\n{" if self._events else "\n{").encode() + text.encode() + b"}")
        self._events += 1


class _Number(str):
    """A number as it is to be written."""


@dataclass
class _Bars:
    """Rows of a table with what is drawn of each: lane, title, category."""

    table: str
    rows: pd.DataFrame
    lane: pd.Series
    title: pd.Series
    category: pd.Series | str

    def columns(self) -> dict[str, Any]:
        count = len(self.rows)
        category = [self.category] * count if isinstance(self.category, str) else self.category.tolist()
        return {
            "values": {name: self.rows[name].tolist() for name in self.rows.columns},
            "lane": self.lane.tolist(), "title": self.title.tolist(), "category": category,
        }  # fmt: skip


def _records(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    columns = {name: rows[name].tolist() for name in rows.columns}
    for place in range(len(rows)):
        yield {name: column[place] for name, column in columns.items()}


def _arguments(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row as arguments: the table's name, and the columns that are not as by default."""
    defaults = {one.name: one.default for one in fields(TABLES[table])}
    values = {name: None if value is pd.NA or value is None else value for name, value in row.items()}
    return {"table": table} | {name: value for name, value in values.items() if value != defaults[name]}


def _window(run: Run) -> tuple[int, int]:
    """First and last moment of a run."""
    moments = [
        run.table(name)[column].dropna().to_numpy(np.int64)
        for name in TABLES
        for column in _TIMES
        if column in run.table(name).columns
    ]
    together = np.concatenate(moments)
    return (int(together.min()), int(together.max())) if len(together) else (0, 0)


def _us(time_ns: int) -> str:
    """Nanoseconds as microseconds, exactly."""
    sign, time_ns = ("-", -time_ns) if time_ns < 0 else ("", time_ns)
    whole, rest = divmod(int(time_ns), 1000)
    return f"{sign}{whole}.{rest:03d}" if rest else f"{sign}{whole}"


def _json(value: Any) -> str:
    return json.dumps(value, default=str, separators=(",", ":"))

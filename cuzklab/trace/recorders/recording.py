"""A recording: on or off, where its events go, and the run that it becomes."""

import os
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from cuzklab.trace.recorder import Recorder
from cuzklab.trace.recorders import names
from cuzklab.trace.recorders.log import Forgetting, Log, Sink
from cuzklab.trace.recorders.spill import Spill
from cuzklab.trace.recorders.tables import Assembled, assemble
from cuzklab.trace.schema import TABLES, arrow_schema
from cuzklab.trace.store import Run, RunInfo, write_run

# Tables that the events of each stream end in; what a stream loses, they lack.
_TABLES_OF_STREAM = {"events": ("spans", "locks", "waits"), "vram": ("vram",)}
_TABLES_OF_LOG = ("spans", "locks", "waits", "vram")


class _Sinks(threading.local):
    """`sink` of the calling thread; made when a thread first records something."""

    def __init__(self, recording: "Recording") -> None:
        self.sink = recording.new_sink()


class Recording(Recorder):
    """Events of spans, locks and device memory from any number of threads, and rows that are added whole.

    Parameters
    ----------
    clock : callable returning int
        Nanoseconds of a monotonic clock.
    spill : path, optional
        A folder to make, to which what has gathered is written several times a second. It is removed once the run is
        stored; after a crash `recover` makes a run of it. Without one, columns stay in memory.
    max_bytes : int
        Memory for the columns of each kind of event; what exceeds it is counted as lost.
    process : int
        Goes into the spans.

    Attributes
    ----------
    local : object with an attribute `sink`
        Where the calling thread puts its events.
    vram_events : list of int, or None
        Where events of device memory go; None while the recording is off.
    locks : set of Lock
        The recorded locks that exist.
    profile : StackProfile or None
        Samples stages, where one was made.
    attachments : dict of str to str
        Further files of the run, by name.
    """

    def __init__(
        self,
        clock: Callable[[], int] = time.monotonic_ns,
        *,
        spill: Path | str | None = None,
        max_bytes: int = 1 << 30,
        process: int = 0,
    ) -> None:
        super().__init__(clock)
        self.process = process
        self.vram_events: list[int] | None = None
        self.locks: weakref.WeakSet[Any] = weakref.WeakSet()
        self._sinks: list[Sink] = []
        self.local = _Sinks(self)
        self.reset(spill=spill, max_bytes=max_bytes)

    def reset(self, *, spill: Path | str | None = None, max_bytes: int = 1 << 30) -> Self:
        """Forget everything recorded, and begin with a new log; for the recording that outlives its runs."""
        if self.on:
            raise RuntimeError("a recording is under way: end it first")
        self._added = {table: [] for table in TABLES}
        self.attachments: dict[str, str] = {}
        self._spill = Spill(Path(spill), {"process": self.process}) if spill is not None else None
        self._log = Log(self._sinks, max_bytes, self._spill)
        self._assembled: Assembled | None = None
        self._at_end: list[Callable[[], None]] = []
        self.profile: Any = None
        self._notes: list[str] = []
        self._lost_rows: dict[str, int] = {}
        return self

    @property
    def on(self) -> bool:
        return self.vram_events is not None

    def new_sink(self) -> Sink:
        """A place for the events of the calling thread, which has none yet."""
        sink = Sink(self.on)
        self._sinks.append(sink)
        return sink

    def locks_held(self) -> tuple[str, ...]:
        """Names of the recorded locks that the calling thread holds."""
        sink = self.local.sink
        return tuple(sorted(lock.name for lock in list(self.locks) if lock.holder is sink))

    def start(self) -> Self:
        """Record from now on.

        Raises
        ------
        RuntimeError
            It was recorded with before, and its tables have been made.
        """
        if self._assembled is not None:
            raise RuntimeError("this recording has ended: use another, or reset it")
        self.vram_events = self._log.vram_events  # so that sinks made from now on are on
        self._log.start(self.clock())
        _ON.add(self)
        return self

    def stop(self) -> None:
        """Record no more. What is open stays open: a span ends with the recording, a lock is held to its end."""
        if self.on:
            self.vram_events = None
            _ON.discard(self)
            self._log.stop()
            for finish in self._at_end:
                finish()
            self._at_end.clear()

    def at_end(self, finish: Callable[[], None]) -> None:
        """Have something done when the recording stops."""
        self._at_end.append(finish)

    def drain(self) -> None:
        """Move what has gathered into columns or to disk, which also happens by itself."""
        self._log.drain()

    def note(self, sentence: str) -> None:
        """Have a reader of the run be told something."""
        self._notes.append(sentence)

    def lose(self, table: str, rows: int) -> None:
        """Count rows that were not kept."""
        self._lost_rows[table] = self._lost_rows.get(table, 0) + rows

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def abandon(self) -> None:
        """Be off: this is a forked child, whose parent has the recording and the thread that drains it."""
        self.vram_events = None
        for sink in self._sinks:
            sink.events = None

    # --- what it becomes ---------------------------------------------------------------------------------------------

    @property
    def lost(self) -> Mapping[str, int]:
        """How many rows of each table are missing for want of room, where any are; a span or a use has two events."""
        found = dict(self._lost_rows)
        for name, stream in self._log.streams.items():
            for table in _TABLES_OF_STREAM[name] if stream.lost else ():
                found[table] = found.get(table, 0) + stream.lost
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know: rows lost and why, spans that never ended."""
        found = [
            *self._notes,
            *(
                f"recording: {count} rows or events of {table} found no room and are lost"
                for table, count in self.lost.items()
            ),
        ]
        if self._spill is not None and self._spill.failure:
            found.append(f"recording: nothing more could be written to disk ({self._spill.failure})")
        if open_spans := self._tables().open_spans:
            found.append(f"recording: {open_spans} spans had not ended when the recording did; they end with it")
        return tuple(found)

    @property
    def rows(self) -> Mapping[str, list[Any]]:
        """Rows of each table as objects, in order of time: for tests and small recordings."""
        return {name: [row(**values) for values in self.table(name).to_pylist()] for name, row in TABLES.items()}

    def count(self, table: str) -> int:
        return super().count(table) + sum(len(part) for part in self._slices(table))

    def table(self, name: str) -> pa.Table:
        parts = [part.cast(arrow_schema(name)) for part in self._slices(name)]
        return self._merge(name, parts) if parts else super().table(name)

    def batches(self, name: str) -> Iterator[pa.Table]:
        if self._added[name]:
            yield self.table(name)
        else:
            yield from self._slices(name)

    def _merge(self, name: str, parts: list[pa.Table]) -> pa.Table:
        if not self._added[name]:
            return pa.concat_tables(parts)
        return self.in_order(pa.concat_tables([super().table(name), *parts]))

    def _slices(self, name: str) -> Iterator[pa.Table]:
        return self._tables().slices(name) if name in _TABLES_OF_LOG else iter(())

    def _tables(self) -> Assembled:
        if self._assembled is None:
            self._log.drain()
            values = {table: list(known.values) for table, known in names.TABLES.items()}
            streams = self._log.streams
            if self.on:  # there will be more
                return assemble(streams, values, self.clock(), self.process)
            once = {name: Forgetting(stream) for name, stream in streams.items()}
            self._assembled = assemble(once, values, self.clock(), self.process)
        return self._assembled

    def write(self, place: Path | str, info: RunInfo | None = None) -> Run:
        """Stop, and store what was recorded as a run at `place`.

        Parameters
        ----------
        place : path
            A directory to make; where it exists already, a number is appended.
        info : RunInfo, optional
            What ran and how it ended; a live run with the place's name as its title if not given.
        """
        self.stop()
        place = Path(place)
        info = info or RunInfo(origin="live", title=place.name)
        run = write_run(place, info, self, attachments=self.attachments)
        if self._spill is not None:
            self._spill.close()
            shutil.rmtree(self._spill.folder)
        return run


_ON: "weakref.WeakSet[Recording]" = weakref.WeakSet()


def _after_fork() -> None:
    for recording in list(_ON):
        recording.abandon()
    _ON.clear()


os.register_at_fork(after_in_child=_after_fork)

DEFAULT = Recording(process=os.getpid())
"""What the recorders write to unless they are given another recording. It is off until started."""


def record(spill: Path | str | None = None, max_bytes: int = 1 << 30) -> Recording:
    """Start the process-wide recording afresh, to which all recorders write that name no other.

    Returns
    -------
    Recording
        End it with `write`, or with `stop`; a context manager as well.

    Raises
    ------
    RuntimeError
        It is being recorded already.
    """
    return DEFAULT.reset(spill=spill, max_bytes=max_bytes).start()

"""Events as flat integers: a list of each thread's own, drained into columns in the background.

Recording an event is one call of `list.extend` with a time and a code. It takes no lock and leaves no object behind
that the garbage collector would have to visit. A thread of the log moves what has gathered into columns a few times a
second, or to disk, where every batch is complete once it is written. What does not fit is counted.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from cuzklab.trace.recorders.names import THIS_THREAD
from cuzklab.trace.recorders.spill import Spill

DRAIN_INTERVAL_S = 0.1
_TAKEN_AT_ONCE = 1 << 17  # integers; a list's front is cut off in pieces of this size
_CONVERTED_AT_ONCE = 1 << 13  # integers; the interpreter lock is not given up within a piece
_CHUNK_ROWS = 1 << 18

Columns = dict[str, np.ndarray]

# What a thread's event says, in the lowest bits of its code; the rest is the number of the span, lock or owner.
OP_BITS = 4
BEGIN, END, REQUESTED, ACQUIRED, RELEASED, GIVEN_UP, WAIT_BEGUN, WAIT_ENDED, HOLDER, OWNER = range(10)
NOBODY = -1

# Columns of each stream. Of `events`, a thread's list holds time and code only. The event after a request says who had
# the lock: its code is HOLDER, and its time the number of that thread.
STREAMS: Mapping[str, Mapping[str, type]] = {
    "events": {"time": np.int64, "code": np.int32, "thread": np.int32},
    "vram": {
        "time": np.int64, "thread": np.int32, "op": np.int32, "buffer": np.int32, "bytes": np.int64,
        "device": np.int32, "live": np.int64, "limit": np.int64, "owner": np.int32, "stack": np.int32,
    },
}  # fmt: skip


class Sink:
    """Where one thread puts its events.

    Attributes
    ----------
    number : int
        The thread's.
    events : list of int, or None
        Time and code of each event that has not been drained; None while nothing is recorded.
    owner : int
        For whom the thread works: the number of an `Owner`, or `NOBODY`.
    """

    __slots__ = ("_thread", "events", "number", "owner")

    def __init__(self, on: bool) -> None:
        self.number = THIS_THREAD.number
        self.events: list[int] | None = [] if on else None
        self.owner = NOBODY
        self._thread = threading.current_thread()

    @property
    def ended(self) -> bool:
        """Whether its thread has ended."""
        return not self._thread.is_alive()


class Stream:
    """Columns of one kind of event.

    Attributes
    ----------
    lost : int
        Events that found no room.
    """

    def __init__(self, name: str, max_bytes: int, spill: Spill | None) -> None:
        self.name = name
        self.lost = 0
        self._fields = STREAMS[name]
        self._row_bytes = sum(np.dtype(kind).itemsize for kind in self._fields.values())
        self._max_bytes = max_bytes
        self._spill = spill
        self._chunks: list[Columns] = []
        self._filled = 0  # rows of the last chunk
        self._rows = 0

    def take(self, events: list[int], **same: int) -> None:
        """Move all that a list holds into columns; `same` are columns that have one value in all these rows."""
        width = len(self._fields) - len(same)
        while events:
            # Threads may append meanwhile; what is read and cut off is the front that was there before.
            size = min(len(events), _TAKEN_AT_ONCE // width * width)
            rows = _integers(events, size).reshape(-1, width)
            del events[:size]
            self._keep([*rows.T, *(np.full(len(rows), value) for value in same.values())])

    def _keep(self, columns: list[np.ndarray]) -> None:
        if self._spill is not None:
            typed = {name: column.astype(kind) for (name, kind), column in zip(self._fields.items(), columns)}
            if self._spill.write(self.name, typed):
                return
        count, done = len(columns[0]), 0
        room = max(0, self._max_bytes // self._row_bytes - self._rows)
        self.lost += max(0, count - room)
        count = min(count, room)
        while done < count:
            if not self._chunks or self._filled == _CHUNK_ROWS:
                self._chunks.append({name: np.empty(_CHUNK_ROWS, kind) for name, kind in self._fields.items()})
                self._filled = 0
            size = min(count - done, _CHUNK_ROWS - self._filled)
            for place, column in zip(self._chunks[-1].values(), columns):
                place[self._filled : self._filled + size] = column[done : done + size]
            self._filled += size
            self._rows += size
            done += size

    def chunks(self, forget: bool = False) -> Iterator[Columns]:
        """Everything recorded, a piece at a time; the events of each thread are in order.

        With `forget` each piece in memory is given up once it has been taken.
        """
        if self._spill is not None:
            yield from self._spill.read(self.name)
        for number in range(len(self._chunks)):
            rows = self._filled if number == len(self._chunks) - 1 else _CHUNK_ROWS
            yield {name: column[:rows] for name, column in self._chunks[number].items()}
            if forget:
                self._chunks[number] = {}


@dataclass
class Forgetting:
    """The chunks of a stream, once."""

    stream: Stream

    def chunks(self) -> Iterator[Columns]:
        return self.stream.chunks(forget=True)


def _integers(values: list[int], size: int) -> np.ndarray:
    """The first values of a list."""
    found = np.empty(size, np.int64)
    rest = iter(values)
    for start in range(0, size, _CONVERTED_AT_ONCE):
        count = min(_CONVERTED_AT_ONCE, size - start)
        found[start : start + count] = np.fromiter(islice(rest, count), np.int64, count)
    return found


class Log:
    """What a recording has gathered, and the thread that drains it.

    Parameters
    ----------
    sinks : list of Sink
        One of each thread that has recorded something; others add to it.
    max_bytes : int
        Memory for the columns of each stream.
    spill : Spill or None
        Where batches go instead.

    Attributes
    ----------
    vram_events : list of int
        Rows of the stream `vram`, from all threads.
    """

    def __init__(self, sinks: list[Sink], max_bytes: int, spill: Spill | None) -> None:
        self.streams = {name: Stream(name, max_bytes, spill) for name in STREAMS}
        self._sinks = sinks
        self.vram_events: list[int] = []
        self._spill = spill
        self._draining = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, now: int) -> None:
        """Switch every sink on, and drain in the background until `stop`."""
        for sink in list(self._sinks):
            sink.events = [] if sink.owner == NOBODY else [now, sink.owner << OP_BITS | OWNER]
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="cuzklab recorder", daemon=True)
            self._thread.start()

    def drain(self) -> None:
        """Move everything that has gathered into columns or to disk."""
        with self._draining:
            for sink in list(self._sinks):
                ended = sink.ended  # asked first: what an ended thread has recorded is all there
                if sink.events:
                    self.streams["events"].take(sink.events, thread=sink.number)
                if ended:
                    self._sinks.remove(sink)
            self._take_the_rest()

    def stop(self) -> None:
        """Switch every sink off, drain for the last time and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop.set()
            thread.join()
        with self._draining:
            for sink in list(self._sinks):
                events, sink.events = sink.events, None
                self.streams["events"].take(events or [], thread=sink.number)
            self._take_the_rest()

    def _take_the_rest(self) -> None:
        self.streams["vram"].take(self.vram_events)
        if self._spill is not None:
            self._spill.flush()

    def _run(self) -> None:
        while not self._stop.wait(DRAIN_INTERVAL_S):
            self.drain()

"""Events as flat integers: a list that any thread may extend, drained into columns in the background.

Recording an event is one call of `list.extend` with a tuple of small width. It is atomic in CPython, takes no lock, and
leaves no object behind that the garbage collector would have to visit. A thread of the log moves what has gathered into
columns a few times a second, or to disk, where every batch is complete once it is written. What does not fit is counted.
"""

import threading
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from cuzklab.trace.recorders.spill import Spill

DRAIN_INTERVAL_S = 0.2
_TAKEN_AT_ONCE = 1 << 18  # integers; a list's front is cut off in pieces of this size
_CONVERTED_AT_ONCE = 1 << 13  # integers; the interpreter lock is not given up within a piece
_CHUNK_ROWS = 1 << 18

Columns = dict[str, np.ndarray]

# What an event of each stream is, in the order of its integers.
STREAMS: Mapping[str, Mapping[str, type]] = {
    "spans": {"time": np.int64, "thread": np.int32, "code": np.int32},
    "owners": {"time": np.int64, "thread": np.int32, "owner": np.int32},
    "locks": {"time": np.int64, "thread": np.int32, "code": np.int32, "value": np.int32},
    "vram": {
        "time": np.int64, "thread": np.int32, "op": np.int32, "buffer": np.int32, "bytes": np.int64,
        "device": np.int32, "live": np.int64, "limit": np.int64, "owner": np.int32, "stack": np.int32,
    },
}  # fmt: skip


class Stream:
    """Events of one kind.

    Attributes
    ----------
    events : list of int
        What has not been drained yet, one event after the other.
    lost : int
        Events that found no room.
    """

    def __init__(self, name: str, max_bytes: int, spill: Spill | None) -> None:
        self.name = name
        self.events: list[int] = []
        self.lost = 0
        self.fields = STREAMS[name]
        self._row_bytes = sum(np.dtype(kind).itemsize for kind in self.fields.values())
        self._max_bytes = max_bytes
        self._spill = spill
        self._chunks: list[Columns] = []
        self._filled = 0  # rows of the last chunk
        self._rows = 0

    def drain(self) -> None:
        """Move what has gathered into columns; one thread at a time."""
        width = len(self.fields)
        while self.events:
            size = min(len(self.events), _TAKEN_AT_ONCE // width * width)
            taken = self.events[:size]
            del self.events[:size]
            self._keep(_integers(taken).reshape(-1, width))

    def _keep(self, rows: np.ndarray) -> None:
        if self._spill is not None and self._spill.write(self.name, self._columns(rows)):
            return
        room = max(0, self._max_bytes // self._row_bytes - self._rows)
        self.lost += max(0, len(rows) - room)
        rows = rows[:room]
        while len(rows):
            if not self._chunks or self._filled == _CHUNK_ROWS:
                self._chunks.append({name: np.empty(_CHUNK_ROWS, kind) for name, kind in self.fields.items()})
                self._filled = 0
            count = min(len(rows), _CHUNK_ROWS - self._filled)
            for number, column in enumerate(self._chunks[-1].values()):
                column[self._filled : self._filled + count] = rows[:count, number]
            self._filled += count
            self._rows += count
            rows = rows[count:]

    def _columns(self, rows: np.ndarray) -> Columns:
        return {name: rows[:, number].astype(kind) for number, (name, kind) in enumerate(self.fields.items())}

    def chunks(self) -> Iterator[Columns]:
        """Everything recorded, in order, a piece at a time."""
        if self._spill is not None:
            yield from self._spill.read(self.name)
        for number, chunk in enumerate(self._chunks):
            rows = self._filled if number == len(self._chunks) - 1 else _CHUNK_ROWS
            yield {name: column[:rows] for name, column in chunk.items()}

    def whole(self) -> Columns:
        """Everything recorded as one piece."""
        pieces = list(self.chunks())
        return {
            name: np.concatenate([piece[name] for piece in pieces]) if pieces else np.empty(0, kind)
            for name, kind in self.fields.items()
        }


def _integers(values: list[int]) -> np.ndarray:
    found = np.empty(len(values), np.int64)
    rest = iter(values)
    for start in range(0, len(values), _CONVERTED_AT_ONCE):
        count = min(_CONVERTED_AT_ONCE, len(values) - start)
        found[start : start + count] = np.fromiter(islice(rest, count), np.int64, count)
    return found


class Log:
    """The streams of a recording and the thread that drains them.

    Parameters
    ----------
    max_bytes : int
        Memory for the columns of each stream.
    spill : Spill or None
        Where batches go instead.
    """

    def __init__(self, max_bytes: int, spill: Spill | None) -> None:
        self.streams = {name: Stream(name, max_bytes, spill) for name in STREAMS}
        self.fault: BaseException | None = None
        self._spill = spill
        self._draining = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Drain in the background until `stop`."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="cuzklab recorder", daemon=True)
            self._thread.start()

    def drain(self) -> None:
        """Move everything that has gathered into columns or to disk."""
        with self._draining:
            for stream in self.streams.values():
                stream.drain()
            if self._spill is not None:
                self._spill.flush()

    def stop(self) -> None:
        """Drain for the last time and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop.set()
            thread.join()
        self.drain()

    def _run(self) -> None:
        while not self._stop.wait(DRAIN_INTERVAL_S):
            self.drain()

"""A recording on its way to disk: one Arrow stream a kind of event, and the names that the numbers stand for.

Every batch is complete once it is written, and the names that it mentions stand before it; so whatever ends the
program, what had been drained can be read back (`recover`).
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cuzklab.trace.recorders import names

NAMES_FILE, HEADER_FILE = "names.jsonl", "recording.json"
_MAX_LINE_BYTES = 1 << 20


class Spill:
    """The folder that a recording is written to as it goes.

    Attributes
    ----------
    failure : str
        Why nothing more is written (a full disk); empty while all is well. The recording then goes on in memory.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.failure = ""
        self._writers: dict[str, tuple[Any, Any]] = {}
        self._named = dict.fromkeys(names.TABLES, 0)
        (folder / HEADER_FILE).write_text(json.dumps(header) + "\n")
        self._names = (folder / NAMES_FILE).open("w", encoding="utf-8")

    def write(self, stream: str, columns: Mapping[str, np.ndarray]) -> bool:
        """Append a batch; False where that failed, now or before."""
        import pyarrow as pa

        if self.failure:
            return False
        try:
            self._write_names()
            batch = pa.RecordBatch.from_arrays([pa.array(column) for column in columns.values()], list(columns))
            if stream not in self._writers:
                sink = (self.folder / f"{stream}.arrows").open("wb")
                self._writers[stream] = sink, pa.ipc.new_stream(sink, batch.schema)
            self._writers[stream][1].write_batch(batch)
        except OSError as error:
            self._failed(error)
            return False
        return True

    def _write_names(self) -> None:
        for table, values in names.TABLES.items():
            count = len(values.values)
            for number in range(self._named[table], count):
                self._names.write(json.dumps([table, number, values.values[number]]) + "\n")
            self._named[table] = count
        self._names.flush()

    def flush(self) -> None:
        """Hand what is written to the system, so that the end of this process does not lose it."""
        self._each_sink(lambda sink, _: sink.flush())

    def close(self) -> None:
        """Write no more."""
        self._each_sink(lambda sink, writer: (writer.close(), sink.close()))
        self._writers.clear()
        try:
            self._names.close()
        except OSError as error:
            self._failed(error)

    def _each_sink(self, act: Callable[[Any, Any], object]) -> None:
        for sink, writer in self._writers.values():
            try:
                act(sink, writer)
            except OSError as error:
                self._failed(error)

    def _failed(self, error: OSError) -> None:
        self.failure = self.failure or f"{self.folder}: {error.strerror or error}"

    def read(self, stream: str) -> Iterator[dict[str, np.ndarray]]:
        """The complete batches of a stream, in order."""
        self.flush()
        yield from read_batches(self.folder / f"{stream}.arrows")


def read_batches(file: Path) -> Iterator[dict[str, np.ndarray]]:
    """The complete batches of a file, up to where a crash tore it."""
    import pyarrow as pa

    if not file.exists() or not file.stat().st_size:
        return
    with pa.memory_map(os.fspath(file)) as source:
        try:
            reader = pa.ipc.open_stream(source)
            for batch in reader:
                yield {name: batch.column(name).to_numpy() for name in batch.schema.names}
        except (pa.ArrowInvalid, OSError):
            return


def read_names(folder: Path) -> dict[str, list[Any]]:
    """The names of a folder by table; a torn last line is left out."""
    found: dict[str, list[Any]] = {table: [] for table in names.TABLES}
    with (folder / NAMES_FILE).open(encoding="utf-8", errors="replace") as file:
        while line := file.readline(_MAX_LINE_BYTES):
            try:
                table, number, value = json.loads(line)
                values = found[table]
            except (ValueError, TypeError, KeyError):
                break
            if number != len(values):
                break
            values.append(tuple(value) if isinstance(value, list) else value)
    return found

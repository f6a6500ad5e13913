"""Who is who: processes and threads by number and by name.

A global thread number holds the thread in its lowest 24 bits, the process in the next 24, host and machine above. Two
processes of one capture may use the same correlation numbers, so everything is keyed by process.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cuzklab.ingest.nsys.export import MISSING, Export
from cuzklab.ingest.nsys.names import Names, coded
from cuzklab.ingest.privacy import Texts

_BITS = 24
_MASK = (1 << _BITS) - 1


def process_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The key of the process of each global thread or process number: process, machine and host; −1 where unknown."""
    return np.where(numbers == MISSING, -1, numbers >> _BITS)


def pid_of(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The process number of each process key; 0 where unknown."""
    return np.where(keys < 0, 0, keys & _MASK)


class Threads:
    """Names of threads: ``python3 18490``, the name that the program or the system gave it and its number."""

    def __init__(self, export: Export, names: Names, texts: Texts) -> None:
        self.processes = {
            number >> _BITS: texts(name)
            for number, name in export.texts("PROCESSES", "globalPid", "name")
            if isinstance(number, int) and name
        }
        best: dict[int, tuple[int, str]] = {}
        read = export.integers("ThreadNames", "globalTid", "nameId", "priority")
        for thread, name, priority in zip(*(column.tolist() for column in read.values()), strict=True):
            # Of several names the one of the smallest number counts: what a program calls its thread comes before
            # what the system calls it.
            if thread not in best or priority < best[thread][0]:
                best[thread] = (priority, names.one(name))
        self._names = {thread: name for thread, (_, name) in best.items()}
        self._labels: dict[int, str] = {}
        self._taken: set[str] = set()

    def label(self, thread: int) -> str:
        """A thread's name for people, unique within the capture; empty for none."""
        if thread == MISSING:
            return ""
        if thread not in self._labels:
            name = self._names.get(thread) or self.processes.get(thread >> _BITS) or "thread"
            # Before a slash stands the worker that a thread works for; a path is none.
            short = name.rstrip("/").rpartition("/")[2].strip() or "thread"
            label = f"{short} {thread & _MASK}"
            if label in self._taken:  # the same numbers on another machine
                label = f"{label} of {thread >> _BITS}"
            self._taken.add(label)
            self._labels[thread] = label
        return self._labels[thread]

    def column(self, threads: NDArray[np.int64]) -> pa.DictionaryArray:
        """Names of many threads."""
        found, codes = np.unique(threads, return_inverse=True)
        return coded(codes, [self.label(thread) for thread in found.tolist()])

    def named(self, labels: Iterable[str]) -> dict[str, str]:
        """Processes whose threads are among some, by number."""
        wanted = set(labels)
        keys = {thread >> _BITS for thread, label in self._labels.items() if label in wanted}
        return {str(key & _MASK): self.processes.get(key, "").rpartition("/")[2] for key in sorted(keys)}

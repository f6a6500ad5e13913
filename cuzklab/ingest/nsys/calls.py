"""Calls that threads make: into CUDA, and into libc where it waits; and the waits that they are."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cuzklab.ingest.nsys.columns import keep, merged, possible
from cuzklab.ingest.nsys.export import MISSING, Export
from cuzklab.ingest.nsys.names import Names, coded
from cuzklab.ingest.nsys.threads import Threads, pid_of, process_of
from cuzklab.trace.columns import table

_CORRELATION_BITS = 40
_APIS = ("runtime", "driver")
# Nsight Systems' event classes of calls into the CUDA driver and into libc; they have never changed.
_DRIVER_CLASS, _LIBC_CLASS = 1, 27
# "cudaLaunchKernel_v7000": the version of the interface says nothing about the call.
_VERSION = re.compile(r"_v\d{4,6}$")

# Calls in which a host thread waits for the device, whatever version made them.
_DEVICE_WAITS = (
    (re.compile(r"^(cudaDeviceSynchronize|cudaThreadSynchronize|cuCtxSynchronize)"), "device_sync"),
    (re.compile(r"^(cudaStreamSynchronize|cuStreamSynchronize|cudaEventSynchronize|cuEventSynchronize)"), "event"),
)
# Calls of libc in which a thread waits for another one. A semaphore, a condition or a futex may stand for a lock, a
# queue or a join: the call does not tell.
_LIBC_WAITS = (
    (re.compile(r"^pthread_(mutex|rwlock|spin)_\w*lock$|^pthread_\w+_(timed|clock)\w*lock$"), "lock"),
    (re.compile(r"^(pthread_join|pthread_timedjoin_np|pthread_clockjoin_np|thrd_join)$"), "join"),
    (re.compile(r"^pthread_barrier_wait$"), "barrier"),
    (re.compile(r"^sem_(timed|clock)?wait$"), "semaphore"),
    (re.compile(r"^(pthread_cond_\w*wait|cnd_\w*wait)$"), "condition"),
    (re.compile(r"^futex$"), "futex"),
)


@dataclass(frozen=True)
class Calls:
    """Calls in order of their starts.

    Attributes
    ----------
    start, end, thread, process, correlation, name, result, interface : ndarray of int64, shape (n,)
        `thread` is the global number, `process` its key, `name` a number of the string table.
    dropped : int
        Rows left out for impossible times.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    thread: NDArray[np.int64]
    process: NDArray[np.int64]
    correlation: NDArray[np.int64]
    name: NDArray[np.int64]
    result: NDArray[np.int64]
    interface: NDArray[np.int64]
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end_ns(self) -> int:
        """When the last call ended; 0 without any."""
        return int(self.end.max()) if len(self) else 0

    @cached_property
    def _index(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        processes = np.unique(self.process)
        keys = _joined(processes, self.process, self.correlation)
        order = np.argsort(keys, kind="stable")
        return processes, keys[order], order

    def find(self, process: NDArray[np.int64], correlation: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first call of each process and correlation number; −1 where there is none."""
        processes, keys, order = self._index
        if not len(keys):
            return np.full(len(process), -1, np.int64)
        wanted = _joined(processes, process, correlation)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where((keys[place] == wanted) & (wanted >= 0), order[place], -1)

    def threads_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The thread that made each call, `MISSING` for −1."""
        return _at(self.thread, rows)

    def starts_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """When each call began, `MISSING` for −1."""
        return _at(self.start, rows)


def _at(column: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(rows >= 0, column[np.maximum(rows, 0)], MISSING) if len(column) else np.full_like(rows, MISSING)


def _joined(
    processes: NDArray[np.int64], process: NDArray[np.int64], correlation: NDArray[np.int64]
) -> NDArray[np.int64]:
    """One key of process and correlation number; −1 where either is unknown (correlation 0 stands for none)."""
    code = np.minimum(np.searchsorted(processes, process), max(len(processes) - 1, 0))
    known = (process >= 0) & (processes[code] == process) & (correlation > 0) & (correlation < 1 << _CORRELATION_BITS)
    return np.where(known, (code << _CORRELATION_BITS) | np.where(known, correlation, 0), -1)


def read_calls(export: Export, source: str = "CUPTI_ACTIVITY_KIND_RUNTIME") -> Calls:
    """Calls of a table: those into CUDA, or those of `OSRT_API`."""
    read = export.integers(
        source, "start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue"
    )  # fmt: skip
    if source == "OSRT_API":  # it also has rows that say when its tracing began and ended
        read = keep(read, (read["eventClass"] == _LIBC_CLASS) | (read["eventClass"] == MISSING))
    rows = possible(read)
    read = keep(read, rows)
    if len(read["start"]) and not (read["start"][1:] >= read["start"][:-1]).all():
        order = np.argsort(read["start"], kind="stable")
        read = {name: column[order] for name, column in read.items()}
    return Calls(
        read["start"], read["end"], read["globalTid"], process_of(read["globalTid"]), read["correlationId"],
        read["nameId"], np.where(read["returnValue"] == MISSING, 0, read["returnValue"]), read["eventClass"],
        int((~rows).sum()),
    )  # fmt: skip


def api_table(cuda: Calls, libc: Calls, overhead: Sequence[Calls], names: Names, threads: Threads) -> pa.Table:
    """All calls as rows of `api_calls`, with the profiler's own work among them."""
    parts = [
        _table(cuda, names, threads, coded((cuda.interface == _DRIVER_CLASS).astype(np.int64), _APIS)),
        _table(libc, names, threads, "os"),
        *(_table(one, names, threads, "profiler") for one in overhead),
    ]
    return merged("api_calls", parts)


def _table(calls: Calls, names: Names, threads: Threads, api: pa.Array | str) -> pa.Table:
    found, codes = np.unique(calls.name, return_inverse=True)
    words = [plain_name(names.one(number)) or "(no name)" for number in found.tolist()]
    return table(
        "api_calls", len(calls), start=calls.start, end=calls.end, name=coded(codes, words), api=api,
        process=pid_of(calls.process), thread=threads.column(calls.thread),
        correlation=np.where(calls.correlation == MISSING, -1, calls.correlation), result=calls.result,
    )  # fmt: skip


def plain_name(name: str) -> str:
    """A call's name without the version of its interface."""
    return _VERSION.sub("", name)


def waits(cuda: Calls, libc: Calls, names: Names, threads: Threads) -> pa.Table:
    """Calls that are waits: for the device, and in libc for another thread."""
    parts = [_waits(cuda, _DEVICE_WAITS, names, threads), _waits(libc, _LIBC_WAITS, names, threads)]
    columns = {
        name: [value for part in parts for value in part[name]] for name in ("start", "end", "kind", "on", "worker")
    }
    rows = len(columns["start"])
    times = {name: np.array(columns.pop(name), np.int64) for name in ("start", "end")}
    return table("waits", rows, **times, **{name: pa.array(values, pa.string()) for name, values in columns.items()})


def _waits(calls: Calls, kinds: tuple[tuple[re.Pattern[str], str], ...], names: Names, threads: Threads) -> Mapping:
    words = {number: plain_name(names.one(number)) for number in np.unique(calls.name).tolist()}
    kind = {
        number: word for number, name in words.items() for pattern, word in kinds[::-1] if pattern.search(name)
    }  # fmt: skip
    chosen = np.isin(calls.name, np.fromiter(kind, np.int64, len(kind)))
    numbers = calls.name[chosen].tolist()
    return {
        "start": calls.start[chosen].tolist(),
        "end": calls.end[chosen].tolist(),
        "kind": [kind[number] for number in numbers],
        "on": [words[number] for number in numbers],
        "worker": [threads.label(thread) for thread in calls.thread[chosen].tolist()],
    }

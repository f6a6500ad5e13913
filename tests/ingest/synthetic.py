"""Exports made here: small ones whose truth is known, and large ones.

    python -m tests.ingest.synthetic FILE [KERNELS]

writes an export of KERNELS kernels (a million) and twice as many API calls.
"""

import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# Tables as Nsight Systems 2025.3 writes them, of which the importer reads these columns.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "StringIds": ("id", "value"),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName", "shortName",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes", "copyKind",
        "srcKind", "dstKind",
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes",
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue",
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphId", "graphExecId",
    ),
    "OSRT_API": ("start", "end", "eventClass", "globalTid", "nameId", "returnValue"),
    "NVTX_EVENTS": (
        "start", "end", "eventType", "rangeId", "category", "text", "globalTid", "endGlobalTid", "textId", "domainId",
        "uint64Value", "int64Value",
    ),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        "start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType", "name",
        "correlationId", "localMemoryPoolSize", "localMemoryPoolUtilizedSize",
    ),
    "META_DATA_EXPORT": ("name", "value"),
    "META_DATA_CAPTURE": ("name", "value"),
    "TARGET_INFO_SYSTEM_ENV": ("name", "value"),
    "DIAGNOSTIC_EVENT": ("timestamp", "text"),
    "PROCESSES": ("globalPid", "pid", "name"),
    "ProcessStreams": ("globalPid", "filenameId", "contentId"),
    "ThreadNames": ("nameId", "priority", "globalTid"),
    "TARGET_INFO_GPU": ("id", "name", "totalMemory"),
    "ANALYSIS_DETAILS": ("duration", "startTime", "stopTime"),
}  # fmt: skip
_VM = 1 << 48
PUSH_POP, START_END, MARK, CATEGORY, DOMAIN = 59, 60, 34, 33, 75


def pid(number: int) -> int:
    """A global process number."""
    return _VM | number << 24


def tid(process: int, thread: int) -> int:
    """A global thread number."""
    return pid(process) | thread


def write(path: Path, tables: Mapping[str, Iterable[Sequence[Any]]], columns: Mapping[str, Sequence[str]] = {}) -> Path:
    """Write a SQLite export with some tables; rows have the columns of `columns`, else of `COLUMNS`."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    for name, rows in tables.items():
        known = columns.get(name) or COLUMNS[name]
        typed = ", ".join(
            f'"{column}" {"TEXT" if column in ("value", "text", "name") else "INTEGER"}' for column in known
        )
        connection.execute(f'CREATE TABLE "{name}" ({typed})')
        connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(known))})', rows)
    connection.commit()
    connection.close()
    return path


def ranges(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Rows of `NVTX_EVENTS` from those of their columns that matter."""
    for row in rows:
        filled = {"eventType": PUSH_POP, "domainId": 0, **row}
        yield tuple(filled.get(column) for column in COLUMNS["NVTX_EVENTS"])


def large(path: Path, kernels: int = 1_000_000, threads: int = 4) -> Path:
    """Two processes of two threads each; a launch and a query for every kernel, a range for every ten."""
    names = {1: "cudaLaunchKernel_v7000", 2: "cudaEventQuery_v3020"}
    names |= {10 + number: f"void msm::bucket_sum<Curve{number}, {number}>(uint64_t const*, Point*, int)" for number in
              range(40)}  # fmt: skip
    names |= {100 + number: f"stage {number}" for number in range(20)}

    def who(number: int) -> tuple[int, int, int]:
        thread = number % threads
        return 100 + thread % 2, 1000 + thread, number // threads + 1

    def launches() -> Iterator[tuple[Any, ...]]:
        for number in range(kernels):
            process, thread, correlation = who(number)
            at = 2_000 * number
            yield at, at + 1_500, 0, tid(process, thread), 4 * correlation + thread // 2 % 2, 1, 0
            yield at + 1_600, at + 1_900, 0, tid(process, thread), 4 * correlation + 2 + thread // 2 % 2, 2, 0

    def work() -> Iterator[tuple[Any, ...]]:
        for number in range(kernels):
            process, thread, correlation = who(number)
            at = 2_000 * number + 5_000
            code = 4 * correlation + thread // 2 % 2
            yield at, at + 1_800, process % 2, 1, 7 + thread, code, pid(process), 10 + number % 40, 10 + number % 40

    def stages() -> Iterator[dict[str, Any]]:
        for number in range(0, kernels, 10 * threads):
            for place in range(threads):
                process, thread, _ = who(number + place)
                at = 2_000 * number
                yield {"start": at, "end": at + 20_000 * threads - 100, "globalTid": tid(process, thread),
                       "textId": 100 + number // 10 % 20}  # fmt: skip

    return write(
        path,
        {
            "StringIds": names.items(),
            "META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", "3.20.3"), ("EXPORT_PRODUCT_VERSION", "2025.3.1")],
            "PROCESSES": [(pid(process), process, "prover") for process in (100, 101)],
            "TARGET_INFO_GPU": [(number, "Synthetic", 16 << 30) for number in (0, 1)],
            "CUPTI_ACTIVITY_KIND_RUNTIME": launches(),
            "CUPTI_ACTIVITY_KIND_KERNEL": work(),
            "NVTX_EVENTS": ranges(stages()),
        },
    )


if __name__ == "__main__":
    print(large(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000))

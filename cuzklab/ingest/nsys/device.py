"""What ran on the devices: kernels, whole CUDA graphs, copies and fills, each with the API call that asked for it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cuzklab.ingest.nsys.calls import Calls
from cuzklab.ingest.nsys.columns import keep, merged, possible
from cuzklab.ingest.nsys.export import MISSING, Export
from cuzklab.ingest.nsys.names import Names, coded, enumeration
from cuzklab.ingest.nsys.ranges import Ranges
from cuzklab.ingest.nsys.threads import Threads, pid_of, process_of
from cuzklab.ingest.privacy import Texts
from cuzklab.trace.columns import table

_COPY_KINDS = {
    0: "UNKNOWN", 1: "HTOD", 2: "DTOH", 3: "HTOA", 4: "ATOH", 5: "ATOA", 6: "ATOD", 7: "DTOA", 8: "DTOD", 9: "HTOH",
    10: "PTOP", 11: "UVM_HTOD", 12: "UVM_DTOH", 13: "UVM_DTOD",
}  # fmt: skip
_DIRECTIONS = {
    "HTOD": "h2d", "HTOA": "h2d", "UVM_HTOD": "h2d", "DTOH": "d2h", "ATOH": "d2h", "UVM_DTOH": "d2h", "DTOD": "d2d",
    "ATOA": "d2d", "ATOD": "d2d", "DTOA": "d2d", "UVM_DTOD": "d2d", "HTOH": "h2h", "PTOP": "p2p",
}  # fmt: skip
_PINNED = 1  # of the kinds of memory
_FILL = "set"


@dataclass(frozen=True)
class Work:
    """Operations of a device with what is known of their launches.

    Attributes
    ----------
    events : mapping
        Columns of the export, impossible rows left out.
    call : ndarray of int64
        Row of the API call in `Calls`; −1 where there is none.
    dropped : int
    """

    events: Mapping[str, NDArray[np.int64]]
    process: NDArray[np.int64]
    call: NDArray[np.int64]
    dropped: int

    def __len__(self) -> int:
        return len(self.process)


def _work(export: Export, source: str, calls: Calls, *columns: str) -> Work:
    read = export.integers(
        source, "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", *columns
    )
    rows = possible(read)
    read = keep(read, rows)
    process = process_of(read["globalPid"])
    # The oldest exports do not say whose kernel it is; with one process there is no doubt.
    known = np.unique(calls.process[calls.process >= 0])
    if len(known) == 1:
        process = np.where(process < 0, known[0], process)
    return Work(read, process, calls.find(process, read["correlationId"]), int((~rows).sum()))


def _common(work: Work, calls: Calls, ranges: Ranges, threads: Threads, streams: "Streams") -> dict[str, object]:
    """Columns that kernels and copies share."""
    events, call = work.events, work.call
    thread, asked = calls.threads_of(call), calls.starts_of(call)
    inside = ranges.innermost(thread, asked)
    return {
        "start": events["start"],
        "end": events["end"],
        "stream": streams.column(work),
        "device": np.where(events["deviceId"] == MISSING, 0, events["deviceId"]),
        "worker": threads.column(thread),
        "partition": ranges.words(ranges.partition, inside),
        "process": pid_of(work.process),
        "correlation": np.where(events["correlationId"] == MISSING, -1, events["correlationId"]),
        "asked": asked,
        "inside": inside,
    }


class Streams:
    """Names of streams: their number, with their context where a device has several, and the null stream marked."""

    def __init__(self, export: Export) -> None:
        nulls = [
            export.integers(source, number, "contextId", "processId")
            for source, number in (
                ("TARGET_INFO_CUDA_CONTEXT_INFO", "nullStreamId"), ("TARGET_INFO_CUDA_NULL_STREAM", "streamId"),
            )
        ]  # fmt: skip
        self._null = {row for one in nulls for row in zip(*(column.tolist() for column in one.values()), strict=True)}

    def column(self, work: Work) -> pa.DictionaryArray:
        events, pid = work.events, pid_of(work.process)
        rows = np.column_stack((events["streamId"], events["contextId"], pid, events["deviceId"]))
        found, codes = np.unique(rows, axis=0, return_inverse=True) if len(rows) else (rows, np.empty(0, np.int64))
        contexts: dict[int, set[tuple[int, int]]] = {}
        for _, context, process, device in found.tolist():
            contexts.setdefault(device, set()).add((process, context))
        words = []
        for stream, context, process, device in found.tolist():
            word = "" if stream == MISSING else str(stream)
            if (stream, context, process) in self._null:
                word += " (default)"
            several = contexts[device]
            if len({context for _, context in several}) > 1 and context != MISSING:
                word += f" of context {context}"
            if len({process for process, _ in several}) > 1:
                word += f" of process {process}"
            words.append(word)
        return coded(codes.reshape(-1), words)


@dataclass(frozen=True)
class Device:
    """Everything that ran on the devices, as it was read."""

    kernels: Work
    graphs: Work
    copies: Work
    fills: Work

    @property
    def every(self) -> tuple[Work, ...]:
        return self.kernels, self.graphs, self.copies, self.fills

    @property
    def dropped(self) -> int:
        """Rows that were left out for impossible times."""
        return sum(one.dropped for one in self.every)

    @property
    def end_ns(self) -> int:
        """When the last of it ended; 0 without any."""
        return max((int(one.events["end"].max()) for one in self.every if len(one)), default=0)


def read_device(export: Export, calls: Calls) -> Device:
    """Kernels, graphs, copies and fills of an export."""
    return Device(
        _work(export, "CUPTI_ACTIVITY_KIND_KERNEL", calls, "demangledName", "shortName", "mangledName"),
        _work(export, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", calls, "graphId"),
        _work(export, "CUPTI_ACTIVITY_KIND_MEMCPY", calls, "bytes", "copyKind", "srcKind", "dstKind"),
        _work(export, "CUPTI_ACTIVITY_KIND_MEMSET", calls, "bytes"),
    )


def kernel_table(
    device: Device, calls: Calls, ranges: Ranges, names: Names, threads: Threads, streams: Streams
) -> pa.Table:
    """Kernels, and graphs that were traced as a whole, as rows of `kernels`."""
    events = device.kernels.events
    number = events["demangledName"]
    for other in ("shortName", "mangledName"):
        number = np.where(number == MISSING, events[other], number)
    found, codes = np.unique(device.graphs.events["graphId"], return_inverse=True)
    words = [f"CUDA graph {number}" if number != MISSING else "CUDA graph" for number in found.tolist()]
    parts = []
    for work, name in (
        (device.kernels, names.column(number, "(kernel without a name)")),
        (device.graphs, coded(codes, words)),
    ):
        columns = _common(work, calls, ranges, threads, streams)
        span = ranges.words(ranges.name, columns.pop("inside"))
        parts.append(table("kernels", len(work), name=name, launch=columns.pop("asked"), span=span, **columns))
    return merged("kernels", parts)


def transfer_table(
    export: Export, device: Device, calls: Calls, ranges: Ranges, threads: Threads, streams: Streams
) -> pa.Table:
    """Copies and fills as rows of `transfers`."""
    kinds = enumeration(export, "ENUM_CUDA_MEMCPY_OPER", _COPY_KINDS)
    events = device.copies.events
    found, codes = np.unique(events["copyKind"], return_inverse=True)
    direction = coded(codes, [_direction(kinds.get(number, "")) for number in found.tolist()])
    pinned = (events["srcKind"] == _PINNED) | (events["dstKind"] == _PINNED)
    parts = []
    for work, way, from_pinned in ((device.copies, direction, pinned), (device.fills, _FILL, False)):
        columns = _common(work, calls, ranges, threads, streams)
        columns.pop("inside")
        asked, size = columns.pop("asked"), work.events["bytes"]
        parts.append(
            table(
                "transfers", len(work), issue=np.where(asked == MISSING, work.events["start"], asked),
                bytes=np.where(size < 0, 0, size), direction=way, pinned=from_pinned, **columns,
            )
        )  # fmt: skip
    return merged("transfers", parts)


def _direction(kind: str) -> str:
    return _DIRECTIONS.get(kind.upper().removeprefix("CUDA_MEMCPY_KIND_"), "unknown")


def devices_of(export: Export, texts: Texts) -> tuple[dict[str, object], ...]:
    """The GPUs that were there: number, name, memory."""
    found = {}
    for number, name, memory in export.texts("TARGET_INFO_GPU", "id", "name", "totalMemory"):
        if isinstance(number, int) and number not in found:
            size = memory if isinstance(memory, int) and 0 < memory < 1 << 50 else 0
            found[number] = {"index": number, "name": texts(name), "vram_limit_bytes": size}
    return tuple(found[number] for number in sorted(found))

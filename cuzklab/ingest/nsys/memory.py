"""Memory events: what is allocated on which device, by whom, inside which range, under which lock."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cuzklab.ingest.nsys.calls import Calls
from cuzklab.ingest.nsys.columns import keep, possible
from cuzklab.ingest.nsys.export import MISSING, Export
from cuzklab.ingest.nsys.locks import Holders
from cuzklab.ingest.nsys.names import enumeration
from cuzklab.ingest.nsys.ranges import Ranges
from cuzklab.ingest.nsys.threads import Threads, process_of
from cuzklab.ingest.privacy import Texts
from cuzklab.trace.columns import table

_MEMORY_KINDS = {
    0: "PAGEABLE", 1: "PINNED", 2: "DEVICE", 3: "ARRAY", 4: "MANAGED", 5: "DEVICE_STATIC", 6: "MANAGED_STATIC",
    7: "UNKNOWN",
}  # fmt: skip
_OPERATIONS = {0: "ALLOCATION", 1: "DEALLOCATION"}
_ON_HOST = ("PAGEABLE", "PINNED")
_STATIC = ("DEVICE_STATIC", "MANAGED_STATIC")
_LARGEST_BYTES = 1 << 50


@dataclass(frozen=True)
class Memory:
    """Memory events as tables, and what had to be assumed.

    Attributes
    ----------
    vram, counters : pyarrow.Table
        Device memory; pinned host memory and the sizes of memory pools over time.
    events : int
    notes : tuple of str
    """

    vram: pa.Table
    counters: pa.Table
    events: int
    notes: tuple[str, ...]


def read_memory(
    export: Export, calls: Calls, ranges: Ranges, holders: Holders, threads: Threads, texts: Texts,
    limits: dict[int, int],
) -> Memory:  # fmt: skip
    """Events of `CUDA_GPU_MEMORY_USAGE_EVENTS`; `limits` has the memory of each device."""
    source = "CUDA_GPU_MEMORY_USAGE_EVENTS"
    read = export.integers(
        source, "start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType", "correlationId",
        "localMemoryPoolSize", "localMemoryPoolUtilizedSize",
    )  # fmt: skip
    symbols = [texts(name) for (name,) in export.texts(source, "name")] or [""] * len(read["start"])
    rows = np.flatnonzero(possible(read) & (read["bytes"] >= 0) & (read["bytes"] < _LARGEST_BYTES))
    rows = rows[np.argsort(read["start"][rows], kind="stable")]
    events = keep(read, np.ones(len(read["start"]), bool))
    events = {name: column[rows] for name, column in events.items()}
    process = process_of(events["globalPid"])
    call = calls.find(process, events["correlationId"])
    thread = (
        np.where(call >= 0, calls.thread[np.maximum(call, 0)], MISSING) if len(calls) else np.full_like(call, MISSING)
    )
    inside = ranges.innermost(thread, events["start"])

    kinds = enumeration(export, "ENUM_CUDA_MEM_KIND", _MEMORY_KINDS)
    operations = enumeration(export, "ENUM_CUDA_DEV_MEM_EVENT_OPER", _OPERATIONS)
    ledger = _Ledger(limits)
    for place, row in enumerate(rows.tolist()):
        kind = kinds.get(int(events["memKind"][place]), "").upper().removeprefix("CUDA_MEMOPR_MEMORY_KIND_")
        at, who, within = int(events["start"][place]), int(thread[place]), int(inside[place])
        owner = _Owner(
            threads.label(who), ranges.partition[within] if within >= 0 else "",
            holders.held_by(who, at), ranges.name[within] if within >= 0 else "",
        )  # fmt: skip
        device = max(int(events["deviceId"][place]), 0)
        freed = operations.get(int(events["memoryOperationType"][place]), "").upper().endswith("DEALLOCATION")
        key = (int(process[place]), device, int(events["address"][place]))
        symbol = symbols[row] if kind in _STATIC else ""
        ledger.add(at, freed, key, int(events["bytes"][place]), kind in _ON_HOST, symbol, owner)
        ledger.pool(at, device, int(events["localMemoryPoolSize"][place]), "size")
        ledger.pool(at, device, int(events["localMemoryPoolUtilizedSize"][place]), "used")
    return ledger.tables(len(rows), len(read["start"]) - len(rows))


@dataclass(frozen=True)
class _Owner:
    worker: str
    partition: str
    lock_held: str
    within: str


class _Ledger:
    """What is live, event by event."""

    def __init__(self, limits: dict[int, int]) -> None:
        self._limits = limits
        self._live: dict[tuple[int, int, int], tuple[int, str, bool, str, str]] = {}
        self._sums: dict[tuple[bool, int], int] = {}
        self._rows: list[tuple[object, ...]] = []
        self._counters: list[tuple[int, str, float]] = []
        self._unseen_frees = self._unknown_frees = 0

    def add(
        self, at: int, freed: bool, key: tuple[int, int, int], size: int, on_host: bool, symbol: str, owner: _Owner
    ) -> None:
        before = self._live.pop(key, None)
        if freed:
            if before is None:
                self._unknown_frees += 1
                return
            self._record(at, "free", key[1], *before, owner)
            return
        if before is not None:  # the address cannot be given out twice: its free was not captured
            self._unseen_frees += 1
            self._record(at, "free", key[1], *before, owner)
        what = "static symbol" if symbol else owner.within or "allocation"
        held = (size, f"{what} at {key[2]:#x}", on_host, owner.partition, symbol)
        self._live[key] = held
        self._record(at, "alloc", key[1], *held, owner)

    def _record(
        self, at: int, op: str, device: int, size: int, buffer: str, on_host: bool, partition: str, symbol: str,
        owner: _Owner,
    ) -> None:  # fmt: skip
        place = (on_host, device)
        self._sums[place] = live = self._sums.get(place, 0) + (size if op == "alloc" else -size)
        if on_host:
            total = sum(value for (host, _), value in self._sums.items() if host)
            self._counters.append((at, "pinned_host_bytes", float(total)))
            return
        self._rows.append(
            (
                at,
                op,
                buffer,
                size,
                device,
                live,
                self._limits.get(device, 0),
                owner.worker,
                partition,
                owner.lock_held,
                symbol,
            )
        )

    def pool(self, at: int, device: int, size: int, what: str) -> None:
        """The size of a memory pool, where an event tells it."""
        if 0 <= size < _LARGEST_BYTES:
            self._counters.append((at, f"gpu{device}_memory_pool_{what}_bytes", float(size)))

    def tables(self, events: int, dropped: int) -> Memory:
        columns = list(zip(*self._rows, strict=True)) or [()] * 11
        texts = {name: pa.array(columns[place], pa.string()) for place, name in
                 ((1, "op"), (2, "buffer"), (7, "worker"), (8, "partition"), (9, "lock_held"),
                  (10, "stack"))}  # fmt: skip
        numbers = {name: np.array(columns[place], np.int64) for place, name in
                   ((0, "time"), (3, "bytes"), (4, "device"), (5, "live"), (6, "limit"))}  # fmt: skip
        times, names, values = zip(*self._counters, strict=True) if self._counters else ((), (), ())
        notes = [
            (self._unseen_frees, "allocations at an address that was still live: its free was not captured, and is"
             " taken to have happened then"),
            (self._unknown_frees, "frees of memory that was allocated before the capture began: left out"),
            (dropped, "memory events with an impossible time or size: left out"),
        ]  # fmt: skip
        return Memory(
            table("vram", len(self._rows), **numbers, **texts),
            table("counters", len(times), time=np.array(times, np.int64), name=pa.array(names, pa.string()),
                  value=pa.array(values, pa.float64())),
            events, tuple(f"{count:,} {words}." for count, words in notes if count),
        )  # fmt: skip

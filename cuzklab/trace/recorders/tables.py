"""The recorded events as tables of the trace's schema, a slice at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from cuzklab.trace import columns
from cuzklab.trace.recorders.log import (
    ACQUIRED,
    END,
    GIVEN_UP,
    HOLDER,
    NOBODY,
    OP_BITS,
    OWNER,
    RELEASED,
    REQUESTED,
    STREAMS,
    WAIT_BEGUN,
    Columns,
)
from cuzklab.trace.recorders.pairing import MISSING, OP_MASK, LockUses, Spans, pair_locks, pair_spans

VRAM_OPS = ("alloc", "free", "reserve", "unreserve", "fail")
_SLICE_ROWS = 1 << 20

Values = Mapping[str, list[Any]]


@dataclass
class Assembled:
    """A recording's tables, cut into slices when they are asked for.

    Attributes
    ----------
    open_spans : int
        Spans that had not ended when the recording did.
    """

    spans: Spans
    uses: LockUses
    waits: dict[str, np.ndarray]
    vram: Columns
    owners: "OwnersInTime"
    values: Values
    process: int

    @property
    def open_spans(self) -> int:
        return int(self.spans.open.sum())

    def slices(self, table: str) -> Iterator[pa.Table]:
        """The rows of a table in order of time; text columns are dictionaries."""
        make = {"spans": self._spans, "locks": self._locks, "waits": self._waits, "vram": self._vram}.get(table)
        if make is None:
            return
        size = {"spans": len(self.spans), "locks": len(self.uses), "waits": len(self.waits["lock"]),
                "vram": len(self.vram["time"])}[table]  # fmt: skip
        for start in range(0, size, _SLICE_ROWS):
            yield _table(table, make(slice(start, min(size, start + _SLICE_ROWS))))

    def _spans(self, part: slice) -> dict[str, Any]:
        it = self.spans
        names = self.values["spans"]
        number, parent = it.name[part], it.parent[part]
        owner = self.owners.at(it.thread[part], it.start[part])
        return {
            "start": it.start[part],
            "end": it.end[part],
            "name": _text(number, [name for name, _, _, _ in names]),
            "category": _text(number, [category for _, category, _, _ in names]),
            "process": np.full(len(number), self.process, np.int64),
            "device": np.array([device for _, _, device, _ in names], np.int64)[number] if names else number,
            "parent": _text(
                np.where(parent >= 0, parent, number + len(names)),
                [name for name, _, _, _ in names] + [part_of for _, _, _, part_of in names],
            ),
            **self._whose(owner, it.thread[part], with_proof=True),
        }

    def _locks(self, part: slice) -> dict[str, Any]:
        it = self.uses
        owner = self.owners.at(it.thread[part], it.requested[part])
        return {
            "lock": _text(it.lock[part], [name for name, _, _ in self.values["locks"]]),
            "requested": it.requested[part],
            "acquired": _nullable(it.acquired[part]),
            "released": _nullable(it.released[part]),
            "holder_at_request": _text(it.holder[part], self.values["threads"]),
            "permits": np.ones(len(owner), np.int64),
            **self._whose(owner, it.thread[part]),
        }

    def _waits(self, part: slice) -> dict[str, Any]:
        it = {name: column[part] for name, column in self.waits.items()}
        locks = self.values["locks"]
        owner = self.owners.at(it["thread"], it["start"])
        whose = self._whose(owner, it["thread"])
        holder = self.owners.at(it["holder"], it["start"])
        return {
            "start": it["start"],
            "end": it["end"],
            "kind": _text(it["lock"], [kind for _, _, kind in locks]),
            "on": _text(it["lock"], [name for name, _, _ in locks]),
            "holder": self._whose(holder, it["holder"])["worker"],
            "worker": whose["worker"],
            "partition": whose["partition"],
        }

    def _vram(self, part: slice) -> dict[str, Any]:
        it = {name: column[part] for name, column in self.vram.items()}
        told = it["owner"] >= 0
        owner = np.where(told, it["owner"], self.owners.at(it["thread"], it["time"]))
        whose = self._whose(owner, it["thread"])
        held, held_names = _held_at(self.uses, self.values["locks"], it["thread"], it["time"])
        return {
            "time": it["time"],
            "op": _text(it["op"], list(VRAM_OPS)),
            "buffer": _text(it["buffer"], self.values["buffers"]),
            "bytes": it["bytes"],
            "device": it["device"].astype(np.int64),
            "live": it["live"],
            "limit": it["limit"],
            "worker": whose["worker"],
            "partition": whose["partition"],
            "lock_held": _text(held, held_names),
            "stack": _text(it["stack"], self.values["stacks"]),
        }

    def _whose(self, owner: np.ndarray, thread: np.ndarray, with_proof: bool = False) -> dict[str, Any]:
        """Thread, worker and partition; a thread that works for nobody in particular is a worker of its own name."""
        owners, threads = self.values["owners"], self.values["threads"]
        worker_names = [worker for worker, _, _ in owners] + list(threads)
        worker = np.where(owner >= 0, owner, np.where(thread >= 0, thread + len(owners), -1))
        found = {
            "thread": _text(thread, threads),
            "worker": _text(worker, worker_names),
            "partition": _text(owner, [partition for _, partition, _ in owners]),
        }
        if with_proof:
            proofs = np.array([*(proof for _, _, proof in owners), -1], np.int64)
            found["proof"] = proofs[np.where(owner >= 0, owner, len(owners))]
        return found


class OwnersInTime:
    """For whom each thread works, as it changes."""

    def __init__(self, events: Columns) -> None:
        self._of: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for thread in np.unique(events["thread"]).tolist():
            mine = events["thread"] == thread
            self._of[thread] = events["time"][mine], events["code"][mine] >> OP_BITS

    def at(self, thread: np.ndarray, time: np.ndarray) -> np.ndarray:
        """The owner of each (thread, time); −1 where none was told."""
        found = np.full(len(thread), -1, np.int32)
        if self._of:
            for number in np.unique(thread).tolist():
                if number in self._of:
                    times, owners = self._of[number]
                    mine = np.flatnonzero(thread == number)
                    place = np.searchsorted(times, time[mine], side="right") - 1
                    found[mine] = np.where(place >= 0, owners[place], -1)
        return found


class Chunks(Protocol):
    """A stream of events: see `log.STREAMS`."""

    def chunks(self) -> Iterator[Columns]: ...


def assemble(streams: Mapping[str, Chunks], values: Values, end: int, process: int) -> Assembled:
    """The tables that events make.

    Parameters
    ----------
    streams : mapping
        The events of each stream, drained.
    values : mapping
        Names by table and number.
    end : int
        When the recording ended, in nanoseconds.
    """
    permits = frozenset(number for number, name in enumerate(values["locks"]) if name[1] == "permits")
    pieces = list(streams["vram"].chunks())
    vram = {
        name: np.concatenate([piece[name] for piece in pieces]) if pieces else np.empty(0, kind)
        for name, kind in STREAMS["vram"].items()
    }
    if (vram["time"][1:] < vram["time"][:-1]).any():
        order = np.argsort(vram["time"], kind="stable")
        vram = {name: column[order] for name, column in vram.items()}
    sorted_out = _SortedOut()
    spans = pair_spans(sorted_out.spans(streams["events"]), end)
    uses = pair_locks(_emptied(sorted_out.locks), permits)
    return Assembled(
        spans,
        uses,
        _waits(uses, _together(sorted_out.waits), values, end),
        vram,
        OwnersInTime(_together(sorted_out.owners)),
        values,
        process,
    )


class _SortedOut:
    """Events by what they are about, in one pass."""

    _OF_LOCK = np.isin(np.arange(OP_MASK + 1), (REQUESTED, ACQUIRED, RELEASED, GIVEN_UP, HOLDER))

    def __init__(self) -> None:
        self.locks: list[Columns] = []
        self.waits: list[Columns] = []
        self.owners: list[Columns] = []

    def spans(self, events: Chunks) -> Iterator[Columns]:
        """Those of spans, a chunk at a time; the others are kept."""
        for chunk in events.chunks():
            op = chunk["code"] & OP_MASK
            of_span = op <= END
            if of_span.all():
                yield chunk
                continue
            self.locks.append(_rows(chunk, self._OF_LOCK[op]))
            rest = _rows(chunk, (op >= WAIT_BEGUN) & (op != HOLDER))
            of_owner = (rest["code"] & OP_MASK) == OWNER
            self.owners.append(_rows(rest, of_owner))
            self.waits.append(_rows(rest, ~of_owner))
            yield _rows(chunk, of_span)


def _emptied(pieces: list[Columns]) -> Iterator[Columns]:
    """The pieces in order, each of them forgotten."""
    pieces.reverse()
    while pieces:
        yield pieces.pop()


def _rows(chunk: Columns, some: np.ndarray) -> Columns:
    return {name: column[some] for name, column in chunk.items()}


def _together(pieces: list[Columns]) -> Columns:
    return {
        name: np.concatenate([piece[name] for piece in pieces]) if pieces else np.empty(0, kind)
        for name, kind in STREAMS["events"].items()
    }


def _waits(uses: LockUses, events: Columns, values: Values, end: int) -> dict[str, np.ndarray]:
    """Waits for locks, as far as nobody else records them, and waits on conditions."""
    told = np.array([bool(kind) for _, _, kind in values["locks"]], bool)
    until = np.where(uses.acquired != MISSING, uses.acquired, np.where(uses.released != MISSING, uses.released, end))
    waited = np.flatnonzero(until > uses.requested)
    waited = waited[told[uses.lock[waited]]] if len(waited) else waited
    rows = [(uses.lock[waited], uses.requested[waited], until[waited], uses.thread[waited], uses.holder[waited])]
    begun: dict[tuple[int, int], int] = {}
    found = []
    for time, code, thread in zip(events["time"].tolist(), events["code"].tolist(), events["thread"].tolist()):
        key = code >> OP_BITS, thread
        if code & OP_MASK == WAIT_BEGUN:
            begun[key] = time
        elif key in begun:
            found.append((key[0], begun.pop(key), time, thread, NOBODY))
    found += [(lock, start, end, thread, NOBODY) for (lock, thread), start in begun.items()]
    rows.append(tuple(np.array(column, np.int64) for column in zip(*found)) if found else (np.empty(0, np.int64),) * 5)
    columns = [np.concatenate(pair) for pair in zip(*rows)]
    order = np.argsort(columns[1], kind="stable")
    return dict(zip(("lock", "start", "end", "thread", "holder"), (column[order] for column in columns)))


def _held_at(uses: LockUses, locks: list[Any], thread: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Which locks a thread held at a time, as numbers of texts."""
    held: dict[int, list[tuple[int, str]]] = {}
    got = uses.acquired != MISSING
    for who in np.unique(thread).tolist():
        mine = np.flatnonzero(thread == who)
        for lock in np.unique(uses.lock[got & (uses.thread == who)]).tolist():
            some = np.flatnonzero(got & (uses.thread == who) & (uses.lock == lock))
            acquired = uses.acquired[some]
            released = np.where(uses.released[some] == MISSING, np.iinfo(np.int64).max, uses.released[some])
            place = np.searchsorted(acquired, time[mine], side="right") - 1
            inside = (place >= 0) & (time[mine] <= released[place])
            for row, at in zip(mine[inside].tolist(), acquired[place[inside]].tolist()):
                held.setdefault(row, []).append((at, locks[lock][0]))
    numbers: dict[str, int] = {}
    found = np.full(len(thread), -1, np.int32)
    for row, names in held.items():
        found[row] = numbers.setdefault(", ".join(name for _, name in sorted(names)), len(numbers))
    return found, list(numbers)


def _text(number: np.ndarray, values: list[str]) -> pa.Array:
    """Text by number; an empty one for −1. Equal texts share a place, so that files stay small."""
    places: dict[str, int] = {}
    index = np.array([places.setdefault(str(value), len(places)) for value in [*values, ""]], np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(index[np.where(number >= 0, number, len(values))]), pa.array(list(places), pa.string())
    )


def _nullable(time: np.ndarray) -> pa.Array:
    return pa.array(time, mask=time == MISSING)


def _table(name: str, given: Mapping[str, Any]) -> pa.Table:
    """Columns in the order of the schema, the others with their default; text stays encoded."""
    arrays = {key: column if isinstance(column, pa.Array) else np.asarray(column) for key, column in given.items()}
    return columns.table(name, len(next(iter(arrays.values()))), **arrays)

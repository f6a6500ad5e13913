"""Beginnings meet ends: events become spans and uses of locks, a chunk at a time.

What a chunk leaves open is put before the next one, so a recording of any length needs the memory of one chunk and of
its result.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from cuzklab.trace.recorders.log import Columns

# The lowest bits of a lock event's code; the rest is the lock's number.
OP_BITS = 3
REQUESTED, ACQUIRED, RELEASED, GIVEN_UP, WAIT_BEGUN, WAIT_ENDED = range(6)
NOBODY = -1


@dataclass
class Spans:
    """Paired spans as columns, in order of their start: times int64, numbers int32; `parent` is −1 for none.

    `open` tells which had no end; those end with the recording.
    """

    start: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    name: np.ndarray
    parent: np.ndarray
    open: np.ndarray

    def __len__(self) -> int:
        return len(self.start)


@dataclass
class LockUses:
    """Uses of locks as columns: times int64 with `MISSING` for what did not happen.

    A request that was given up has no `acquired`; `released` is then when it was given up.
    """

    lock: np.ndarray
    requested: np.ndarray
    acquired: np.ndarray
    released: np.ndarray
    thread: np.ndarray
    holder: np.ndarray

    def __len__(self) -> int:
        return len(self.lock)


MISSING = np.iinfo(np.int64).min
_SPAN_TYPES = (np.int64, np.int64, np.int32, np.int32, np.int32, bool)
_USE_TYPES = (np.int32, np.int64, np.int64, np.int64, np.int32, np.int32)


def pair_spans(chunks: Iterable[Columns], end_of_recording: int) -> Spans:
    """Spans of begin events (code 2n) and end events (2n + 1), n being the number of the span's name.

    On each thread an end closes the innermost open span of its name. An end without a beginning (the recording began
    inside the span) is left out.
    """
    found: list[tuple[np.ndarray, ...]] = []
    left: Columns | None = None
    for chunk in chunks:
        events = _after(left, chunk)
        closed, left = _pair_chunk(events)
        found.append(closed)
    if left is not None and len(left["time"]):
        still_open, _ = _pair_chunk(left, end_of_recording)
        found.append(still_open)
    return Spans(*_in_order(found, _SPAN_TYPES, by=0))


def _pair_chunk(events: Columns, close_at: int | None = None) -> tuple[tuple[np.ndarray, ...], Columns]:
    """Closed spans of some events, and the beginnings that are left (which `close_at` closes)."""
    time, thread, code = events["time"], events["thread"], events["code"]
    count = len(time)
    mate, parent = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    for rows in _by_key(thread):
        if not _pair_nested(code[rows], rows, mate, parent):
            _pair_by_name(code[rows], rows, mate, parent)
    begins = (code & 1) == 0
    closed = begins & (mate >= 0)
    left = begins & (mate < 0)
    taken = np.flatnonzero(closed if close_at is None else left)
    ends = time[mate[taken]] if close_at is None else np.maximum(time[taken], close_at)
    above = parent[taken]
    spans = (
        time[taken], ends, thread[taken], code[taken] >> 1, np.where(above >= 0, code[above] >> 1, -1),
        np.full(len(taken), close_at is not None),
    )  # fmt: skip
    return spans, {name: column[left] for name, column in events.items()}


def _pair_nested(code: np.ndarray, rows: np.ndarray, mate: np.ndarray, parent: np.ndarray) -> bool:
    """Pair the events of one thread by their depth; False where they are not nested like brackets.

    At each depth beginnings and ends alternate, so in an order by depth a beginning's end is the next event.
    """
    is_end = (code & 1).astype(np.int64)
    depth = np.cumsum(1 - 2 * is_end)
    if len(depth) and depth.min() < 0:
        return False
    level = depth + is_end
    order = np.argsort(level.astype(np.int16) if level.max(initial=0) < 2**15 else level, kind="stable")
    sorted_level, sorted_code = level[order], code[order]
    first = np.flatnonzero((sorted_code & 1) == 0)
    following = np.minimum(first + 1, len(order) - 1)
    has_end = (following > first) & (sorted_level[following] == sorted_level[first])
    first, following = first[has_end], following[has_end]
    if not (sorted_code[following] == sorted_code[first] + 1).all():
        return False
    mate[rows[order[first]]] = rows[order[following]]
    begins = [
        np.sort(order[(sorted_level == at) & ((sorted_code & 1) == 0)]) for at in range(1, level.max(initial=0) + 1)
    ]
    for outer, inner in zip(begins, begins[1:], strict=False):
        parent[rows[inner]] = rows[outer[np.searchsorted(outer, inner) - 1]]
    return True


def _pair_by_name(code: np.ndarray, rows: np.ndarray, mate: np.ndarray, parent: np.ndarray) -> None:
    """Pair the events of one thread one by one: an end closes the innermost open span of its name."""
    stack: list[tuple[int, int]] = []
    for value, row in zip(code.tolist(), rows.tolist(), strict=True):
        if value & 1 == 0:
            if stack:
                parent[row] = stack[-1][1]
            stack.append((value, row))
            continue
        for place in range(len(stack) - 1, -1, -1):
            if stack[place][0] == value - 1:
                mate[stack.pop(place)[1]] = row
                break


def pair_locks(chunks: Iterable[Columns], permits: frozenset[int]) -> LockUses:
    """Uses of locks out of their events.

    Parameters
    ----------
    chunks : iterable of columns
        Events whose code is lock << OP_BITS | op and whose value is who held the lock (requests), or −1.
    permits : set of int
        The locks that several may hold. A release ends the releasing thread's oldest use, else the oldest of all.
    """
    found: list[tuple[np.ndarray, ...]] = []
    left: Columns | None = None
    for chunk in chunks:
        events = _after(left, chunk)
        parts, remaining = [], []
        lock = events["code"] >> OP_BITS
        for rows in _by_key(lock):
            some = {name: column[rows] for name, column in events.items()}
            uses, rest = _uses(some, int(lock[rows[0]]) in permits, last=False)
            parts.append(uses)
            remaining.append(rest)
        found += parts
        left = {name: np.concatenate([rest[name] for rest in remaining]) for name in chunk} if remaining else None
    if left is not None:
        lock = left["code"] >> OP_BITS
        for rows in _by_key(lock):
            some = {name: column[rows] for name, column in left.items()}
            found.append(_uses(some, int(lock[rows[0]]) in permits, last=True)[0])
    return LockUses(*_in_order(found, _USE_TYPES, by=1))


def _uses(events: Columns, several: bool, last: bool) -> tuple[tuple[np.ndarray, ...], Columns]:
    """Uses of one lock, and the events that belong to uses which are not over (none of them where `last`)."""
    time, thread, value = events["time"], events["thread"], events["value"]
    op = events["code"] & ((1 << OP_BITS) - 1)
    count = len(time)
    # A thread that has to wait asks first: its request stands directly before what came of it, among its own events.
    asking = np.flatnonzero((op == REQUESTED) | (op == ACQUIRED) | (op == GIVEN_UP))
    asking = asking[np.argsort(thread[asking], kind="stable")]
    request_of, outcome_of = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    if len(asking) > 1:
        before, after = asking[:-1], asking[1:]
        joined = (thread[before] == thread[after]) & (op[before] == REQUESTED) & (op[after] != REQUESTED)
        request_of[after[joined]] = before[joined]
        outcome_of[before[joined]] = after[joined]
    release_of = (_release_any if several else _release_next)(op, thread)
    over = ((op == ACQUIRED) & (release_of >= 0)) | (op == GIVEN_UP)
    unfinished = ((op == ACQUIRED) & (release_of < 0)) | ((op == REQUESTED) & (outcome_of < 0))
    taken = np.flatnonzero(over | unfinished if last else over)
    asked = np.where(request_of[taken] >= 0, request_of[taken], taken)
    got, ended = op[taken] == ACQUIRED, release_of[taken] >= 0
    uses = (
        events["code"][taken] >> OP_BITS,
        time[asked],
        np.where(got, time[taken], MISSING),
        np.where(ended, time[release_of[taken]], np.where(op[taken] == GIVEN_UP, time[taken], MISSING)),
        thread[taken],
        value[asked],
    )
    kept = unfinished.copy()
    kept[request_of[unfinished & (request_of >= 0)]] = True
    return uses, {name: column[kept] for name, column in events.items()}


def _release_next(op: np.ndarray, thread: np.ndarray) -> np.ndarray:
    """The release that ends each acquisition of a lock with one holder: both are written down by whoever holds it."""
    release_of = np.full(len(op), -1, np.int64)
    turns = np.flatnonzero((op == ACQUIRED) | (op == RELEASED))
    if len(turns) > 1:
        before, after = turns[:-1], turns[1:]
        joined = (op[before] == ACQUIRED) & (op[after] == RELEASED)
        release_of[before[joined]] = after[joined]
    return release_of


def _release_any(op: np.ndarray, thread: np.ndarray) -> np.ndarray:
    """The release that ends each acquisition of a permit."""
    release_of = np.full(len(op), -1, np.int64)
    held: dict[int, list[int]] = {}
    order: dict[int, None] = {}  # acquisitions that are not over, oldest first
    for row, (what, who) in enumerate(zip(op.tolist(), thread.tolist(), strict=True)):
        if what == ACQUIRED:
            held.setdefault(who, []).append(row)
            order[row] = None
        elif what == RELEASED and order:
            mine = held.get(who)
            taken = mine[0] if mine else next(iter(order))
            del order[taken]
            for rows in (mine,) if mine else held.values():
                if taken in rows:
                    rows.remove(taken)
                    break
            release_of[taken] = row
    return release_of


def _after(left: Columns | None, chunk: Columns) -> Columns:
    if left is None or not len(left["time"]):
        return chunk
    return {name: np.concatenate([left[name], column]) for name, column in chunk.items()}


def _by_key(keys: np.ndarray) -> Iterator[np.ndarray]:
    """Rows of each distinct key, in their order."""
    if not len(keys):
        return
    if (keys[0] == keys).all():
        yield np.arange(len(keys))
        return
    order = np.argsort(keys.astype(np.int16) if keys.max() < 2**15 else keys, kind="stable")
    borders = np.flatnonzero(np.diff(keys[order])) + 1
    yield from np.split(order, borders)


def _in_order(parts: list[tuple[np.ndarray, ...]], types: tuple[type, ...], by: int) -> list[np.ndarray]:
    """Columns of all parts together, in the order of one of them; frees the parts."""
    columns = []
    for number, kind in enumerate(types):
        pieces = [part[number].astype(kind, copy=False) for part in parts]
        columns.append(np.concatenate(pieces) if pieces else np.empty(0, kind))
    parts.clear()
    key = columns[by]
    if len(key) > 1 and (np.diff(key) < 0).any():
        order = np.argsort(key, kind="stable")
        for number, column in enumerate(columns):
            columns[number] = column[order]
    return columns

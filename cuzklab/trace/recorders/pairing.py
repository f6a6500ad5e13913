"""Beginnings meet ends: events become spans and uses of locks, a chunk at a time.

What a chunk leaves open is put before the next one, so a recording of any length needs the memory of one chunk and of
its result.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cuzklab.trace.recorders.log import (
    ACQUIRED,
    BEGIN,
    GIVEN_UP,
    HOLDER,
    NOBODY,
    OP_BITS,
    RELEASED,
    REQUESTED,
    Columns,
)

OP_MASK = (1 << OP_BITS) - 1


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
    """Spans out of their begin and end events, which the chunks hold.

    On each thread an end closes the innermost open span of its name. An end without a beginning (the recording began
    inside the span) is left out.
    """
    found: list[tuple[np.ndarray, ...]] = []
    left: Columns | None = None
    for chunk in chunks:
        closed, left = _pair_chunk(_after(left, chunk))
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
    begins = (code & OP_MASK) == BEGIN
    closed = begins & (mate >= 0)
    left = begins & (mate < 0)
    taken = np.flatnonzero(closed if close_at is None else left)
    ends = time[mate[taken]] if close_at is None else np.maximum(time[taken], close_at)
    above = parent[taken]
    spans = (
        time[taken], ends, thread[taken], code[taken] >> OP_BITS, np.where(above >= 0, code[above] >> OP_BITS, -1),
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
    order = stable_order(level)
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
    for outer, inner in pairwise(begins):
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
        Events of locks of all threads, those of each in order.
    permits : set of int
        The locks that several may hold. A release ends the releasing thread's oldest use, else the oldest of all.
    """
    found: list[tuple[np.ndarray, ...]] = []
    kept = [chunk for chunk in chunks if len(chunk["time"])]
    if kept:
        events = {name: np.concatenate([piece[name] for piece in kept]) for name in kept[0]}
        kept.clear()
        lock = events["code"] >> OP_BITS
        for rows in _by_key(lock):
            some = events if len(rows) == len(lock) else {name: column[rows] for name, column in events.items()}
            found.append(_uses(int(lock[rows[0]]), some, int(lock[rows[0]]) in permits))
    return LockUses(*_in_order(found, _USE_TYPES, by=1))


def _uses(lock: int, events: Columns, several: bool) -> tuple[np.ndarray, ...]:
    """Uses of one lock."""
    op = events["code"] & OP_MASK
    # Who had the lock is told by the event after the request.
    told = np.flatnonzero(op == HOLDER)
    told = told[told > 0]
    holder = np.full(len(op), NOBODY, np.int32)
    holder[told - 1] = events["time"][told]
    time, thread = events["time"], events["thread"]
    if len(told) or (time[1:] < time[:-1]).any():
        order = np.flatnonzero(op != HOLDER)
        order = order[stable_order(time[order])]
        time, thread, op, holder = time[order], thread[order], op[order], holder[order]
        del order
    # A thread that has to wait asks first: among its own events, its request stands directly before what came of it.
    waited = (op == REQUESTED).any()
    asking = (
        np.flatnonzero((op == REQUESTED) | (op == ACQUIRED) | (op == GIVEN_UP)) if waited else np.empty(0, np.int64)
    )
    asking = asking[stable_order(thread[asking])]
    request_of, answered = np.full(len(op), -1, np.int64), np.zeros(len(op), bool)
    before, after = asking[:-1], asking[1:]
    joined = (thread[before] == thread[after]) & (op[before] == REQUESTED) & (op[after] != REQUESTED)
    request_of[after[joined]] = before[joined]
    answered[before[joined]] = True
    release_of = _release_of_permits(op, thread) if several else _release_of_lock(op, thread, time)
    taken = np.flatnonzero((op == ACQUIRED) | (op == GIVEN_UP) | ((op == REQUESTED) & ~answered))
    asked = np.where(request_of[taken] >= 0, request_of[taken], taken)
    if not several:
        _name_successors(op, thread, holder)
    released = np.where(op[taken] == GIVEN_UP, time[taken], MISSING)
    return (
        np.full(len(taken), lock),
        time[asked],
        np.where(op[taken] == ACQUIRED, time[taken], MISSING),
        np.where(release_of[taken] >= 0, time[release_of[taken]], released),
        thread[taken],
        holder[asked],
    )


def _name_successors(op: np.ndarray, thread: np.ndarray, holder: np.ndarray) -> None:
    """Fill in who had the lock where a request found it taken, but by somebody who had yet to write that down.

    That was the next to write down that he has it, unless that is who asked: then the lock was just given back.
    """
    unknown = np.flatnonzero((op == REQUESTED) & (holder == NOBODY))
    acquired = np.flatnonzero(op == ACQUIRED)
    place = np.searchsorted(acquired, unknown)
    unknown, place = unknown[place < len(acquired)], place[place < len(acquired)]
    successor = thread[acquired[place]]
    holder[unknown] = np.where(successor != thread[unknown], successor, NOBODY)


def _release_of_lock(op: np.ndarray, thread: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The release that ends each acquisition of a lock with one holder.

    It is that thread's next turn, or the next release of another thread where it never gives the lock back itself.
    Where that gives the lock to two at once or leaves a release over, threads give back what others took and take it
    again: then it is the next turn of all.
    """
    release_of = np.full(len(op), -1, np.int64)
    turns = np.flatnonzero((op == ACQUIRED) | (op == RELEASED))
    by_thread = turns if (thread == thread[:1]).all() else turns[stable_order(thread[turns])]
    _join_neighbours(by_thread, op, release_of, thread)
    ended = np.zeros(len(op), bool)
    ended[release_of[release_of >= 0]] = True
    _join_neighbours(turns[(release_of[turns] < 0) & ~ended[turns]], op, release_of)
    taken = np.flatnonzero(release_of >= 0)
    ended[release_of[taken]] = True
    turns_left = turns[~ended[turns] & (op[turns] == RELEASED)]
    acquired = turns[op[turns] == ACQUIRED]
    stray = len(turns_left) and len(acquired) and turns_left[-1] > acquired[0]
    if stray or (time[release_of[taken[:-1]]] > time[taken[1:]]).any():
        release_of[:] = -1
        _join_neighbours(turns, op, release_of)
    return release_of


def _join_neighbours(
    turns: np.ndarray, op: np.ndarray, release_of: np.ndarray, thread: np.ndarray | None = None
) -> None:
    """Let each acquisition be ended by the turn after it, if that is a release (of the same thread)."""
    before, after = turns[:-1], turns[1:]
    joined = (op[before] == ACQUIRED) & (op[after] == RELEASED)
    if thread is not None:
        joined &= thread[before] == thread[after]
    release_of[before[joined]] = after[joined]


def _release_of_permits(op: np.ndarray, thread: np.ndarray) -> np.ndarray:
    """The release that ends each acquisition of a permit."""
    release_of = np.full(len(op), -1, np.int64)
    held: dict[int, dict[int, None]] = {}  # acquisitions that are not over, by thread, oldest first
    order: dict[int, int] = {}  # the same of all threads, with their thread
    for row, (what, who) in enumerate(zip(op.tolist(), thread.tolist(), strict=True)):
        if what == ACQUIRED:
            held.setdefault(who, {})[row] = None
            order[row] = who
        elif what == RELEASED and order:
            ended = next(iter(held.get(who) or order))
            del held[order.pop(ended)][ended]
            release_of[ended] = row
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
    order = stable_order(keys)
    borders = np.flatnonzero(np.diff(keys[order])) + 1
    yield from np.split(order, borders)


def stable_order(keys: np.ndarray) -> np.ndarray:
    """What sorts some integers; small ones by radix, and those in order already at no cost."""
    if len(keys) < 2 or (keys[1:] >= keys[:-1]).all():
        return np.arange(len(keys))
    small = keys.min() >= -(2**15) and keys.max() < 2**15
    return np.argsort(keys.astype(np.int16) if small else keys, kind="stable")


def _in_order(parts: list[tuple[np.ndarray, ...]], types: tuple[type, ...], by: int) -> list[np.ndarray]:
    """Columns of all parts together, in the order of one of them; frees the parts."""
    columns, rest = [], [list(part) for part in parts]
    parts.clear()
    for number, kind in enumerate(types):
        pieces = [part[number].astype(kind, copy=False) for part in rest]
        columns.append(np.concatenate(pieces) if pieces else np.empty(0, kind))
        for part in rest:
            part[number] = None  # or both would be in memory until the last column
    key = columns[by]
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        for number, column in enumerate(columns):
            columns[number] = column[order]
    return columns

"""Ranges that mean locks: a thread waits in ``lock:NAME wait`` and holds in ``lock:NAME hold``.

A lock is acquired when the wait ends. A hold that no wait precedes was acquired without asking first; a wait that no
hold follows on its thread was given up, unless the capture ended.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cuzklab.ingest.nsys.export import MISSING
from cuzklab.ingest.nsys.ranges import DOMAIN, Ranges
from cuzklab.ingest.nsys.threads import Threads
from cuzklab.trace.columns import table

# Category of ranges that tell of a lock, whatever their own was.
LOCK = "lock"
_CONVENTION = re.compile(r"lock:(?P<lock>.+) (?P<what>wait|hold)")


@dataclass
class Use:
    """One use of a lock by a thread (a global number)."""

    lock: str
    thread: int
    requested: int
    acquired: int | None
    released: int | None
    partition: str
    gave_up_at: int | None = None
    waited_until: int | None = None


def uses(ranges: Ranges, named: Mapping[str, tuple[str, str]]) -> list[Use]:
    """Uses of locks, in order of request; the ranges that tell of them get the category `LOCK`.

    Parameters
    ----------
    named : mapping
        Locks whose ranges are called otherwise: name → (range of waiting, range of holding), in any domain.
    """
    meaning = {name: (lock, what) for lock, pair in named.items() for what, name in zip(("wait", "hold"), pair)}
    found: list[Use] = []
    waiting: dict[tuple[int, str], Use] = {}
    for row in range(len(ranges)):
        lock, what = _meaning(ranges, row, meaning)
        if not lock:
            continue
        ranges.category[row] = LOCK
        start, end, thread = int(ranges.start[row]), int(ranges.end[row]), int(ranges.thread[row])
        unfinished = bool(ranges.open[row])
        before = waiting.pop((thread, lock), None)
        if what == "wait":
            until = None if unfinished else end
            use = Use(lock, thread, start, None, None, ranges.partition[row], until, end)
            waiting[thread, lock] = use
            found.append(use)
            continue
        if before is None or before.gave_up_at is None or before.gave_up_at > start:
            before = Use(lock, thread, start, start, None, ranges.partition[row])
            found.append(before)
        else:
            before.acquired, before.gave_up_at = before.gave_up_at, None
        before.released = None if unfinished else end
        before.partition = before.partition or ranges.partition[row]
    return sorted(found, key=lambda use: use.requested)


def _meaning(ranges: Ranges, row: int, meaning: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    if ranges.style[row] == "mark":
        return "", ""
    if ranges.name[row] in meaning:
        return meaning[ranges.name[row]]
    if ranges.domain[row] == DOMAIN and (match := _CONVENTION.fullmatch(ranges.name[row])):
        return match["lock"], match["what"]
    return "", ""


class Holders:
    """Who holds which lock when."""

    def __init__(self, found: list[Use]) -> None:
        self._by_lock = _sorted_holds(found, lambda use: use.lock)
        self._by_thread = _sorted_holds(found, lambda use: use.thread)

    def of(self, lock: str, moment: int, but: int) -> int | None:
        """The thread other than `but` that holds a lock at a moment, by number; None where nobody does."""
        return next((use.thread for use in self._by_lock.around(lock, moment) if use.thread != but), None)

    def held_by(self, thread: int, moment: int) -> str:
        """Locks that a thread holds at a moment, in the order in which it took them."""
        return ", ".join(use.lock for use in reversed(list(self._by_thread.around(thread, moment))))


@dataclass
class _Holds:
    starts: dict[object, list[int]]
    uses: dict[object, list[Use]]

    def around(self, key: object, moment: int) -> Iterator[Use]:
        """Holds under way at a moment, the last taken first; of many that overlap, those of the last few."""
        place = bisect_right(self.starts.get(key, ()), moment)
        for use in reversed(self.uses.get(key, [])[max(0, place - 8) : place]):
            if use.released is None or use.released > moment:
                yield use


def _sorted_holds(found: list[Use], key: object) -> _Holds:
    held = sorted((use for use in found if use.acquired is not None), key=lambda use: use.acquired)
    holds = _Holds({}, {})
    for use in held:
        holds.starts.setdefault(key(use), []).append(use.acquired)
        holds.uses.setdefault(key(use), []).append(use)
    return holds


def lock_table(found: list[Use], holders: Holders, threads: Threads) -> pa.Table:
    """Uses as rows of `locks`."""
    thread = threads.column(np.array([use.thread for use in found], np.int64))
    ended = (use.released if use.acquired is not None else use.gave_up_at for use in found)
    at_request = [holders.of(use.lock, use.requested, use.thread) for use in found]
    return table(
        "locks", len(found), lock=pa.array([use.lock for use in found], pa.string()),
        requested=np.array([use.requested for use in found], np.int64),
        acquired=_optional(use.acquired for use in found), released=_optional(ended),
        thread=thread, worker=thread, partition=pa.array([use.partition for use in found], pa.string()),
        holder_at_request=threads.column(_optional(at_request)),
    )  # fmt: skip


def wait_table(found: list[Use], holders: Holders, threads: Threads) -> pa.Table:
    """The waits for locks as rows of `waits`: each as long as its range."""
    waited = [use for use in found if use.waited_until is not None]
    holder = [holders.of(use.lock, use.requested, use.thread) for use in waited]
    return table(
        "waits", len(waited), start=np.array([use.requested for use in waited], np.int64),
        end=_optional(use.waited_until for use in waited), kind=LOCK,
        on=pa.array([use.lock for use in waited], pa.string()), holder=threads.column(_optional(holder)),
        worker=threads.column(np.array([use.thread for use in waited], np.int64)),
        partition=pa.array([use.partition for use in waited], pa.string()),
    )  # fmt: skip


def _optional(values: object) -> np.ndarray:
    return np.array([MISSING if value is None else value for value in values], np.int64)

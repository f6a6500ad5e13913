"""Who is to blame for waiting: delay charged to holders, the walk to the root blocker, and who would have run.

The rule of charging: every nanosecond in which somebody waits for a lock is charged once to who waits (the victim) and
once to who holds the lock then. So a holder that keeps three others waiting for a second is charged three: waiters
times time. Time in which nobody holds it (a hand-over) is charged to nobody.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from cuzklab.analysis.frames import as_set, device_work, root, table
from cuzklab.analysis.intervals import complement, covered, intersection, union
from cuzklab.analysis.locks import uses, waited_for
from cuzklab.trace import Run
from cuzklab.trace.metrics import CALL

MAX_STEPS = 200_000
_ROOTS = {"victim": "str", "on": "str", "root": "str", "doing": "str", "depth": "int64", "time_ns": "int64"}
_CANDIDATES = {
    "lock": "str", "holder": "str", "worker": "str", "partition": "str", "start_ns": "int64", "wait_ns": "int64",
    "place": "int64", "idle_ns": "int64", "work_ns": "int64", "fillable_ns": "int64",
}  # fmt: skip


def delay_caused(run: Run) -> pd.DataFrame:
    """Delay that each holder of a lock caused: waiters times time.

    Returns
    -------
    DataFrame
        `lock`, `holder`, `victims` (how many different ones), `waits`, `caused_ns`; the largest first. Its sum over
        holders is the time all victims waited while somebody held the lock.
    """
    charged = waited_for(run)
    charged = charged[charged["holder"] != ""]
    found = charged.groupby(["lock", "holder"], as_index=False).agg(
        victims=("victim", "nunique"), waits=("waits", "sum"), caused_ns=("time_ns", "sum")
    )
    return found.sort_values(["caused_ns", "lock", "holder"], ascending=[False, True, True], ignore_index=True)


@dataclass(frozen=True)
class Link:
    """One step of a walk: who waits, for what kind of thing and which, since when."""

    worker: str
    kind: str
    on: str
    since_ns: int


@dataclass(frozen=True)
class Walk:
    """A walk from a waiting worker to who is to blame.

    Attributes
    ----------
    links : tuple of Link
        The first is the worker asked about, each next one has what the one before waits for.
    root : str
        Who waits for nobody that the trace knows; empty where nobody is known to hold what the last link waits for,
        and in a cycle.
    doing : str
        The stage or span that the root is in at that moment.
    cycle : bool
        Whether the walk came back to a worker it had passed: a deadlock, for as long as nobody gives up.
    """

    links: tuple[Link, ...]
    root: str
    doing: str
    cycle: bool


def walk_to_root(run: Run, worker: str, time_ns: int) -> Walk:
    """The chain of who waits for whom at a moment, from a worker on.

    A worker that does not wait at that moment is its own root.
    """
    return _Blocking(run).walk(worker, time_ns)


def root_blockers(run: Run) -> pd.DataFrame:
    """For how long each worker waited, in the end, because of whom, and what that one was doing.

    Returns
    -------
    DataFrame
        `victim`, `on` (what it waits for itself), `root`, `doing`, `depth` (1: the holder itself is the root),
        `time_ns`; the longest first. A root in a cycle is called ``(deadlock)``.

    Raises
    ------
    ValueError
        The run has more changes than a walk at each of them can deal with.
    """
    blocking = _Blocking(run)
    steps = blocking.steps()
    if len(steps) > MAX_STEPS:
        raise ValueError(f"{run.name}: {len(steps)} changes of waits and holds; at most {MAX_STEPS} are walked")
    spent: dict[tuple[str, str, str, str, int], int] = {}
    for start, end in pairwise(steps):
        for victim in blocking.waiting(start):
            walk = blocking.walk(victim, start)
            blamed = "(deadlock)" if walk.cycle else walk.root
            if blamed and blamed != victim:
                key = victim, walk.links[0].on, blamed, walk.doing, len(walk.links)
                spent[key] = spent.get(key, 0) + end - start
    found = table(((*key, time) for key, time in spent.items()), _ROOTS)
    return found.sort_values(["time_ns", "victim", "on"], ascending=[False, True, True], ignore_index=True)


def would_have_run(run: Run, lock: str | None = None, time_ns: int | None = None) -> pd.DataFrame:
    """At each wait for a lock that somebody held: who could have run instead, and the idle device time it would fill.

    A candidate was stopped by nothing but the holder: it stood in the queue for that lock. It would fill the time in
    which the device was idle while it waited, but no more than the device work that it did once it had the lock. Of
    several candidates at a time only one fills the same idle time, so these figures do not add up; `place` 1 is the
    one that would have run first.

    Parameters
    ----------
    run : Run
    lock : str, optional
        Only waits for this lock.
    time_ns : int, optional
        Only waits that are under way at this moment; the question of one moment is answered at once, also in a run of
        very many waits.

    Returns
    -------
    DataFrame
        `lock`, `holder` (who held it longest in that wait), `worker`, `partition`, `start_ns`, `wait_ns`, `place`,
        `idle_ns` (device idle while it waited and somebody held the lock), `work_ns` (device work while it then held
        the lock itself), `fillable_ns` (the smaller of both); the largest first.
    """
    rows = uses(run)
    work = device_work(run)
    found: list[tuple[object, ...]] = []
    if len(work):
        busy = as_set(work)
        idle = complement(busy, int(work["start_ns"].min()), int(work["end_ns"].max()))
    if lock is not None:
        rows = rows[rows["lock"] == lock]
    for lock, part in rows.groupby("lock"):
        waits = part[(part["wait_ns"] > 0) & ~part["given_up"]]
        holds = part[part["hold_ns"] > 0]
        asked = waits
        if time_ns is not None:
            asked = waits[(waits["requested_ns"] <= time_ns) & (waits["acquired_ns"] > time_ns)]
        for wait in asked.itertuples():
            start, end = wait.requested_ns, wait.acquired_ns
            shares = np.minimum(holds["released_ns"], end) - np.maximum(holds["acquired_ns"], start)
            others = holds[(shares > 0) & (holds.index != wait.Index)]
            if not len(others):
                continue
            place = 1 + int(((waits["requested_ns"] < start) & (waits["acquired_ns"] > start)).sum())
            idle_ns = work_ns = 0
            if len(work):
                held = union(np.maximum(others["acquired_ns"], start), np.minimum(others["released_ns"], end))
                both = intersection(held, idle)
                idle_ns = int((both[:, 1] - both[:, 0]).sum())
                mine = work[work["worker"] == wait.worker]
                work_ns = int(covered([wait.acquired_ns], [wait.released_ns], as_set(mine))[0])
            holder = others.loc[shares[others.index].idxmax(), "worker"]
            found.append(
                (lock, holder, wait.worker, wait.partition, start, end - start, place, idle_ns, work_ns,
                 min(idle_ns, work_ns))
            )  # fmt: skip
    candidates = table(found, _CANDIDATES)
    order = ["fillable_ns", "wait_ns", "lock", "start_ns"]
    return candidates.sort_values(order, ascending=[False, False, True, True], ignore_index=True)


class _Blocking:
    """Who waits and who holds at any moment of a run."""

    def __init__(self, run: Run) -> None:
        waits, spans = run.table("waits"), run.table("spans")
        self._waits = _by_worker(
            root(waits["worker"]), waits["start"], waits["end"], list(zip(waits["kind"], waits["on"], waits["holder"]))
        )
        held = uses(run)
        held = held[~held["given_up"]]
        self._holds = _by_worker(held["lock"], held["acquired_ns"], held["released_ns"], list(held["worker"]))
        # The innermost last: a call contains the stages of its worker.
        spans = spans.assign(stage=spans["category"] != CALL)
        spans = spans.sort_values(["start", "end", "stage"], ascending=[True, False, True], kind="stable")
        self._spans = _by_worker(root(spans["worker"]), spans["start"], spans["end"], list(spans["name"]))
        self._moments = np.concatenate([waits["start"], waits["end"], held["acquired_ns"], held["released_ns"]]).astype(
            np.int64
        )

    def steps(self) -> list[int]:
        """Every moment at which somebody begins or ends to wait or to hold."""
        return np.unique(self._moments).tolist()

    def waiting(self, time_ns: int) -> list[str]:
        """Who waits at a moment."""
        return [worker for worker in self._waits if any(self._at(self._waits, worker, time_ns))]

    def walk(self, worker: str, time_ns: int) -> Walk:
        links: list[Link] = []
        passed = []
        while True:
            wait = next(self._at(self._waits, worker, time_ns), None)
            if wait is None:
                doing = [name for _, name in self._at(self._spans, worker, time_ns)]
                return Walk(tuple(links), worker, doing[-1] if doing else "", False)
            passed.append(worker)
            start, (kind, on, noted) = wait
            links.append(Link(worker, kind, on, start))
            # Who holds the lock at this moment counts; the note is of when the wait began.
            holders = [holder for _, holder in self._at(self._holds, on, time_ns)] if kind == "lock" else []
            holders = holders or [name.partition("/")[0] for name in noted.split(", ") if name]
            if not holders:
                return Walk(tuple(links), "", "", False)
            worker = holders[0]
            if worker in passed:
                return Walk(tuple(links), "", "", True)

    @staticmethod
    def _at(of: dict, key: str, time_ns: int) -> Iterator[tuple[int, object]]:
        """Start and value of the intervals of a key that contain a moment, in order of their start."""
        if key in of:
            starts, ends, values = of[key]
            for place in np.flatnonzero((starts <= time_ns) & (time_ns < ends)):
                yield int(starts[place]), values[place]


def _by_worker(keys: pd.Series, starts: pd.Series, ends: pd.Series, values: list) -> dict:
    """Intervals by key, as arrays."""
    found = {}
    keys, starts, ends = keys.to_numpy(object), starts.to_numpy(np.int64), ends.to_numpy(np.int64)
    for key in dict.fromkeys(keys):
        mine = np.flatnonzero(keys == key)
        mine = mine[np.argsort(starts[mine], kind="stable")]
        found[key] = starts[mine], ends[mine], [values[place] for place in mine]
    return found

"""The critical path of a proof: what would have had to be shorter for the proof to be done earlier.

It is walked backwards from the proof's last moment. At each moment one thread is to be looked at: what it did then is
a piece of the path; where it waited, the path goes on with whoever ended the wait (the lock's last holder, the thread
that notified the barrier, the synthesis that filled the queue, the kernel or copy that was awaited). Pieces follow each
other without gap or overlap, so their lengths add up to the proof's time exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cuzklab.analysis import locks
from cuzklab.analysis.frames import per_run, root, table
from cuzklab.trace import Run
from cuzklab.trace.metrics import CALL

HOST = "host"  # a thread was at something that the trace has no row for
_PIECES = {
    "proof": "int64", "start_ns": "int64", "end_ns": "int64", "kind": "str", "what": "str", "worker": "str",
    "partition": "str",
}  # fmt: skip
MAX_PIECES = 200_000
_OF_PARTITION = r"^p\d+\.\d+\."  # what belongs to one partition is called after it: p0.3.barrier


@per_run
def critical_path(run: Run) -> pd.DataFrame:
    """The critical path of every proof, from the start of its first stage to the end of its last.

    Returns
    -------
    DataFrame
        One row a piece, in order of proof and time: `proof`, `start_ns`, `end_ns`, `kind` (the span's category;
        ``transfer``; ``wait:KIND`` for a wait whose end nothing explains; `HOST`), `what`, `worker`, `partition`. The
        pieces of a proof add up to its time.
    """
    spans = run.table("spans")
    proofs = spans[(spans["proof"] >= 0) & (spans["partition"] != "")]
    if not len(proofs):
        return table((), _PIECES)
    threads = _Threads(run)
    rows: list[tuple[object, ...]] = []
    for proof, mine in proofs.groupby("proof"):
        last = mine.loc[mine["end"].idxmax()]
        start = int(mine["start"].min())
        pieces = list(threads.walk(_thread_of(last), start, int(last["end"])))
        rows += [(proof, *piece) for piece in reversed(pieces)]
        if len(rows) > MAX_PIECES:
            raise ValueError(f"{run.name}: its critical paths have more than {MAX_PIECES} pieces")
    return table(rows, _PIECES)


def critical_stages(run: Run) -> pd.DataFrame:
    """What the critical paths of all proofs are made of.

    Returns
    -------
    DataFrame
        `kind`, `what` (buffers and partitions left out of its name), `pieces`, `time_ns`, `share` (of the critical
        paths together); the largest first. The times add up to the time of all proofs.
    """
    path = critical_path(run)
    length = path["end_ns"] - path["start_ns"]
    what = path["what"].str.replace(_OF_PARTITION, "", regex=True).str.partition(".")[0] if len(path) else path["what"]
    found = length.groupby([path["kind"], what]).agg(["size", "sum"]).reset_index()
    found.columns = ["kind", "what", "pieces", "time_ns"]
    found = found.assign(share=found["time_ns"] / max(int(length.sum()), 1))
    return found.sort_values(["time_ns", "what"], ascending=[False, True], ignore_index=True)


def _thread_of(row: pd.Series) -> str:
    return row["thread"] or row["worker"]


@dataclass(frozen=True)
class _Act:
    """Something that a thread did or waited for."""

    start: int
    end: int
    kind: str
    what: str
    worker: str
    partition: str


class _Threads:
    """What each thread did, in order, and who ended which wait."""

    def __init__(self, run: Run) -> None:
        spans, waits = run.table("spans"), run.table("waits")
        work = spans[spans["category"] != CALL]
        thread = work["thread"].where(work["thread"] != "", work["worker"])
        acts: dict[str, list[_Act]] = {}
        for row, name in zip(work.itertuples(), thread, strict=True):
            acts.setdefault(name, []).append(
                _Act(row.start, row.end, row.category, row.name, root_of(row.worker), row.partition)
            )
        for row in waits.itertuples():
            acts.setdefault(row.worker, []).append(
                _Act(row.start, row.end, f"wait:{row.kind}", row.on, root_of(row.worker), row.partition)
            )
        self._acts = {
            name: sorted((act for act in of if act.end > act.start), key=lambda act: (act.end, -act.start))
            for name, of in acts.items()
        }
        self._ends = {name: np.array([act.end for act in of], dtype=np.int64) for name, of in self._acts.items()}
        uses = locks.uses(run)
        self._releases = uses[~uses["given_up"]].sort_values("released_ns")
        calls = spans[spans["category"] == CALL]
        self._calls = calls.sort_values("start")
        self._copies = _finished(run.table("transfers"), "transfer", "copy")
        self._kernels = _finished(run.table("kernels"), "gpu", "")
        self._threads_of: dict[tuple[str, str], list[str]] = {}
        for name, of in self._acts.items():
            for act in of:
                known = self._threads_of.setdefault((act.what, act.partition), [])
                if name not in known:
                    known.append(name)

    def walk(self, thread: str, start: int, end: int) -> Iterator[tuple[int, int, str, str, str, str]]:
        """Pieces backwards from a moment of a thread: start, end, kind, what, worker, partition."""
        at = end
        seen: set[str] = set()  # threads looked at without the clock going back
        partition = ""  # of the piece before: a thread that was forked for it did nothing else for it earlier
        while at > start:
            act = self._before(thread, at)
            parent = root_of(thread)
            gap = act is None or act.end < at
            if parent != thread and parent not in seen and (gap or (partition and act.partition != partition)):
                seen.add(thread)
                thread, partition = parent, ""
                continue
            if gap:
                begun = start if act is None else max(act.end, start)
                yield begun, at, HOST, "not traced", parent, ""
                at, seen = begun, set()
                continue
            partition = act.partition
            blamed = self._blamed(thread, act, at) if act.kind.startswith("wait:") else None
            if blamed is None:
                begun = max(act.start, start)
                yield begun, at, act.kind, act.what, act.worker, act.partition
                at, seen = begun, set()
                continue
            piece, following = blamed
            if piece is not None and max(piece.start, start) < at:
                # The device's work ended the wait: it is the piece; the thread that asked for it goes on before.
                begun = max(piece.start, act.start, start)
                yield begun, at, piece.kind, piece.what, piece.worker, piece.partition
                at, seen = begun, set()
                continue
            if following in seen or following == thread:
                begun = max(act.start, start)
                yield begun, at, act.kind, act.what, act.worker, act.partition
                at, seen = begun, set()
                continue
            seen.add(thread)
            thread = following

    def _before(self, thread: str, at: int) -> _Act | None:
        """What the thread did until just before a moment: under way then, the innermost; else what ended last."""
        of = self._acts.get(thread)
        if not of:
            return None
        place = int(np.searchsorted(self._ends[thread], at, side="left"))
        under_way = [act for act in of[place : place + 64] if act.start < at]
        if under_way:
            inner = max(under_way, key=lambda act: act.start)
            return _Act(inner.start, at, inner.kind, inner.what, inner.worker, inner.partition)
        return of[place - 1] if place else None

    def _blamed(self, thread: str, wait: _Act, at: int) -> tuple[_Act | None, str] | None:
        """What ended a wait: work of the device, or a thread with which to go on; None where nothing explains it."""
        match wait.kind:
            case "wait:lock":
                released = self._releases[
                    (self._releases["lock"] == wait.what) & (self._releases["released_ns"] <= at)
                    & (self._releases["released_ns"] > wait.start) & (self._releases["worker"] != wait.worker)
                ]  # fmt: skip
                return (None, released.iloc[-1]["worker"]) if len(released) else None
            case "wait:barrier":
                return self._thread_at("prep_msm", wait.partition, at)
            case "wait:join":
                return self._thread_at("b_g2_msm", wait.partition, at)
            case "wait:queue":
                call = self._calls[(self._calls["worker"] == wait.worker) & (self._calls["start"] >= at)].head(1)
                return self._thread_at("synthesis", call.iloc[0]["partition"], at) if len(call) else None
            case "wait:event":
                work = _last(self._copies, wait, at, wait.worker)
                return (work, thread) if work else None
            case "wait:device_sync":
                work = _last(self._kernels, wait, at, "")
                return (work, thread) if work else None
        return None

    def _thread_at(self, what: str, partition: str, at: int) -> tuple[None, str] | None:
        """The thread that did a stage of a partition until a moment."""
        for name in self._threads_of.get((what, partition), ()):
            act = self._before(name, at)
            if act is not None and act.what == what and act.partition == partition and act.end <= at:
                return None, name
        return None


def root_of(actor: str) -> str:
    """The worker for which an actor works."""
    return actor.partition("/")[0]


def _finished(rows: pd.DataFrame, kind: str, what: str) -> list[_Act]:
    """Device work by its end."""
    names = [what] * len(rows) if what else rows["span"].where(rows["span"] != "", rows["name"])
    found = [
        _Act(row.start, row.end, kind, name, worker, row.partition)
        for row, name, worker in zip(rows.itertuples(), names, root(rows["worker"]), strict=True)
    ]
    return sorted(found, key=lambda act: act.end)


def _last(of: list[_Act], wait: _Act, at: int, worker: str) -> _Act | None:
    """The last work that ended within a wait."""
    ended = [
        act for act in of if wait.start < act.end <= at and act.start < at and (not worker or act.worker == worker)
    ]
    return ended[-1] if ended else None

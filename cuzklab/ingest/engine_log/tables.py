"""Calls and syntheses as a trace."""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from cuzklab.errors import BadInput
from cuzklab.ingest.engine_log.calls import Call
from cuzklab.ingest.engine_log.vocabulary import Event
from cuzklab.ingest.rows import Rows
from cuzklab.trace.columns import NULL, table
from cuzklab.trace.metrics import CALL, PROVED

_MIB = 1 << 20
_MOST_CALLS = 2_000_000
_MOST_JOBS = 1_000_000
_MOST_SYNTHESES = 65_536
# What `style` says of a span: both ends stand in the log; its length does, and its place follows from the protocol;
# the same, but its line may belong to another call.
TIMED, PLACED, DOUBTFUL = "timed", "placed", "doubtful"
_STAGE_OF_LINE = {"h_msm": "ntt_msm_h"}


@dataclass
class Writer:
    """Gathers the rows of a trace.

    Attributes
    ----------
    disagreeing : int
        Calls and syntheses whose stated length is not the time between their two events.
    unfinished_calls, derived_ends : int
        GPU calls without an end; of which a later step, or the partition's next event, tells at least until when.
    unfinished_syntheses, unmatched_syntheses : int
        Without an end; ends without a start (kept, with the length that they state).
    words : Counter
        Results of pre-staging.
    """

    spans: Rows = field(default_factory=lambda: Rows("spans"))
    waits: Rows = field(default_factory=lambda: Rows("waits"))
    counters: Rows = field(default_factory=lambda: Rows("counters"))
    disagreeing: int = 0
    unfinished_calls: int = 0
    derived_ends: int = 0
    unfinished_syntheses: int = 0
    unmatched_syntheses: int = 0
    words: Counter = field(default_factory=Counter)
    vram_limit_bytes: dict[int, int] = field(default_factory=dict)
    workers: set[int] = field(default_factory=set)
    partitions: Counter = field(default_factory=Counter)
    _jobs: dict[str, int] = field(default_factory=dict)
    _syntheses: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    _lanes: list[bool] = field(default_factory=list)
    _queued: int = 0
    _uses: list[tuple[str, int, int | None, int | None, str, str]] = field(default_factory=list)
    _calls: int = 0

    @property
    def jobs(self) -> int:
        return len(self._jobs)

    def partition(self, job: str, number: int) -> tuple[int, str]:
        """Number of a proof, in the order in which the log names them, and name of its partition."""
        proof = self._jobs.setdefault(job, len(self._jobs))
        if proof >= _MOST_JOBS:
            raise BadInput(f"more than {_MOST_JOBS:,} jobs in one log; cut it into several")
        return proof, f"p{proof}.{number}" if number >= 0 else ""

    # Syntheses and the queue

    def event(self, event: Event) -> None:
        """Take what an event tells by itself."""
        if event.what == "synth_start":
            self._begin_synthesis(event)
        elif event.what == "synth_end":
            self._end_synthesis(event)
        elif event.what == "queued":
            self._queue(event, 1)
        elif event.what == "pickup":
            self._queue(event, -1)

    def _queue(self, event: Event, change: int) -> None:
        if (event.job, event.partition) in self._syntheses:  # its end was lost, and was no later than this
            start, lane = self._syntheses.pop((event.job, event.partition))
            self._lanes[lane] = False
            self.derived_ends += 1
            self._synthesis(event.job, event.partition, start, event.time_ns, lane, False, PLACED)
        self._queued = max(self._queued + change, 0)
        self.counters.add(time=event.time_ns, name="queue synthesised", value=float(self._queued))

    def _begin_synthesis(self, event: Event) -> None:
        key = (event.job, event.partition)
        if key in self._syntheses or len(self._syntheses) >= _MOST_SYNTHESES:
            first = key if key in self._syntheses else next(iter(self._syntheses))
            self._abandon(first, event.time_ns)
        # Which thread synthesises is not in the log: the first lane that is free stands for it.
        lane = next((place for place, busy in enumerate(self._lanes) if not busy), len(self._lanes))
        if lane == len(self._lanes):
            self._lanes.append(True)
        self._lanes[lane] = True
        self._syntheses[key] = (event.time_ns, lane)

    def _end_synthesis(self, event: Event) -> None:
        begun = self._syntheses.pop((event.job, event.partition), None)
        if begun is None:
            self.unmatched_syntheses += 1
            begun = (max(event.time_ns - max(event.took_ns, 0), 0), -1)
        start, lane = begun
        if lane >= 0:
            self._lanes[lane] = False
        self._check_length(start, event.time_ns, event.took_ns)
        self._synthesis(event.job, event.partition, start, event.time_ns, lane, False, TIMED if lane >= 0 else PLACED)

    def _abandon(self, key: tuple[str, int], time_ns: int) -> None:
        start, lane = self._syntheses.pop(key)
        self._lanes[lane] = False
        self.unfinished_syntheses += 1
        self._synthesis(*key, start, time_ns, lane, True, PLACED)

    def _synthesis(
        self, job: str, number: int, start: int, end: int, lane: int, open_: bool, style: str = TIMED
    ) -> None:
        proof, partition = self.partition(job, number)
        self.partitions[proof] = max(self.partitions[proof], number + 1)
        thread = f"synth{lane}" if lane >= 0 else "synth"
        self.spans.add(
            start=start, end=max(start, end), name="synthesis", category="cpu", thread=thread, worker=thread,
            proof=proof, partition=partition, style=style, open=open_,
        )  # fmt: skip

    def _check_length(self, start: int, end: int, took: int) -> None:
        if took >= 0 and start >= 0 and abs(end - start - took) > 2_000_000:
            self.disagreeing += 1

    # Calls

    def call(self, call: Call, log_end_ns: int) -> None:
        """Take a call of which nothing more can come."""
        self._calls += 1
        if self._calls > _MOST_CALLS:
            raise BadInput(f"more than {_MOST_CALLS:,} GPU calls in one log; cut it into several")
        proof, partition = self.partition(call.job, call.partition)
        if call.partition >= 0:
            self.partitions[proof] = max(self.partitions[proof], call.partition + 1)
        self.workers.add(call.worker)
        worker, begins = f"w{call.worker}", call.begins_ns
        finished = call.end_ns >= 0
        until = None if finished else call.known_until_ns
        ends = max(call.end_ns if finished else log_end_ns if until is None else until, begins)
        self.unfinished_calls += not finished and until is None
        self.derived_ends += until is not None
        if finished and call.start_ns >= 0:
            self._check_length(call.start_ns, call.end_ns, call.took_ns)
        common = {"worker": worker, "proof": proof, "partition": partition}
        timed = finished and call.start_ns >= 0
        self.spans.add(
            start=begins, end=ends, name=PROVED, category=CALL, thread=worker, device=call.device,
            open=not finished and until is None,
            style=TIMED if timed else PLACED, **common,
        )  # fmt: skip
        inside = {**common, "parent": PROVED}
        for name, start, end, thread in _cpu_steps(call, worker):
            self._step(call, name, start, end, "memory" if name == "async_dealloc" else "cpu", thread, -1, inside)
        for name, start, end in call.gpu_steps():
            if name == "barrier_wait":
                self.waits.add(start=max(start, 0), end=end, kind="barrier", on="barrier", worker=worker,
                               partition=partition)  # fmt: skip
            else:
                self._step(call, name, start, end, "gpu", worker, call.device, inside)
        self._locks(call, worker, partition)
        self._prestage(call, begins, inside)

    def _step(
        self, call: Call, name: str, start: int, end: int, category: str, thread: str, device: int, inside: dict
    ) -> None:
        line = name if name in call.lines else _STAGE_OF_LINE.get(name, name)
        style = DOUBTFUL if line in call.doubtful or name in call.doubtful else PLACED
        self.spans.add(start=max(start, 0), end=max(end, 0), name=name, category=category, thread=thread,
                       device=device, style=style, **inside)  # fmt: skip

    def _locks(self, call: Call, worker: str, partition: str) -> None:
        asked, acquired, released = call.requested_ns, call.acquired_ns, call.released_ns
        if acquired is not None:
            lock = f"gpu{call.device}.lock"
            self._uses.append((lock, acquired if asked is None else asked, acquired, released, worker, partition))

    def _prestage(self, call: Call, begins: int, inside: dict) -> None:
        at = call.acquired_ns
        at = begins if at is None else at
        if word := call.words.get("prestage_setup"):
            self.words[word] += 1
            self.spans.add(start=at, end=at, name=f"prestage {word}", category="memory", thread=inside["worker"],
                           device=call.device, style="mark", **inside)  # fmt: skip
        if sizes := call.lines.get("prestage_vram"):
            free, total = sizes["free_mib"] * _MIB, sizes["total_mib"] * _MIB
            self.counters.add(time=at, name=f"gpu{call.device} free_memory_bytes", value=float(free))
            self.vram_limit_bytes[call.device] = max(self.vram_limit_bytes.get(call.device, 0), total)

    def finish(self, log_end_ns: int) -> dict[str, pa.Table]:
        """The tables; what has not ended lasts to the end of the log."""
        for key in list(self._syntheses):
            self._abandon(key, log_end_ns)
        uses, holders = self._lock_table()
        for (lock, requested, acquired, _, worker, partition), holder in zip(self._uses, holders, strict=True):
            if acquired > requested:
                self.waits.add(start=requested, end=acquired, kind="lock", on=lock, holder=holder, worker=worker,
                               partition=partition)  # fmt: skip
        return {
            "spans": self.spans.table(),
            "locks": uses,
            "waits": self.waits.table(),
            "counters": self.counters.table(),
        }

    def _lock_table(self) -> tuple[pa.Table, list[str]]:
        self._uses.sort(key=lambda use: use[1:3])
        holders = _holders(self._uses)
        lock, requested, acquired, released, worker, partition = (
            zip(*self._uses, strict=True) if self._uses else ((),) * 6
        )
        ended = np.array([NULL if one is None else one for one in released], np.int64)
        workers = pa.array(worker, pa.string())
        made = table(
            "locks", len(self._uses), lock=pa.array(lock, pa.string()), requested=np.array(requested, np.int64),
            acquired=np.array(acquired, np.int64), released=ended, thread=workers, worker=workers,
            partition=pa.array(partition, pa.string()), holder_at_request=pa.array(holders, pa.string()),
        )  # fmt: skip
        return made, holders


def _cpu_steps(call: Call, worker: str) -> list[tuple[str, int, int, str]]:
    """Steps outside the lock: name, start, end, thread."""
    steps = []
    at = call.split_ends_ns
    if split := call.number("split_vectors"):
        steps.append(("split_vectors", at - split, at, worker))
    for name in ("prep_msm", "b_g2_msm"):
        if (took := call.number(name)) is not None:
            steps.append((name, at, at + took, f"{worker}/prep"))
            at += took
    if (took := call.number("async_dealloc")) is not None and call.end_ns >= 0:
        steps.append(("async_dealloc", call.end_ns, call.end_ns + took, f"{worker}/dealloc"))
    return steps


def _holders(uses: list[tuple[str, int, int | None, int | None, str, str]]) -> list[str]:
    """Who held the lock at each request; empty where nobody did."""
    held: dict[str, list[tuple[int, int, str]]] = {}
    for lock, _, acquired, released, worker, _ in uses:
        held.setdefault(lock, []).append((acquired, 1 << 62 if released is None else released, worker))
    starts = {}
    for lock, rows in held.items():
        rows.sort()
        starts[lock] = [row[0] for row in rows]
    found = []
    for lock, requested, acquired, *_ in uses:
        place = bisect_right(starts[lock], requested)
        last = held[lock][max(place - 8, 0) : place]
        found.append(
            next((who for began, until, who in reversed(last) if until > requested and began < acquired), "")
            if acquired > requested
            else ""
        )
    return found

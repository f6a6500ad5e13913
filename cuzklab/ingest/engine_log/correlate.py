"""Finds the call of a line that names none.

A line of durations stands in the log where its step ended. So for each call to which it could belong, the call's start
and the durations predict when the line would have been written; the times of the events around it say when it was.
The state of the calls rules others out: a step follows the one before it, and only who has the lock is on the device.

Three degrees of certainty: *only* one call could have written the line; one call *fits* and no other does; several
fit, or none well, and the one that fits best (of equals the one that began first) is taken *in doubt*. A line that is
far from fitting any call is not placed at all.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cuzklab.ingest.engine_log.calls import GPU_STEPS, Call
from cuzklab.ingest.engine_log.vocabulary import Event, Timing

ONLY, FITS, DOUBT, NOT_PLACED = "only", "fits", "doubt", "not placed"
# Every number of a prediction is rounded, and the two streams of a log are not written at one moment.
SLACK_NS = 5_000_000
# A prediction that is further off belongs to another call, or to one that the log has lost.
FARTHEST_NS = 1_000_000_000
# Calls that ended wait for late lines until so many others have ended too.
_LATE_CALLS = 64
_UNFINISHED_PER_WORKER = 4
_MOST_PENDING = 4096
_NEVER = 1 << 62
# A prediction that is off by more may be that of the right call, whose other lines are lost, or of another one.
_NEAR_NS = 20_000_000
# Lines that follow another one of the same call.
_FOLLOWS = {"b_g2_msm": "prep_msm", "mutex_held": "mutex_wait"}


@dataclass
class Correlator:
    """Calls under way and the lines that wait for their place.

    Attributes
    ----------
    placed : Counter
        (kind, certainty) → lines.
    unmatched_ends : int
        Ends of calls without any start (kept, with the length that they state).
    """

    placed: Counter = field(default_factory=Counter)
    unmatched_ends: int = 0
    _open: dict[tuple[int, str, int], Call] = field(default_factory=dict)
    _ended: deque[Call] = field(default_factory=deque)
    _pending: list[Timing] = field(default_factory=list)
    _since_ns: int = 0

    def timing(self, line: Timing) -> None:
        """Take a line that names no call; it is placed when the next event says until when it was written."""
        self._pending.append(line)
        if len(self._pending) >= _MOST_PENDING:
            self._place_all(_NEVER)

    def event(self, event: Event) -> Iterator[Call]:
        """Take an event; yields calls of which nothing more can come."""
        self._place_all(event.time_ns)
        self._since_ns = max(self._since_ns, event.time_ns)
        if event.what == "pickup":
            yield from self._picked_up(event)
        elif event.what == "gpu_start":
            yield from self._started(event)
        elif event.what == "gpu_end":
            yield from self._finished(event)

    def finish(self) -> Iterator[Call]:
        """The log is at its end, or the engine started again: yields every call."""
        self._place_all(_NEVER)
        yield from self._open.values()
        yield from self._ended
        self._open.clear()
        self._ended.clear()

    def started_again(self, time_ns: int) -> None:
        """Later lines are of an engine that started at this time."""
        self._since_ns = time_ns

    # Events

    def _picked_up(self, event: Event) -> Iterator[Call]:
        yield from self._open_call(event)
        self._open[_key(event)].pickup_ns = event.time_ns

    def _started(self, event: Event) -> Iterator[Call]:
        call = self._under_way(event)
        if call is None or call.start_ns >= 0:
            yield from self._open_call(event)
            call = self._open[_key(event)]
        call.start_ns = event.time_ns

    def _open_call(self, event: Event) -> Iterator[Call]:
        key = _key(event)
        if key in self._open:  # the same partition again: its end was lost
            yield self._open.pop(key)
        mine = [other for other in self._open if other[0] == event.worker]
        if len(mine) >= _UNFINISHED_PER_WORKER:
            yield self._open.pop(mine[0])
        self._open[key] = Call(*key)

    def _finished(self, event: Event) -> Iterator[Call]:
        call = self._under_way(event)
        if call is None:
            self.unmatched_ends += 1
            call = Call(*_key(event))
        else:
            del self._open[call.worker, call.job, call.partition]
        call.end_ns, call.took_ns = event.time_ns, event.took_ns
        self._ended.append(call)
        if len(self._ended) > _LATE_CALLS:
            yield self._ended.popleft()

    def _under_way(self, event: Event) -> Call | None:
        """The call of an event; where either does not name its partition, the one of that worker and job."""
        key = _key(event)
        if key in self._open:
            return self._open[key]
        alike = [call for call in self._open.values() if (call.worker, call.job) == key[:2]]
        if event.partition < 0:
            return alike[-1] if alike else None
        nameless = next((call for call in alike if call.partition < 0), None)
        if nameless is not None:
            del self._open[(*key[:2], -1)]
            nameless.partition = event.partition
            self._open[key] = nameless
        return nameless

    # Lines without a call

    def _place_all(self, until_ns: int) -> None:
        for line in self._pending:
            self._place(line, until_ns)
        self._pending.clear()

    def _place(self, line: Timing, until_ns: int) -> None:
        calls = [call for call in (*self._open.values(), *self._ended) if line.what not in call.lines]
        if line.what in GPU_STEPS or line.what.startswith("prestage"):
            calls = self._on_device(calls, line)
        rated = []
        for call in calls:
            window = _written(call, line)
            if window is not None:
                misfit = max(window[0] - until_ns - SLACK_NS, self._since_ns - window[1] - SLACK_NS, 0)
                rated.append(((misfit, _gap(call, line.what), *window), call))
        rated.sort(key=lambda one: one[0])
        if not rated or rated[0][0][0] > FARTHEST_NS:
            self.placed[line.what, NOT_PLACED] += 1
            return
        (misfit, gap, earliest, latest), call = rated[0]
        sure = ONLY
        rivals = [other for (far, missing, *_), other in rated[1:] if far <= misfit + 2 * SLACK_NS and missing <= gap]
        if rivals or misfit > _NEAR_NS or line.what in call.contested or _FOLLOWS.get(line.what) in call.doubtful:
            sure = DOUBT
            for other in rivals:  # whatever line they get in its stead is as doubtful
                other.contested.add(line.what)
        elif len(rated) > 1:
            sure = FITS
        call.lines[line.what] = line.numbers
        if line.word:
            call.words[line.what] = line.word
        if sure == DOUBT:
            call.doubtful.add(line.what)
        elif earliest == latest and not misfit:  # what follows was written later
            self._since_ns = max(self._since_ns, earliest - SLACK_NS)
        self.placed[line.what, sure] += 1
        if line.what == "mutex_held":
            self._settle(call)

    def _settle(self, call: Call) -> None:
        """Who waited at the barrier waited for the end of its own prep_msm, which may settle a doubt."""
        ends = call.barrier_ends_ns
        if ends is None or "prep_msm" not in call.doubtful:
            return
        took = ends - call.split_ends_ns
        fitting = [
            other
            for other in (call, *self._open.values(), *self._ended)
            if "prep_msm" in other.doubtful and abs(other.lines["prep_msm"]["prep_msm"] - took) <= SLACK_NS
        ]
        if not fitting:
            return
        if fitting[0] is not call:  # b_g2_msm follows prep_msm on the same thread, so it goes with it
            for kind in ("prep_msm", "b_g2_msm"):
                mine, theirs = call.lines.pop(kind, None), fitting[0].lines.pop(kind, None)
                call.lines.update({kind: theirs} if theirs else {})
                fitting[0].lines.update({kind: mine} if mine else {})
        call.doubtful.discard("prep_msm")
        self.placed["prep_msm", DOUBT] -= 1
        self.placed["prep_msm", FITS] += 1

    def _on_device(self, calls: list[Call], line: Timing) -> list[Call]:
        """Of some calls those that can be on the device: who has the lock, or has just released it."""
        holding = [call for call in calls if "mutex_wait" in call.lines and "mutex_held" not in call.lines]
        if holding:
            calls = holding + [call for call in calls if self._just_released(call)]
        told = line.numbers.get("gpu_tid")
        same = [call for call in calls if told is None or call.number("ntt_msm_h", "gpu_tid") in (None, told)]
        return same or calls

    def _just_released(self, call: Call) -> bool:
        released = call.released_ns
        return released is not None and released >= self._since_ns - SLACK_NS


def _key(event: Event) -> tuple[int, str, int]:
    return event.worker, event.job, event.partition


def _written(call: Call, line: Timing) -> tuple[int, int] | None:
    """Between which times a call would have written a line; None where it cannot have."""
    numbers, begins = line.numbers, call.begins_ns
    what = line.what
    latest = call.end_ns if call.end_ns >= 0 else _NEVER
    if what == "split_vectors":
        earliest = latest = begins + max(numbers["setup_to_split"], numbers["split_vectors"])
    elif what == "prep_msm":
        earliest = latest = call.split_ends_ns + numbers["prep_msm"]
    elif what == "b_g2_msm":
        prep = call.number("prep_msm")
        earliest = call.split_ends_ns + (prep or 0) + numbers["b_g2_msm"]
        latest = latest if prep is None else earliest
    elif what == "mutex_wait":
        earliest = latest = begins + numbers["pre_lock_cpu"] + numbers["mutex_wait"]
    elif what == "mutex_held":
        earliest = latest = begins + numbers["total_start_fn"]
        acquired = call.acquired_ns
        if acquired is not None and abs(acquired + numbers["mutex_held"] - earliest) > FARTHEST_NS:
            return None
    elif what == "async_dealloc":
        if call.end_ns < 0:
            return None
        earliest = latest = call.end_ns + numbers["async_dealloc"]
    else:
        return _written_on_device(call, line, latest)
    return earliest, latest


def _written_on_device(call: Call, line: Timing, latest_ns: int) -> tuple[int, int] | None:
    """The same for pre-staging, and for the steps of the GPU thread in their order."""
    earliest = call.begins_ns if call.acquired_ns is None else call.acquired_ns
    if line.what in GPU_STEPS:
        place = GPU_STEPS.index(line.what)
        if any(step in call.lines for step in GPU_STEPS[place + 1 :]):
            return None
        whole = line.numbers.get("gpu_total") or line.numbers.get("total")
        before = sum(call.number(step) or 0 for step in GPU_STEPS[1:place])
        earliest += before + line.numbers[line.what] if whole is None else whole
    released = call.released_ns
    return earliest, latest_ns if released is None else released


def _gap(call: Call, what: str) -> int:
    """How many steps before this one the call has no line of."""
    before = _FOLLOWS.get(what)
    if before:
        return int(before not in call.lines)
    if what not in GPU_STEPS:
        return 0
    return sum(step not in call.lines for step in GPU_STEPS[: GPU_STEPS.index(what)])


def lines_placed(placed: Counter, kinds: Iterable[str]) -> list[dict[str, object]]:
    """A row a kind that was read: how many lines, and how sure their place is."""
    return [
        {
            "line": kind,
            "lines": sum(placed[kind, sure] for sure in (ONLY, FITS, DOUBT, NOT_PLACED)),
            "only_possible_call": placed[kind, ONLY],
            "fits_one_call": placed[kind, FITS],
            "in_doubt": placed[kind, DOUBT],
            "not_placed": placed[kind, NOT_PLACED],
        }
        for kind in kinds
        if any(placed[kind, sure] for sure in (ONLY, FITS, DOUBT, NOT_PLACED))
    ]

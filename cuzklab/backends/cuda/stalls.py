"""Which calls of the host stop the kernels of other streams, and for how long.

A thread keeps one stream busy with short kernels, each between two events, while another makes the call: page-locking,
allocating, freeing, trimming the pool, copying. What the kernels lose meanwhile tells what a model of the device must
charge for the call. With few kernels in the queue, a call that only stops launches starves the device; with many, the
device goes on unless it is stopped itself: so both are measured.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from cuzklab.backends.cuda.clock import DeviceClock
from cuzklab.backends.cuda.compile import Unit
from cuzklab.backends.cuda.harness import Inputs, work_for
from cuzklab.backends.cuda.host_calls import Pair, allocating, copying, pairs, pinning
from cuzklab.backends.cuda.launch import cupy, launch, multiprocessors, refusing_in_one_line
from cuzklab.progress import Report
from cuzklab.units import GiB

_PROBE = Unit("ceilings.cu")
_PAUSE_S = 0.03
_ALONE_S = 0.25
SIZES_GIB = (1.0, 4.0, 11.65)
"""The last is a, b and c of a 32 GiB PoRep partition."""


@dataclass(frozen=True)
class Depth:
    """How the device is kept busy: kernels in the queue at a time, and rounds of each (100 take about 0.1 ms)."""

    name: str
    kernels: int
    rounds: int


SHALLOW, DEEP = Depth("few in the queue", 8, 100), Depth("many in the queue", 600, 1000)


@dataclass
class Seen:
    """What the probe saw: when the device was at each kernel, and the host at each launch, in nanoseconds."""

    on_device: list[tuple[int, int]] = field(default_factory=list)
    issuing: list[tuple[int, int]] = field(default_factory=list)


def placed(events: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """When the device was at each of many equal kernels, from the moments before and after each.

    A launch that is held up lies between them and is no time of the kernel, which then takes what is usual.
    """
    if not events:
        return []
    usual = round(median(end - start for start, end in events))
    return [(max(start, end - usual), end) for start, end in events]


@dataclass(frozen=True)
class Call:
    """One call of the host, and how often it was measured.

    Attributes
    ----------
    name : str
    size_bytes : int
    queue : str
        `Depth.name` of the probe.
    call_ms : float
        Median of its duration beside the kernels.
    alone_ms : float
        Median of its duration on an idle device.
    kernel_share : float
        Share of the call during which a kernel ran, relative to the same share without the call: 1 is no effect, 0
        full exclusion. Median.
    longest_gap_ms, longest_issue_ms : float
        Longest time that began or ended inside the call in which the device had no kernel, and which one launch took
        on the host. Medians.
    repeats : int
    """

    name: str
    size_bytes: int
    queue: str
    call_ms: float
    alone_ms: float
    kernel_share: float
    longest_gap_ms: float
    longest_issue_ms: float
    repeats: int


@dataclass(frozen=True)
class Beside:
    """Work of the prover's kernels beside a call that is made again and again, with what undoes it.

    Attributes
    ----------
    work, call : str
    size_bytes : int
        Of the call.
    per_s, alone_per_s : float
        Runs of the work a second, beside the call and without it.
    calls : int
        How often the call was made.
    """

    work: str
    call: str
    size_bytes: int
    per_s: float
    alone_per_s: float
    calls: int

    @property
    def ratio(self) -> float:
        """What is left of the work's rate."""
        return self.per_s / self.alone_per_s


def busy_ns(intervals: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    """How long one of some intervals, which do not overlap, was under way between two moments."""
    return sum(max(0, min(stop, end) - max(start, begin)) for start, stop in intervals)


def longest_gap_ns(intervals: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    """Longest time between neighbouring intervals, in order, that has a part between two moments."""
    gaps = [
        (following[0] - before[1])
        for before, following in pairwise(intervals)
        if before[1] < end and following[0] > begin
    ]
    return max(gaps, default=0)


def longest_ns(intervals: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    """Longest interval that has a part between two moments."""
    return max((stop - start for start, stop in intervals if start < end and stop > begin), default=0)


class Probe:
    """Keeps a stream of the current device busy from a thread of its own.

    Parameters
    ----------
    depth : Depth
    """

    def __init__(self, depth: Depth) -> None:
        self._depth = depth
        self._cuda = cupy().cuda
        self._index = self._cuda.Device().id
        self._clock = DeviceClock(self._cuda)
        self._out = cupy().empty(multiprocessors() * 16 * 128, np.uint32)
        self._stop, self._full = threading.Event(), threading.Event()
        self._events: list[tuple[Any, Any]] = []
        self._thread = threading.Thread(target=self._run, name="probe")
        self.seen = Seen()
        self.error: BaseException | None = None

    def __enter__(self) -> "Probe":
        self._thread.start()
        self._full.wait()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()
        if self.error is not None and exception[0] is None:
            raise self.error
        moment = self._clock.moment_ns
        self.seen.on_device = placed([(moment(start), moment(end)) for start, end in self._events])
        self._events.clear()

    def _run(self) -> None:
        try:
            with self._cuda.Device(self._index):
                self._keep_busy()
        except BaseException as error:
            self.error = error
        finally:
            self._full.set()

    def _keep_busy(self) -> None:
        stream = self._cuda.Stream(non_blocking=True)
        waiting: deque[Any] = deque()
        arguments = (self._out, np.uint32(0x9E3779B1), np.uint32(self._depth.rounds))
        grid = multiprocessors() * 16
        with stream:
            while not self._stop.is_set():
                begun = time.monotonic_ns()
                start = stream.record(self._cuda.Event())
                launch(_PROBE, "wide_multiply_adds", grid, 128, arguments)
                end = stream.record(self._cuda.Event())
                self.seen.issuing.append((begun, time.monotonic_ns()))
                self._events.append((start, end))
                waiting.append(end)
                if len(waiting) >= self._depth.kernels:
                    self._full.set()
                    waiting.popleft().synchronize()
            stream.synchronize()


def _timed(function: Callable[[], None]) -> tuple[int, int]:
    begin = time.monotonic_ns()
    function()
    return begin, time.monotonic_ns()


@refusing_in_one_line
def measure(
    sizes_gib: Sequence[float] = SIZES_GIB,
    repeats: int = 3,
    report: Report = lambda share, words="": None,
    found: Callable[[Call], None] = lambda call: None,
) -> list[Call]:
    """Measure every call alone, beside few queued kernels and beside many.

    Parameters
    ----------
    sizes_gib : sequence of float
        Sizes of what is page-locked; other calls take some of them.
    repeats : int
    report : callable (share, words), optional
    found : callable (Call), optional
        Told each row at once.

    Raises
    ------
    BadInput
        There is no usable GPU, or too little memory.
    """
    rows: list[Call] = []
    alone_share = {depth: _share_alone(depth) for depth in (SHALLOW, DEEP)}
    for number, pair in enumerate(pairs(sizes_gib)):
        report(number / (len(sizes_gib) + 6), f"{pair.name} {pair.size_bytes / GiB:.4g} GiB")
        alone = _repeated(pair, repeats)
        for depth in (SHALLOW, DEEP):
            with Probe(depth) as probe:
                beside = _repeated(pair, repeats)
            for name, there, without in zip((pair.name, pair.undo_name), beside, alone, strict=True):
                row = _row(name, pair.size_bytes, depth, probe.seen, there, without, alone_share[depth])
                rows.append(row)
                found(row)
    report(1.0, "done")
    return rows


def _repeated(pair: Pair, repeats: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Intervals of a call and of the one that undoes it; once unmeasured before."""
    pair.do(), pair.undo()
    done, undone = [], []
    for _ in range(repeats):
        time.sleep(_PAUSE_S)
        done.append(_timed(pair.do))
        time.sleep(_PAUSE_S)
        undone.append(_timed(pair.undo))
    return done, undone


def _share_alone(depth: Depth) -> float:
    with Probe(depth) as probe:
        begin = time.monotonic_ns()
        time.sleep(_ALONE_S)
        end = time.monotonic_ns()
    return busy_ns(probe.seen.on_device, begin, end) / (end - begin)


def _row(
    name: str, size_bytes: int, depth: Depth, seen: Seen, calls: Sequence[tuple[int, int]],
    alone: Sequence[tuple[int, int]], alone_share: float,
) -> Call:  # fmt: skip
    return Call(
        name,
        size_bytes,
        depth.name,
        median(end - begin for begin, end in calls) * 1e-6,
        median(end - begin for begin, end in alone) * 1e-6,
        median(busy_ns(seen.on_device, begin, end) / (end - begin) for begin, end in calls) / alone_share,
        median(longest_gap_ns(seen.on_device, begin, end) for begin, end in calls) * 1e-6,
        median(longest_ns(seen.issuing, begin, end) for begin, end in calls) * 1e-6,
        len(calls),
    )


@refusing_in_one_line
def measure_work(
    log2n: int = 20, size_gib: float = 1.0, least_s: float = 0.4, found: Callable[[Beside], None] = lambda row: None
) -> list[Beside]:
    """Rates of an MSM and of the H polynomial on resident data, beside each call of one size."""
    module, rows = cupy(), []
    runtime, size_bytes = module.cuda.runtime, round(size_gib * GiB)
    calls = [pinning(runtime, size_bytes, True), allocating(runtime, size_bytes), copying(module, size_bytes)]
    for name in ("msm_g1", "h_polynomial"):
        run, ends_on_host = work_for(name, 1 << log2n, Inputs())
        work = run if ends_on_host else _ending(run)
        alone, _ = throughput_beside(work, None, least_s)
        for pair in calls:
            per_s, made = throughput_beside(work, pair.do, least_s, pair.undo)
            row = Beside(f"{name} 2^{log2n}", f"{pair.name}, {pair.undo_name}", pair.size_bytes, per_s, alone, made)
            rows.append(row)
            found(row)
    return rows


def _ending(run: Callable[[], Any]) -> Callable[[], None]:
    def ended() -> None:
        run()
        cupy().cuda.get_current_stream().synchronize()

    return ended


def throughput_beside(
    work: Callable[[], Any], call: Callable[[], None] | None, least_s: float, undo: Callable[[], None] | None = None
) -> tuple[float, int]:
    """Runs a second of some work in a thread of its own, beside a call that is repeated, or beside nothing.

    Parameters
    ----------
    work : callable
        Ends on the host, once its kernels are done.
    call, undo : callable or None
        Made in turn, for at least `least_s`.

    Returns
    -------
    float
        Runs of the work that ended meanwhile, a second.
    int
        Calls that were made.
    """
    cuda, stop, ends = cupy().cuda, threading.Event(), []
    index = cuda.Device().id
    started = threading.Event()

    def run() -> None:
        with cuda.Device(index), cuda.Stream(non_blocking=True):
            work()
            while not stop.is_set():
                work()
                ends.append(time.monotonic_ns())
                started.set()

    thread = threading.Thread(target=run, name="work")
    thread.start()
    started.wait()
    begin, calls = time.monotonic_ns(), 0
    while time.monotonic_ns() - begin < 1e9 * least_s:
        if call is None:
            time.sleep(_PAUSE_S)
            continue
        call()
        calls += 1
        if undo is not None:
            undo()
    end = time.monotonic_ns()
    stop.set()
    thread.join()
    return sum(begin < moment <= end for moment in ends) * 1e9 / (end - begin), calls

"""What recording costs: a lock's round trip, a span, an allocation, and ten million events.

Bare and recorded are measured in turn, many times, in processor time, so that a busy machine does not decide. The cost
to the program is that of the calling thread; the total adds what the recording's own thread takes to drain the events.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from cuzklab.trace.recorders.locks import Lock, RLock
from cuzklab.trace.recorders.permits import Semaphore
from cuzklab.trace.recorders.recording import Recording
from cuzklab.trace.recorders.spans import attributes, domain, span_of, tool_attached
from cuzklab.trace.recorders.vram import VramTracer

_REPEATED = 16  # statements in the body of a timed loop, so that the loop itself counts for little


@dataclass(frozen=True)
class Cost:
    """What one operation costs, in nanoseconds of processor time.

    Attributes
    ----------
    bare_ns : float
        Without recording: the bare lock; nothing for a span or an allocation.
    caller_ns, total_ns : float
        Added by recording: to the thread that records, and with what drains the events in the background.
    bound_ns : float or None
        What `caller_ns` must not exceed.
    """

    operation: str
    bare_ns: float
    caller_ns: float
    total_ns: float
    bound_ns: float | None

    @property
    def within(self) -> bool:
        return self.bound_ns is None or self.caller_ns <= self.bound_ns


def costs(rounds: int = 15, loops: int = 4000, progress: Callable[[float, str], None] = lambda *_: None) -> list[Cost]:
    """Measure each operation, bare and recorded in turn.

    Parameters
    ----------
    rounds : int
        How often; medians count.
    loops : int
        Times 16 operations a round.
    """
    with Recording() as recording:
        span = span_of(recording)
        tracer = VramTracer({0: 1 << 40}, recording=recording)
        lock, reentrant = Lock("bench", recording=recording), RLock("bench reentrant", recording=recording)
        semaphore = Semaphore(1, name="bench permits", recording=recording)

        @span("decorated")
        def decorated() -> None:
            pass

        def plain() -> None:
            pass

        push_pop = "push(attributes); pop()"
        cases: list[tuple[str, str, dict[str, Any], str, dict[str, Any], float | None]] = [
            ("lock round trip", "with it: pass", {"it": threading.Lock()}, "with it: pass", {"it": lock}, 600),
            ("lock, acquire and release", "it.acquire(); it.release()", {"it": threading.Lock()},
             "it.acquire(); it.release()", {"it": lock}, 600),
            ("reentrant lock round trip", "with it: pass", {"it": threading.RLock()}, "with it: pass",
             {"it": reentrant}, 600),
            ("semaphore round trip", "with it: pass", {"it": threading.Semaphore()}, "with it: pass",
             {"it": semaphore}, 600),
            ("span, kept", "pass", {}, "with it: pass", {"it": span("kept", "gpu", 0)}, 600),
            ("span, by name", "pass", {}, "with span('by name', 'gpu'): pass", {"span": span}, 600),
            ("span, decorator", "it()", {"it": plain}, "it()", {"it": decorated}, 600),
            ("NVTX push and pop alone", "pass", {}, push_pop,
             {"push": domain().push_range, "pop": domain().pop_range, "attributes": attributes("kept", "gpu")}, None),
            ("allocation and free", "pass", {},
             "allocated(512, 4096, buffer='d_a'); freed(512)", {"allocated": tracer.allocated, "freed": tracer.freed},
             4000),
        ]  # fmt: skip
        timed = [(_loop(bare, of_bare), _loop(recorded, of_it)) for _, bare, of_bare, recorded, of_it, _ in cases]
        samples: list[list[tuple[float, float, float]]] = [[] for _ in cases]
        for number in range(rounds):
            for place, (bare, recorded) in enumerate(timed):
                progress((number + place / len(cases)) / rounds, "operations")
                before = _per_operation(bare, loops, recording)
                after = _per_operation(recorded, loops, recording)
                samples[place].append((before[0], after[0] - before[0], after[1] - before[1]))
    return [
        Cost(case[0], *(median(column) for column in zip(*found, strict=True)), case[5])
        for case, found in zip(cases, samples, strict=True)
    ]


def _loop(statement: str, names: dict[str, Any]) -> Callable[[int], None]:
    body = "\n  ".join([statement.replace("; ", "\n  ")] * _REPEATED)
    scope = dict(names)
    exec(f"def loop(count):\n for _ in range(count):\n  {body}", scope)
    return scope["loop"]


def _per_operation(loop: Callable[[int], None], loops: int, recording: Recording) -> tuple[float, float]:
    """Nanoseconds of the calling thread and of the process, the draining of all it recorded included."""
    thread, process = time.thread_time_ns(), time.process_time_ns()
    loop(loops)
    thread = time.thread_time_ns() - thread
    recording.drain()
    process = time.process_time_ns() - process
    return thread / (loops * _REPEATED), process / (loops * _REPEATED)


@dataclass(frozen=True)
class Volume:
    """Many events recorded and written by a process of its own.

    Attributes
    ----------
    events : int
        Spans, uses of a lock, and allocations or frees: 6, 3 and 1 of 10.
    peak_bytes : int
        The process's largest resident memory, the interpreter and its packages included.
    base_bytes : int
        The same before the first event.
    record_s, write_s : float
        Wall time of recording, and from its end to the stored run.
    """

    events: int
    rows: dict[str, int]
    lost: dict[str, int]
    base_bytes: int
    peak_bytes: int
    record_s: float
    write_s: float
    write_cpu_s: float
    stored_bytes: int
    spilled: bool


def volume(events: int = 10_000_000, spill: bool = False) -> Volume:
    """Record and write many events in a fresh process."""
    script = f"from cuzklab.trace.recorders import bench; bench.print_volume({int(events)}, {bool(spill)})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the recording process failed: {done.stderr.strip().splitlines()[-1:]}")
    return Volume(**json.loads(done.stdout))


def print_volume(events: int, spill: bool) -> None:
    """What the process of `volume` does: print its result as JSON."""
    import pyarrow.parquet  # noqa: F401 - loaded by the time a run is written; counts for the base

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        recording = Recording(spill=place / "spill" if spill else None)
        span, lock = span_of(recording), Lock("gpu0.lock", recording=recording)
        tracer = VramTracer({0: 1 << 40}, recording=recording)
        outer, inner = span("prove_partition", "call", 0), span("ntt_h", "gpu", 0)
        base_bytes = _peak_bytes()
        start = time.perf_counter()
        with recording:
            for number in range(events // 20):
                for _ in range(6):
                    with outer, lock, inner:
                        pass
                tracer.allocated(number, 4096, buffer="d_a")
                tracer.freed(number)
        recorded = time.perf_counter()
        processor = time.process_time()
        run = recording.write(place / "run")
        written = time.perf_counter()
        found = Volume(
            events=events // 20 * 20,
            rows={table: facts["rows"] for table, facts in run.availability.items() if facts["rows"]},
            lost=dict(recording.lost),
            base_bytes=base_bytes,
            peak_bytes=_peak_bytes(),
            record_s=recorded - start,
            write_s=written - recorded,
            write_cpu_s=time.process_time() - processor,
            stored_bytes=sum(file.stat().st_size for file in run.path.iterdir()),
            spilled=spill,
        )
    print(json.dumps(asdict(found)))


def _peak_bytes() -> int:
    """The largest resident memory of this process; what getrusage tells counts that of its parent as well."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


__all__ = ["Cost", "Volume", "costs", "tool_attached", "volume"]

"""Small runs whose every figure is known by hand: what findings and reports are tested on.

Times are in milliseconds from the start of the run. Two workers share device 0 with 16 GiB; each proves two
partitions. Under *phase 9* partition k (worker k mod 2) holds the one lock in [10 + 40k, 50 + 40k):

====================  ===========  ===================================
step                  from lock    device memory
====================  ===========  ===================================
upload                0 to 4       + d_a 4 GiB, + d_bc 8 GiB
ntt_h                 4 to 12
h_msm                 12 to 24     scratch 1 GiB meanwhile; then − 12
barrier or nothing    24 to 25
batch_add             25 to 35     scratch 3 GiB meanwhile
tail_msm              35 to 39
====================  ===========  ===================================

so kernels run for 136 of 172 ms, at most 13 GiB are live, and of 40 ms of b_g2_msm 28 run behind the other worker's
kernels, 10 behind the same worker's and 2 behind none.
"""

from operator import itemgetter
from pathlib import Path

from cuzklab.analysis import Case
from cuzklab.trace import (
    Counter,
    Kernel,
    LockUse,
    Recorder,
    Run,
    RunInfo,
    Span,
    Transfer,
    VramEvent,
    WaitInterval,
    write_run,
)
from cuzklab.units import GiB, Metric

MS = 1_000_000
WORKERS = ("gpu0.w0", "gpu0.w1")


def conditions(**more: object) -> dict[str, object]:
    """Conditions of the example runs."""
    return {"c": 1, "j": 1, "pw": 2, "gw": 2, "partitions": 4, "workload": "example", "hardware": "example"} | more


def device(vram_bytes: int) -> tuple[dict[str, object], ...]:
    return ({"index": 0, "name": "example", "vram_limit_bytes": vram_bytes, "margin_bytes": GiB // 2},)


class Writer:
    """A recorder that speaks milliseconds (or steps) and keeps the sum of live memory."""

    def __init__(self, vram_bytes: int, tick_ns: int = MS) -> None:
        self.tick_ns = tick_ns
        self.recorder = Recorder(clock=lambda: 0)
        self.vram_bytes = vram_bytes
        self.memory: list[tuple] = []

    def ns(self, ticks: float) -> int:
        return round(ticks * self.tick_ns)

    def span(self, start: float, end: float, name: str, worker: str, partition: str, category: str = "cpu") -> None:
        thread = f"{worker}/prep" if name in ("prep_msm", "b_g2_msm") else worker
        device_index = 0 if category == "gpu" else -1
        row = Span(self.ns(start), self.ns(end), name, category, 0, thread, worker, 0, partition, device_index)
        self.recorder.add(row)

    def kernel(self, start: float, end: float, stage: str, worker: str, partition: str) -> None:
        stream = f"{partition}.compute"
        start_ns, end_ns = self.ns(start), self.ns(end)
        self.recorder.add(Kernel(start_ns, end_ns, stage, stream, 0, start_ns, stage, worker, partition))
        self.span(start, end, stage, worker, partition, "gpu")

    def lock(self, name: str, requested: float, acquired: float | None, released: float | None, worker: str,
             partition: str, holder: str = "") -> None:  # fmt: skip
        times = [None if time is None else self.ns(time) for time in (requested, acquired, released)]
        self.recorder.add(LockUse(name, *times, worker, worker, partition, holder))
        if holder:
            self.wait(requested, acquired, "lock", name, worker, partition, holder)

    def wait(self, start: float, end: float, kind: str, on: str, worker: str, partition: str, holder: str = "") -> None:
        self.recorder.add(WaitInterval(self.ns(start), self.ns(end), kind, on, holder, worker, partition))

    def transfer(self, start: float, end: float, size_bytes: int, worker: str, partition: str) -> None:
        stream = f"{partition}.upload"
        start_ns, end_ns = self.ns(start), self.ns(end)
        row = Transfer(start_ns, end_ns, start_ns, size_bytes, "h2d", True, stream, 0, worker, partition)
        self.recorder.add(row)

    def vram(self, time: float, op: str, buffer: str, size_bytes: int, worker: str, partition: str,
             lock_held: str = "") -> None:  # fmt: skip
        self.memory.append((self.ns(time), op, buffer, size_bytes, worker, partition, lock_held))

    def store(self, place: Path, info: RunInfo) -> Run:
        """Write the run; the sum of live memory is made in the order of time."""
        live_bytes = 0
        for time, op, buffer, size_bytes, worker, partition, lock_held in sorted(self.memory, key=itemgetter(0)):
            live_bytes += {"alloc": size_bytes, "free": -size_bytes}.get(op, 0)
            self.recorder.add(
                VramEvent(time, op, buffer, size_bytes, 0, live_bytes, self.vram_bytes, worker, partition, lock_held)
            )
        return write_run(place, info, self.recorder)

    def counter(self, time: float, name: str, value: float) -> None:
        self.recorder.add(Counter(self.ns(time), name, value))


def _kernels(writer: Writer, at: float, worker: str, partition: str, lock: str) -> None:
    """What a partition does on the device from `at`, its memory allocated."""
    writer.kernel(at + 4, at + 12, "ntt_h", worker, partition)
    writer.vram(at + 12, "alloc", "h_msm scratch", 1 * GiB, worker, partition, lock)
    writer.kernel(at + 12, at + 24, "h_msm", worker, partition)
    writer.vram(at + 24, "free", "h_msm scratch", 1 * GiB, worker, partition, lock)
    writer.vram(at + 24, "free", "d_bc", 8 * GiB, worker, partition, lock)
    writer.vram(at + 24, "free", "d_a", 4 * GiB, worker, partition, lock)
    writer.vram(at + 25, "alloc", "batch_add.l scratch", 3 * GiB, worker, partition, lock)
    writer.kernel(at + 25, at + 35, "batch_add.l", worker, partition)
    writer.vram(at + 35, "free", "batch_add.l scratch", 3 * GiB, worker, partition, lock)
    writer.kernel(at + 35, at + 39, "tail_msm.l", worker, partition)


def _stage(writer: Writer, at: float, worker: str, partition: str, lock: str) -> None:
    writer.vram(at, "alloc", "d_a", 4 * GiB, worker, partition, lock)
    writer.vram(at, "alloc", "d_bc", 8 * GiB, worker, partition, lock)
    writer.transfer(at, at + 4, 12 * GiB, worker, partition)


def _metrics(wall_ms: float, proofs: int, peak_bytes: int, kernel_occupancy: float, obtained: str) -> tuple[dict, ...]:
    figures = (
        Metric("wall", wall_ms / 1e3, obtained),
        Metric("batch_average", wall_ms / 1e3 / proofs, obtained),
        Metric("peak_vram", peak_bytes, obtained),
        Metric("kernel_occupancy", kernel_occupancy, obtained),
    )
    return tuple(figure.to_json() for figure in figures)


def phase9_like(folder: Path, origin: str = "live", policy: str = "phase9", vram_bytes: int = 16 * GiB) -> Run:
    """One lock, two workers, four partitions, all proved: the table of this module's docstring."""
    writer = Writer(vram_bytes)
    begins, prep_ends = (0, 0, 52, 92), (35, 20, 72, 112)
    for k in range(4):
        worker, partition, at = WORKERS[k % 2], f"p0.{k}", 10 + 40 * k
        begin, prepared = begins[k], prep_ends[k]
        requested = begin + 10 + k if k < 2 else begin + 1
        writer.span(begin, at + 42, "prove_partition", worker, partition, "call")
        writer.span(begin, prepared, "prep_msm", worker, partition)
        writer.span(prepared, prepared + 10, "b_g2_msm", worker, partition)
        writer.lock("gpu0.lock", requested, at, at + 40, worker, partition, WORKERS[(k + 1) % 2] if k else "")
        _stage(writer, at, worker, partition, "gpu0.lock")
        if k == 0:
            writer.wait(at + 24, at + 25, "barrier", f"{partition}.barrier", worker, partition)
        _kernels(writer, at, worker, partition, "gpu0.lock")
        writer.span(at + 41, at + 42, "epilogue", worker, partition)
    info = RunInfo(
        origin, "phase 9, small example", policy=policy, conditions=conditions(backend="host"),
        devices=device(vram_bytes),
        metrics=_metrics(172, 1, 13 * GiB, 136 / 172, "simulated" if origin == "simulated" else "measured"),
    )  # fmt: skip
    return writer.store(folder / f"{origin}-{policy}-{vram_bytes // GiB}", info)


def phase10_out_of_memory(folder: Path, origin: str = "live", policy: str = "phase10_ordered") -> Run:
    """Two locks on 16 GiB: w0 stages 12 GiB, then w1 takes `compute` first and fails to get d_bc at 14 ms.

    At that moment 16 GiB are live: w0's d_a and d_bc, w1's d_a.
    """
    writer = Writer(16 * GiB, 1 if origin == "counterexample" else MS)
    w0, w1 = WORKERS
    writer.span(0, 20, "prep_msm", w0, "p0.0")
    writer.span(0, 14, "prep_msm", w1, "p0.1")
    writer.lock("gpu0.mem", 2, 2, 6, w0, "p0.0")
    writer.vram(3, "alloc", "d_a", 4 * GiB, w0, "p0.0", "gpu0.mem")
    writer.vram(4, "alloc", "d_bc", 8 * GiB, w0, "p0.0", "gpu0.mem")
    writer.transfer(5, 9, 12 * GiB, w0, "p0.0")
    writer.lock("gpu0.mem", 3, 6, 8, w1, "p0.1", w0)
    writer.lock("gpu0.compute", 8, 8, 15, w1, "p0.1")
    writer.lock("gpu0.compute", 9, 15, 16, w0, "p0.0", w1)
    writer.vram(12, "alloc", "d_a", 4 * GiB, w1, "p0.1", "gpu0.compute")
    writer.vram(14, "fail", "d_bc", 8 * GiB, w1, "p0.1", "gpu0.compute")
    if origin != "counterexample":
        writer.vram(15, "free", "d_a", 4 * GiB, w1, "p0.1")
        writer.vram(16, "free", "d_bc", 8 * GiB, w0, "p0.0")
        writer.vram(16, "free", "d_a", 4 * GiB, w0, "p0.0")
    counterexample = origin == "counterexample"
    covered = {"workers": 2, "steps": 14, "shortest": True, "finding": "oom"} if counterexample else {"backend": "host"}
    info = RunInfo(
        origin, "phase 10 on 16 GiB, small example", "device_oom", "d_bc needs 8 GiB", policy, conditions(**covered),
        device(16 * GiB), time_unit="step" if counterexample else "ns",
    )  # fmt: skip
    return writer.store(folder / f"{origin}-{policy}-16", info)


def phase10_roomy(folder: Path, origin: str = "live", policy: str = "phase10_ordered", gain_ms: int = 0) -> Run:
    """Two locks on 40 GiB, four partitions, all proved; each holds `compute` for 40 − `gain_ms` ms (at most 4 less).

    A partition is staged from 20 ms before its kernels' lock, while the one before computes: 25 GiB are live at most.
    Its device-wide allocation under `mem` waits 4 ms for those kernels.
    """
    writer = Writer(40 * GiB)
    for k in range(4):
        worker, partition, at = WORKERS[k % 2], f"p0.{k}", 10 + (40 - gain_ms) * k
        begin = 0 if k < 2 else at - 38 + gain_ms
        staged = at - 4 if k == 0 else at - 20
        uploaded = staged + (4 if k == 0 else 8)
        writer.span(begin, at + 42 - gain_ms, "prove_partition", worker, partition, "call")
        writer.span(begin, begin + 20, "prep_msm", worker, partition)
        writer.span(begin + 20, begin + 30, "b_g2_msm", worker, partition)
        writer.lock("gpu0.mem", staged, staged, uploaded, worker, partition)
        writer.vram(staged, "alloc", "d_a", 4 * GiB, worker, partition, "gpu0.mem")
        writer.vram(staged, "alloc", "d_bc", 8 * GiB, worker, partition, "gpu0.mem")
        if k:
            writer.wait(staged, staged + 4, "device_sync", "gpu0", worker, partition)
        writer.transfer(uploaded - 4, uploaded, 12 * GiB, worker, partition)
        writer.lock("gpu0.compute", uploaded, at, at + 40 - gain_ms, worker, partition,
                    WORKERS[(k + 1) % 2] if k else "")  # fmt: skip
        _kernels(writer, at - gain_ms, worker, partition, "gpu0.compute")
        writer.span(at + 41 - gain_ms, at + 42 - gain_ms, "epilogue", worker, partition)
    wall_ms = 172 - 4 * gain_ms
    info = RunInfo(
        origin, "phase 10 on 40 GiB, small example", policy=policy, conditions=conditions(backend="host"),
        devices=device(40 * GiB),
        metrics=_metrics(wall_ms, 1, 25 * GiB, 136 / wall_ms, "simulated" if origin == "simulated" else "measured"),
    )  # fmt: skip
    return writer.store(folder / f"{origin}-{policy}-40", info)


def safe_check(folder: Path, policy: str = "phase9", vram_bytes: int = 16 * GiB, complete: bool = True) -> Run:
    """A check that found nothing."""
    covered = conditions(workers=2, partitions=2, states=1234, complete=complete)
    info = RunInfo("check", f"check of {policy}", policy=policy, conditions=covered, devices=device(vram_bytes))
    return write_run(folder / f"check-{policy}-{vram_bytes // GiB}", info, Recorder(clock=lambda: 0))


def example_case(folder: Path) -> Case:
    """Phase 10 against phase 9 on 16 GiB, complete: live, simulated and checked, and the limit where it fits."""
    runs = (
        phase9_like(folder),
        phase9_like(folder, vram_bytes=40 * GiB),
        phase10_out_of_memory(folder),
        phase10_roomy(folder),
        phase10_out_of_memory(folder, origin="counterexample"),
        safe_check(folder),
        safe_check(folder, "phase10_ordered", 40 * GiB),
    )
    return Case("phase10_ordered", "phase9", runs, question="Does phase 10 gain over phase 9 on 16 GiB?")

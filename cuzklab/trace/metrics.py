"""The figures of a run, computed from its tables alone, so that live and simulated runs mean the same by them.

What an interpreter must record for it: a span of category `CALL` for every partition that a worker took, from before
its wait for the lock to its end, named `PROVED` or `FAILED`; the stages' spans; kernels; device memory; and a counter
`HOST_MEMORY`. Times of a run are those of its spans.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

CALL = "call"
PROVED, FAILED = "prove_partition", "failed_partition"
HOST_MEMORY = "host_memory_bytes"

# name in figures and JSON -> kind of metric
KINDS = {
    "batch_average_s": "batch_average",
    "steady_interval_s": "steady_interval",
    "prove_time_s": "prove_time",
    "peak_host_bytes": "peak_host",
    "peak_vram_bytes": "peak_vram",
    "call_occupancy": "call_occupancy",
    "kernel_occupancy": "kernel_occupancy",
    "wall_s": "wall",
}


class Tables(Protocol):
    """A `Recorder` or a `Run`."""

    def table(self, name: str) -> Any: ...


@dataclass(frozen=True)
class Figures:
    """What a run came to. None means that the figure does not exist, and `reasons` says why.

    Attributes
    ----------
    batch_average_s : float or None
        Wall time of the batch over the proofs completed, ramp included.
    steady_interval_s : float or None
        Mean interval between completed proofs in the middle half of the batch (see `steady_interval`).
    prove_time_s : float or None
        Sum of a proof's calls, lock wait included; mean over completed proofs.
    call_occupancy, kernel_occupancy : float or None
        Share of the wall time in which some call, some kernel is under way; mean over devices.
    peak_host_bytes, peak_vram_bytes : int or None
        The largest host memory in use, and the largest sum of live allocations on any device.
    wall_s : float or None
        From the first span's start to the last one's end.
    completed : tuple of int
        Proofs all of whose partitions were proved, in the order of completion.
    """

    batch_average_s: float | None
    steady_interval_s: float | None
    prove_time_s: float | None
    peak_host_bytes: int | None
    peak_vram_bytes: int | None
    call_occupancy: float | None
    kernel_occupancy: float | None
    wall_s: float | None
    completed: tuple[int, ...]
    reasons: dict[str, str]

    def known(self) -> Iterator[tuple[str, str, float]]:
        """Name, kind of metric and value of each figure that exists."""
        for name, kind in KINDS.items():
            if (value := getattr(self, name)) is not None:
                yield name, kind, value


def figures(run: Tables, partitions_per_proof: int, proofs: int | None = None) -> Figures:
    """The figures of a run.

    Parameters
    ----------
    run : Recorder or Run
    partitions_per_proof : int
        How many proved partitions complete a proof.
    proofs : int, optional
        Proofs of the batch; those with higher numbers came in between and do not count as completed.
    """
    reasons: dict[str, str] = {}
    spans = _columns(run, "spans", "start", "end", "category", "name", "proof", "device")
    calls = {name: column[spans["category"] == CALL] for name, column in spans.items()}
    kernels = _columns(run, "kernels", "start", "end", "device")
    wall_ns = int(spans["end"].max() - spans["start"].min()) if len(spans["start"]) else 0

    of_batch = (calls["name"] == PROVED) & (calls["proof"] < (np.inf if proofs is None else proofs))
    proved = {name: column[of_batch] for name, column in calls.items()}
    completions, call_ns = _completed(proved, partitions_per_proof)
    if not completions:
        reasons["batch_average_s"] = reasons["prove_time_s"] = "no proof was completed"
    steady_ns = steady_interval(np.array(sorted(completions.values())))
    if steady_ns is None:
        reasons["steady_interval_s"] = f"{len(completions)} completed proofs; a steady interval needs 4"
    vram = _columns(run, "vram", "live")["live"]
    counters = _columns(run, "counters", "name", "value")
    host = counters["value"][counters["name"] == HOST_MEMORY]
    for name, column, what in (
        ("peak_vram_bytes", vram, "device memory"),
        ("peak_host_bytes", host, "host memory"),
        ("call_occupancy", calls["start"], "calls"),
        ("kernel_occupancy", kernels["start"], "kernels"),
    ):
        if not len(column):
            reasons[name] = f"the run has no record of {what}"
    if not wall_ns:
        reasons["wall_s"] = "the run has no spans, or they take no time"
    return Figures(
        batch_average_s=wall_ns * 1e-9 / len(completions) if completions and wall_ns else None,
        steady_interval_s=steady_ns * 1e-9 if steady_ns is not None else None,
        prove_time_s=sum(call_ns.values()) * 1e-9 / len(call_ns) if call_ns else None,
        peak_host_bytes=int(host.max()) if len(host) else None,
        peak_vram_bytes=int(vram.max()) if len(vram) else None,
        call_occupancy=_occupancy(calls, wall_ns),
        kernel_occupancy=_occupancy(kernels, wall_ns),
        wall_s=wall_ns * 1e-9 if wall_ns else None,
        completed=tuple(sorted(completions, key=completions.__getitem__)),
        reasons=reasons,
    )


def steady_interval(completions: np.ndarray) -> float | None:
    """Mean interval between completions in the middle half of a batch; None for fewer than four.

    Of n sorted times t_0 … t_{n−1} the first and the last ⌊n/4⌋ are left out:
    (t_{n−1−⌊n/4⌋} − t_{⌊n/4⌋}) / (n − 1 − 2⌊n/4⌋), in the unit of the times.
    """
    count = len(completions)
    if count < 4:
        return None
    first, last = count // 4, count - 1 - count // 4
    return float(completions[last] - completions[first]) / (last - first)


def union_length(starts: np.ndarray, ends: np.ndarray) -> int:
    """Total length of the union of intervals [start, end)."""
    if not len(starts):
        return 0
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    before = np.concatenate((starts[:1], reach[:-1]))
    return int(np.maximum(reach - np.maximum(starts, before), 0).sum())


def _columns(run: Tables, table: str, *names: str) -> dict[str, np.ndarray]:
    rows = run.table(table)
    return {name: np.asarray(rows[name].to_numpy()) for name in names}


def _completed(proved: dict[str, np.ndarray], partitions_per_proof: int) -> tuple[dict[int, int], dict[int, int]]:
    """Of each completed proof: when its last partition ended, and the sum of its calls."""
    proofs, index, counts = np.unique(proved["proof"], return_inverse=True, return_counts=True)
    ends, sums = np.zeros(len(proofs), np.int64), np.zeros(len(proofs), np.int64)
    np.maximum.at(ends, index, proved["end"])
    np.add.at(sums, index, proved["end"] - proved["start"])
    complete = [row for row in range(len(proofs)) if counts[row] == partitions_per_proof]
    return (
        {int(proofs[row]): int(ends[row]) for row in complete},
        {int(proofs[row]): int(sums[row]) for row in complete},
    )


def _occupancy(intervals: dict[str, np.ndarray], wall_ns: int) -> float | None:
    """Share of the wall time that the union of intervals covers, mean over the devices that have any."""
    devices = np.unique(intervals["device"])
    if not len(devices) or not wall_ns:
        return None
    covered = 0
    for device in devices:
        here = intervals["device"] == device
        covered += union_length(intervals["start"][here], intervals["end"][here])
    return covered / wall_ns / len(devices)

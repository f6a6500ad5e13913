"""What recording takes of a live run: by pairs of runs, recorded and not, and by what each recorded row costs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from cuzklab.live.engine import run_live
from cuzklab.trace.recorders import Recording
from cuzklab.units import GiB

MAX_SHARE = 0.01
_DURING = ("spans", "locks", "vram", "waits", "counters")
_AFTERWARDS = ("kernels", "transfers")
"""Tables whose rows are made when the timed part is over; until then there are the events of a real device."""
_RESAMPLED = 10_000
# Scratch memory of smaller circuits does not shrink with them, so they get a larger card.
_LEAST_PROPORTIONAL_LOG2 = 18


@dataclass(frozen=True)
class RecordingCost:
    """What recording takes of a run.

    Attributes
    ----------
    backend : str
    pairs : int
    bare_wall_s, recorded_wall_s : list of float
        Of each pair, in order.
    ratio : float
        Median over pairs of the recorded run's time over the other's.
    ratio_low, ratio_high : float
        95 % bootstrap interval of that median over pairs.
    rows : dict
        Recorded rows by table, of one run, and ``events`` that were put around its kernels and copies on a GPU.
    share : float
        What those rows and events cost, by the cost of each, of a recorded run's median time.
    bound_share : float
        What `share` must not exceed.
    """

    backend: str
    pairs: int
    bare_wall_s: list[float]
    recorded_wall_s: list[float]
    ratio: float
    ratio_low: float
    ratio_high: float
    rows: dict[str, int]
    share: float
    bound_share: float = MAX_SHARE

    @property
    def within(self) -> bool:
        return self.share <= self.bound_share


def cost_of_recording(
    pairs: int,
    log2_domain: int,
    cost_ns: Mapping[str, float],
    *,
    proofs: int = 2,
    partitions: int = 2,
    gpu_workers: int = 2,
    synthesis_workers: int = 1,
    threads: int = 1,
    backend: str = "host",
    progress: Callable[[float], None] = lambda share: None,
) -> RecordingCost:
    """Run phase 9 with and without recording, in turns whose order alternates, after one run that does not count.

    Parameters
    ----------
    pairs : int
    log2_domain : int
        Of the circuit.
    cost_ns : mapping
        What one operation of recording costs, drained, by the names of `trace.recorders.bench`; on a GPU also
        ``device event``, of `backends.cuda.latency`.

    Raises
    ------
    RuntimeError
        A run did not end well, so that its time means nothing.
    """

    def once(record: bool) -> tuple[float, Recording | None, int]:
        result = run_live(
            "phase9", log2_domain, proofs=proofs, partitions=partitions, gpu_workers=gpu_workers,
            synthesis_workers=synthesis_workers, threads=threads, backend=backend, record=record,
            vram_bytes=(16 << max(0, _LEAST_PROPORTIONAL_LOG2 - log2_domain)) * GiB,
        )  # fmt: skip
        if result.outcome != "ok":
            raise RuntimeError(f"a run ended with {result.outcome}: {result.explanation}")
        return result.wall_s, result.recorder, sum(device.get("events_recorded", 0) for device in result.devices)

    _, recorder, events = once(True)
    assert recorder is not None
    bare: list[float] = []
    recorded: list[float] = []
    for number in range(pairs):
        progress(number / pairs)
        for record in (number % 2 == 0, number % 2 == 1):
            (recorded if record else bare).append(once(record)[0])
    ratios = [one / other for one, other in zip(recorded, bare, strict=True)]
    low, high = interval_of_median(ratios)
    rows = {table: recorder.count(table) for table in (*_DURING, *_AFTERWARDS)} | {"events": events}
    share = recording_ns(rows, cost_ns) * 1e-9 / median(recorded)
    return RecordingCost(backend, pairs, bare, recorded, median(ratios), low, high, rows, share)


def recording_ns(rows: Mapping[str, int], cost_ns: Mapping[str, float]) -> float:
    """What rows and events cost while a run goes on, in nanoseconds.

    A row that is added whole costs no more than one of the two that an allocation and its free leave, nor does looking
    up whose doing a span is.
    """
    whole = cost_ns["allocation and free"] / 2
    return (
        rows["spans"] * (cost_ns["span, by name"] + whole)
        + rows["locks"] * cost_ns["lock round trip"]
        + sum(rows[table] for table in _DURING if table not in ("spans", "locks")) * whole
        + (rows["events"] * cost_ns["device event"] if rows["events"] else 0)
    )


def interval_of_median(values: Sequence[float], seed: int = 1) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the median."""
    drawn = np.random.default_rng(seed).choice(np.asarray(values), (_RESAMPLED, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return float(low), float(high)

"""Runs against runs: figures of one kind, and what difference the noise lets one see.

Repeated runs are compared by their medians, and a difference counts only where every run of one side is better than
every run of the other (with three on each side that happens by chance once in ten, with four once in 35). A single run
of a simulation is compared by the spread of its partitions; a single measured run says nothing of how much a
repetition would differ, so its difference does not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuzklab.analysis.calls import calls, completion_intervals_ns
from cuzklab.analysis.case import metric
from cuzklab.analysis.designs import options_of
from cuzklab.trace import Run
from cuzklab.units import METRIC_KINDS, Metric

RESAMPLES = 4000
CONFIDENCE = 0.95
MIN_SAMPLES = 3  # fewer samples say nothing about their spread

# Figures of time that a design is judged by, the most telling first: throughput, then latency.
JUDGED_BY = ("batch_average", "steady_interval", "prove_time", "wall")

# A difference in one of these makes two runs different experiments. Others (workers, queue lengths) are knobs that
# belong to a design; they are named beside the figures where they differ.
MUST_MATCH = ("workload", "hardware", "backend", "c", "partitions")

# What a design is, how large its device, and which repetition it is: told in other words.
_OF_THE_DESIGN = {"policy", "options", "seed", "vram_bytes", "vram_equivalent_bytes", "margin_bytes"}
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class Comparison:
    """A figure of a candidate against the same figure of a baseline.

    Attributes
    ----------
    candidate, baseline : Metric
    ratio : float
        Candidate divided by baseline; below 1 is faster.
    low, high : float or None
        Of repeated runs the smallest and the largest quotient of two runs. Of single runs a bootstrap interval of the
        ratio (95 %), from the spread within them; how much a run repeated differs is not in it. None where there are
        too few samples.
    samples : (int, int)
        Number of samples that it rests on.
    sampled : str
        What a sample is: runs, proofs or partitions.
    measured : bool
        A figure of a machine, which differs when it is measured again.
    """

    candidate: Metric
    baseline: Metric
    ratio: float
    low: float | None
    high: float | None
    samples: tuple[int, int]
    sampled: str = "partitions"
    measured: bool = False

    @property
    def gain(self) -> float:
        """Part of the baseline's time that the candidate saves; negative where it takes longer."""
        return 1 - self.ratio

    @property
    def resolved(self) -> bool:
        """Whether the difference is larger than the noise."""
        if self.measured and self.sampled != "runs":
            return False
        return self.low is not None and not self.low <= 1 <= self.high


def compare_repeated(candidates: Sequence[Run], baselines: Sequence[Run], kind: str) -> Comparison | None:
    """Compare a figure of two groups of runs under equal conditions; None where one lacks it.

    With at least `MIN_SAMPLES` runs on each side the medians are compared, else the first runs.
    """
    if min(len(candidates), len(baselines)) < MIN_SAMPLES:
        return compare(candidates[0], baselines[0], kind)
    groups = [[metric(run, kind) for run in runs] for runs in (candidates, baselines)]
    if any(found is None or not found.value for group in groups for found in group):
        return None
    ordered = [sorted(group, key=lambda found: found.value) for group in groups]
    mine, theirs = (group[len(group) // 2] for group in ordered)
    low, high = ordered[0][0].ratio(ordered[1][-1]), ordered[0][-1].ratio(ordered[1][0])
    sizes = (len(candidates), len(baselines))
    return Comparison(mine, theirs, mine.ratio(theirs), low, high, sizes, "runs", mine.obtained == "measured")


def compare(candidate: Run, baseline: Run, kind: str) -> Comparison | None:
    """Compare a figure of two runs; None where one of them lacks it or the baseline's is zero."""
    mine, theirs = metric(candidate, kind), metric(baseline, kind)
    if mine is None or theirs is None or not theirs.value:
        return None
    ratio = mine.ratio(theirs)
    samples, sampled = _samples_ns(candidate, baseline, kind)
    low, high = bootstrap_ratio(*samples)
    sizes = (len(samples[0]), len(samples[1]))
    if low is None or high is None:
        return Comparison(mine, theirs, ratio, None, None, sizes, sampled, mine.obtained == "measured")
    # The interval is that of the quotient of means; it is carried over to the figures, which may be differently scaled.
    scale = ratio / (samples[0].mean() / samples[1].mean())
    return Comparison(mine, theirs, ratio, low * scale, high * scale, sizes, sampled, mine.obtained == "measured")


def _samples_ns(candidate: Run, baseline: Run, kind: str) -> tuple[list[np.ndarray], str]:
    """What makes up a figure and varies within a run: durations of calls, or times between completions.

    Partitions come out in bursts (as many as are synthesised at a time), so successive times between them are not
    independent. Where there are enough, the times in which a proof's worth of partitions comes out are taken.
    """
    runs = (candidate, baseline)
    if METRIC_KINDS[kind][0] != "s/proof" and kind != "wall":
        return [calls(run)["duration_ns"].to_numpy() for run in runs], "partitions"
    intervals = [completion_intervals_ns(run) for run in runs]
    partitions = [int(run.info.conditions.get("partitions", 1)) for run in runs]
    proofs = [len(times) // size for times, size in zip(intervals, partitions, strict=True)]
    if min(proofs) < MIN_SAMPLES:
        return intervals, "partitions"
    return [
        times[: number * size].reshape(number, size).mean(axis=1)
        for times, number, size in zip(intervals, proofs, partitions, strict=True)
    ], "proofs"


def bootstrap_ratio(
    candidate: np.ndarray, baseline: np.ndarray, seed: int = 0
) -> tuple[float, float] | tuple[None, None]:
    """Percentile bootstrap interval for the quotient of two means.

    Parameters
    ----------
    candidate, baseline : ndarray of shape (n,), (m,)
        Resampled with replacement, each by itself, `RESAMPLES` times.
    seed : int
        The interval is the same each time it is asked for.

    Returns
    -------
    low, high : float
        Both None with fewer than `MIN_SAMPLES` values on a side, or where the baseline's are all zero.
    """
    if min(len(candidate), len(baseline)) < MIN_SAMPLES or not baseline.any():
        return None, None
    generator = np.random.default_rng(seed)
    means = [
        generator.choice(values.astype(float), (RESAMPLES, len(values))).mean(axis=1)
        for values in (candidate, baseline)
    ]
    quotients = means[0] / np.where(means[1] > 0, means[1], np.nan)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(quotients, (tail, 1 - tail))
    return float(low), float(high)


def differing(candidate: Run, baseline: Run) -> dict[str, tuple[object, object]]:
    """Conditions in which two runs differ: name → (candidate's, baseline's); policies and limits are not among them.

    Of one policy's sources, where both runs state their hash, the first digits are told if they are not the same.
    """
    mine, theirs = candidate.info.conditions, baseline.info.conditions
    names = sorted((set(mine) | set(theirs)) - _OF_THE_DESIGN)
    found = {name: (mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)}
    sources = [str(run.info.inputs.get(f"policy {candidate.info.policy}", "")) for run in (candidate, baseline)]
    if candidate.info.policy == baseline.info.policy and all(sources) and sources[0] != sources[1]:
        found["source of the policy"] = (sources[0][:_SHOWN_DIGITS], sources[1][:_SHOWN_DIGITS])
    return found


def turned(candidate: Run, baseline: Run) -> dict[str, tuple[object, object]]:
    """As `differing`, less the options of the two designs, which are told with their names."""
    options = {*options_of(candidate), *options_of(baseline)}
    return {name: values for name, values in differing(candidate, baseline).items() if name not in options}


def unlike(candidate: Run, baseline: Run) -> dict[str, tuple[object, object]]:
    """The differences that forbid a comparison."""
    return {name: values for name, values in differing(candidate, baseline).items() if name in MUST_MATCH}

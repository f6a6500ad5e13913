"""Slower than it was? A figure's new runs against its history, decided by ranks, with as many reruns as the noise asks.

The unit is the run, not the sample within it: what makes one run slower than the next (clocks, neighbours, placement)
acts on all samples of a run at once, so a thousand samples of two runs are two observations. A run's level is the
median of its samples; all samples enter the interval of the effect, by a bootstrap over runs and, within them, samples.

One run never raises an alarm. A suspect is measured again until the question is settled (see `judge`). Levels are
compared as logarithms, so an effect is a ratio: 0.05 is five per cent more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DETECT = 0.05  # the slowdown that must not be missed
SMALLEST = 0.025  # half of it: a confirmed effect below this is nobody's alarm
ALPHA = 0.0003  # level of the rank test that raises an alarm, at each of up to MOST_CANDIDATES looks
BETA = 0.002  # level of the rank test that clears a suspect of DETECT, at each look
WINDOW = 30  # runs of history that make up a baseline
FEWEST_BASELINE = 10  # with fewer, the rank test needs too many reruns to reach ALPHA
MOST_CANDIDATES = 28
RESAMPLES = 1000
CONFIDENCE = 0.95

# A screen at DETECT less this many standard deviations lets 1 in 160 true slowdowns pass unseen for a night.
_SCREEN_DEVIATIONS = 2.5


@dataclass(frozen=True)
class Judgement:
    """What a figure's new runs say against its baseline.

    Attributes
    ----------
    state : {"unchanged", "suspect", "slower", "faster", "too short", "too noisy"}
        `suspect` asks for a rerun. `too short` means too little history. `too noisy` means that the most reruns were
        made and the question is still open.
    effect : float
        Hodges–Lehmann estimate of the new level over the baseline's, less one.
    low, high : float or None
        Its interval (95 %), from all samples.
    p_value : float or None
        One-sided, exact where there are no ties (Mann–Whitney), in the direction of the effect.
    noise : float
        Standard deviation of a run's level, as a part of the level (from the median absolute deviation).
    candidates, baseline : int
        How many runs each side rests on.
    """

    state: str
    effect: float = 0.0
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    noise: float = 0.0
    candidates: int = 0
    baseline: int = 0

    @property
    def alarm(self) -> bool:
        return self.state == "slower"


Samples = Sequence[Sequence[float]]  # of each run its samples, all positive


def judge(candidates: Samples, baseline: Samples, first: int = 1, seed: int = 0) -> Judgement:
    """Judge new runs of one figure (a time or a size: less is better) against its history.

    The first candidates are the runs in question, the others their reruns. First runs whose median differs from the
    baseline's by less than ``DETECT − 2.5 · noise`` are unchanged. Otherwise they are suspect until, with reruns, the
    rank test against the baseline reaches `ALPHA` and the effect is at least `SMALLEST`: slower or faster; or the rank
    test against the baseline moved by `DETECT` reaches `BETA`, which rules that effect out: unchanged; or
    `MOST_CANDIDATES` have been measured: too noisy. It is a sequential test with two errors, both measured on synthetic
    histories by the tests.

    Parameters
    ----------
    candidates, baseline : sequences of runs, each a sequence of samples
        The baseline in the order of time; its last `WINDOW` runs count.
    first : int
        How many of the candidates were measured before any suspicion.
    seed : int
        Of the bootstrap; equal inputs give equal intervals.

    Raises
    ------
    ValueError
        No candidate, an empty run, or a sample that is not positive: its logarithm does not exist.
    """
    if not candidates:
        raise ValueError("there is no run to judge")
    new, old = _levels(candidates), _levels(baseline[-WINDOW:])
    sizes = {"candidates": len(new), "baseline": len(old)}
    if len(old) < FEWEST_BASELINE:
        return Judgement("too short", **sizes)
    noise = _deviation(old)
    shift = float(np.median(np.subtract.outer(new, old)))
    facts = {"effect": math.expm1(shift), "noise": noise, **sizes}
    screen = max(DETECT - _SCREEN_DEVIATIONS * noise, 0.0)
    if len(new) <= first:
        return Judgement("suspect" if abs(facts["effect"]) > screen else "unchanged", **facts)
    facts["p_value"] = _p_value(new, old, shift)
    facts["low"], facts["high"] = _interval(candidates, baseline[-WINDOW:], seed)
    if facts["p_value"] <= ALPHA and abs(facts["effect"]) >= SMALLEST:
        return Judgement("slower" if shift > 0 else "faster", **facts)
    toward = math.copysign(math.log1p(DETECT), shift)
    if _p_value(new - toward, old, -shift) <= BETA:
        return Judgement("unchanged", **facts)
    return Judgement("too noisy" if len(new) >= MOST_CANDIDATES else "suspect", **facts)


def change_points(levels: Sequence[float], fewest: int = 4) -> list[int]:
    """Where a history changes its level: indices of the first run of each new level.

    Segments are found by PELT on the logarithms' ranks' robust cost (`ruptures`), and a boundary stands only if the
    runs on its two sides differ by at least `SMALLEST` and at level `ALPHA`.

    Parameters
    ----------
    levels : sequence of float
        One a run, in the order of time.
    fewest : int
        Runs that a level must last.
    """
    if len(levels) < 2 * fewest:
        return []
    import ruptures

    values = np.log(np.asarray(levels, float))
    scale = _deviation(np.diff(values)) / math.sqrt(2) or 1e-9
    found = ruptures.Pelt(model="l1", min_size=fewest, jump=1).fit(values / scale)
    edges = [0, *found.predict(pen=2 * math.log(len(values)))]
    while True:
        weakest, worst = None, -1.0
        for place in range(1, len(edges) - 1):
            left, right = values[edges[place - 1] : edges[place]], values[edges[place] : edges[place + 1]]
            shift = float(np.median(np.subtract.outer(right, left)))
            p_value = _p_value(right, left, shift)
            if abs(math.expm1(shift)) < SMALLEST:
                p_value = 1.0
            if p_value > max(ALPHA, worst):
                weakest, worst = place, p_value
        if weakest is None:
            return edges[1:-1]
        del edges[weakest]


def _levels(runs: Samples) -> np.ndarray:
    arrays = [np.asarray(samples, float) for samples in runs]
    if any(not len(samples) or not (samples > 0).all() for samples in arrays):
        raise ValueError("every run needs samples, and every sample must be positive")
    return np.log([float(np.median(samples)) for samples in arrays])


def _deviation(values: np.ndarray) -> float:
    """Standard deviation of a normal distribution with the same median absolute deviation; outliers do not count."""
    from scipy.stats import median_abs_deviation

    return float(median_abs_deviation(values, scale="normal"))


def _p_value(new: np.ndarray, old: np.ndarray, shift: float) -> float:
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(new, old, alternative="greater" if shift >= 0 else "less", method="auto").pvalue)


def _interval(candidates: Samples, baseline: Samples, seed: int) -> tuple[float, float]:
    """Bootstrap over runs and, within each drawn run, over its samples."""
    generator = np.random.default_rng(seed)
    sides = [_resampled_levels(runs, generator) for runs in (candidates, baseline)]
    shifts = np.median(sides[0], axis=1) - np.median(sides[1], axis=1)
    low, high = np.quantile(shifts, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return math.expm1(low), math.expm1(high)


def _resampled_levels(runs: Samples, generator: np.random.Generator) -> np.ndarray:
    """Array of shape (`RESAMPLES`, runs): levels of drawn runs, each from drawn samples."""
    drawn = generator.integers(len(runs), size=(RESAMPLES, len(runs)))
    levels = np.empty(drawn.shape)
    for index, samples in enumerate(runs):
        here = np.nonzero(drawn == index)
        values = np.log(np.asarray(samples, float))
        levels[here] = np.median(generator.choice(values, (len(here[0]), len(values))), axis=1)
    return levels

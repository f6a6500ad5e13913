"""What limits a run: it is replayed in virtual time with a tenth more of each resource, and the gains are compared.

All replays of a seed use the same random draws, so a gain is a difference of pairs, and its 90 % interval is Student's
t over the seeds. A run that was recorded live is explained by its simulated twin: stage times and copies measured in
that run, everything else by the profile; how far the twin is from the run stands beside the gains.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from cuzklab.errors import BadInput
from cuzklab.simulate.live_runs import load_live_run, measured_machine, run_figures
from cuzklab.simulate.setup import Setup, setup_of
from cuzklab.simulate.simulation import Simulation
from cuzklab.simulate.what_if import RESOURCES, STEP, Change, Resource
from cuzklab.trace.store import load_run
from cuzklab.units import format_seconds, percent, percent_range

Report = Callable[[float, str], None]
MOST_SEEDS = 100
# A gain below this part of what a tenth more could bring is not called a limit.
_LEAST_SHARE = 0.05


@dataclass(frozen=True)
class Gain:
    """What a tenth more of one resource brings.

    Attributes
    ----------
    resource : str
    title, change : str
        Its name in a sentence; what was changed.
    gain : float or None
        Relative gain of throughput (proofs an hour by the batch average), mean over seeds; None where it cannot be
        told.
    low, high : float or None
        90 % interval of the mean; equal to it for a single seed.
    outcome : str
        How the replays ended, the worst.
    why_not : str
        Why it was not replayed, or has no gain.
    """

    resource: str
    title: str
    change: str = ""
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    outcome: str = ""
    why_not: str = ""

    @property
    def limits(self) -> bool:
        """Whether the resource limits the run, beyond the spread of seeds."""
        return self.gain is not None and self.low > 0 and self.gain >= _LEAST_SHARE * (STEP - 1)


@dataclass(frozen=True)
class Explanation:
    """What limits a run.

    Attributes
    ----------
    gains : tuple of Gain
        The largest first; those without a figure last.
    outcome : str
        Of the run as it is.
    batch_average_s : float or None
    conditions : mapping
    seeds : int
    of : str
        What was explained: "a simulation", or a stored run and that this is its twin.
    measured_s : float or None
        Batch average of the live run whose twin this is.
    """

    gains: tuple[Gain, ...]
    outcome: str
    batch_average_s: float | None
    conditions: Mapping[str, Any]
    seeds: int
    of: str = "a simulation"
    measured_s: float | None = None

    @property
    def limits(self) -> tuple[Gain, ...]:
        """What limits the run, the most limiting first."""
        return tuple(gain for gain in self.gains if gain.limits)

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.outcome != "ok":
            cured = [gain.title for gain in self.gains if gain.outcome == "ok"]
            what = f"; it ends well with a tenth more of {' or of '.join(cured)}" if cured else ""
            return f"It ends with {self.outcome}{what or ', also with a tenth more of any one resource'}."
        if not self.limits:
            return "Nothing limits it by itself: a tenth more of no resource brings a gain beyond the seeds' spread."
        first, *others = self.limits
        words = f"Limited most by {first.title}: {first.change} brings {_gain_words(first)}."
        if others:
            words += f" Then {'; '.join(f'{gain.title}, {_gain_words(gain)}' for gain in others[:3])}."
        return words

    def rows(self) -> list[dict[str, Any]]:
        """As a table for people."""
        return [
            {
                "resource": gain.title, "changed": gain.change or "–",
                "gain of throughput": "–" if gain.gain is None else percent(gain.gain, 1, signed=True),
                "90 % interval": "–" if gain.gain is None else percent_range(gain.low, gain.high),
                "": "limits" if gain.limits else gain.why_not or ("" if gain.outcome == "ok" else gain.outcome),
            }
            for gain in self.gains
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return {
            "of": self.of, "sentence": self.sentence, "outcome": self.outcome, "step": STEP - 1,
            "limits": [gain.resource for gain in self.limits], "batch_average_s": self.batch_average_s,
            "measured_batch_average_s": self.measured_s, "seeds": self.seeds, "conditions": dict(self.conditions),
            "gains": [
                {
                    "resource": gain.resource, "title": gain.title, "change": gain.change, "gain": gain.gain,
                    "interval": None if gain.gain is None else [gain.low, gain.high], "outcome": gain.outcome,
                    "limits": gain.limits, "why_not": gain.why_not,
                }
                for gain in self.gains
            ],
        }  # fmt: skip


def explain(
    setup: Setup,
    *,
    seeds: int = 5,
    first_seed: int = 0,
    resources: Sequence[Resource] = RESOURCES,
    report: Report = lambda share, words="": None,
) -> Explanation:
    """Replay a setup with a tenth more of each resource.

    Parameters
    ----------
    setup : Setup
    seeds : int
        Replays of each change; the interval needs two at least.
    resources : sequence of Resource
    report : callable (share, words), optional

    Raises
    ------
    BadInput
        As `simulate`, or no seed.
    """
    if not 1 <= seeds <= MOST_SEEDS:
        raise BadInput(f"seeds is {seeds}; it must be 1 to {MOST_SEEDS}")
    changes = [(resource, resource.more(setup)) for resource in resources]
    todo = 1 + sum(1 + (change.against is not None) for _, change in changes if isinstance(change, Change))
    done = 0

    def replays(one: Setup, words: str) -> list[Simulation]:
        nonlocal done
        found = []
        for number in range(seeds):
            report((done + number / seeds) / todo, words)
            found.append(one.run(first_seed + number))
        done += 1
        return found

    base = replays(setup, "as it is")
    gains = []
    for resource, change in changes:
        if isinstance(change, str):
            gains.append(Gain(resource.name, resource.title, why_not=change))
            continue
        against = base if change.against is None else replays(change.against, resource.title)
        gains.append(_gain(resource, change.words, against, replays(change.setup, resource.title)))
    report(1.0, "done")
    gains.sort(key=lambda gain: -math.inf if gain.gain is None else gain.gain, reverse=True)
    averages = [average for average in map(_average, base) if average is not None]
    conditions = {name: value for name, value in base[0].conditions.items() if name != "seed"}
    return Explanation(
        tuple(gains), _worst(base), fmean(averages) if averages else None, conditions | {"seeds": seeds}, seeds
    )


def explain_run(
    place: Path, *, hardware: str | None = None, seeds: int = 5, report: Report = lambda share, words="": None
) -> Explanation:
    """Explain a stored run: a simulated one by replaying its conditions, a live one by its simulated twin.

    Parameters
    ----------
    place : Path
    hardware : str, optional
        Profile to replay with instead of the run's; for a live run a calibrated one, instead of the stage times and
        copies measured in the run itself.

    Raises
    ------
    BadInput
        The run is of another origin, or its conditions do not tell how to repeat it.
    """
    run = load_run(place)
    if run.info.origin == "simulated":
        found = explain(setup_of(run.info.conditions, str(place), hardware), seeds=seeds, report=report)
        return replace(found, of=f"the stored simulation {run.name}")
    if run.info.origin != "live":
        raise BadInput(f"{place}: a run of origin {run.info.origin}; only live and simulated ones can be replayed")
    load_live_run(place)
    margin_bytes = int(run.info.devices[0]["margin_bytes"])
    setup = setup_of(run.info.conditions, str(place), measured_machine([run]) if hardware is None else hardware)
    device = replace(setup.hardware.device, margin_bytes=margin_bytes)
    found = explain(replace(setup, hardware=replace(setup.hardware, device=device)), seeds=seeds, report=report)
    how = "stage times and copies as measured in it" if hardware is None else f"constants of {hardware}"
    return replace(
        found,
        of=f"the simulated twin ({how}) of the live run {run.name}",
        measured_s=run_figures(run)["batch_average_s"],
    )


def twin_words(found: Explanation) -> str:
    """How far a live run's twin is from it; nothing for a simulation."""
    if found.measured_s is None or found.batch_average_s is None:
        return ""
    off = found.batch_average_s / found.measured_s - 1
    return (
        f"the run measured {format_seconds(found.measured_s)} a proof, its twin simulates "
        f"{format_seconds(found.batch_average_s)} ({percent(off, 1, signed=True)})"
    )


def mean_and_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean with its 90 % interval by Student's t; for a single value the value thrice."""
    middle = fmean(values)
    if len(values) < 2:
        return middle, middle, middle
    from scipy.stats import t

    half = float(t.ppf(0.95, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return middle, middle - half, middle + half


def _gain(resource: Resource, words: str, before: Sequence[Simulation], after: Sequence[Simulation]) -> Gain:
    """The gain over the seeds that have a batch average on both sides."""
    outcome = _worst(after)
    pairs = [(_average(one), _average(other)) for one, other in zip(before, after, strict=True)]
    ratios = [one / other - 1 for one, other in pairs if one is not None and other is not None]
    if not ratios:
        return Gain(resource.name, resource.title, words, outcome=outcome, why_not="no proof was completed")
    if {_worst(before), outcome} != {"ok"}:
        return Gain(resource.name, resource.title, words, outcome=outcome)  # of what failed no average tells anything
    return Gain(resource.name, resource.title, words, *mean_and_interval(ratios), outcome)


def _average(simulation: Simulation) -> float | None:
    metric = simulation.metrics.get("batch_average_s")
    return metric.value if metric is not None else None


def _worst(simulations: Sequence[Simulation]) -> str:
    return next((one.outcome for one in simulations if one.outcome != "ok"), "ok")


def _gain_words(gain: Gain) -> str:
    return f"{percent(gain.gain, 1, signed=True)} of throughput ({percent_range(gain.low, gain.high)})"

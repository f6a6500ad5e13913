"""Configurations in order: by throughput, by cost, and the Pareto front against memory; ties are called ties.

Every confirmed configuration was simulated with the same draws (seeds, and near-equal fits of a calibrated profile), so
two are compared by the logarithm of the quotient of each pair: if its 90 % interval (Student's t) has zero in it, they
are a tie.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from cuzklab.simulate.explain import mean_and_interval
from cuzklab.tuning.space import Configuration

# By which measured runs of one configuration differ among themselves, as published for the modelled engine: a smaller
# difference will not show in a run or two of a real machine.
RUN_TO_RUN = 0.04


@dataclass(frozen=True)
class Confirmed:
    """A configuration with the figures of its long simulations.

    Attributes
    ----------
    averages_s : tuple of float
        Batch average of each draw, the seeds first.
    seeds : int
        How many of them are at the profile's own constants.
    interval_s : (float, float) or None
        90 % interval for a single run.
    figures : mapping
        Means over the seeds of the other figures; of memory the largest.
    price_per_hour : float or None
    verdict : str
        The checker's: safe, unknown, or "not asked".
    note : str
        Why the verdict is unknown.
    """

    configuration: Configuration
    averages_s: tuple[float, ...]
    seeds: int
    interval_s: tuple[float, float] | None
    figures: Mapping[str, float]
    price_per_hour: float | None = None
    verdict: str = "not asked"
    note: str = ""

    @property
    def batch_average_s(self) -> float:
        return fmean(self.averages_s[: self.seeds])

    @property
    def proofs_per_hour(self) -> float:
        return 3600 / self.batch_average_s

    @property
    def cost_per_proof(self) -> float | None:
        """In the currency of the price."""
        return None if self.price_per_hour is None else self.price_per_hour * self.batch_average_s / 3600


@dataclass(frozen=True)
class Place:
    """A configuration's place in an order.

    Attributes
    ----------
    rank : int
        From 1 on.
    tie : bool
        It cannot be told from the first by the draws.
    behind : float
        By which part it is worse than the first, mean over the draws.
    """

    rank: int
    found: Confirmed
    tie: bool
    behind: float

    @property
    def near(self) -> bool:
        """It is behind the first by less than what measured runs of one configuration differ by."""
        return abs(self.behind) < RUN_TO_RUN

    def to_json(self) -> dict[str, Any]:
        found = self.found
        return {
            "rank": self.rank, "tie_with_best": self.tie, "near_best": self.near, "behind": self.behind,
            **found.configuration.to_json(),
            "batch_average_s": found.batch_average_s,
            "interval_s": list(found.interval_s) if found.interval_s else None,
            "proofs_per_hour": found.proofs_per_hour, "cost_per_proof": found.cost_per_proof, **found.figures,
            "draws": len(found.averages_s), "checker": found.verdict, "checker_note": found.note,
        }  # fmt: skip


def by_throughput(confirmed: Sequence[Confirmed]) -> list[Place]:
    """The fastest first."""
    return _ranked(confirmed, lambda one: 1.0)


def by_cost(confirmed: Sequence[Confirmed]) -> list[Place]:
    """The cheapest proof first, of those that have a price."""
    priced = [one for one in confirmed if one.price_per_hour is not None]
    return _ranked(priced, lambda one: one.price_per_hour)


def best_of_each(places: Sequence[Place]) -> list[Place]:
    """The best configuration of each design, in their order."""
    found: dict[str, Place] = {}
    for place in places:
        found.setdefault(place.found.configuration.design, place)
    return list(found.values())


def compared(one: Confirmed, other: Confirmed, factor: float = 1.0) -> tuple[float, bool]:
    """By which part `one` is worse than `other`, and whether that is a tie."""
    pairs = zip(one.averages_s, other.averages_s, strict=True)
    logs = [math.log(factor * mine / others) for mine, others in pairs]
    middle, low, high = mean_and_interval(logs)
    return math.expm1(middle), low <= 0 <= high


def pareto(confirmed: Sequence[Confirmed], memory: str) -> list[Confirmed]:
    """Where more speed needs more memory: from the least memory upwards, whoever is faster than all before.

    Parameters
    ----------
    memory : {"peak_host_bytes", "peak_vram_bytes"}

    Returns
    -------
    list of Confirmed
        A gain that cannot be told from noise is worth no memory, so it makes no point of the front.
    """
    front: list[Confirmed] = []
    for one in sorted(confirmed, key=lambda one: (one.figures[memory], one.batch_average_s, one.configuration.label)):
        if not front:
            front.append(one)
            continue
        behind, tie = compared(one, front[-1])
        if behind < 0 and not tie:
            front.append(one)
    return front


def lowest(values: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the pairs that no other pair is at most as large as in both and smaller in one."""
    front, least = [], math.inf
    for index in sorted(range(len(values)), key=lambda index: (*values[index], index)):
        if values[index][1] < least:
            least = values[index][1]
            front.append(index)
    return front


def _ranked(confirmed: Sequence[Confirmed], price: Callable[[Confirmed], float]) -> list[Place]:
    ordered = sorted(
        confirmed,
        key=lambda one: (price(one) * one.batch_average_s, one.figures["peak_host_bytes"], one.configuration.label),
    )
    places = []
    for rank, one in enumerate(ordered, 1):
        first = ordered[0]
        behind, tie = compared(one, first, price(one) / price(first))
        places.append(Place(rank, one, tie, behind))
    return places

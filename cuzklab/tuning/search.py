"""The search: many short simulations, the checker, fewer long ones, and the best of them with several seeds.

1. *Coarse*: every configuration once, with a short batch. What ends in want of memory or in a deadlock is refused.
2. *Check*: each design that is left is checked over every interleaving with so many workers and so much memory; what
   is unsafe is refused. A check that its limit of states ends proves nothing, and the ranking says so.
3. *Screen*: the best, some of each design, and the fronts against memory, once at full length. Queues that grow
   without bound show only there, so what fails is refused and the next ones follow.
4. *Confirm*: the best of these with several seeds, and near-equal fits of a calibrated profile. Only they are ranked.

Each stage draws with seeds of its own, so that a lucky draw that put a configuration in front is not what it is judged
by; within a stage all configurations have the same draws. Answers are kept in a journal as they come: an interrupted
search goes on there, and a wider one computes only what is new.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from cuzklab import __version__
from cuzklab.errors import BadInput
from cuzklab.progress import Report, part
from cuzklab.simulate.predict import interval
from cuzklab.sweep import Outcome, Task, sweep
from cuzklab.tuning.ranking import Confirmed, Place, best_of_each, by_cost, by_throughput, lowest, pareto
from cuzklab.tuning.space import Configuration, Space
from cuzklab.tuning.trial import FIGURES, check_one, check_task, draws, failed, simulate_one, simulation_task
from cuzklab.tuning.trial import sources_digest as sources

COARSE_PROOFS = 4
DEFAULT_SEEDS, DEFAULT_FITS = 5, 3
# Configurations that go on: of all, of each design, and of each front against memory.
SCREEN, SCREEN_EACH, SCREEN_FRONT = 96, 4, 24
CONFIRM, CONFIRM_EACH, CONFIRM_FRONT = 12, 1, 8
_COARSE_SEED, _SCREEN_SEED = 1_000_000, 1_000_001
MEMORIES = ("peak_host_bytes", "peak_vram_bytes")
Results = dict[Configuration, Mapping[str, Any]]


@dataclass(frozen=True)
class Tuning:
    """What a search found.

    Attributes
    ----------
    throughput, cost : tuple of Place
        Confirmed configurations, the best first; cost is empty without prices.
    fronts : mapping of str to tuple of Confirmed
        Pareto front of s/proof against ``peak_host_bytes`` and ``peak_vram_bytes``, of confirmed configurations.
    refused : mapping of Configuration to str
        Why: how a simulation ended, or what the checker found.
    coarse, screened : mapping
        Results of the short and of the long simulations.
    seeds, fits : int
        Draws of each confirmed configuration.
    simulations, checks : int
        How many were needed, those from the journal included; `resumed` of them were there already.
    """

    space: Space
    throughput: tuple[Place, ...]
    cost: tuple[Place, ...]
    fronts: Mapping[str, tuple[Confirmed, ...]]
    refused: Mapping[Configuration, str]
    coarse: Results = field(repr=False)
    screened: Results = field(repr=False)
    seeds: int
    fits: int
    simulations: int
    checks: int
    resumed: int
    seconds: float

    @property
    def designs(self) -> list[Place]:
        """The best confirmed configuration of each design."""
        return best_of_each(self.throughput)

    @property
    def reasons(self) -> Counter[str]:
        """How many configurations were refused for which reason."""
        return Counter(why.partition(":")[0] for why in self.refused.values())

    def to_json(self) -> dict[str, Any]:
        """As `cuzklab tune --json` prints it."""
        best = self.throughput[0] if self.throughput else None
        return {
            "kind": "batch_average", "obtained": "simulated",
            "conditions": {
                "workload": self.space.workload.name, "c": self.space.proofs, "j": self.space.in_flight,
                "hardware": [machine.place for machine in self.space.machines],
                "prices_per_hour": [machine.price_per_hour for machine in self.space.machines], "backend": "sim",
                "seeds": self.seeds, "near_equal_fits": self.fits,
            },
            "configurations": len(self.space.configurations), "refused": dict(self.reasons),
            "best": best.to_json() if best else None,
            "command": self.space.command(best.found.configuration) if best else None,
            "ranking": [place.to_json() for place in self.throughput],
            "ranking_by_cost": [place.to_json() for place in self.cost],
            "designs": [place.to_json() for place in self.designs],
            "pareto": {name: [_point(one) for one in front] for name, front in self.fronts.items()},
            "examples_of_refusal": [
                {**one.to_json(), "why": why} for one, why in _examples(self.refused)
            ],
            "simulations": self.simulations, "checks": self.checks, "resumed": self.resumed,
            "seconds": round(self.seconds, 1),
        }  # fmt: skip


def tune(
    space: Space,
    *,
    journal: Path | None = None,
    seeds: int = DEFAULT_SEEDS,
    fits: int = DEFAULT_FITS,
    confirm: int = CONFIRM,
    check: bool = True,
    processes: int | None = None,
    cluster: str | None = None,
    progress: Report = lambda share, words="": None,
) -> Tuning:
    """Search a space.

    Parameters
    ----------
    space : Space
    journal : Path, optional
        Keeps every answer; an interrupted search goes on with it.
    seeds, fits : int
        Draws of the configurations that are confirmed: seeds, and near-equal fits of a calibrated profile.
    confirm : int
        How many are ranked, beside the best of each design and the fronts.
    check : bool
        Whether the checker is asked.
    processes, cluster : optional
        As `cuzklab.sweep.sweep`. The result does not depend on them.
    progress : callable (share, words)

    Raises
    ------
    BadInput
        As `sweep`; or a simulation could not be made.
    """
    if not 2 <= seeds <= 100:
        raise BadInput(f"--seeds {seeds}: a ranking with ties needs 2 to 100")
    if not 0 <= fits <= 100:
        raise BadInput(f"--fits {fits}: write 0 to 100")
    if not 1 <= confirm <= 1000:
        raise BadInput(f"--confirm {confirm}: write 1 to 1000")
    search = _Search(space, journal, seeds, fits, confirm, processes, cluster, started=time.monotonic())
    search.coarse_stage(part(progress, 0.0, 0.45, "coarse: "))
    if check:
        search.check_stage(part(progress, 0.45, 0.6, "check: "))
    search.screen_stage(part(progress, 0.6, 0.8, "screen: "))
    confirmed = search.confirm_stage(part(progress, 0.8, 1.0, "confirm: "))
    progress(1.0, "done")
    return search.result(confirmed)


@dataclass
class _Search:
    """A search under way."""

    space: Space
    journal: Path | None
    seeds: int
    fits: int
    confirm: int
    processes: int | None
    cluster: str | None
    started: float
    coarse: Results = field(default_factory=dict)
    screened: Results = field(default_factory=dict)
    refused: dict[Configuration, str] = field(default_factory=dict)
    verdicts: dict[Configuration, tuple[str, str]] = field(default_factory=dict)
    simulations: int = 0
    checks: int = 0
    resumed: int = 0

    def sweep(self, function: Callable[..., Any], tasks: Sequence[Task], report: Report) -> list[Outcome]:
        outcomes = sweep(
            function, tasks, journal=self.journal, salt=f"{function.__name__} {__version__} {sources()}",
            processes=self.processes, cluster=self.cluster, progress=report,
        )  # fmt: skip
        self.resumed += sum(outcome.resumed for outcome in outcomes)
        return outcomes

    def simulate(self, ones: Sequence[Configuration], proofs: int, draw: tuple[Any, ...], report: Report) -> Results:
        return {one: results[0] for one, results in self.simulate_each(ones, proofs, [draw], report).items()}

    def simulate_each(
        self, ones: Sequence[Configuration], proofs: int, each: Sequence[tuple[Any, ...]], report: Report
    ) -> dict[Configuration, list[Mapping[str, Any]]]:
        """The results of every draw for every configuration; a simulation that cannot be made ends the search."""
        tasks = [simulation_task(self.space, one, proofs, draw) for one in ones for draw in each]
        self.simulations += len(tasks)
        outcomes = self.sweep(simulate_one, tasks, report)
        for outcome in outcomes:
            if outcome.error:
                raise BadInput(f"{outcome.task.label}: {outcome.error}")
        values = iter(outcome.value for outcome in outcomes)
        return {one: [next(values) for _ in each] for one in ones}

    def coarse_stage(self, report: Report) -> None:
        ones = self.space.configurations
        self.coarse = self.simulate(ones, COARSE_PROOFS, ("seed", _COARSE_SEED), report)
        self.refuse(self.coarse)

    def check_stage(self, report: Report) -> None:
        left = [one for one in self.coarse if one not in self.refused]
        tasks = {task.key(""): task for task in (check_task(self.space, one) for one in left)}
        self.checks = len(tasks)
        outcomes = self.sweep(check_one, list(tasks.values()), report)
        found = {key: outcome for key, outcome in zip(tasks, outcomes, strict=True)}
        for one in left:
            outcome = found[check_task(self.space, one).key("")]
            if outcome.error:  # a checker that fails tells nothing about the design
                self.verdicts[one] = ("unknown", f"the check failed: {outcome.error}")
                continue
            self.verdicts[one] = (outcome.value["verdict"], outcome.value["message"])
            if outcome.value["verdict"] == "unsafe":
                self.refused[one] = f"checker, {', '.join(outcome.value['kinds'])}: {outcome.value['message']}"

    def screen_stage(self, report: Report) -> None:
        if self.space.proofs <= COARSE_PROOFS:
            self.screened = {one: result for one, result in self.coarse.items() if one not in self.refused}
            return
        rounds = _rounds(report)
        while new := self.promoted(self.coarse, self.screened, SCREEN, SCREEN_EACH, SCREEN_FRONT):
            found = self.simulate(new, self.space.proofs, ("seed", _SCREEN_SEED), next(rounds))
            self.screened |= found
            self.refuse(found)

    def confirm_stage(self, report: Report) -> list[Confirmed]:
        confirmed: dict[Configuration, Confirmed | None] = {}
        rounds = _rounds(report)
        while new := self.promoted(self.screened, confirmed, self.confirm, CONFIRM_EACH, CONFIRM_FRONT):
            each = {machine.place: draws(self.fits_of(machine.place), self.seeds, 0) for machine in self.space.machines}
            for place, drawn in each.items():
                ones = [one for one in new if one.machine == place]
                for one, results in self.simulate_each(ones, self.space.proofs, drawn, next(rounds)).items():
                    confirmed[one] = self.confirmed(one, results)
        return [one for one in confirmed.values() if one is not None]

    def fits_of(self, place: str) -> int:
        """Near-equal fits in use: as many for each machine, so that configurations of several can be paired."""
        calibrations = [machine.hardware.calibration for machine in self.space.machines]
        if any(calibration is None for calibration in calibrations):
            return 0
        return min(self.fits, *(len(calibration.members) - 1 for calibration in calibrations))

    def confirmed(self, one: Configuration, results: Sequence[Mapping[str, Any]]) -> Confirmed | None:
        for result in results:
            if why := failed(result):
                self.refused[one] = why
                return None
        averages = tuple(result["batch_average_s"] for result in results)
        own = results[: self.seeds]
        figures = {
            name: (max if name in MEMORIES else fmean)([result[name] for result in own])
            for name in FIGURES
            if name != "batch_average_s" and all(name in result for result in own)
        }
        machine = self.space.machine(one)
        calibration = machine.hardware.calibration
        scatter = calibration.scatter_of("batch_average") if calibration else None
        spread = interval(averages[: self.seeds], averages[self.seeds :], scatter, "batch_average")
        verdict, note = self.verdicts.get(one, ("not asked", ""))
        return Confirmed(
            one, averages, self.seeds, spread, figures, machine.price_per_hour, verdict,
            note if verdict == "unknown" else "",
        )  # fmt: skip

    def promoted(
        self, known: Results, done: Mapping[Configuration, Any], most: int, each: int, front: int
    ) -> list[Configuration]:
        """Those that go on and have not been looked at: of all, of each design, and of each front so many."""
        left = [one for one in known if one not in self.refused]
        chosen: dict[Configuration, None] = {}
        for machine in self.space.machines:
            # The order must not depend on that of the space: equal figures are told apart by the label.
            ours = sorted(
                (one for one in left if one.machine == machine.place),
                key=lambda one: (known[one]["batch_average_s"], one.label),
            )
            chosen |= dict.fromkeys(ours[:most])
            designs = {one.policy for one in ours}
            for policy in sorted(designs):
                chosen |= dict.fromkeys([one for one in ours if one.policy == policy][:each])
            for memory in MEMORIES:
                chosen |= dict.fromkeys(_front(ours, known, memory, front))
        return [one for one in chosen if one not in done]

    def refuse(self, results: Results) -> None:
        self.refused |= {one: why for one, result in results.items() if (why := failed(result))}

    def result(self, confirmed: Sequence[Confirmed]) -> Tuning:
        return Tuning(
            self.space, tuple(by_throughput(confirmed)), tuple(by_cost(confirmed)),
            {memory: tuple(pareto(confirmed, memory)) for memory in MEMORIES}, self.refused, self.coarse,
            self.screened, self.seeds, min(self.fits_of(machine.place) for machine in self.space.machines),
            self.simulations, self.checks, self.resumed, time.monotonic() - self.started,
        )  # fmt: skip


def _rounds(report: Report) -> Iterator[Report]:
    """Progress of rounds of which nobody knows how many will follow: each has most of what is left."""
    start = 0.0
    while True:
        end = start + 0.8 * (1 - start)
        yield part(report, start, end)
        start = end


def _front(ones: Sequence[Configuration], known: Results, memory: str, most: int) -> list[Configuration]:
    """Of the front against memory at most so many, evenly from one end to the other."""
    front = [ones[index] for index in lowest([(known[one][memory], known[one]["batch_average_s"]) for one in ones])]
    if len(front) <= most:
        return front
    return [front[round(place * (len(front) - 1) / (most - 1))] for place in range(most)]


def _point(one: Confirmed) -> dict[str, Any]:
    return {
        **one.configuration.to_json(), "batch_average_s": one.batch_average_s,
        **{memory: one.figures[memory] for memory in MEMORIES},
    }  # fmt: skip


def _examples(refused: Mapping[Configuration, str]) -> Iterable[tuple[Configuration, str]]:
    """One refusal of each design for each reason."""
    found: dict[tuple[str, str], tuple[Configuration, str]] = {}
    for one in sorted(refused, key=lambda one: one.label):
        found.setdefault((one.design, refused[one].partition(":")[0]), (one, refused[one]))
    return found.values()

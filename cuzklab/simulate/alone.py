"""What the stages of live runs take alone, from traces in which they competed for the host.

A trace says which CPU stages, pageable copies and page-lockings ran beside each at any time. The rate at which the
model lets a stage advance beside those (`cuzklab.simulate.host.rates`), summed over the time that it took, is the time
that it takes alone:

    alone_i = ∫ rate(what runs beside stage i at t) dt

What the model does not know are the parts m of the stages' times that wait for memory. They are chosen so that stages
of one kind come out alike, however crowded the host was: minimised is

    Σ_i (log alone_i − mean of its kind)² / spread² + Σ_m (log(m / m before) / prior)²

`cuzklab.simulate.launching` does the like for stages on the device.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from cuzklab.policies import load, options_of
from cuzklab.profiles import PAGE_LOCKING, PAGEABLE_COPY, Hardware
from cuzklab.simulate import host
from cuzklab.simulate.demands import page_locking_demand, pageable_copy_demand, stage_demand
from cuzklab.simulate.host import Demand
from cuzklab.stages import STAGES, CircuitShape
from cuzklab.trace import Run

_PRIOR = 1.0  # of the logarithm of what waits for memory
_ROUNDS = 4
_WAIT_FOR_MEMORY = ("synthesis", "prep_msm", "b_g2_msm", PAGEABLE_COPY, PAGE_LOCKING)
_LOCKING = ("pin", "unpin")


@dataclass(frozen=True)
class Kind:
    """What runs on the host: a CPU stage, a pageable copy, or a change of mappings; by circuit size and threads."""

    name: str
    domain: int
    threads: int

    @property
    def share_name(self) -> str:
        return PAGE_LOCKING if self.name in _LOCKING else PAGEABLE_COPY if self.name == "upload" else self.name


@dataclass(frozen=True)
class Crowd:
    """How crowded the host was at any time of a run.

    Attributes
    ----------
    edges : (n + 1,) ns
    states : (n, kinds) how many of each kind ran between two edges
    """

    edges: np.ndarray
    states: np.ndarray

    def between(self, start: int, end: int) -> tuple[slice, np.ndarray]:
        """The states that a time meets, and how many nanoseconds of each."""
        first, last = np.searchsorted(self.edges, (start, end), "right")
        first, last = max(int(first) - 1, 0), min(int(last), len(self.states))
        return slice(first, last), np.diff(np.clip(self.edges[first : last + 1], start, end))

    def mean(self, start: int, end: int, values: np.ndarray) -> float:
        """Mean over a time of something that each state has a value of; 0 outside of what was recorded."""
        met, weights = self.between(start, end)
        return float(weights @ values[met] / weights.sum()) if weights.sum() else 0.0


@dataclass(frozen=True)
class Activity:
    """One span: which kind, in which run, when."""

    kind: int
    run: int
    start: int
    end: int


@dataclass(frozen=True)
class Observed:
    """All that ran on the hosts of some runs.

    Attributes
    ----------
    kinds : tuple of Kind
    crowds : tuple of Crowd
        By run.
    activities : tuple of Activity
    """

    kinds: tuple[Kind, ...]
    crowds: tuple[Crowd, ...]
    activities: tuple[Activity, ...]

    @cached_property
    def states(self) -> np.ndarray:
        """The different states of all runs, (states, kinds)."""
        return self._numbered[0]

    @cached_property
    def _numbered(self) -> tuple[np.ndarray, list[np.ndarray]]:
        found, numbers = np.unique(np.concatenate([one.states for one in self.crowds]), axis=0, return_inverse=True)
        cuts = np.cumsum([len(crowd.states) for crowd in self.crowds])[:-1]
        return found, np.split(numbers.ravel(), cuts)

    @cached_property
    def met_s(self) -> Any:
        """Seconds that each activity spent in each state, a sparse matrix (activities, states)."""
        from scipy.sparse import csr_array

        states, numbers = self._numbered
        rows, columns, seconds = [], [], []
        for row, one in enumerate(self.activities):
            met, lasted_ns = self.crowds[one.run].between(one.start, one.end)
            rows.append(np.full(len(lasted_ns), row))
            columns.append(numbers[one.run][met])
            seconds.append(lasted_ns * 1e-9)
        where = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.concatenate(seconds), where), shape=(len(self.activities), len(states)))

    @cached_property
    def members(self) -> list[np.ndarray]:
        """The activities of each kind, by their numbers."""
        kinds = np.array([one.kind for one in self.activities])
        return [np.flatnonzero(kinds == number) for number in range(len(self.kinds))]

    @property
    def threads(self) -> list[np.ndarray]:
        """Runnable threads in each state of each run."""
        each = np.array([kind.threads for kind in self.kinds])
        return [crowd.states @ each for crowd in self.crowds]


def observe(runs: Sequence[Run], domains: Sequence[int], *, kernels: bool = False) -> Observed:
    """What ran when.

    Parameters
    ----------
    runs : sequence of Run
    domains : sequence of int
        Of the runs' circuits.
    kernels : bool
        Whether threads of the host compute the kernels.
    """
    kinds: dict[Kind, int] = {}
    crowds, activities = [], []
    for number, (run, domain) in enumerate(zip(runs, domains, strict=True)):
        conditions, spans = run.info.conditions, run.table("spans")
        # What a design has as its default does not stand among the conditions.
        g2_threads = conditions.get("g2_threads", options_of(load(run.info.policy).module).get("g2_threads"))
        pool = {"synthesis": int(conditions["gt"]), "b_g2_msm": int(g2_threads or conditions["gt"])}
        spans = spans[(spans["category"] == "cpu") | spans["name"].isin((*_LOCKING, "upload"))]
        if kernels:
            spans = pd.concat((spans, run.table("kernels").drop(columns="name").rename(columns={"span": "name"})))
        spans = spans[spans["end"] > spans["start"]]
        mine = [
            Activity(kinds.setdefault(Kind(str(name), domain, pool.get(str(name), 1)), len(kinds)), number, start, end)
            for name, start, end in zip(spans["name"], spans["start"].tolist(), spans["end"].tolist(), strict=True)
        ]
        changes = sorted([(one.start, one.kind, 1) for one in mine] + [(one.end, one.kind, -1) for one in mine])
        crowds.append(changes)
        activities += mine
    return Observed(tuple(kinds), tuple(_crowd(changes, len(kinds)) for changes in crowds), tuple(activities))


def _crowd(changes: Sequence[tuple[int, int, int]], kinds: int) -> Crowd:
    steps = np.zeros((len(changes), kinds), np.int64)
    for row, (_, kind, change) in enumerate(changes):
        steps[row, kind] = change
    edges = np.array([time for time, _, _ in changes], np.int64)
    return Crowd(edges, np.cumsum(steps, axis=0)[:-1])


def demand_of(kind: Kind, shape: CircuitShape, hardware: Hardware, alone_s: float) -> Demand:
    """What something of a kind asks of the host if alone it takes so long."""
    if kind.name in _LOCKING:
        return page_locking_demand(hardware, alone_s / shape.abc_bytes)
    if kind.name == "upload":
        return pageable_copy_demand(hardware, shape.abc_bytes / alone_s)
    if kind.name.partition(".")[0] in STAGES and STAGES[kind.name.partition(".")[0]].processor == "gpu":
        return Demand(1)
    return stage_demand(hardware, shape, kind.name, "", kind.threads, alone_s)


def times_alone(
    observed: Observed, shapes: Mapping[int, CircuitShape], hardware: Hardware, alone_s: Sequence[float]
) -> np.ndarray:
    """Seconds that each activity takes alone, if those of each kind take `alone_s` alone."""
    demands = [
        demand_of(kind, shapes[kind.domain], hardware, seconds)
        for kind, seconds in zip(observed.kinds, alone_s, strict=True)
    ]
    states = observed.states
    by_state = np.zeros(states.shape)
    for row, state in enumerate(states):
        there = np.flatnonzero(state)
        running: dict[Demand, int] = {}
        for kind in there:
            running[demands[kind]] = running.get(demands[kind], 0) + int(state[kind])
        advance = dict(zip(running, host.rates(hardware.host, list(running.items())), strict=True)) if running else {}
        by_state[row, there] = [advance[demands[kind]] for kind in there]
    found = np.empty(len(observed.activities))
    for kind, mine in enumerate(observed.members):
        found[mine] = observed.met_s[mine] @ by_state[:, kind]
    return found


@dataclass(frozen=True)
class Alone:
    """What things of each kind take alone.

    Attributes
    ----------
    seconds : mapping of Kind to float
        Arithmetic means, since throughput is made of sums.
    spreads : mapping of Kind to float
        Standard deviations of the logarithms within a run; how runs differ from each other moves all stages alike.
    shares : mapping of str to float
        The constants that tell how much waits for memory, by their dotted names.
    prior_left : mapping of str to float
        Of those: what of the uncertainty before is left; near 1 the runs have told nothing.
    """

    seconds: Mapping[Kind, float]
    spreads: Mapping[Kind, float]
    shares: Mapping[str, float]
    prior_left: Mapping[str, float]


def measure_alone(observed: Observed, shapes: Mapping[int, CircuitShape], hardware: Hardware) -> Alone:
    """Times alone, and the parts that wait for memory, of what was observed; the profile's own come first.

    Only parts that the profile says are not 0 are fitted.
    """
    from scipy.optimize import least_squares

    members, lasted_s = observed.members, observed.met_s.sum(axis=1)
    names = sorted(
        {f"memory_share.{kind.share_name}" for kind in observed.kinds if kind.share_name in _WAIT_FOR_MEMORY}
    )
    names = [name for name in (*names, "host.memory_efficiency") if hardware.constant(name) > 0]
    before = np.array([hardware.constant(name) for name in names])

    def machine(z: np.ndarray) -> Hardware:
        return hardware.with_constants(dict(zip(names, (before * np.exp(_PRIOR * z)).tolist(), strict=True)))

    def times(z: np.ndarray) -> np.ndarray:
        return times_alone(observed, shapes, machine(z), alone_s)

    alone_s = np.array([lasted_s[mine].mean() for mine in members])
    slopes = np.eye(len(names))
    z, highest = np.zeros(len(names)), np.log(1 / before) / _PRIOR + 1e-9
    for _ in range(_ROUNDS):
        spread = np.array([max(0.02, np.log(times(z)[mine]).std()) for mine in members])

        def residuals(z: np.ndarray, spread: np.ndarray = spread) -> np.ndarray:
            logs = np.log(times(z))
            parts = [
                (logs[mine] - logs[mine].mean()) / sd
                for kind, mine, sd in zip(observed.kinds, members, spread, strict=True)
                if kind.share_name in _WAIT_FOR_MEMORY
            ]
            return np.concatenate((*parts, z))

        if len(names) > 1:
            best = least_squares(residuals, z, loss="soft_l1", diff_step=0.05, bounds=(-6, highest))
            z, slopes = best.x, best.jac
        found = times(z)
        alone_s = np.array([found[mine].mean() for mine in members])
    found, runs = times(z), np.array([one.run for one in observed.activities])
    return Alone(
        {kind: float(found[mine].mean()) for kind, mine in zip(observed.kinds, members, strict=True)},
        {
            kind: _within_runs(np.log(found[mine]), runs[mine])
            for kind, mine in zip(observed.kinds, members, strict=True)
        },
        {name: machine(z).constant(name) for name in names} if len(names) > 1 else {},
        dict(zip(names, np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes))).tolist(), strict=True)),
    )


def _within_runs(logs: np.ndarray, runs: np.ndarray) -> float:
    """Standard deviation around each run's own mean, over all runs together; 0 where no run has two."""
    _, numbers, counts = np.unique(runs, return_inverse=True, return_counts=True)
    freedom = len(logs) - len(counts)
    means = np.bincount(numbers, logs) / counts
    return float(np.sqrt(((logs - means[numbers]) ** 2).sum() / freedom)) if freedom else 0.0

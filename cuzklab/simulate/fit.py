"""Fitting a profile's constants to figures: nonlinear least squares on logarithms, with what the data cannot tell.

Let z be the constants, each as log(value / starting value) over how far it may plausibly be off (its `prior_sd`), and
y_i(z) the simulated figures, averaged over seeds that are the same for every z (common random numbers). Minimised is

    Σ_i (log(y_i(z) / measured_i) / sd_i)² + Σ_k z_k²

The second sum keeps a constant that no figure depends on where it started, and makes it recognisable: its uncertainty
after the fit is what it was before. The Jacobian is taken by forward differences with a step that is large against the
roughness of a simulation of discrete events. The linearised problem is solved within the bounds by scipy, undamped and
with two dampings, all three are simulated, and the best of them and of the points of the differences is where the next
step begins: so a fit does not hang on one rough spot. It ends when the best gains less than a hundredth.

Near-equal fits come from a bootstrap over figures and starting points: each replicate weighs the figures anew
(exponential weights of mean one) and draws other starting values from their priors, and the problem, linearised at the
best fit, is solved for it. Each is then simulated with seeds of its own, and kept if it fits nearly as well.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cuzklab.profiles.calibration import THROUGHPUT_KINDS
from cuzklab.simulate.problem import Problem

Report = Callable[[float, str], None]
_STEP = 0.3  # of the Jacobian's differences, in units of a constant's prior
_DAMPING = (0.0, 3.0, 30.0)
_LEAST_GAIN = 0.01
UNIDENTIFIED_SHARE = 0.7  # of the prior's uncertainty that is left, from which on the data have not told


class Evaluations:
    """Simulated figures at values of the constants, kept in a file so that a fit that was interrupted goes on there.

    Parameters
    ----------
    problem : Problem
    journal : Path or None
        One JSON object a line; lines that are damaged or of another problem are passed over.
    """

    def __init__(self, problem: Problem, journal: Path | None = None, report: Report = lambda share, words="": None):
        self.problem, self._journal, self._report = problem, journal, report
        self._known: dict[str, list[float | None]] = {}
        self.done = 0
        self.expected = 1
        self._torn = False  # whether the journal ends within a line
        if journal and journal.is_file():
            text = journal.read_text(errors="replace")
            self._torn = bool(text) and not text.endswith("\n")
            for line in text.splitlines():
                try:
                    entry = json.loads(line)
                    figures = entry["figures"]
                    if len(figures) == len(problem.targets):
                        self._known[str(entry["key"])] = [None if one is None else float(one) for one in figures]
                except (ValueError, KeyError, TypeError):
                    continue

    def figures(self, values: Mapping[str, float], seeds: Sequence[int]) -> np.ndarray:
        """Mean over the seeds of each target's figure."""
        hardware = self.problem.hardware.with_constants(values)
        rows = []
        for seed in seeds:
            text = json.dumps([self.problem.identity, hardware.digest, sorted(values.items()), seed])
            key = hashlib.sha256(text.encode()).hexdigest()
            if key not in self._known:
                found = [float(one) for one in self.problem.simulate(hardware, seed)]
                self._known[key] = [one if math.isfinite(one) else None for one in found]
                if self._journal:
                    with self._journal.open("a") as file:
                        file.write("\n" * self._torn)
                        self._torn = False
                        file.write(
                            json.dumps({"key": key, "values": values, "seed": seed, "figures": self._known[key]}) + "\n"
                        )
            rows.append([math.nan if one is None else one for one in self._known[key]])
        self.done += 1
        self._report(min(0.99, self.done / self.expected), f"{self.done} of about {self.expected} points simulated")
        return np.mean(rows, axis=0)

    def residuals(self, z: np.ndarray, seeds: Sequence[int]) -> np.ndarray:
        """Of the targets, in their standard deviations; a figure that does not exist counts as off by a factor 2."""
        figures = self.figures(self.problem.at(z), seeds)
        measured = np.array([target.measured for target in self.problem.targets])
        sd = np.array([target.sd for target in self.problem.targets])
        return log_errors(figures, measured, [target.at_least for target in self.problem.targets]) / sd


def log_errors(figures: np.ndarray, measured: np.ndarray, at_least: Sequence[bool] | bool = False) -> np.ndarray:
    """log(simulated / measured); a figure that does not exist, or is nothing, counts as off by a factor 2."""
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(figures / measured)
    logs = np.where(at_least, np.minimum(logs, 0.0), logs)
    return np.where(np.isfinite(logs), logs, math.log(2))


@dataclass(frozen=True)
class ConstantFit:
    """One fitted constant.

    Attributes
    ----------
    lowest, highest : float
        90 % interval over the near-equal fits.
    prior_left : float
        Uncertainty after the fit over that before it, both of the logarithm; near 1 the data have told nothing.
    trades_with : str
        The constant that its error is most correlated with, with the correlation.
    """

    name: str
    start: float
    value: float
    lowest: float
    highest: float
    prior_left: float
    trades_with: str

    @property
    def identified(self) -> bool:
        return self.prior_left <= UNIDENTIFIED_SHARE


@dataclass(frozen=True)
class Fit:
    """What a fit came to.

    Attributes
    ----------
    residuals : (targets,) log(simulated / measured)
    members : tuple of mapping
        Near-equal fits, the best first.
    losses : tuple of float
        Of the members, with their own seeds.
    scatter, scatter_other : float
        Root mean square of the residuals of throughput figures, and of the others.
    """

    problem: Problem
    constants: tuple[ConstantFit, ...]
    figures: np.ndarray
    residuals: np.ndarray
    members: tuple[Mapping[str, float], ...]
    losses: tuple[float, ...]
    scatter: float
    scatter_other: float
    evaluations: int

    def most_different(self, most: int) -> list[int]:
        """Members, the best first, each the farthest (in logarithms) from those before it."""
        logs = np.log([[member[constant.name] for constant in self.constants] for member in self.members])
        scale = np.array([constant.prior_sd for constant in self.problem.constants])
        chosen = [0]
        while len(chosen) < min(most, len(logs)):
            away = np.min([(((logs - logs[one]) / scale) ** 2).sum(axis=1) for one in chosen], axis=0)
            chosen.append(int(np.argmax(away)))
        return chosen


def fit(
    problem: Problem,
    seeds: Sequence[int] = (0, 1, 2),
    iterations: int = 6,
    replicates: int = 16,
    journal: Path | None = None,
    report: Report = lambda share, words="": None,
) -> Fit:
    """Fit constants, and find near-equal fits.

    Parameters
    ----------
    problem : Problem
    seeds : sequence of int
        Common to all points of the fit; near-equal fits have further ones.
    iterations : int
        Jacobians at most.
    replicates : int
        Of the bootstrap.
    journal : Path, optional
        File of evaluations; the same call goes on where it was interrupted.
    report : callable (share, words), optional
    """
    evaluations = Evaluations(problem, journal, report)
    count = len(problem.constants)
    evaluations.expected = 1 + iterations * (count + len(_DAMPING)) + replicates
    bounds = problem.bounds()

    def residuals(z: np.ndarray) -> np.ndarray:
        return np.concatenate((evaluations.residuals(z, seeds), z))

    z = np.clip(np.zeros(count), *bounds)
    current = residuals(z)
    for _ in range(iterations):
        points, around = _around(residuals, z, bounds)
        slopes = _jacobian(points, around, z, current)
        candidates = [_damped_step(slopes, current, z, bounds, damping) for damping in _DAMPING]
        found = [residuals(one) for one in candidates] + around
        candidates += points
        best = min(range(len(found)), key=lambda number: float(found[number] @ found[number]))
        gain = 1 - float(found[best] @ found[best]) / max(float(current @ current), 1e-300)
        if gain > 0:
            z, current = candidates[best], found[best]
        if gain < _LEAST_GAIN:
            break
    figures = evaluations.figures(problem.at(z), seeds)
    left = evaluations.residuals(z, seeds)
    members, losses = _near_equal(problem, evaluations, z, left, slopes, bounds, seeds, replicates)
    logs = left * np.array([target.sd for target in problem.targets])
    flow = np.array([target.kind in THROUGHPUT_KINDS for target in problem.targets])
    counted = np.array([not target.at_least for target in problem.targets])
    scatter, other = (
        float(np.sqrt(np.mean(logs[chosen] ** 2))) if chosen.any() else float(np.sqrt(np.mean(logs**2)))
        for chosen in (flow & counted, ~flow & counted)
    )
    constants = _intervals(problem, z, slopes, members)
    return Fit(problem, constants, figures, logs, members, losses, scatter, other, evaluations.done)


def _around(
    residuals: Callable[[np.ndarray], np.ndarray], z: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """A point a step away in each constant, upwards unless a bound is near, and the residuals there."""
    points = []
    for k in range(len(z)):
        moved = z.copy()
        moved[k] += _STEP if z[k] + _STEP <= bounds[1][k] else -_STEP
        points.append(moved)
    return points, [residuals(point) for point in points]


def _jacobian(
    points: Sequence[np.ndarray], around: Sequence[np.ndarray], z: np.ndarray, current: np.ndarray
) -> np.ndarray:
    """Slopes of the residuals at z, by the differences to the points around it."""
    columns = [(there - current) / (point - z)[k] for k, (point, there) in enumerate(zip(points, around, strict=True))]
    return np.array(columns).T


def _damped_step(
    slopes: np.ndarray, current: np.ndarray, z: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], damping: float
) -> np.ndarray:
    """Where the linearised problem has its least within the bounds, a long step being charged for."""
    from scipy.optimize import lsq_linear

    count = len(z)
    matrix = np.vstack((slopes, math.sqrt(damping) * np.eye(count)))
    wanted = -np.concatenate((current, np.zeros(count)))
    step = lsq_linear(matrix, wanted, bounds=(bounds[0] - z - 1e-12, bounds[1] - z + 1e-12)).x
    return np.clip(z + step, *bounds)


def _near_equal(
    problem: Problem,
    evaluations: Evaluations,
    z: np.ndarray,
    left: np.ndarray,
    slopes: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    seeds: Sequence[int],
    replicates: int,
) -> tuple[tuple[Mapping[str, float], ...], tuple[float, ...]]:
    """Members of the bootstrap that fit nearly as well as the best, which comes first."""
    random = np.random.default_rng(20)
    data = slopes[: len(left)]
    loss = float(left @ left)
    members, losses = [problem.at(z)], [loss]
    for number in range(replicates):
        weights = random.exponential(size=len(left))
        towards = random.normal(size=len(z))
        normal = data.T @ (weights[:, None] * data) + np.eye(len(z))
        change = np.linalg.solve(normal, -(data.T @ (weights * left) + z - towards))
        one = np.clip(z + change, *bounds)
        other_seeds = [1000 * (number + 1) + seed for seed in seeds]
        off = evaluations.residuals(one, other_seeds)
        # Half as much again and one unit for each constant: what a simulation with other seeds may differ by.
        if float(off @ off) <= 1.5 * loss + len(z):
            members.append(problem.at(one))
            losses.append(float(off @ off))
    return tuple(members), tuple(losses)


def _intervals(
    problem: Problem, z: np.ndarray, slopes: np.ndarray, members: Sequence[Mapping[str, float]]
) -> tuple[ConstantFit, ...]:
    covariance = np.linalg.inv(slopes.T @ slopes)
    sd = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(sd, sd)
    best = problem.at(z)
    fits, count = [], len(problem.constants)
    for k, constant in enumerate(problem.constants):
        others = np.abs(correlation[k]).copy()
        others[k] = 0
        partner = int(np.argmax(others))
        values = np.array([member[constant.name] for member in members])
        half = math.exp(1.645 * constant.prior_sd * sd[k])
        low, high = np.quantile(values, (0.05, 0.95)) if len(values) > 8 else (math.nan, math.nan)
        value = best[constant.name]
        fits.append(
            ConstantFit(
                constant.name,
                problem.hardware.constant(constant.name),
                value,
                float(np.nanmin([low, max(constant.least, value / half)])),
                float(np.nanmax([high, min(constant.most, value * half)])),
                float(sd[k]),
                f"{problem.constants[partner].name} ({correlation[k, partner]:+.2f})" if count > 1 else "",
            )
        )
    return tuple(fits)

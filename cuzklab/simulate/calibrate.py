"""Calibration of a hardware profile to published rows: which constants are free, and how well each figure is known.

What can be taken from a measurement of its own stays as the profile says: rates of stages run alone, the link, VRAM.
Free is what only shows when everything runs together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cuzklab.errors import BadInput
from cuzklab.profiles import Calibration, Hardware, load_hardware
from cuzklab.profiles.write import write_calibrated
from cuzklab.simulate.compare import condition_key, row_figures
from cuzklab.simulate.fit import Fit, Report, fit
from cuzklab.simulate.live_runs import fit_live_runs
from cuzklab.simulate.problem import Constant, Problem, Target, identity_of
from cuzklab.simulate.published import PublishedRow, load_published
from cuzklab.units import percent

# Name, how far it may be off before the fit (of the logarithm), bounds.
FREE_CONSTANTS = (
    Constant("host.memory_efficiency", 0.5, 0.005, 1.0),
    Constant("host.overload_exponent", 0.5, 0.5, 4.0),
    Constant("host.smt_yield", 0.08, 1.0, 2.0),
    Constant("host.cache_pressure", 0.7, 1e-4, 100.0),
    Constant("host.first_touch_s_per_byte", 0.4, 1e-12, 1e-8),
    Constant("transfer.unpin_s_per_byte", 0.5, 1e-12, 1e-8),
    Constant("memory_share.page_locking", 0.5, 0.01, 1.0),
    Constant("memory_share.pageable_copy", 0.5, 0.01, 1.0),
    Constant("spread.synthesis", 0.4, 0.005, 0.5),
    Constant("host.dealloc_s_per_byte", 0.4, 1e-12, 1e-8),
    Constant("engine.early_memory_share", 0.4, 0.01, 1.0),
    Constant("engine.pickup_s", 0.5, 0.01, 2.0),
)

# How far a simulated figure may be from a published one, as a share, by kind of metric.
TOLERANCE: Mapping[str, float] = {
    "batch_average": 0.07, "steady_interval": 0.07, "wall": 0.07, "prove_time": 0.15, "peak_host": 0.10,
    "peak_vram": 0.02, "duration": 0.10, "share": 0.10, "call_occupancy": 0.10, "kernel_occupancy": 0.10,
}  # fmt: skip
_PROVE_TIME_OF_ONE_WORKER = 0.12  # calls that wait for nobody vary less


def tolerance(kind: str, gpu_workers: int) -> float:
    """How far a simulated figure of a kind may be from a published one, as a share."""
    return _PROVE_TIME_OF_ONE_WORKER if kind == "prove_time" and gpu_workers == 1 else TOLERANCE[kind]


def standard_deviation(kind: str, gpu_workers: int) -> float:
    """Of log(measured / simulated) in a fit: the tolerance is taken for two of them."""
    return tolerance(kind, gpu_workers) / 2


def problem_of_rows(
    rows: Sequence[PublishedRow], hardware: Hardware | None = None, constants: Sequence[Constant] = FREE_CONSTANTS
) -> Problem:
    """The fit to the rows that are marked for it.

    Raises
    ------
    BadInput
        No row is marked, or the rows are of several machines.
    """
    rows = [row for row in rows if row.fit]
    if not rows:
        raise BadInput("no row is marked fit = true, so there is nothing to fit")
    names = {row.hardware for row in rows}
    if len(names) > 1:
        raise BadInput(f"the rows are of several machines ({', '.join(sorted(names))}); fit one at a time")
    hardware = hardware or load_hardware(names.pop())
    targets = tuple(_target(row, hardware) for row in rows)
    # Peaks of engines that were killed are simulated without a limit, and so are all others.
    unlimited = {"host.reserved_bytes": 0, "host.memory_bytes": 1 << 60}

    def simulate(machine: Hardware, seed: int) -> list[float]:
        known: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        for row in rows:
            key = condition_key(row)
            if key not in known:
                known[key] = row_figures(row, seed, machine.with_constants(unlimited))
        return [float(known[condition_key(row)].get(row.figure or "peak_host_bytes", "nan")) for row in rows]

    identity = identity_of([(row.words, row.workload, row.figure) for row in rows])
    free = tuple(constant for constant in constants if hardware.constant(constant.name) > 0)
    return Problem(hardware, free, targets, simulate, identity)


def _target(row: PublishedRow, hardware: Hardware) -> Target:
    if row.metric is None:
        # Safely beyond the limit: an engine that is killed in one run of two was not seen to be killed.
        least_bytes = 1.04 * hardware.host.available_bytes
        sd = standard_deviation("peak_host", row.conditions["gw"])
        return Target(f"{row.words}: peak_host, at least", least_bytes, sd, at_least=True)
    kind, words = row.metric.kind, f"{row.words}: {row.metric.label or row.metric.kind}"
    return Target(words, row.metric.value, standard_deviation(kind, row.conditions["gw"]), kind=kind)


@dataclass(frozen=True)
class CalibrationResult:
    """A finished calibration: the fit, and the profile that was written."""

    hardware: str
    words: str
    fit: Fit
    place: Path

    def figure_rows(self) -> list[dict[str, str]]:
        """Measured figures and fitted ones, as text for people."""
        targets = self.fit.problem.targets
        return [
            {
                "fitted to": target.words, "measured": f"{target.measured:.4g}", "simulated": f"{figure:.4g}",
                "error": percent(math.expm1(left), 1, signed=True),
            }
            for target, figure, left in zip(targets, self.fit.figures, self.fit.residuals, strict=True)
        ]  # fmt: skip

    def constant_rows(self) -> list[dict[str, str]]:
        """The constants with their intervals, and what of the uncertainty before the fit is left."""
        return [
            {
                "constant": one.name, "before": f"{one.start:.3g}", "fitted": f"{one.value:.3g}",
                "90 % interval": f"{one.lowest:.3g} to {one.highest:.3g}",
                "uncertainty left": percent(min(1.0, one.prior_left), 0),
                "identified": "yes" if one.identified else "NO: the data cannot tell", "trades with": one.trades_with,
            }
            for one in self.fit.constants
        ]  # fmt: skip

    def member_rows(self, most: int = 5) -> list[dict[str, str]]:
        """The best fit, and near-equal ones that differ most from those before them."""
        if not self.fit.problem.constants:
            return []
        chosen = self.fit.most_different(most)
        return [
            {"fit": "best" if index == 0 else f"no. {index}", "misfit": f"{self.fit.losses[index]:.1f}"}
            | {name.rpartition(".")[2]: f"{value:.3g}" for name, value in self.fit.members[index].items()}
            for index in chosen
        ]

    def to_json(self) -> dict[str, Any]:
        """As `cuzklab simulate --calibrate --json` prints it."""
        return {
            "profile": str(self.place),
            "hardware": self.hardware,
            "figures": [
                {"figure": target.words, "measured": target.measured, "simulated": figure, "error": math.expm1(left)}
                for target, figure, left in zip(
                    self.fit.problem.targets, self.fit.figures.tolist(), self.fit.residuals.tolist(), strict=True
                )
            ],
            "constants": [asdict(one) | {"identified": one.identified} for one in self.fit.constants],
            "near_equal_fits": [dict(member) for member in self.fit.members],
            "misfits": list(self.fit.losses),
            "scatter": self.fit.scatter,
            "scatter_other": self.fit.scatter_other,
            "points": self.fit.evaluations,
        }


def calibrate(
    things: Sequence[Path],
    hardware: str | None = None,
    place: Path | None = None,
    *,
    default_folder: Path,
    seeds: tuple[int, ...] = (0, 1, 2),
    iterations: int = 4,
    replicates: int = 14,
    report: Report = lambda share, words="": None,
) -> CalibrationResult:
    """Fit a profile's constants and write the profile.

    Parameters
    ----------
    things : sequence of Path
        Stored live runs (directories), or files of published rows; the shipped rows if there are none.
    hardware : str, optional
        Profile to start from; what the rows or runs name unless given.
    place : Path, optional
        Of the profile to be written; in `default_folder` under the name of the one it started from unless given.
    seeds, iterations, replicates, report
        As `cuzklab.simulate.fit.fit`.

    Raises
    ------
    BadInput
        The things are of different kinds or machines, cannot be read, or say nothing.
    """
    folders = [path for path in things if path.is_dir()]
    if folders and len(folders) < len(things):
        raise BadInput("calibrate to stored runs or to files of published rows, not to both at once")
    found: Fit | None = None
    if folders:
        found = fit_live_runs(folders, hardware, seeds, replicates, report)
        problem, words = found.problem, f"{len(folders)} live runs"
    else:
        rows = [row for path in things or [None] for row in load_published(path)]
        problem = problem_of_rows(rows, load_hardware(hardware) if hardware else None)
        words = f"{len(problem.targets)} of {len(rows)} published rows"
    base = hardware or problem.hardware.name
    place = place or default_folder / f"{problem.hardware.name}.toml"
    if place.suffix != ".toml":
        raise BadInput(f"{place}: a profile's name ends in .toml")
    place.parent.mkdir(parents=True, exist_ok=True)
    found = found or fit(problem, seeds, iterations, replicates, place.with_suffix(".journal.jsonl"), report)
    names = tuple(found.members[0])
    members = tuple(tuple(member[name] for name in names) for member in found.members)
    unidentified = tuple(one.name for one in found.constants if not one.identified)
    command = f"`cuzklab simulate --calibrate --hardware {base} --seeds {len(seeds)}"
    source = (
        f"measured in {words} by {command}`; nothing was changed by hand"
        if folders
        else f"fitted to {words} by {command} --iterations {iterations}`, {found.evaluations} points; nothing was "
        "changed by hand"
    )
    fixed = {name: problem.hardware.constant(name) for name in problem.measured}
    write_calibrated(
        base,
        place,
        {**fixed, **found.members[0]},
        Calibration(source, names, members, found.scatter, found.scatter_other, unidentified, problem.runs),
    )
    return CalibrationResult(problem.hardware.name, words, found, place)

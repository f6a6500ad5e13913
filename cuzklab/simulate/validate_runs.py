"""A profile against live runs: every kind of run with what was measured, what is simulated, and the error.

Runs under one set of conditions are one kind. Those that the profile was fitted to are counted apart: where some runs
of a kind were fitted, what is compared is the mean of the others, which are repetitions of them; where none was, it is
a prediction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import cuzklab.policies as policies
from cuzklab.errors import BadInput
from cuzklab.profiles import Hardware
from cuzklab.progress import Report
from cuzklab.simulate.live_runs import (
    LEAST_LOCK_WAIT,
    LOCK_WAIT,
    identity_of_run,
    load_live_run,
    run_figures,
    simulate_run,
    simulation_figures,
)
from cuzklab.simulate.predict import interval
from cuzklab.trace import Run
from cuzklab.units import format_size

TOLERANCE: Mapping[str, float] = {"batch_average_s": 0.10, LOCK_WAIT: 0.15, "peak_vram_bytes": 0.02}
_KINDS = {"batch_average_s": "batch_average", LOCK_WAIT: "duration", "peak_vram_bytes": "peak_vram"}
USES = ("prediction", "repetition", "fit")


@dataclass(frozen=True)
class Compared:
    """One figure of a kind of run.

    Attributes
    ----------
    measured : tuple of float
        Of the runs that are compared.
    simulated : float
        Mean over seeds.
    interval : (float, float) or None
        90 % of single runs, by the simulations.
    range : (float, float)
        Lowest and highest of the seeds: wide where the order of two threads decides, which the seeds draw.
    """

    measured: tuple[float, ...]
    simulated: float
    interval: tuple[float, float] | None
    range: tuple[float, float]

    @property
    def expected(self) -> bool:
        """Whether a run that was measured lies within the interval, or among the seeds."""
        places = (self.range, self.interval or self.range)
        return any(low <= one <= high for one in self.measured for low, high in places)

    @property
    def error(self) -> float:
        """Simulated over measured mean, less one."""
        return self.simulated / fmean(self.measured) - 1


@dataclass(frozen=True)
class KindOfRun:
    """All runs under one set of conditions.

    Attributes
    ----------
    words : str
    use : {"prediction", "repetition", "fit"}
    runs, fitted : tuple of str
        Names of those compared, and of those that the profile was fitted to.
    outcomes, simulated_outcomes : tuple of str
        Of the runs compared, and of the seeds.
    figures : mapping of str to Compared
        ``batch_average_s``, ``lock_wait_s``, ``peak_vram_bytes``; none where a run did not end well, or no seed did;
        seeds that did not are left out. Waits for locks only where they are no small part of the run.
    elsewhere : str
        In what the machine of the runs is another one than the profile's (`other_machine`).
    """

    words: str
    use: str
    runs: tuple[str, ...]
    fitted: tuple[str, ...]
    outcomes: tuple[str, ...]
    simulated_outcomes: tuple[str, ...]
    figures: Mapping[str, Compared]
    elsewhere: str = ""

    @property
    def shown(self) -> bool:
        """Whether some seed ended as a run did."""
        return not {*self.outcomes}.isdisjoint(self.simulated_outcomes)

    def met(self, figure: str) -> bool | None:
        """Whether a figure's error is within its tolerance; None without one."""
        return abs(self.figures[figure].error) <= TOLERANCE[figure] if figure in self.figures else None

    def to_json(self) -> dict[str, Any]:
        """One line of a table; seconds and bytes."""
        return {
            "runs": list(self.runs), "fitted": list(self.fitted), "use": self.use, "kind": self.words,
            "elsewhere": self.elsewhere, "outcomes": list(self.outcomes),
            "simulated_outcomes": list(self.simulated_outcomes),
            "figures": {
                name: {"measured": list(one.measured), "simulated": one.simulated, "interval": one.interval,
                       "range": one.range, "expected": one.expected, "error": one.error, "met": self.met(name)}
                for name, one in self.figures.items()
            },
        }  # fmt: skip


def find_runs(places: Sequence[Path]) -> list[Path]:
    """Stored runs among folders, each once: a folder is a run, or runs lie in it at any depth.

    Hidden folders, of runs that are being written, are left out.

    Raises
    ------
    BadInput
        A place holds no run.
    """
    found: dict[Path, Path] = {}
    for place in places:
        inside = [place] if (place / "run.json").is_file() else sorted(at.parent for at in place.rglob("run.json"))
        inside = [one for one in inside if not any(part.startswith(".") for part in one.relative_to(place).parts)]
        if not inside:
            raise BadInput(f"{place}: neither a stored run nor a folder with some in it")
        for one in inside:
            found.setdefault(one.resolve(), one)
    return list(found.values())


def validate_runs(
    places: Sequence[Path],
    hardware: Hardware,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    members: int = 6,
    report: Report = lambda share, words="": None,
) -> tuple[KindOfRun, ...]:
    """Simulate the conditions of each kind of run.

    Parameters
    ----------
    places : sequence of Path
        As `find_runs`.
    hardware : Hardware
    seeds : sequence of int
    members : int
        Near-equal fits of the profile that the intervals take in, at most.
    report : callable (share, words), optional

    Raises
    ------
    BadInput
        A place holds no run, or one that is not live or lacks a condition.
    """
    kinds: dict[tuple[Any, ...], list[Run]] = {}
    for path in find_runs(places):
        run = load_live_run(path, failed_too=True)
        kinds.setdefault(tuple(sorted((key, str(value)) for key, value in run.info.conditions.items())), []).append(run)
    found = []
    for number, runs in enumerate(kinds.values()):
        report(number / len(kinds), runs[0].name)
        found.append(_compare(runs, hardware, seeds, members))
    report(1.0, "done")
    return tuple(found)


def _compare(runs: Sequence[Run], hardware: Hardware, seeds: Sequence[int], members: int) -> KindOfRun:
    calibration = hardware.calibration
    known = calibration.runs if calibration else ()
    fitted = [run for run in runs if identity_of_run(run) in known]
    compared = [run for run in runs if run not in fitted] or fitted
    use = "prediction" if not fitted else "fit" if compared == fitted else "repetition"
    simulations = [simulate_run(runs[0], hardware, seed) for seed in seeds]
    outcomes = tuple(run.info.outcome for run in compared)
    simulated = tuple(one.outcome for one in simulations)
    figures = {}
    if {*outcomes} == {"ok"} and "ok" in simulated:
        fits = calibration.members[1 : members + 1] if calibration else ()
        near = [
            simulate_run(runs[0], hardware.with_constants(calibration.member(number + 1)), 100 + number)
            for number in range(len(fits))
        ]
        near = [simulation_figures(one) for one in near if one.outcome == "ok"]
        measured = [run_figures(run) for run in compared]
        values = [simulation_figures(one) for one in simulations if one.outcome == "ok"]
        for name in TOLERANCE:
            if name == LOCK_WAIT and fmean(one[name] for one in measured) < LEAST_LOCK_WAIT * measured[0]["wall_s"]:
                continue
            scatter = calibration.scatter_of(_KINDS[name]) if calibration else None
            figures[name] = Compared(
                tuple(one[name] for one in measured),
                fmean(one[name] for one in values),
                interval([one[name] for one in values], [one[name] for one in near], scatter, _KINDS[name]),
                (min(one[name] for one in values), max(one[name] for one in values)),
            )
    names, known_names = (tuple(run.name for run in some) for some in (compared, fitted))
    elsewhere = "; ".join(dict.fromkeys(filter(None, (other_machine(run, hardware) for run in compared))))
    return KindOfRun(_words(runs[0]), use, names, known_names, outcomes, simulated, figures, elsewhere)


def other_machine(run: Run, hardware: Hardware) -> str:
    """In what the run's machine cannot be the profile's: its cores, or where kernels execute; nothing if it may be."""
    cores, threads = run.info.machine.get("cores"), hardware.host.hardware_threads
    places, on_cpu = {"host": "the CPU", "cuda": "a GPU"}, hardware.device.kernels_on_host
    ran, modelled = places.get(str(run.info.conditions.get("backend"))), places["host" if on_cpu else "cuda"]
    differences = []
    if cores is not None and cores != threads:
        differences.append(f"{cores} cores, not {threads}")
    if ran is not None and ran != modelled:
        differences.append(f"kernels on {ran}, not on {modelled}")
    return "; ".join(differences)


def _words(run: Run) -> str:
    """The conditions by which runs usually differ."""
    conditions = run.info.conditions
    defaults = policies.options_of(policies.load(run.info.policy).module)
    options = [
        f"{name} {conditions[name]}" for name in defaults if conditions.get(name, defaults[name]) != defaults[name]
    ]
    card = format_size(int(conditions.get("vram_equivalent_bytes", conditions["vram_bytes"])))
    size = str(conditions["workload"]).replace("porep-shaped-", "2^")
    numbers = [f"{name} {conditions[name]}" for name in ("gw", "pw", "gt", "c")]
    return ", ".join([run.info.policy, *options, *numbers, card, size])


def summary(kinds: Sequence[KindOfRun]) -> list[dict[str, Any]]:
    """By use and figure: how many kinds of run, how many within tolerance, median and largest error.

    ``expected``: of how many kinds a run that was measured lies within the interval, or among the seeds.
    """
    lines = []
    for use in USES:
        for name, tolerance in TOLERANCE.items():
            found = [kind.figures[name] for kind in kinds if kind.use == use and name in kind.figures]
            errors = [abs(one.error) for one in found]
            if errors:
                lines.append(
                    {
                        "use": use, "figure": name, "kinds": len(errors), "tolerance": tolerance,
                        "within": sum(error <= tolerance for error in errors),
                        "expected": sum(one.expected for one in found), "median_error": median(errors),
                        "largest_error": max(errors),
                    }
                )  # fmt: skip
    return lines

"""Calibration to stored live runs: what they took is measured in them (`cuzklab.simulate.measured`), nothing is fitted.

A live run of the host backend has an emulated device: its kernels are computed by threads of the machine's CPU, which
CPU stages compete for, and only its link and its memory are the profile's. So the profile of such a machine says
``kernels_on_host``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import cuzklab.policies as policies
from cuzklab.errors import BadInput
from cuzklab.profiles import Hardware, load_hardware, scaled_workload
from cuzklab.profiles.calibration import THROUGHPUT_KINDS
from cuzklab.simulate.demands import pool_seconds
from cuzklab.simulate.fit import ConstantFit, Fit, Report, log_errors
from cuzklab.simulate.measured import Measured, measure
from cuzklab.simulate.problem import Problem, Target
from cuzklab.simulate.simulation import Simulation, simulate
from cuzklab.stages import STAGES, CircuitShape
from cuzklab.trace import Recorder, Run
from cuzklab.trace.store import load_run

POOLED = ("synthesis", "b_g2_msm")  # CPU stages that a live run gives its threads
_NUMBERS = {"c": 1, "j": 1, "pw": 1, "gw": 1, "gt": 1, "partitions": 1, "lookahead": 0, "vram_bytes": 1}
"""Conditions that every run has, each with its least value; those below may be missing."""
_MOST_OF = {"pw": 1000, "gw": 1000}  # a thread each
_MORE_NUMBERS = {"gpus": 1, "g2_threads": 0, "vram_equivalent_bytes": 1}
_MOST = (1 << 62) - 1
_WORDS = ("policy", "workload", "hardware")
_FIGURES = ("batch_average", "wall", "peak_vram")
LOCK_WAIT = "lock_wait_s"
# A wait for locks that is a smaller part of the run than this is not compared: a few handovers decide it.
LEAST_LOCK_WAIT = 0.05


def fit_live_runs(
    folders: Sequence[Path],
    hardware: str | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    replicates: int = 14,
    report: Report = lambda share, words="": None,
) -> Fit:
    """Measure a profile's constants in stored live runs, and how well they are known by a bootstrap over the runs.

    Nothing is fitted to batch averages or waits for locks: they show how well what was measured explains them.

    Parameters
    ----------
    folders : sequence of Path
    hardware : str, optional
        Profile to start from; what the runs name unless given.
    seeds : sequence of int
        Of the simulations whose figures stand beside the measured ones.
    replicates : int
        Of the bootstrap: each measures as many runs, drawn with replacement.
    report : callable (share, words), optional

    Raises
    ------
    BadInput
        A folder holds no live run that ended well, a trace tells nothing, or the runs are of different machines.
    """
    runs = [load_live_run(folder) for folder in folders]
    machines = {run.info.conditions["hardware"] for run in runs}
    if len(machines) > 1:
        raise BadInput(f"the runs differ in hardware ({', '.join(sorted(machines))}); calibrate to one at a time")
    base = load_hardware(hardware or runs[0].info.conditions["hardware"])
    base.rate("synthesis")  # a profile without rates is refused
    shapes, steps = [_shape(run) for run in runs], replicates + 2
    report(0.0, f"constants of {len(runs)} runs")
    measured = _measure(runs, shapes, base)
    machine = base.with_constants(measured.constants)
    report(1 / steps, "the runs simulated")
    targets, figures = _beside(runs, machine, seeds)
    members = [measured.constants]
    for number in range(replicates):
        report((2 + number) / steps, f"bootstrap, {number + 1} of {replicates}")
        drawn = np.random.default_rng(number).integers(len(runs), size=len(runs))
        again = measure([runs[one] for one in drawn], [shapes[one] for one in drawn], base)
        members.append({name: again.constants.get(name, value) for name, value in measured.constants.items()})
    logs = log_errors(figures, np.array([target.measured for target in targets]))
    flow = np.array([target.kind in THROUGHPUT_KINDS for target in targets])
    scatter, other = (float(np.sqrt(np.mean(logs[one] ** 2))) if one.any() else 0.0 for one in (flow, ~flow))
    constants = tuple(_constant_fit(name, base, members, measured.prior_left.get(name, 0.0)) for name in members[0])
    problem = Problem(base, (), targets, lambda machine, seed: (), "", (), tuple(map(identity_of_run, runs)))
    return Fit(problem, constants, figures, logs, tuple(members), (), scatter, other or scatter, len(targets))


def measured_machine(runs: Sequence[Run], hardware: str | None = None) -> Hardware:
    """The runs' machine, or the one of that name, with the constants that they tell."""
    base = load_hardware(hardware or str(runs[0].info.conditions["hardware"]))
    base.rate("synthesis")  # a profile without rates is refused
    return base.with_constants(_measure(runs, [_shape(run) for run in runs], base).constants)


def _measure(runs: Sequence[Run], shapes: Sequence[CircuitShape], base: Hardware) -> Measured:
    """What the runs tell, once it is known that their traces tell something."""
    for run in runs:
        _check_trace(run)
    return measure(runs, shapes, base)


def _constant_fit(name: str, base: Hardware, members: Sequence[Mapping[str, float]], prior_left: float) -> ConstantFit:
    low, high = np.quantile([member[name] for member in members], (0.05, 0.95)).tolist()
    return ConstantFit(name, base.constant(name), members[0][name], low, high, prior_left, "")


def _beside(runs: Sequence[Run], machine: Hardware, seeds: Sequence[int]) -> tuple[tuple[Target, ...], np.ndarray]:
    """Measured figures of the runs, and simulated ones, means over seeds that ended well; not-a-number if none did."""
    targets, figures, known = [], [], {}
    for run in runs:
        key = str(sorted(run.info.conditions.items()))
        if key not in known:
            simulations = [simulate_run(run, machine, seed) for seed in seeds]
            known[key] = [simulation_figures(one) for one in simulations if one.outcome == "ok"]
        measured = run_figures(run)
        for figure, kind in (("batch_average_s", "batch_average"), (LOCK_WAIT, "duration")):
            if figure == LOCK_WAIT and measured[figure] < LEAST_LOCK_WAIT * measured["wall_s"]:
                continue
            targets.append(Target(f"{run.name}: {figure}", measured[figure], 0.05, kind=kind))
            figures.append(np.mean([one[figure] for one in known[key]]) if known[key] else np.nan)
    return tuple(targets), np.array(figures)


def load_live_run(folder: Path, *, failed_too: bool = False) -> Run:
    """A stored live run that can be simulated.

    Raises
    ------
    BadInput
        It is not live, did not end well (unless `failed_too`), lacks a condition or a figure, or its design is not one
        that comes with the library: code that a file names is not run.
    """
    run = load_run(folder)
    where, info = f"{folder}: run.json", run.info
    if run.info.origin != "live":
        raise BadInput(f"{folder}: a {run.info.origin} run; only live ones can be calibrated to")
    if run.info.outcome != "ok" and not failed_too:
        raise BadInput(f"{folder}: the run ended with {run.info.outcome}, so its figures mean nothing")
    if not isinstance(info.conditions, Mapping):
        raise BadInput(f"{where}: conditions are not a table")
    for name in (*_NUMBERS, *_WORDS):
        if name not in info.conditions:
            raise BadInput(f"{where}: condition {name} is missing")
    if not isinstance(info.machine, Mapping):
        raise BadInput(f"{where}: machine is not a table")
    for name, least in (_NUMBERS | _MORE_NUMBERS).items():
        value, most = info.conditions.get(name, least), _MOST_OF.get(name)
        _check_number(f"{where}: condition {name}", value, least, most)
    if info.policy not in policies.names():
        raise BadInput(f"{where}: policy {info.policy} does not come with cuzklab, so its runs are not simulated")
    if info.conditions.get("urgent"):
        raise BadInput(f"{where}: the run had urgent proofs, whose conditions it does not tell; give one without")
    device = info.devices[0] if info.devices and isinstance(info.devices[0], Mapping) else {}
    _check_number(f"{where}: margin_bytes of the first device", device.get("margin_bytes"), 0)
    if info.outcome == "ok":
        _check_figures(where, run)
    return run


def _check_number(what: str, value: Any, least: int, most: int | None = None) -> None:
    if type(value) is not int or not least <= value <= (_MOST if most is None else most):
        upto = "" if most is None else f" to {most}"
        raise BadInput(f"{what} is {value!r}; it must be a whole number from {least}{upto}")


def _check_figures(where: str, run: Run) -> None:
    try:
        found = {metric["kind"]: float(metric["value"]) for metric in run.info.metrics}
    except (TypeError, KeyError, ValueError, OverflowError):
        raise BadInput(f"{where}: a metric has no kind or no value") from None
    for kind in _FIGURES:
        if kind not in found:
            raise BadInput(f"{where}: metric {kind} is missing")
        if not 0 < found[kind] < math.inf:
            raise BadInput(f"{where}: metric {kind} is {found[kind]:g}; it must be more than nothing")


def _check_trace(run: Run) -> None:
    """Refuse a trace in which there is nothing to be measured, or what cannot have been."""
    for name in ("spans", "transfers"):
        rows = run.table(name)
        if (backwards := np.flatnonzero(rows["end"] < rows["start"])).size:
            raise BadInput(f"{run.path / name}.parquet: row {backwards[0]} ends before it begins")
    where, spans = f"{run.path}/spans.parquet", run.table("spans")
    if not (spans["category"] == "gpu").any():
        raise BadInput(f"{where}: no stage on a device, so nothing can be measured; give a run with its whole trace")
    for name in spans["name"][spans["category"].isin(("cpu", "gpu"))].unique():
        stage, _, part = str(name).partition(".")
        if stage not in STAGES or part not in STAGES[stage].parts:
            raise BadInput(f"{where}: {str(name)!r} is no stage; calibrate to runs of designs that come with cuzklab")


def identity_of_run(run: Run) -> str:
    """A run's name and time, by which a profile remembers what it was fitted to."""
    return f"{run.name} {run.info.created}"


def _shape(run: Run) -> CircuitShape:
    return _workload(run).shape


def _workload(run: Run) -> Any:
    name = str(run.info.conditions["workload"])
    try:
        log2_domain = int(name.removeprefix("porep-shaped-"))
    except ValueError:
        raise BadInput(f"run {run.name}: workload {name} is not one that live runs have") from None
    return scaled_workload(log2_domain, int(run.info.conditions["partitions"]))


def simulate_run(run: Run, hardware: Hardware, seed: int) -> Simulation:
    """Simulate the conditions of a live run, with its device's memory."""
    conditions = run.info.conditions
    known = policies.options_of(policies.load(run.info.policy).module)
    options = {name: conditions[name] for name in known if name in conditions}  # else the default was in force
    margin_bytes = int(run.info.devices[0]["margin_bytes"])
    machine = replace(hardware, device=replace(hardware.device, margin_bytes=margin_bytes))
    machine = _with_threads(machine, int(conditions["gt"]), _shape(run))
    return simulate(
        policies.load(run.info.policy, **options),
        machine,
        _workload(run),
        proofs=conditions["c"],
        in_flight=conditions["j"],
        gpu_workers=conditions["gw"],
        gpus=conditions.get("gpus", 1),
        synthesis_workers=conditions["pw"],
        lookahead=conditions["lookahead"],
        vram_bytes=conditions["vram_bytes"],
        seed=seed,
    )


def _with_threads(hardware: Hardware, threads: int, shape: CircuitShape) -> Hardware:
    """The machine whose stages with several threads have so many, each thread as fast as before."""
    known = hardware.threads.values if hardware.threads else {}
    changed = {}
    for stage in POOLED:
        before, work = known.get(stage, 1), STAGES[stage].work(shape, "")
        faster = pool_seconds(hardware, stage, before, work) / pool_seconds(hardware, stage, threads, work)
        changed |= {f"threads.{stage}": threads, f"rates.{stage}": hardware.constant(f"rates.{stage}") * faster}
    return hardware.with_constants(changed)


def run_figures(run: Run) -> dict[str, float]:
    """Figures of a live run that a simulation must meet: batch average, wall time, wait for locks."""
    found = {metric["kind"]: float(metric["value"]) for metric in run.info.metrics}
    locks = run.table("locks")
    waited_ns = float((locks["acquired"] - locks["requested"]).sum())
    return {"batch_average_s": found["batch_average"], "wall_s": found["wall"], LOCK_WAIT: waited_ns * 1e-9,
            "peak_vram_bytes": found["peak_vram"]}  # fmt: skip


def simulation_figures(simulation: Simulation) -> Mapping[str, float]:
    """The same figures of a simulation."""
    found = {name: metric.value for name, metric in simulation.metrics.items()}
    found[LOCK_WAIT] = lock_wait_s(simulation.recorder)
    return found


def lock_wait_s(recorder: Recorder) -> float:
    """Seconds that actors together waited for locks."""
    return sum(use.acquired - use.requested for use in recorder.rows["locks"] if use.acquired is not None) * 1e-9

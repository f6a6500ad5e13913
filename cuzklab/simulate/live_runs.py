"""Calibration to stored live runs: stage times are measured in them, and what is left is fitted to their figures.

A live run of the host backend has an emulated device: its kernels are computed by threads of the machine's CPU, which
CPU stages compete for, and only its link and its memory are the profile's. So the profile of such a machine says
``kernels_on_host``. Stage rates, copies, what it takes to launch a stage and how much syntheses spread are taken from
the runs; free is how much of the stages' time waits for memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cuzklab.policies as policies
from cuzklab.errors import BadInput
from cuzklab.profiles import Hardware, load_hardware, scaled_workload
from cuzklab.simulate.costs import pool_seconds
from cuzklab.simulate.fit import Constant, Problem, Target, identity_of
from cuzklab.simulate.measured import measured_constants
from cuzklab.simulate.simulation import Simulation, simulate
from cuzklab.stages import CircuitShape
from cuzklab.trace import Recorder, Run
from cuzklab.trace.store import load_run

FREE_CONSTANTS = (Constant("host.memory_efficiency", 0.3, 0.005, 1.0),)
POOLED = ("synthesis", "b_g2_msm")  # CPU stages that a live run gives its threads
_NEEDED = ("policy", "c", "j", "pw", "gw", "gt", "partitions", "lookahead", "vram_bytes", "workload", "hardware")
LOCK_WAIT = "lock_wait_s"
# A wait for locks that is a smaller part of the run than this is not fitted: a few handovers decide it.
LEAST_LOCK_WAIT = 0.05


def problem_of_runs(folders: Sequence[Path], hardware: str | None = None) -> tuple[Problem, str]:
    """The fit to stored live runs, and what it is fitted to, in words.

    Raises
    ------
    BadInput
        A folder holds no live run that ended well, or the runs are of different machines, circuits or threads.
    """
    runs = [load_live_run(folder) for folder in folders]
    for name in ("hardware",):
        values = {run.info.conditions[name] for run in runs}
        if len(values) > 1:
            raise BadInput(f"the runs differ in {name} ({', '.join(map(str, sorted(values)))}); fit one at a time")
    base = load_hardware(hardware or runs[0].info.conditions["hardware"])
    measured = measured_constants(runs, [_shape(run) for run in runs], base)
    machine = base.with_constants(measured)
    targets, names = [], []
    for run in runs:
        for figure, value in run_figures(run).items():
            if figure == LOCK_WAIT and value < LEAST_LOCK_WAIT * run_figures(run)["wall_s"]:
                continue
            if figure in ("batch_average_s", LOCK_WAIT):
                targets.append(Target(f"{run.name}: {figure}", value, 0.05))
                names.append((run.name, figure))

    def simulated(one: Hardware, seed: int) -> list[float]:
        found = {run.name: simulation_figures(simulate_run(run, one, seed)) for run in runs}
        return [found[name].get(figure, float("nan")) for name, figure in names]

    identity = identity_of([(run.info.conditions, run.info.created) for run in runs], measured)
    free = tuple(constant for constant in FREE_CONSTANTS if machine.constant(constant.name) > 0)
    names_of_runs = tuple(identity_of_run(run) for run in runs)
    return Problem(machine, free, tuple(targets), simulated, identity, tuple(measured), names_of_runs), f"{len(runs)} live runs"


def load_live_run(folder: Path, *, failed_too: bool = False) -> Run:
    """A stored live run that can be simulated.

    Raises
    ------
    BadInput
        It is not live, did not end well (unless `failed_too`), or lacks a condition.
    """
    run = load_run(folder)
    if run.info.origin != "live":
        raise BadInput(f"{folder}: a {run.info.origin} run; only live ones can be calibrated to")
    if run.info.outcome != "ok" and not failed_too:
        raise BadInput(f"{folder}: the run ended with {run.info.outcome}, so its figures mean nothing")
    for name in _NEEDED:
        if name not in run.info.conditions:
            raise BadInput(f"{folder}: run.json: condition {name} is missing")
    return run


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
    machine = _with_threads(machine, int(conditions["gt"]))
    return simulate(
        policies.load(run.info.policy, **options),
        machine,
        _workload(run),
        proofs=conditions["c"],
        in_flight=conditions["j"],
        gpu_workers=conditions["gw"],
        synthesis_workers=conditions["pw"],
        lookahead=conditions["lookahead"],
        vram_bytes=conditions["vram_bytes"],
        seed=seed,
    )


def _with_threads(hardware: Hardware, threads: int) -> Hardware:
    """The machine whose stages with several threads have so many, each thread as fast as before."""
    known = hardware.threads.values if hardware.threads else {}
    changed = {}
    for stage in POOLED:
        before = known.get(stage, 1)
        faster = pool_seconds(hardware, stage, before) / pool_seconds(hardware, stage, threads)
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

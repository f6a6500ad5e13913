"""Calibration to stored live runs: stage times are measured in them, and what is left is fitted to their figures.

A live run of the host backend has an emulated device: its kernels are computed by threads of the machine's CPU, which
CPU stages compete for, and only its link and its memory are the profile's. So the profile of such a machine says
``kernels_on_host``, its stage rates and copies are taken from the runs, and free is what it takes to launch a stage,
how much of the stages' time waits for memory, and how much durations spread.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cuzklab.policies as policies
from cuzklab.errors import BadInput
from cuzklab.profiles import Hardware, load_hardware, scaled_workload
from cuzklab.simulate.fit import Constant, Problem, Target, identity_of
from cuzklab.simulate.simulation import Simulation, simulate
from cuzklab.stages import STAGES, CircuitShape
from cuzklab.trace import Recorder, Run
from cuzklab.trace.store import load_run

FREE_CONSTANTS = (
    Constant("device.launch_s", 1.0, 1e-6, 0.1),
    Constant("host.memory_efficiency", 0.7, 0.005, 1.0),
)
_ON_CPU = ("synthesis", "prep_msm", "b_g2_msm", "epilogue")
_ROUNDS = 4
_NEEDED = ("policy", "c", "j", "pw", "gw", "gt", "partitions", "lookahead", "vram_bytes", "workload", "hardware")
LOCK_WAIT = "lock_wait_s"
# A wait for locks that is a smaller part of the run than this is not fitted: a few handovers decide it.
_LEAST_LOCK_WAIT = 0.05


def problem_of_runs(folders: Sequence[Path], hardware: str | None = None) -> tuple[Problem, str]:
    """The fit to stored live runs, and what it is fitted to, in words.

    Raises
    ------
    BadInput
        A folder holds no live run that ended well, or the runs are of different machines, circuits or threads.
    """
    runs = [_live_run(folder) for folder in folders]
    for name in ("workload", "hardware", "gt"):
        values = {run.info.conditions[name] for run in runs}
        if len(values) > 1:
            raise BadInput(f"the runs differ in {name} ({', '.join(map(str, sorted(values)))}); fit one at a time")
    base = load_hardware(hardware or runs[0].info.conditions["hardware"])
    rates = stage_rates(runs, _shape(runs[0]), base)
    known = dict(base.rates.values) if base.rates else {}
    copies = transfer_constants(runs, _shape(runs[0]))
    machine = base.with_constants({f"rates.{stage}": rate for stage, rate in {**known, **rates}.items()} | copies)
    machine = machine.with_constants({"spread.synthesis": synthesis_spread(runs)})
    machine = without_load(machine, runs)
    rates = {stage: machine.constant(f"rates.{stage}") for stage in rates}
    copies |= {"spread.synthesis": machine.constant("spread.synthesis")}
    targets, names = [], []
    for run in runs:
        for figure, value in run_figures(run).items():
            if figure == LOCK_WAIT and value < _LEAST_LOCK_WAIT * run_figures(run)["wall_s"]:
                continue
            if figure != "wall_s":
                targets.append(Target(f"{run.name}: {figure}", value, 0.05))
                names.append((run.name, figure))

    def simulated(one: Hardware, seed: int) -> list[float]:
        found = {run.name: simulation_figures(simulate_run(run, one, seed)) for run in runs}
        return [found[name].get(figure, float("nan")) for name, figure in names]

    identity = identity_of([(run.info.conditions, run.info.created) for run in runs], rates, copies)
    free = tuple(constant for constant in FREE_CONSTANTS if machine.constant(constant.name) > 0)
    measured = (*(f"rates.{stage}" for stage in rates), *copies)
    return Problem(machine, free, tuple(targets), simulated, identity, measured), f"{len(runs)} live runs"


def _live_run(folder: Path) -> Run:
    run = load_run(folder)
    if run.info.origin != "live":
        raise BadInput(f"{folder}: a {run.info.origin} run; only live ones can be calibrated to")
    if run.info.outcome != "ok":
        raise BadInput(f"{folder}: the run ended with {run.info.outcome}, so its figures mean nothing")
    for name in _NEEDED:
        if name not in run.info.conditions:
            raise BadInput(f"{folder}: run.json: condition {name} is missing")
    return run


def _shape(run: Run) -> CircuitShape:
    return _workload(run).shape


def _workload(run: Run) -> Any:
    name = str(run.info.conditions["workload"])
    try:
        log2_domain = int(name.removeprefix("porep-shaped-"))
    except ValueError:
        raise BadInput(f"run {run.name}: workload {name} is not one that live runs have") from None
    return scaled_workload(log2_domain, int(run.info.conditions["partitions"]))


def stage_rates(runs: Sequence[Run], shape: CircuitShape, hardware: Hardware) -> dict[str, float]:
    """Work a second of each stage, from the means of its parts' durations over all runs.

    Means, since throughput is made of sums. A stage on the device whose part lasts as long as its streamed bytes need
    on the link tells nothing of its kernels; they are taken to need half of that.
    """
    durations: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        spans = run.table("spans")
        on_cpu, on_device = spans[spans["category"] == "cpu"], _stages_on_device(run)
        for table in (on_cpu, on_device):
            for label, lasted in (table["end"] - table["start"]).groupby(table["name"]):
                stage, _, part = str(label).partition(".")
                durations.setdefault((stage, part), []).extend(lasted)
    rates = {}
    for name, stage in STAGES.items():
        if not all((name, part) in durations for part in stage.parts):
            continue
        seconds = 0.0
        for part in stage.parts:
            mean_s = float(np.mean(durations[name, part])) * 1e-9
            link_s = stage.streamed_bytes(shape, part) / hardware.transfer.pinned_bytes_per_s
            seconds += mean_s if mean_s > 1.05 * link_s else mean_s / 2
        rates[name] = sum(stage.work(shape, part) for part in stage.parts) / seconds
    return rates


def synthesis_spread(runs: Sequence[Run]) -> float:
    """Standard deviation of the logarithm of a synthesis's duration within a run, mean over runs; 0.005 at least."""
    found = [_named(run, "synthesis") for run in runs]
    logarithms = [np.log((spans["end"] - spans["start"]).to_numpy(float)) for spans in found]
    spreads = [float(np.std(values, ddof=1)) for values in logarithms if len(values) > 1]
    return max(0.005, float(np.mean(spreads))) if spreads else 0.005


def without_load(machine: Hardware, runs: Sequence[Run]) -> Hardware:
    """The machine with CPU stages as fast as they are alone, given rates measured while they competed.

    The model slows a stage by what runs beside it, so a rate that was measured under load would be slowed twice. Each
    round simulates the runs and multiplies a stage's rate by its simulated mean duration over the measured one.
    """
    measured = _mean_durations_s(run.table("spans") for run in runs)
    for _ in range(_ROUNDS):
        simulated = _mean_durations_s(simulate_run(run, machine, 1).recorder.table("spans").to_pandas() for run in runs)
        machine = machine.with_constants(
            {
                f"rates.{stage}": machine.constant(f"rates.{stage}") * simulated[stage] / measured[stage]
                for stage in _ON_CPU
                if stage in measured and stage in simulated
            }
        )
    return machine


def _mean_durations_s(tables: Iterable[pd.DataFrame]) -> dict[str, float]:
    """Mean duration of each CPU stage over all runs."""
    spans = pd.concat([table[table["name"].isin(_ON_CPU)][["name", "start", "end"]] for table in tables])
    lasted = (spans["end"] - spans["start"]).groupby(spans["name"])
    return {str(name): float(rows.mean()) * 1e-9 for name, rows in lasted}


def _stages_on_device(run: Run) -> pd.DataFrame:
    """Start and end of each stage by what the device did; a real one has many kernels to a stage.

    Those of ntt_h may wait for copies between them, so of that stage its kernels' time counts alone.
    """
    kernels = run.table("kernels")
    kernels = kernels.assign(busy=kernels["end"] - kernels["start"])
    stages = kernels.groupby(["partition", "span"], sort=False).agg(
        start=("start", "min"), end=("end", "max"), busy=("busy", "sum")
    )
    stages = stages.reset_index().rename(columns={"span": "name"})
    waits = stages["name"] == "ntt_h"
    return stages.assign(end=stages["end"].where(~waits, stages["start"] + stages["busy"]))


def transfer_constants(runs: Sequence[Run], shape: CircuitShape) -> dict[str, float]:
    """What copies and page-locking of a, b and c took on average: nominal rates, and what it takes to wake up."""
    found = {}
    for name, key in (("pin", "pin_s_per_byte"), ("unpin", "unpin_s_per_byte")):
        lasted = [spans["end"] - spans["start"] for run in runs for spans in [_named(run, name)]]
        lasted_ns = np.concatenate(lasted) if lasted else np.array([])
        if len(lasted_ns):
            found[f"transfer.{key}"] = float(lasted_ns.mean()) * 1e-9 / shape.abc_bytes
    for pinned, key in ((True, "pinned_bytes_per_s"), (False, "pageable_bytes_per_s")):
        rows = [copies[copies["pinned"] == pinned] for run in runs for copies in [run.table("transfers")]]
        # Stages that stream points do so on their own stream; an asynchronous upload has one for itself.
        whole = [copies[copies["stream"].str.endswith(".upload")] if pinned else copies for copies in rows]
        lasted_ns = np.concatenate([copies["end"] - copies["start"] for copies in whole])
        if len(lasted_ns):
            found[f"transfer.{key}"] = shape.abc_bytes / (float(lasted_ns.mean()) * 1e-9)
    return found


def _named(run: Run, name: str) -> Any:
    spans = run.table("spans")
    return spans[spans["name"] == name]


def simulate_run(run: Run, hardware: Hardware, seed: int) -> Simulation:
    """Simulate the conditions of a live run, with its device's memory."""
    conditions = run.info.conditions
    known = policies.options_of(policies.load(run.info.policy).module)
    options = {name: conditions[name] for name in known if name in conditions}  # else the default was in force
    margin_bytes = int(run.info.devices[0]["margin_bytes"])
    machine = replace(hardware, device=replace(hardware.device, margin_bytes=margin_bytes))
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


def run_figures(run: Run) -> dict[str, float]:
    """Figures of a live run that a simulation must meet: batch average, wall time, wait for locks."""
    found = {metric["kind"]: float(metric["value"]) for metric in run.info.metrics}
    locks = run.table("locks")
    waited_ns = float((locks["acquired"] - locks["requested"]).sum())
    return {"batch_average_s": found["batch_average"], "wall_s": found["wall"], LOCK_WAIT: waited_ns * 1e-9}


def simulation_figures(simulation: Simulation) -> Mapping[str, float]:
    """The same figures of a simulation."""
    found = {name: metric.value for name, metric in simulation.metrics.items()}
    found[LOCK_WAIT] = lock_wait_s(simulation.recorder)
    return found


def lock_wait_s(recorder: Recorder) -> float:
    """Seconds that actors together waited for locks."""
    return sum(use.acquired - use.requested for use in recorder.rows["locks"] if use.acquired is not None) * 1e-9

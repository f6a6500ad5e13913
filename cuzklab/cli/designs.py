"""The verb run: a design for real, with locks, kernels and proofs, or the same in virtual time."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuzklab.cli.engine import Urgent, print_failures, print_urgent, status_to, urgent_of
from cuzklab.cli.help import DESIGNS
from cuzklab.cli.options import (
    DEFAULT_STORE,
    BackendOrSim,
    Json,
    Out,
    Parameters,
    Policy,
    Vram,
    app,
    backend_in_force,
    emit,
    format_metric,
    policy_options,
    print_table,
    size_of,
)
from cuzklab.cli.places import checked_file
from cuzklab.errors import BadInput
from cuzklab.progress import progress
from cuzklab.units import percent

if TYPE_CHECKING:
    from cuzklab.simulate import Simulation

_ENGINE = {"gw": "--workers", "pw": "--synthesis-workers", "gpus": "--devices"}
_FAIR = 14  # log2 of the rows from which the scratch of an MSM is no more than its share of a card


@app.command(rich_help_panel=DESIGNS)
def run(
    policy: Policy,
    workload: Annotated[
        str,
        typer.Option(
            help="porep-shaped-N: a circuit with 2^N rows, made together with a test key; N up to 22, on a GPU 27, the "
            "size of a real partition."
        ),
    ] = "porep-shaped-15",
    workers: Annotated[int, typer.Option(help="GPU workers.")] = 2,
    proofs: Annotated[int, typer.Option("-c", "--proofs", help="Proofs of the batch.")] = 1,
    partitions: Annotated[int, typer.Option(help="Partitions of each proof.")] = 6,
    in_flight: Annotated[
        int | None, typer.Option("-j", "--in-flight", help="Proofs at a time; as many as proofs by default.")
    ] = None,
    synthesis_workers: Annotated[int, typer.Option(help="Partitions synthesised at a time.")] = 1,
    devices: Annotated[int, typer.Option(help="Devices, each with workers of its own.")] = 1,
    vram: Vram = "16GiB",
    host_memory: Annotated[
        str | None,
        typer.Option(help="Host memory that a live run may take, like 256GiB; by default what there is."),
    ] = None,
    urgent: Urgent = None,
    hardware: Annotated[
        str | None,
        typer.Option(help="Profile of the emulated device (emulated by default) or of a simulation; a GPU is its own."),
    ] = None,
    parameters: Parameters = None,
    backend: BackendOrSim = "auto",
    threads: Annotated[
        int, typer.Option(min=1, help="CPU threads of each CPU stage, and of each kernel of an emulated device.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of circuit, key, witnesses and randomness.")] = 1,
    stacks: Annotated[bool, typer.Option("--stacks", help="Sample the stacks of CPU stages.")] = False,
    status_fd: Annotated[
        int | None,
        typer.Option(
            help="Open file descriptor to which the run's state is written, a line of JSON ten times a second."
        ),
    ] = None,
    out: Out = None,
    capture: Annotated[
        bool, typer.Option("--capture", help="Run under Nsight Systems, and join what it captured with the run.")
    ] = False,
    nsys: Annotated[str, typer.Option("--nsys", help="The profiler of --capture; looked for by default.")] = "",
    keep_report: Annotated[
        Path | None,
        typer.Option(
            "--keep-report", callback=checked_file, help="Keep the capture's .nsys-rep (it holds the environment)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a policy for real, with threads, locks, kernels and proofs: exit status 1 if a partition or a proof failed.

    cuzklab run phase9 --workers 2; cuzklab run phase9 --backend cuda --workload porep-shaped-27 -c 1 --partitions 1.

    On the GPU where there is one, else on an emulated device. Device memory is given for a 32 GiB PoRep partition; the
    run gets it in proportion to its circuit's domain, so a large card plays a small one.
    """
    from cuzklab import policies
    from cuzklab.live import run_live
    from cuzklab.trace.store import new_run_place

    if not capture and (nsys or keep_report):
        raise BadInput("--nsys and --keep-report go with --capture")
    where = backend_in_force(backend, simulated=True)
    design = policies.load(policy, **policy_options(parameters, _ENGINE))
    if capture:
        from cuzklab.cli.captures import run_captured

        if where == "sim":
            raise BadInput("--capture: a simulation is not a program that a profiler could see")
        run_captured(out or new_run_place(DEFAULT_STORE, design.name), keep_report, as_json, nsys)
    if where == "sim":
        simulation = _in_virtual_time(
            design, hardware or "rtx5070ti-7995wx", workload, size_of(vram, "--vram"), proofs=proofs,
            in_flight=in_flight or proofs, partitions=partitions, gpu_workers=workers,
            synthesis_workers=synthesis_workers, gpus=devices, seed=seed,
        )  # fmt: skip
        stored = simulation.to_run(out or new_run_place(DEFAULT_STORE, design.name))
        if as_json:
            emit({"run": str(stored.path), **simulation.to_json()})
        else:
            print(f"SIMULATION, no proofs: {simulation.outcome}. {simulation.explanation}".rstrip())
            _print_metrics(simulation)
            print(f"run  {stored.path}")
        raise typer.Exit(0 if simulation.outcome == "ok" else 1)
    status = status_to(status_fd)
    with progress(f"run {design.name}") as report:
        result = run_live(
            design, workload, proofs=proofs, partitions=partitions, gpu_workers=workers, in_flight=in_flight,
            synthesis_workers=synthesis_workers, gpus=devices, vram_bytes=size_of(vram, "--vram"),
            urgent=urgent_of(urgent), hardware=hardware, backend=where, threads=threads, seed=seed,
            host_memory_bytes=None if host_memory is None else size_of(host_memory, "--host-memory"),
            sample_stacks=stacks, status=status,
            preparing=lambda words, share: report(0.0, f"beforehand: {words} ({percent(share, 0)})"),
            progress=lambda done, total: report(done / max(total, 1), f"{done} of {total} partitions"),
        )  # fmt: skip
        stored = result.write(out or new_run_place(DEFAULT_STORE, design.name))
    made, verified, asked_for = len(result.proofs), len(result.verified), proofs + len(urgent or [])
    if as_json:
        emit(
            {
                "run": str(stored.path), "outcome": result.outcome, "explanation": result.explanation, "proofs": made,
                "verified": verified, "latency_s": dict(result.latency_s),
                "failures": [asdict(failure) for failure in result.failures],
                "metrics": {name: metric.value for name, metric in result.metrics.items()},
                "conditions": dict(result.conditions),
            }
        )  # fmt: skip
    else:
        counted = f"{verified} of {made} proofs verified, {asked_for} asked for"
        print(f"{result.outcome}: {counted}. {result.explanation}".rstrip())
        _print_metrics(result)
        if result.outcome == "device_oom" and _is_small(workload):
            print(f"note: scratch of an MSM does not shrink with the circuit; from porep-shaped-{_FAIR} on it fits")
        print_urgent(urgent_of(urgent), proofs, result.latency_s)
        print_failures(result.failures)
        print(f"run  {stored.path}")
    raise typer.Exit(0 if result.outcome == "ok" and verified == asked_for else 1)


def _is_small(workload: str) -> bool:
    """Whether a circuit is below the size from which what fits a card fits its share of it."""
    rows = workload.removeprefix("porep-shaped-")
    return rows.isdigit() and int(rows) < _FAIR


def _in_virtual_time(
    design: Any, hardware_name: str, workload_name: str, vram_bytes: int, **conditions: Any
) -> "Simulation":
    """The same run as a simulation; the device's memory and margin are scaled as those of a live run are."""
    from dataclasses import replace

    from cuzklab.profiles import load_hardware, load_workload
    from cuzklab.simulate import simulate as run_simulation
    from cuzklab.stages import POREP_32G

    hardware, workload = load_hardware(hardware_name), load_workload(workload_name)
    margin_bytes = hardware.device.margin_bytes * workload.shape.domain // POREP_32G.domain
    scaled_bytes = vram_bytes * workload.shape.domain // POREP_32G.domain
    hardware = replace(hardware, device=replace(hardware.device, margin_bytes=margin_bytes))
    return run_simulation(design, hardware, workload, vram_bytes=scaled_bytes, **conditions)


def _print_metrics(result: Any) -> None:
    print_table(
        [
            {"figure": metric.kind.replace("_", " "), "value": format_metric(metric)}
            for metric in result.metrics.values()
        ]
    )
    for note in result.notes:
        print(f"note: {note}")

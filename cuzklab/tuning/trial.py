"""One simulation of a configuration, and one check of a design, as functions of what JSON can hold.

They run in other processes, perhaps on other machines, so they take names and paths and read the files themselves; a
file whose content is another one there is refused.
"""

import hashlib
import multiprocessing
import signal
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import cuzklab
import cuzklab.policies as policies
from cuzklab.errors import BadInput
from cuzklab.profiles import Hardware, Workload, load_hardware, load_workload
from cuzklab.simulate import simulate
from cuzklab.stages import partition_sizes
from cuzklab.sweep import Task
from cuzklab.tuning.space import Configuration, Space, digest_of

FIGURES = (
    "batch_average_s", "steady_interval_s", "prove_time_s", "peak_host_bytes", "peak_vram_bytes", "call_occupancy",
    "kernel_occupancy",
)  # fmt: skip
# What one partition after another may do to each other shows with two; more workers than this are checked with one.
_TWO_PARTITIONS_UP_TO = 2
# States, not seconds: so that a verdict is the same on any machine.
MOST_STATES = 60_000
_SOURCES = ("simulate", "check", "policies", "profiles", "trace/metrics.py", "trace/recorders", "stages.py")


def simulation_task(space: Space, one: Configuration, proofs: int, draw: Sequence[Any]) -> Task:
    """A task for `simulate_one`.

    Parameters
    ----------
    proofs : int
        Of the batch; as many as are in flight at most.
    draw : ("seed", number) or ("fit", member, number)
        The profile's own constants or those of a near-equal fit, and the seed.
    """
    arguments = {
        **one.to_json(), "policy_digest": digest_of(one.policy), "workload": space.workload_place,
        "digests": [space.machine(one).hardware.digest, space.workload.digest], "proofs": proofs,
        "in_flight": min(space.in_flight, proofs), "draw": list(draw),
    }  # fmt: skip
    return Task(arguments, one.label)


def simulate_one(
    hardware: str, policy: str, gw: int, pw: int, gt: int | None, lookahead: int | None, vram_bytes: int,
    policy_digest: str, workload: str, digests: Sequence[str], proofs: int, in_flight: int, draw: Sequence[Any],
) -> dict[str, Any]:  # fmt: skip
    """Simulate a configuration once.

    Returns
    -------
    dict
        `outcome`, `explanation`, and the figures that exist.

    Raises
    ------
    BadInput
    """
    _leave_interrupts_to_the_parent()
    machine, work = _profiles(hardware, workload, *digests)
    if draw[0] == "fit":
        machine = machine.with_constants(machine.calibration.member(draw[1]))
    one = Configuration(hardware, policy, gw, pw, gt, lookahead, vram_bytes)
    found = simulate(
        _policy(policy, policy_digest, tuple(one.options.items())), machine, work, proofs=proofs, in_flight=in_flight,
        gpu_workers=gw, synthesis_workers=pw, lookahead=lookahead, vram_bytes=vram_bytes, seed=draw[-1], record=False,
    )  # fmt: skip
    figures = {name: found.metrics[name].value for name in FIGURES if name in found.metrics}
    return {"outcome": found.outcome, "explanation": found.explanation, **figures}


def check_task(space: Space, one: Configuration) -> Task:
    """A task for `check_one`. How many threads a stage has makes no difference to it: the checker knows no time."""
    arguments = {
        "policy": one.policy, "policy_digest": digest_of(one.policy), "workers": one.gw, "vram_bytes": one.vram_bytes,
        "hardware": one.machine, "workload": space.workload_place,
        "digests": [space.machine(one).hardware.digest, space.workload.digest],
    }  # fmt: skip
    return Task(arguments, f"check {one.design}, {one.gw} workers")


def check_one(
    policy: str, policy_digest: str, workers: int, vram_bytes: int, hardware: str, workload: str, digests: Sequence[str]
) -> dict[str, Any]:
    """Check every interleaving of a design's workers.

    Returns
    -------
    dict
        `verdict` (safe, unsafe, unknown), `kinds`, and `message`: the first finding, or why nothing is known.
    """
    from cuzklab.check import check

    _leave_interrupts_to_the_parent()
    machine, work = _profiles(hardware, workload, *digests)
    found = check(
        _policy(policy, policy_digest, ()), workers=workers, partitions=2 if workers <= _TWO_PARTITIONS_UP_TO else 1,
        vram_bytes=vram_bytes, sizes=partition_sizes(work.shape, machine.device.model), workload=work.name,
        margin_bytes=machine.device.margin_bytes, shortest=False, max_states=MOST_STATES, seconds=3600,
    )  # fmt: skip
    kinds = sorted({finding.kind for finding in found.findings})
    message = found.findings[0].message if found.findings else found.exploration.stopped
    return {"verdict": found.verdict, "kinds": kinds, "message": message}


def sources_digest() -> str:
    """Hash of the modules that a simulation's or a check's result depends on: another hash makes a journal void."""
    root, digest = Path(cuzklab.__file__).parent, hashlib.sha256()
    for name in _SOURCES:
        place = root / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _leave_interrupts_to_the_parent() -> None:
    """A terminal sends Ctrl-C to worker processes as well; they would only end with a traceback."""
    if multiprocessing.parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@lru_cache(maxsize=64)
def _profiles(hardware: str, workload: str, hardware_digest: str, workload_digest: str) -> tuple[Hardware, Workload]:
    machine, work = load_hardware(hardware), load_workload(workload)
    for place, digest, wanted in (
        (hardware, machine.digest, hardware_digest), (workload, work.digest, workload_digest)
    ):  # fmt: skip
        if digest != wanted:
            raise BadInput(f"profile {place}: its content here is another than where the tune was started")
    return machine, work


@lru_cache(maxsize=256)
def _policy(place: str, digest: str, options: tuple[tuple[str, Any], ...]) -> policies.Policy:
    if digest_of(place) != digest:
        raise BadInput(f"policy {place}: its content here is another than where the tune was started")
    return policies.load(place, **dict(options))


def draws(fits: int, seeds: int, first_seed: int) -> list[tuple[Any, ...]]:
    """What a configuration is confirmed with: the same for every one, so that they are compared in pairs."""
    own: list[tuple[Any, ...]] = [("seed", first_seed + number) for number in range(seeds)]
    return own + [("fit", number + 1, first_seed + seeds + number) for number in range(fits)]


def failed(result: Mapping[str, Any]) -> str:
    """Why a configuration is refused after a simulation; nothing if it is not."""
    return "" if result["outcome"] == "ok" else f"{result['outcome']}: {result['explanation']}"

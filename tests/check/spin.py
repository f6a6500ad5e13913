"""Runs SPIN on translated programs, and says in the same words what SPIN and the checker found possible."""

import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import pytest

from cuzklab.check import Exploration, explore
from cuzklab.check.promela import ALL_ENDED, UNLISTED, Translation, promela
from cuzklab.check.promela.closure import close
from cuzklab.policies.model import Gpu, Program
from cuzklab.stages import PartitionSizes
from cuzklab.units import MiB

POINTS = 750  # of a model; SPIN has a limit, and the C compiler takes more than twice the time for twice as many
Programs = Mapping[str, Sequence[Program]]


@dataclass(frozen=True)
class Verdict:
    """How programs can end, and the states that it took to tell.

    The endings are "ended", "deadlock", each fault ("oom: Alloc … @ line") and each thing left at the end ("leak: …").
    `model` is the folder of the verifier, and `case` the system's number in it.
    """

    endings: frozenset[str]
    states: int
    model: Path
    case: int


def tools() -> tuple[str, str]:
    """Paths of SPIN and of a C compiler. Absent: the test skips and says so; in CI it fails."""
    spin, compiler = shutil.which("spin"), shutil.which("gcc") or shutil.which("cc")
    if spin and compiler:
        return spin, compiler
    message = f"{'a C compiler' if spin else 'spin'} is not installed"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def assert_agreement(folder: Path, systems: Mapping[Hashable, Programs], queue_bound: int) -> list[Verdict]:
    """Compare SPIN with the checker on systems, each under its name; what SPIN found."""
    judged = spin(folder, *systems.values(), queue_bound=queue_bound)
    differences = {}
    for name, programs, verdict in zip(systems, systems.values(), judged, strict=True):
        found = checker(explore(programs, shortest=False, queue_bound=queue_bound))
        only_spin, only_checker = verdict.endings - found, found - verdict.endings
        # Some may wait for ever beside others who fail at their next step: to SPIN, whose schedules end at a fault,
        # that is a deadlock only if the fault may be put off for ever.
        if only_checker == {"deadlock"} and _deadlock(_verify(verdict.model, verdict.case, lenient=True)):
            only_checker = set()
        if only_spin or only_checker:
            differences[name] = {"only SPIN": sorted(only_spin), "only the checker": sorted(only_checker)}
    assert not differences
    return judged


def spin(folder: Path, *systems: Programs, queue_bound: int) -> list[Verdict]:
    """What SPIN finds for each of some systems of programs, many of them translated into one model.

    Amounts of free memory that turn up and were not thought of are added, and those systems translated again.
    """
    told: list[dict[Gpu, set[int]]] = [defaultdict(set) for _ in systems]
    verdicts: dict[int, Verdict] = {}
    while missing := [number for number in range(len(systems)) if number not in verdicts]:
        model = folder / f"round{len(list(folder.iterdir()))}"
        model.mkdir()
        closed = [close(systems[number], told[number]) for number in missing]
        room = accumulate(len(system.points) for system in closed)
        closed = [system for system, points in zip(closed, room, strict=True) if points <= POINTS or len(closed) == 1]
        translation = promela(closed, queue_bound)
        (model / "model.pml").write_text(translation.text)
        _build(model)
        for case, (number, system) in enumerate(zip(missing, closed, strict=False)):
            report = _verify(model, case)
            gpus = {gpu.index: gpu for point in system.points if (gpu := getattr(point.effect, "gpu", None))}
            unlisted = re.findall(r"unlisted amount on gpu(\d+): (\d+)", report)
            for index, units in unlisted:
                gpu = gpus[int(index)]
                told[number][gpu].add(gpu.vram_bytes - int(units) * system.unit_bytes)
            if not unlisted:
                verdicts[number] = _verdict(report, translation, model, case)
    return [verdicts[number] for number in range(len(systems))]


def _build(folder: Path) -> None:
    spin, compiler = tools()
    built = subprocess.run([spin, "-a", "model.pml"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert built.returncode == 0 and not re.search("error|saw '", built.stdout), built.stdout + built.stderr
    flags = ["-w", "-O0", "-DSAFETY", "-DNOREDUCE", "-DPRINTF", "-DVECTORSZ=2048", "-DMEMLIM=2048"]
    subprocess.run([compiler, *flags, "-o", "pan", "pan.c"], cwd=folder, check=True, timeout=300)


def _verify(folder: Path, case: int, lenient: bool = False) -> str:
    environment = {**os.environ, "CASE": str(case)} | ({"LENIENT": "1"} if lenient else {})
    run = subprocess.run(
        [folder / "pan", "-c0", "-b", "-m20000", "-w18"], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip
    said = run.stdout + run.stderr
    assert run.returncode == 0 and not re.search("Search not completed|depth too small|out of memory", said), said
    return run.stdout


def _deadlock(report: str) -> bool:
    return bool(re.search(r"^pan:\d+: invalid end state", report, re.M))


def _verdict(report: str, translation: Translation, model: Path, case: int) -> Verdict:
    endings = {"deadlock"} if _deadlock(report) else set()
    for line in re.findall(r"^pan:\d+: (?!invalid end state)(.*)", report, re.M):
        ((variable, number),) = re.findall(r"^assertion violated \(?(fault|left) ?!= ?(\d+)", line)
        number = int(number)
        assert (variable, number) != ("fault", UNLISTED), report
        if variable == "left":
            endings.add(f"leak: {translation.left[number]}")
        elif number == ALL_ENDED:
            endings.add("ended")
        else:
            endings.add(f"{translation.faults[number].kind}: {translation.faults[number].site}")
    (states,) = re.findall(r"(\d+) states, stored", report)
    return Verdict(frozenset(endings), int(states), model, case)


def checker(exploration: Exploration) -> frozenset[str]:
    """How programs can end by the checker's findings."""
    assert exploration.complete
    endings = {"ended"} if "ok" in exploration.outcomes else set()
    for finding in exploration.findings:
        if finding.wait_for:
            endings.add("deadlock")
        else:
            (site,) = finding.sites
            endings.add(f"{finding.kind}: {site}")
    assert exploration.outcomes == {_outcome(ending) for ending in endings} - {""}
    return frozenset(endings)


def _outcome(ending: str) -> str:
    """An ending in the words of a run's outcome; what is left tells nothing."""
    outcomes = {
        "ended": "ok", "deadlock": "deadlock", "leak": "", "oom": "device_oom", "request_above_capacity": "deadlock",
    }  # fmt: skip
    return outcomes.get(ending.split(":")[0], "fault")


def in_mib(sizes: PartitionSizes) -> PartitionSizes:
    """Sizes rounded up to whole MiB: bytes of a large card cannot be counted in SPIN's integers of 32 bits."""

    def up(size_bytes: int) -> int:
        return -(-size_bytes // MiB) * MiB

    scratch = {launch: up(size) for launch, size in sizes.scratch.items()}
    return replace(sizes, abc=up(sizes.abc), d_a=up(sizes.d_a), d_bc=up(sizes.d_bc), scratch=scratch)

"""From which device memory on does each design pay? The best of each design for every amount of a list.

The machine stays the same but for the amount of device memory, so what is seen is what memory alone does: kernels and
the link do not get faster with it. For each amount and design, every number of GPU workers is checked and simulated
with the same draws; the fastest safe one stands for the design. "Pays" means: faster than the baseline at that amount,
beyond what the draws leave open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import cuzklab.policies as policies
from cuzklab import __version__
from cuzklab.errors import BadInput
from cuzklab.progress import Report, part
from cuzklab.simulate.explain import mean_and_interval
from cuzklab.sweep import sweep
from cuzklab.tuning.space import Configuration, Machine, Space
from cuzklab.tuning.trial import check_one, check_task, failed, simulate_one, simulation_task, sources_digest
from cuzklab.units import GiB, format_size

DEFAULT_VRAM_GIB = (10, 12, 13, 14, 16, 20, 24, 26, 28, 32, 40, 48)
DEFAULT_PROOFS, DEFAULT_SEEDS = 6, 3
_FIRST_SEED = 2_000_000


@dataclass(frozen=True)
class Cell:
    """The best of a design with some device memory.

    Attributes
    ----------
    gw : int or None
        GPU workers of the best; None where no number of them is possible.
    averages_s : tuple of float
        Its batch average for each seed.
    gain : float or None
        Throughput over the baseline's at this amount, less one; None where either is not possible.
    resolved : bool
        Whether the gain's 90 % interval leaves out zero.
    why : str
        Why it is not possible, or what the checker left open.
    """

    design: str
    vram_bytes: int
    gw: int | None = None
    averages_s: tuple[float, ...] = ()
    gain: float | None = None
    resolved: bool = False
    why: str = ""

    @property
    def batch_average_s(self) -> float | None:
        return fmean(self.averages_s) if self.averages_s else None


@dataclass(frozen=True)
class Crossover:
    """The map: designs × amounts of device memory.

    Attributes
    ----------
    designs : tuple of str
    vram_bytes : tuple of int
        Ascending.
    cells : mapping of (design, vram_bytes) to Cell
    """

    machine: str
    workload: str
    baseline: str
    proofs: int
    pw: int
    gw: tuple[int, ...]
    seeds: int
    designs: tuple[str, ...]
    vram_bytes: tuple[int, ...]
    cells: Mapping[tuple[str, int], Cell] = field(repr=False)

    def row(self, design: str) -> list[Cell]:
        """The cells of a design, by ascending memory."""
        return [self.cells[design, size_bytes] for size_bytes in self.vram_bytes]

    def possible_from_bytes(self, design: str) -> int | None:
        """The smallest amount of the list with which a design can run."""
        return next((cell.vram_bytes for cell in self.row(design) if cell.gw is not None), None)

    def pays_from_bytes(self, design: str) -> int | None:
        """The smallest amount from which on, up to the end of the list, a design is faster than the baseline."""
        found = None
        for cell in reversed(self.row(design)):
            if not (cell.gain is not None and cell.gain > 0 and cell.resolved):
                break
            found = cell.vram_bytes
        return found

    def rows(self) -> list[dict[str, Any]]:
        """One row a design, for a table."""
        found = []
        for design in self.designs:
            last, pays, possible = (
                self.row(design)[-1], self.pays_from_bytes(design), self.possible_from_bytes(design)
            )  # fmt: skip
            if design == self.baseline:
                words = "the baseline"
            else:
                words = format_size(pays) if pays is not None else "nowhere"
            found.append(
                {
                    "design": design, "runs from": format_size(possible) if possible is not None else "nowhere",
                    "pays from": words, "best with most memory s/proof": last.batch_average_s, "gw there": last.gw,
                    "against baseline there": last.gain,
                }
            )  # fmt: skip
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "batch_average", "obtained": "simulated", "hardware": self.machine, "workload": self.workload,
            "baseline": self.baseline, "c": self.proofs, "pw": self.pw, "gw": list(self.gw), "seeds": self.seeds,
            "designs": [
                {
                    "design": design, "possible_from_bytes": self.possible_from_bytes(design),
                    "pays_from_bytes": self.pays_from_bytes(design),
                    "cells": [
                        {
                            "vram_bytes": cell.vram_bytes, "gw": cell.gw, "batch_average_s": cell.batch_average_s,
                            "gain": cell.gain, "resolved": cell.resolved, "why": cell.why,
                        }
                        for cell in self.row(design)
                    ],
                }
                for design in self.designs
            ],
        }  # fmt: skip


def crossover(
    machine: Machine,
    workload_place: str,
    workload: Any,
    *,
    vram_bytes: Sequence[int] = tuple(size * GiB for size in DEFAULT_VRAM_GIB),
    designs: Sequence[str] = (),
    baseline: str = "phase9",
    gw: Sequence[int] = (1, 2, 3),
    pw: int = 10,
    proofs: int = DEFAULT_PROOFS,
    seeds: int = DEFAULT_SEEDS,
    check: bool = True,
    journal: Path | None = None,
    processes: int | None = None,
    cluster: str | None = None,
    progress: Report = lambda share, words="": None,
) -> Crossover:
    """Compare designs over amounts of device memory.

    Parameters
    ----------
    machine : Machine
    workload_place, workload : str, Workload
        As in `Space`.
    vram_bytes : sequence of int
    designs : sequence of str
        Names of policies; all by default. The baseline is one of them.
    gw : sequence of int
    pw, proofs, seeds : int
        The same for all.
    check : bool
        Whether what the checker finds unsafe is left out.
    journal, processes, cluster, progress
        As for `tune`.

    Raises
    ------
    BadInput
        The baseline is no design, an amount leaves nothing beside the margin, or as `sweep`.
    """
    designs = tuple(dict.fromkeys((baseline, *(designs or policies.names()))))
    sizes = tuple(sorted(set(vram_bytes)))
    margin_bytes = machine.hardware.device.margin_bytes
    if not sizes or sizes[0] <= margin_bytes:
        raise BadInput(f"vram: give amounts above the margin of {format_size(margin_bytes)}")
    if seeds < 2:
        raise BadInput(f"seeds is {seeds}; a comparison needs 2 at least")
    ones = [
        Configuration(machine.place, design, workers, pw, _pool(design), None, size_bytes)
        for design in designs
        for size_bytes in sizes
        for workers in gw
    ]
    space = Space((machine,), workload_place, workload, proofs, proofs, tuple(ones))
    salt = f"{__version__} {sources_digest()}"
    shared: dict[str, Any] = {"journal": journal, "processes": processes, "cluster": cluster}
    unsafe, open_questions = {}, {}
    if check:
        tasks = [check_task(space, one) for one in ones]
        verdicts = sweep(
            check_one, tasks, salt=f"check_one {salt}", progress=part(progress, 0, 0.5, "check: "), **shared
        )
        for one, outcome in zip(ones, verdicts, strict=True):
            if outcome.error or outcome.value["verdict"] == "unknown":
                open_questions[one] = "the checker did not come to an end"
            elif outcome.value["verdict"] == "unsafe":
                unsafe[one] = f"checker: {', '.join(outcome.value['kinds'])}"
    left = [one for one in ones if one not in unsafe]
    draws = [("seed", _FIRST_SEED + number) for number in range(seeds)]
    tasks = [simulation_task(space, one, proofs, draw) for one in left for draw in draws]
    told = part(progress, 0.5, 1, "simulate: ")
    outcomes = iter(sweep(simulate_one, tasks, salt=f"simulate_one {salt}", progress=told, **shared))
    found: dict[Configuration, tuple[float, ...] | str] = dict(unsafe)
    for one in left:
        results = [next(outcomes) for _ in draws]
        if error := next((outcome.error for outcome in results if outcome.error), ""):
            raise BadInput(f"{one.label}: {error}")
        why = next((why for outcome in results if (why := failed(outcome.value))), "")
        found[one] = why.partition(":")[0] or tuple(outcome.value["batch_average_s"] for outcome in results)
    cells = {
        (design, size_bytes): _cell(design, size_bytes, ones, found, open_questions)
        for design in designs
        for size_bytes in sizes
    }
    cells = {key: _against(cell, cells[baseline, cell.vram_bytes]) for key, cell in cells.items()}
    return Crossover(
        machine.hardware.name, workload.name, baseline, proofs, pw, tuple(gw), seeds, designs, sizes, cells
    )


def _pool(design: str) -> int | None:
    """Threads of the G2 pool: the design's own default, where it has them."""
    return policies.options_of(policies.load(design).module).get("g2_threads")


def _cell(
    design: str, size_bytes: int, ones: Sequence[Configuration], found: Mapping[Configuration, Any],
    open_questions: Mapping[Configuration, str],
) -> Cell:  # fmt: skip
    """The fastest of a design with an amount of memory; of equal ones that with fewest workers."""
    own = [one for one in ones if one.policy == design and one.vram_bytes == size_bytes]
    possible = [one for one in own if not isinstance(found[one], str)]
    if not possible:
        return Cell(design, size_bytes, why="; ".join(dict.fromkeys(found[one] for one in own)))
    best = min(possible, key=lambda one: (fmean(found[one]), one.gw))
    return Cell(design, size_bytes, best.gw, found[best], why=open_questions.get(best, ""))


def _against(cell: Cell, baseline: Cell) -> Cell:
    if not cell.averages_s or not baseline.averages_s:
        return cell
    pairs = zip(baseline.averages_s, cell.averages_s, strict=True)
    gain, low, high = mean_and_interval([theirs / mine - 1 for theirs, mine in pairs])
    return replace(cell, gain=gain, resolved=not low <= 0 <= high)

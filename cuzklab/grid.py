"""Live runs side by side: every combination of a grid, in one process, repetitions in rounds, each run stored at once.

A grid is a TOML file in `lab/grids/` with the `[parameters]` and live `[[step]]`s of an experiment, and no notebook.
One process keeps circuit, key and witnesses from run to run, which is most of what a run takes. A run that is stored
and answers for its step is not repeated, so an interrupted grid goes on where it stopped.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cuzklab import resources
from cuzklab.errors import BadInput, no_such
from cuzklab.experiment import Experiment, Step, carry_out, read, steps
from cuzklab.policies import name_of
from cuzklab.progress import Report, part
from cuzklab.trace.store import Run, as_folder


def names() -> tuple[str, ...]:
    """Grids that are shipped."""
    return tuple(sorted(path.stem for path in (resources.folder("lab") / "grids").glob("*.toml")))


def load(name: str, parameters: Mapping[str, Any] | None = None) -> Experiment:
    """Read a grid by name, or from the path of a TOML file, and put the given parameters in force.

    Raises
    ------
    BadInput
        Unknown grid, parameter or field, a step that is no live run, or a value of the wrong type.
    """
    path = Path(name) if str(name).endswith(".toml") else resources.folder("lab") / "grids" / f"{name}.toml"
    if not path.is_file():
        raise BadInput(no_such("grid", name, names(), "or give the path of a .toml file"))
    grid = read(path, parameters, ())
    for number, step in enumerate(grid.steps, 1):
        if step["do"] != "live":
            raise BadInput(f"{path}: step {number}: a grid makes live runs; this one would {step['do']}")
    return grid


def runs_of(grid: Experiment, backend: str) -> list[Step]:
    """The runs of a grid, the first repetition of all before the second of any, each with a name of its own.

    Raises
    ------
    BadInput
        Two different runs would have the same name.
    """
    found = [replace(step, name=_name(step)) for step in steps(grid, backend)]
    named: dict[str, Step] = {}
    for step in found:
        if named.setdefault(step.name, step) is not step:
            raise BadInput(f"grid {grid.name}: two runs would both be stored as {step.name}; give each once")
    return found


def _name(step: Step) -> str:
    """Everything by which runs of a grid usually differ."""
    values = step.values
    policy = as_folder(name_of(values["policy"]))
    options = "".join(f"-{key}-{value}" for key, value in values.get("options", {}).items())
    several = f"-x{values['devices']}" if values.get("devices", 1) > 1 else ""
    vram = str(values["vram"]).replace(" ", "").removesuffix("iB")
    workers = f"gw{values['workers']}-pw{values.get('synthesis_workers', 1)}"
    return f"{policy}{options}-{workers}{several}-{vram}-2^{values['log2_domain']}-r{step.repeat}".replace("^", "p")


@dataclass(frozen=True)
class Made:
    """One run of a grid.

    Attributes
    ----------
    step : Step
    run : Run or None
        None if the time was up before it.
    """

    step: Step
    run: Run | None


def make(
    todo: Sequence[Step],
    out: Path,
    *,
    stop_after_s: float | None = None,
    report: Report = lambda share, words="": None,
    made: Callable[[Made], None] = lambda made: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Made]:
    """Make the runs, or read those that are stored already.

    Parameters
    ----------
    todo : sequence of Step
    out : Path
        Runs are stored in ``out/runs``.
    stop_after_s : float, optional
        No run is started later than this.
    made : callable (Made), optional
        Told each run once it is stored.
    """
    began, found = clock(), []
    for number, step in enumerate(todo):
        if stop_after_s is not None and clock() - began > stop_after_s:
            found += [Made(left, None) for left in todo[number:]]
            break
        of_step = part(report, number / len(todo), (number + 1) / len(todo), f"{step.label} ")
        found.append(Made(step, carry_out(step, out, of_step)))
        made(found[-1])
    report(1.0, "done")
    return found

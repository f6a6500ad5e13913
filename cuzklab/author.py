"""For the author of a design, in a notebook: write it in a cell, check it, simulate it, run it.

``%%policy NAME`` at the head of a cell makes the rest of it a policy of that name; the other functions take the policy.
Whatever is wrong is shown at its line of the cell.
"""

import linecache
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from cuzklab import policies
from cuzklab.analysis import Case
from cuzklab.check import CheckResult
from cuzklab.errors import BadInput
from cuzklab.policies import Policy, UnknownPolicy
from cuzklab.report import display, show
from cuzklab.report.postmortem import conclude as write_conclusion
from cuzklab.report.postmortem import examine
from cuzklab.trace import Run
from cuzklab.trace.store import as_folder
from cuzklab.units import parse_size

_PLACE = "cell {}"  # what stands for the name of a policy's file
_AROUND = 3  # lines shown before and after the one at fault


class DesignError(BadInput):
    """Something is wrong with a design; in a notebook it is shown with the lines of the cell around it."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


@dataclass(frozen=True)
class Checked:
    """A check and the run that it is stored as: its counterexample, or the record of what was covered."""

    result: CheckResult
    run: Run


def begin(out: str | Path = "", shell: Any = None) -> Path:
    """Make ``%%policy`` known and give JupyterLab the style of what is shown.

    Parameters
    ----------
    out : str or Path
        Folder for the runs; a temporary one unless given.
    shell : InteractiveShell, optional
        The one that runs, unless given.

    Returns
    -------
    Path
        The folder.
    """
    from IPython import get_ipython

    shell = shell or get_ipython()
    if shell is None:
        raise BadInput("cells exist in a notebook; elsewhere a policy is a file: cuzklab check ./mine.py")
    shell.register_magic_function(lambda line, cell: _cell(shell, line, cell), "cell", "policy")
    display.style()
    return Path(out) if out else Path(tempfile.mkdtemp(prefix="cuzklab-author-"))


def _cell(shell: Any, line: str, cell: str) -> None:
    """What ``%%policy NAME`` does."""
    policy = define(line.strip(), cell, lines_before=1)
    shell.user_ns[policy.name] = policy
    options = ", ".join(f"{name}={value!r}" for name, value in policies.options_of(policy.module).items())
    show.program(policy.name, policy.intent or "No docstring states its intent.", cell)
    if options:
        display.text(f"Options: {options}")


def shows_lines(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have bad input that names a line of a cell shown with the lines around it."""

    @wraps(function)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except (BadInput, UnknownPolicy) as error:
            if isinstance(error, DesignError):
                raise
            raise DesignError(_with_lines(str(error))) from error

    return wrapper


@shows_lines
def define(name: str, source: str, lines_before: int = 0) -> Policy:
    """A policy from the text of a cell.

    Parameters
    ----------
    name : str
    source : str
    lines_before : int
        Lines of the cell that are not in `source`, so that lines are numbered as the cell's are.

    Raises
    ------
    DesignError
    """
    if not name.isidentifier() or name in policies.names():
        what = "a policy of that name is shipped" if name in policies.names() else "write %%policy NAME"
        raise BadInput(f"%%policy {name}: {what}")
    return policies.from_source(name, "\n" * lines_before + source, _PLACE.format(name))


@shows_lines
def check(policy: Policy, *, workers: int, partitions: int, vram: str, out: Path) -> Checked:
    """Check a design, and show the verdict and its shortest counterexample, which is carried out elsewhere, too.

    Returns
    -------
    Checked
    """
    from cuzklab import check as checker
    from cuzklab import counterexamples

    result = checker.check(policy, workers=workers, partitions=partitions, vram_bytes=parse_size(vram))
    display.text(checker.verdict_line(result))
    place = out / "runs" / f"check-{as_folder(policy.name)}"
    if not result.findings:
        return Checked(result, checker.check_run(result, place))
    finding = min(result.findings, key=lambda finding: len(finding.schedule))
    if excerpt := _excerpt(finding.where):
        display.markup(f"<pre>{display.tables.escape(excerpt)}</pre>")
    run = checker.counterexample_run(result, finding, place)
    show.counterexample(run)
    for where in ("simulate", "live"):
        display.text(counterexamples.replay(result, finding, where).sentence)
    return Checked(result, run)


@shows_lines
def memory(policy: Policy, *, workers: int, partitions: int, span: str = "8GiB:48GiB") -> list[Any]:
    """From which device memory on a design is safe for so many workers, and where it is unsafe again.

    Returns
    -------
    list of Interval
    """
    import pandas as pd

    from cuzklab.check.feasibility import Range
    from cuzklab.feasibility import exact, parse_span, upper_end

    looked_at = parse_span(f"vram={span}")
    part = Range(policy, workers, partitions, step_bytes=looked_at.step_bytes)
    intervals = part.cover(looked_at.first_bytes, looked_at.last_bytes)
    rows = [
        {
            "from": exact(one.from_bytes), "to": upper_end(one, looked_at), "verdict": one.verdict, "why": one.message,
        }
        for one in intervals
    ]  # fmt: skip
    display.table(pd.DataFrame(rows), f"{workers} workers, {partitions} partitions each; {part.checks} checks.")
    return intervals


@shows_lines
def simulate(
    designs: Sequence[Policy | str], *, hardware: str, workload: str, proofs: int, workers: int,
    out: Path, synthesis_workers: int = 10, vram: str = "",
) -> list[Run]:  # fmt: skip
    """Simulate designs at production scale, side by side.

    Returns
    -------
    list of Run
    """
    from cuzklab.simulate import simulate as run_simulation

    runs = []
    for one in _loaded(designs):
        simulation = run_simulation(
            one, hardware, workload, proofs=proofs, in_flight=proofs, gpu_workers=workers,
            synthesis_workers=synthesis_workers, vram_bytes=parse_size(vram) if vram else None,
        )  # fmt: skip
        runs.append(simulation.to_run(out / "runs" / f"simulate-{as_folder(one.name)}"))
    show.metrics(runs)
    _tell_endings(runs)
    return runs


@shows_lines
def run(
    designs: Sequence[Policy | str], *, log2_domain: int, proofs: int, partitions: int, workers: int, vram: str,
    out: Path, seed: int = 1,
) -> list[Run]:  # fmt: skip
    """Run designs for real on small circuits, side by side; their proofs are verified.

    Returns
    -------
    list of Run
    """
    from cuzklab.live import run_live

    runs = []
    for one in _loaded(designs):
        result = run_live(
            one, log2_domain, proofs=proofs, partitions=partitions, gpu_workers=workers, vram_bytes=parse_size(vram),
            seed=seed,
        )  # fmt: skip
        runs.append(result.write(out / "runs" / f"live-{as_folder(one.name)}"))
        display.text(f"{one.name}: {len(result.verified)} of {proofs} proofs made and verified.")
    show.metrics(runs)
    _tell_endings(runs)
    show.timeline(runs[0])
    return runs


def conclude(
    policy: Policy, baseline: str, runs: Sequence[Run], *, vram: str, out: Path, parameters: Mapping[str, Any]
) -> None:
    """What the runs say together, by the rules of every post-mortem, as far as there are runs for them."""
    before = policies.name_of(baseline)
    question = f"Is {policy.name} safe on {vram}, and faster than {before}?"
    post = examine(Case(policy.name, before, tuple(runs), parse_size(vram), question))
    show.findings(post)
    show.verdict(post)
    write_conclusion(post, out, parameters)


def save(policy: Policy, path: str | Path) -> Path:
    """Keep a design as a file, for ``cuzklab check``, ``simulate`` and ``run``."""
    from cuzklab.atomic import atomic_write

    lines = linecache.getlines(_PLACE.format(policy.name))
    if not lines:
        raise BadInput(f"{policy.name} was not written in a cell")
    with atomic_write(path, "w") as file:
        file.write("".join(lines).lstrip("\n"))
    return Path(path)


def _loaded(designs: Sequence[Policy | str]) -> list[Policy]:
    return [policies.load(one) if isinstance(one, str) else one for one in designs]


def _tell_endings(runs: Sequence[Run]) -> None:
    for one in runs:
        if one.info.explanation:
            display.text(f"{one.info.policy}: {one.info.explanation}")


def _with_lines(message: str) -> str:
    """A message with the lines of the cell that it is about."""
    match = re.search(r"cell (\w+):(\d+)", message)
    excerpt = _excerpt(match[0]) if match else ""
    return f"{message}\n\n{excerpt}" if excerpt else message


def _excerpt(where: str) -> str:
    """Lines of a cell around one of them, which is marked."""
    match = re.fullmatch(r"(cell \w+):(\d+)", where)
    lines = linecache.getlines(match[1]) if match else []
    if not lines:
        return ""
    number = int(match[2])
    first, last = max(1, number - _AROUND), min(len(lines), number + _AROUND)
    width = len(str(last))
    return "\n".join(
        f"{'→' if line == number else ' '} {line:{width}}  {lines[line - 1].rstrip()}".rstrip()
        for line in range(first, last + 1)
        if line > 1 or lines[0].strip()
    )

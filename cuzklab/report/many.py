"""Many reports: every one that is shipped, or one for each point of a grid; over processes or a cluster, resumable.

A report that is about stored runs is made after those that make runs, of which it takes what it needs. Each report lies
in a folder of its own, with a table of all of them and an index page above.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from cuzklab.atomic import atomic_write
from cuzklab.errors import BadInput
from cuzklab.report.naming import natural_order
from cuzklab.report.notebook import NotebookFailed, Parameter, checked_parameters, parameters_of
from cuzklab.report.overview import Made, write_overview
from cuzklab.report.subjects import run_parameters
from cuzklab.report.write import notebook_of, notebooks, write_report
from cuzklab.sweep import Outcome, Task, sweep

_QUICK = re.compile(r"\(quick: ([^)]+)\)")
JOURNAL, TABLE, INDEX = "reports.jsonl", "reports.json", "index.html"
_MOST_POINTS = 10_000
_LONGEST_FOLDER = 120
SMALL_RUNS = "small runs (--quick)"

Progress = Callable[[float, str], None]


def quick_parameters(known: Mapping[str, Parameter]) -> dict[str, str]:
    """The small values that a notebook's parameters name in their help: ``(quick: 1)``."""
    return {name: found[1] for name, one in known.items() if (found := _QUICK.search(one.help))}


def make(name: str, out: str, parameters: Mapping[str, Any], deadline_s: float, remark: str = "") -> dict[str, Any]:
    """One report, in whichever process a sweep runs: what `Made` needs, as plain values."""
    started = time.monotonic()
    try:
        written = write_report(name, Path(out), parameters, deadline_s=deadline_s, remark=remark)
    except NotebookFailed as error:
        return {"decision": "failed", "sentence": str(error), "seconds": time.monotonic() - started}
    return {
        "decision": written.verdict["decision"], "sentence": written.verdict["sentence"], "html": written.html.name,
        "findings": len(written.findings), "seconds": time.monotonic() - started,
    }  # fmt: skip


def make_all(
    out: Path,
    *,
    quick: bool = False,
    given: Mapping[str, Mapping[str, Any]] | None = None,
    deadline_s: float = 1800,
    progress: Progress = lambda share, words="": None,
    **how: Any,
) -> list[Made]:
    """Every shipped report.

    Parameters
    ----------
    out : Path
        Each report lies in ``out/NAME``.
    quick : bool
        With the small values that the notebooks' parameters name: every part of every report, in little time.
    given : mapping, optional
        Parameters by report.
    how
        As for `sweep`: `processes`, `cluster`, `gpus`, `salt`.
    """
    out = Path(out).resolve()
    known = {name: parameters_of(path) for name, path in notebooks().items()}
    wave = {name: 2 if "store" in known[name] else 1 if run_parameters(known[name]) else 0 for name in known}
    made: list[Made] = []
    for number in range(3):
        names = [name for name in known if wave[name] == number]
        points = []
        for name in names:
            values = (quick_parameters(known[name]) if quick else {}) | dict((given or {}).get(name, {}))
            if number == 1:
                values |= _stored_runs(known[name], out, values)
            if number == 2:
                values.setdefault("store", str(out))
            points.append((name, name, values))
        start, end = len(made) / len(known), (len(made) + len(names)) / len(known)
        made += _made(
            points,
            out,
            deadline_s,
            lambda share, words="", a=start, b=end: progress(a + (b - a) * share, words),
            SMALL_RUNS if quick else "",
            **how,
        )
    made.sort(key=lambda one: natural_order(one.name))
    _write_overview(out, "All reports", made, quick)
    return made


def make_grid(
    name: str | Path,
    out: Path,
    grid: Mapping[str, str],
    *,
    deadline_s: float = 1800,
    progress: Progress = lambda share, words="": None,
    **how: Any,
) -> list[Made]:
    """A report for each combination of listed values.

    Parameters
    ----------
    name : str or Path
        As for `write_report`.
    out : Path
    grid : mapping
        Parameter → values with commas between; with semicolons where the parameter is a list itself (its default has a
        comma).

    Raises
    ------
    BadInput
        A parameter or a value that the notebook does not take: nothing has been started.
    """
    notebook = notebook_of(name)
    known = parameters_of(notebook)
    lists = {key: _values(text, known.get(key)) for key, text in grid.items()}
    points = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
    if len(points) > _MOST_POINTS:
        raise BadInput(f"{len(points):,} reports; a sweep makes at most {_MOST_POINTS:,}")
    for point in points:
        checked_parameters(notebook, point)
    turned = [key for key, values in lists.items() if len(values) > 1]
    folders = [_folder(notebook.stem, {key: point[key] for key in turned}, place) for place, point in enumerate(points)]
    out = Path(out).resolve()
    made = _made(
        [(str(name), folder, point) for folder, point in zip(folders, points, strict=True)], out, deadline_s, progress,
        "", **how,
    )  # fmt: skip
    _write_overview(out, f"{notebook.stem} over {', '.join(turned) or 'one point'}", made)
    return made


def _values(text: str, parameter: Parameter | None) -> list[str]:
    separator = ";" if parameter and isinstance(parameter.default, str) and "," in parameter.default else ","
    values = list(dict.fromkeys(part.strip() for part in str(text).split(separator)))
    return [value for value in values if value] or [""]


def _folder(stem: str, turned: Mapping[str, str], place: int) -> str:
    """A folder that says which point it is of; numbered where the values would make too long a name."""
    plain = "".join(f"-{key}-{re.sub(r'[^A-Za-z0-9._+]+', '_', value)}" for key, value in turned.items())
    return f"{stem}{plain}" if len(plain) <= _LONGEST_FOLDER else f"{stem}-{place + 1}"


def _made(
    points: Sequence[tuple[str, str, Mapping[str, Any]]],
    out: Path,
    deadline_s: float,
    progress: Progress,
    remark: str,
    **how: Any,
) -> list[Made]:
    same = {"deadline_s": deadline_s} | ({"remark": remark} if remark else {})
    tasks = [
        Task({"name": name, "out": str(out / folder), "parameters": dict(values), **same}, folder)
        for name, folder, values in points
    ]
    outcomes = sweep(make, tasks, journal=out / JOURNAL, progress=progress, **how) if tasks else []
    gone = [place for place, one in enumerate(outcomes) if one.resumed and not _is_there(out, one)]
    if gone:  # made by an earlier call, and removed since
        again = sweep(make, [tasks[place] for place in gone], progress=progress, **how)
        outcomes = list(outcomes)
        for place, outcome in zip(gone, again, strict=True):
            outcomes[place] = outcome
    return [
        _of(outcome, name, folder, values) for outcome, (name, folder, values) in zip(outcomes, points, strict=True)
    ]


def _is_there(out: Path, outcome: Outcome) -> bool:
    """Whether the page of a report that was made earlier is still where it was put."""
    html = outcome.value.get("html")
    return not html or (Path(outcome.task.arguments["out"]) / html).is_file()


def _of(outcome: Outcome, name: str, folder: str, values: Mapping[str, Any]) -> Made:
    if outcome.error:
        return Made(Path(name).stem, folder, values, "failed", outcome.error)
    told = outcome.value
    html = f"{folder}/{told['html']}" if told.get("html") else ""
    return Made(
        Path(name).stem, folder, values, told["decision"], told["sentence"], html, told.get("findings", 0),
        told["seconds"], outcome.resumed,
    )  # fmt: skip


def _stored_runs(known: Mapping[str, Parameter], out: Path, given: Mapping[str, Any]) -> dict[str, str]:
    """For parameters that name runs, runs of the reports that lie there: of a candidate and its baseline, or any."""
    values: dict[str, str] = {}
    records = [
        json.loads(path.read_text(encoding="utf-8")) | {"at": path.parent} for path in out.glob("*/verdict.json")
    ]
    records = [record for record in sorted(records, key=lambda record: str(record["at"])) if record.get("candidate")]
    for name in run_parameters(known):
        if name in given:
            continue
        role = name.removesuffix("_run")
        for record in records:
            policy = record.get(role) if role in ("candidate", "baseline") else record["candidate"]
            origin = "simulated" if role in ("candidate", "baseline") else "live"
            runs = [run for run in record["runs"]
                    if (run["policy"], run["origin"], run["outcome"]) == (policy, origin, "ok")]  # fmt: skip
            if runs:
                values[name] = str((record["at"] / runs[0]["path"]).resolve())
                break
    return values


def _write_overview(out: Path, title: str, made: Sequence[Made], quick: bool = False) -> None:
    """The table of all reports as JSON, and as a page."""
    rows = [
        {"report": one.name, "folder": one.folder, "parameters": dict(one.parameters), "decision": one.decision,
         "sentence": one.sentence, "html": one.html, "findings": one.findings, "seconds": round(one.seconds, 1),
         "quick": quick}
        for one in made
    ]  # fmt: skip
    with atomic_write(out / TABLE, "w") as file:
        file.write(json.dumps(rows, indent=1) + "\n")
    write_overview(out / INDEX, title, made, quick)

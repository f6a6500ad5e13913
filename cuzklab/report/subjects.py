"""Stored runs as parameters of a notebook: read before anything starts, and known by their full path.

A parameter called ``run``, or whose name ends in ``_run``, is the directory of one run; one called ``runs``, or ending
in ``_runs``, is several, separated by commas. Without a default of its own (an empty text) it must be given. So a
notebook about stored runs needs nothing but to declare what it is about.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuzklab.errors import BadInput
from cuzklab.report.notebook import Parameter
from cuzklab.trace import load_run
from cuzklab.trace.store import RunError


def with_runs(notebook: str, known: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Given parameters, those that name runs checked and made absolute.

    Raises
    ------
    BadInput
        One that has to be given is missing, or names something that is not a readable run.
    """
    checked = dict(given)
    for name, parameter in known.items():
        if parameter.type_name != "str" or not _names_runs(name):
            continue
        value = given.get(name, parameter.default)
        paths = [part.strip() for part in value.split(",")] if _is_plural(name) else [value]
        paths = [path for path in paths if path]
        if not paths:
            what = f" ({parameter.help})" if parameter.help else ""
            raise BadInput(
                f"{notebook}: say which: -p {name}=DIRECTORY{what}; `cuzklab runs list` shows those that are stored"
            )
        checked[name] = ",".join(_absolute(notebook, name, path) for path in paths)
    return checked


def run_parameters(known: Mapping[str, Parameter]) -> tuple[str, ...]:
    """The parameters of a notebook that name stored runs and have to be given."""
    return tuple(
        name for name, one in known.items() if one.type_name == "str" and _names_runs(name) and not one.default
    )


def _absolute(notebook: str, name: str, path: str) -> str:
    try:
        return str(load_run(Path(path)).path.resolve())
    except (RunError, OSError, ValueError) as error:
        raise BadInput(f"{notebook}: parameter {name}: {error}") from error


def _names_runs(name: str) -> bool:
    return name == "run" or name.endswith("_run") or _is_plural(name)


def _is_plural(name: str) -> bool:
    return name == "runs" or name.endswith("_runs")

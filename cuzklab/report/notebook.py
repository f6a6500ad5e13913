"""Runs a parameterised notebook: refuses bad parameters first, keeps what was done when it fails.

papermill executes; around it stand what it leaves open: parameters are checked against the notebook's own cell, the
kernel is the interpreter that runs this (whatever kernels the machine has registered), the whole run has a deadline,
and success is never read from the notebook's metadata, which papermill fills in for cells that never ran.
"""

import ast
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuzklab.errors import BadInput

_TYPES: Mapping[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
# A Unix socket's path holds 107 characters; the kernel appends "-5" to the prefix.
_LONGEST_SOCKET_PREFIX = 100


class NotebookFailed(RuntimeError):
    """A notebook did not run to its end. The message is one line.

    Attributes
    ----------
    kind : {"cell", "deadline", "kernel"}
        A cell raised; the time was up; the kernel died or did not start.
    cell : int or None
        Number of the cell, from 1, in the kept notebook.
    kept : Path or None
        The notebook as far as it ran.
    """

    def __init__(self, message: str, kind: str, cell: int | None, kept: Path | None) -> None:
        super().__init__(message)
        self.kind, self.cell, self.kept = kind, cell, kept


@dataclass(frozen=True)
class Parameter:
    """One parameter of a notebook, as its cell tagged `parameters` declares it."""

    name: str
    type_name: str
    default: Any
    help: str


def parameters_of(notebook: Path) -> dict[str, Parameter]:
    """What a notebook can be given: names, types, defaults and the comment beside each.

    Raises
    ------
    BadInput
        The file is not a notebook, or a parameter lacks a usable type.
    """
    from papermill import inspect_notebook

    if not notebook.is_file():
        raise BadInput(f"{notebook}: no such notebook")
    try:
        declared = inspect_notebook(_literal(notebook))
    except Exception as error:  # papermill and nbformat raise a dozen kinds for a damaged file
        raise BadInput(f"{notebook}: not a notebook that papermill can read ({_one_line(error)})") from error
    parameters = {}
    for name, entry in declared.items():
        try:
            default = ast.literal_eval(entry["default"])
        except (ValueError, SyntaxError) as error:
            raise BadInput(f"{notebook}: default of parameter {name} is not a plain value") from error
        type_name = entry["inferred_type_name"]
        if type_name not in _TYPES:
            type_name = type(default).__name__
        if type_name not in _TYPES:
            raise BadInput(f"{notebook}: parameter {name} must be annotated as {', '.join(_TYPES)}")
        parameters[name] = Parameter(name, type_name, default, entry["help"].strip())
    return parameters


def checked_parameters(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Given values, converted to the types that the notebook declares.

    Text is converted (``"3"`` to 3 for an int, ``"yes"`` to True for a bool), since a command line knows only text.

    Raises
    ------
    BadInput
        A name that the notebook does not have, or a value that is not of its type.
    """
    known = parameters_of(notebook)
    checked = {}
    for name, value in given.items():
        if name not in known:
            raise BadInput(f"{notebook.stem} has no parameter {name!r}; it has: {', '.join(known) or 'none'}")
        try:
            checked[name] = _convert(value, known[name].type_name)
        except ValueError as error:
            raise BadInput(
                f"{notebook.stem}: parameter {name} must be {known[name].type_name}, not {value!r}"
                + (f" ({known[name].help})" if known[name].help else "")
            ) from error
    return checked


def _convert(value: Any, type_name: str) -> Any:
    wanted = _TYPES[type_name]
    if isinstance(value, str) and wanted is not str:
        if wanted is bool:
            if value.strip().lower() not in _WORDS:
                raise ValueError(value)
            return _WORDS[value.strip().lower()]
        return wanted(value)
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise ValueError(value)
    return value


def run_notebook(
    notebook: Path,
    target: Path,
    parameters: Mapping[str, Any],
    *,
    deadline_s: float = 1800,
    progress: Callable[[str], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Path:
    """Execute a notebook into `target`; it appears there only if every cell ran.

    Parameters
    ----------
    notebook, target : Path
    parameters : mapping
        Checked against the notebook before anything starts.
    deadline_s : float
        For the whole run, kernel start included.
    progress : callable, optional
        Receives each line that the notebook prints.
    environment : mapping, optional
        Added to the kernel's environment.

    Returns
    -------
    Path
        `target`.

    Raises
    ------
    BadInput
    NotebookFailed
        The notebook as far as it ran is kept beside `target`, as NAME.failed.ipynb.
    """
    import nbformat
    import papermill
    from jupyter_client.manager import AsyncKernelManager
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    logging.getLogger("papermill").addHandler(logging.NullHandler())  # its failures are raised; do not print them too
    values = checked_parameters(notebook, parameters)
    source = nbformat.read(notebook, as_version=4)
    target.parent.mkdir(parents=True, exist_ok=True)
    kept = target.with_name(f"{target.stem}.failed.ipynb")
    working = target.with_name(f".{target.stem}-{os.getpid()}-{time.monotonic_ns()}.ipynb")
    ends_at = time.monotonic() + deadline_s
    reached = _Reached()

    def failed(kind: str, what: str, index: int | None) -> NotebookFailed:
        where = f"cell {index + 1}" if index is not None else "before the first cell"
        heading = _heading_before(working, index)
        place = f"{where} (under “{heading}”)" if heading else where
        return NotebookFailed(
            f"{notebook.stem}: {place} {what}; the notebook as far as it ran: {kept}", kind,
            None if index is None else index + 1, kept,
        )  # fmt: skip

    with tempfile.TemporaryDirectory(prefix="cuzklab-") as private:
        config = Config()
        if os.name == "posix" and len(private) + len("/ipc") <= _LONGEST_SOCKET_PREFIX:
            config.KernelManager.transport = "ipc"
            config.KernelManager.ip = f"{private}/ipc"
        config.KernelManager.connection_file = f"{private}/kernel.json"
        try:
            papermill.execute_notebook(
                source, _literal(working), values,
                progress_bar=False, stdout_file=_Lines(progress) if progress else None,
                start_timeout=max(1, int(min(60, deadline_s))),
                kernel_manager_class=_kernel_of_this_interpreter(AsyncKernelManager, environment or {}),
                config=config, shutdown_kernel="immediate", autosave_cell_every=0,
                timeout_func=lambda _cell: max(0.001, ends_at - time.monotonic()),
                on_cell_execute=reached.note,
            )  # fmt: skip
        except PapermillExecutionError as error:
            index = error.cell_index + 2  # papermill puts a banner first and a marker before the cell
            raise failed("cell", f"raised {error.ename}: {_one_line(error.evalue)}", index) from error
        except CellTimeoutError as error:
            raise failed(
                "deadline", f"was running when the {deadline_s:g} s for the report were up", reached.index
            ) from error
        except DeadKernelError as error:
            raise failed(
                "kernel", "ended the Python process that ran it (killed, out of memory, or crashed)", reached.index
            ) from error
        except RuntimeError as error:  # jupyter_client: the kernel did not start
            raise failed("kernel", f"could not be reached: {_one_line(error)}", reached.index) from error
        else:
            os.replace(working, target)
            kept.unlink(missing_ok=True)
        finally:
            if working.exists():
                os.replace(working, kept)
    return target


class _Reached:
    """Index of the cell that was last started."""

    index: int | None = None

    def note(self, cell: Any, cell_index: int) -> None:
        self.index = cell_index


class _Lines:
    """A file for papermill to write the notebook's output to; passes on whole lines."""

    def __init__(self, receive: Callable[[str], None]) -> None:
        self.receive, self.rest = receive, ""

    def write(self, text: str) -> None:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            if line.strip():
                self.receive(line)

    def flush(self) -> None:
        pass


def _kernel_of_this_interpreter(base: type, environment: Mapping[str, str]) -> type:
    """A kernel manager that starts `sys.executable` with this package importable, whatever kernels are registered."""
    from jupyter_client.kernelspec import KernelSpec

    checkout = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (checkout, os.environ.get("PYTHONPATH"))))
    spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        display_name="Python 3", language="python", env={"PYTHONPATH": path, **environment},
    )  # fmt: skip

    class InterpreterKernel(base):
        @property
        def kernel_spec(self) -> KernelSpec:
            return spec

    return InterpreterKernel


def _heading_before(notebook: Path, index: int | None) -> str:
    """The last heading above a cell of a notebook file, or nothing."""
    import nbformat

    if index is None or not notebook.is_file():
        return ""
    headings = [
        line.lstrip("#").strip()
        for cell in nbformat.read(notebook, as_version=4).cells[:index]
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("#")
    ]
    return headings[-1] if headings else ""


def _literal(path: Path) -> str:
    """A path for papermill, which reads braces in it as places for parameters."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _one_line(error: object) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else text[:299] + "…"

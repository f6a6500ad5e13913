"""An experiment's report: its notebook run, its page written, its verdict taken from the record that it left."""

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cuzklab import resources
from cuzklab.atomic import atomic_write
from cuzklab.errors import BadInput, no_such
from cuzklab.report.html import export_html
from cuzklab.report.masthead import kind_of, note_of
from cuzklab.report.notebook import NotebookFailed, checked_parameters, parameters_of, run_notebook
from cuzklab.report.postmortem import RECORD_FORMAT, RECORD_VARIABLE
from cuzklab.report.subjects import with_runs

_MAX_RECORD_BYTES = 64 << 20


@dataclass(frozen=True)
class Report:
    """What a report left.

    Attributes
    ----------
    html : Path
        The page.
    verdict_file : Path
        The record: verdict, findings, runs, parameters.
    notebook : Path
        The executed notebook.
    verdict : mapping
        `decision`, `sentence`, `because`, `would_change`.
    findings : tuple of mapping
    runs : tuple of Path
    """

    html: Path
    verdict_file: Path
    notebook: Path
    verdict: Mapping[str, Any]
    findings: tuple[Mapping[str, Any], ...]
    runs: tuple[Path, ...]


def notebooks() -> dict[str, Path]:
    """The reports that are shipped, by name: notebooks with a cell of parameters (others are to be worked in)."""
    shipped = sorted(resources.folder("notebooks").glob("*.ipynb"))
    return {path.stem: path for path in shipped if _has_parameters(path)}


def _has_parameters(notebook: Path) -> bool:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return any("parameters" in cell["metadata"].get("tags", ()) for cell in cells)


def notebook_of(name: str | Path) -> Path:
    """A notebook by its name, or by the path of an .ipynb file.

    Raises
    ------
    BadInput
        There is none.
    """
    text = str(name)
    if text.endswith(".ipynb"):
        return Path(text)
    known = notebooks()
    if text not in known:
        raise BadInput(no_such("report", text, known, "or give the path of an .ipynb file"))
    return known[text]


def write_report(
    name: str | Path,
    out: Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    deadline_s: float = 1800,
    progress: Callable[[float, str], None] | None = None,
    remark: str = "",
) -> Report:
    """Run an experiment's notebook and write its report.

    `out` then holds NAME.html, NAME.ipynb (executed), verdict.json and runs/. Each appears whole or not at all, the
    verdict last.

    Parameters
    ----------
    name : str or Path
        A shipped notebook, or a path.
    out : Path
        Made where it does not exist.
    parameters : mapping
        Of the notebook; text is converted to the declared type.
    deadline_s : float
        For the whole run.
    progress : callable (share, words), optional
        Told the share of the work done, between 0 and 1, and what is being done.
    remark : str
        What a reader must know first, for the line under the title.

    Raises
    ------
    BadInput
        No such notebook, a parameter that it does not have or of another type, or no run where a parameter names one;
        nothing has been started.
    NotebookFailed
        A cell raised, the deadline passed, the kernel died, or the notebook left no record.
    """
    notebook = notebook_of(name)
    known = parameters_of(notebook)
    given = with_runs(notebook.stem, known, checked_parameters(notebook, parameters or {}))
    out = Path(out).resolve()
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: is a file; give a folder for the report")
    if "out" in known and "out" not in given:
        given["out"] = str(out)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cuzklab-") as private:
        record_file = Path(private) / "record.json"
        executed = run_notebook(
            notebook, out / f"{notebook.stem}.ipynb", given, deadline_s=deadline_s,
            progress=_follow(progress) if progress else None,
            environment={RECORD_VARIABLE: str(record_file)},
        )  # fmt: skip
        record = _read_record(record_file, executed)
    record["report"] = notebook.stem
    record["created"] = datetime.now(UTC).isoformat(timespec="seconds")
    record["seconds"] = round(time.monotonic() - started, 1)
    if remark:
        record["remark"] = remark
    html = export_html(executed, out / f"{notebook.stem}.html", note=note_of(record), kind=kind_of(record))
    verdict_file = out / "verdict.json"
    with atomic_write(verdict_file, "w") as file:
        file.write(json.dumps(record, indent=1) + "\n")
    return Report(
        html, verdict_file, executed, record["verdict"], tuple(record["findings"]),
        tuple((out / run["path"]).resolve() for run in record["runs"]),
    )  # fmt: skip


def _follow(progress: Callable[[float, str], None]) -> Callable[[str], None]:
    """Understands the lines that `display.progress` prints; other output of a notebook is none of its business."""

    def line(text: str) -> None:
        share, percent, words = text.partition(" % ")
        if percent and share.strip().isdigit():
            progress(int(share) / 100, words)

    return line


def _read_record(file: Path, executed: Path) -> dict[str, Any]:
    """The record that the notebook wrote with its last call; that it ran to the end proves nothing."""
    if not file.is_file():
        raise NotebookFailed(
            f"{executed.stem}: ran to its end but left no verdict; its last cell must call postmortem.conclude "
            f"(see {executed})", "cell", None, executed,
        )  # fmt: skip
    if file.stat().st_size > _MAX_RECORD_BYTES:
        raise NotebookFailed(
            f"{executed.stem}: its record is larger than {_MAX_RECORD_BYTES} bytes", "cell", None, executed
        )
    record = json.loads(file.read_text(encoding="utf-8"))
    if record.get("format") != RECORD_FORMAT:
        raise NotebookFailed(f"{executed.stem}: its record has an unknown format", "cell", None, executed)
    return record

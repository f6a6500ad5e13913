"""The index page of many reports: what each came to, with a link to its page."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat
import pandas as pd

from cuzklab.report import tables
from cuzklab.report.html import export_html
from cuzklab.report.masthead import INDEX
from cuzklab.report.write import FAILING

_LOOKS = {"keep": "keep", "revert": "revert", "failed": "failed", "regressed": "failed"}


@dataclass(frozen=True)
class Made:
    """What became of one report.

    Attributes
    ----------
    name : str
        Of the notebook.
    folder : str
        Its folder, relative to that of all.
    parameters : mapping
        Those that were given.
    decision, sentence : str
        Of its verdict; ``failed`` and what happened, where it was not written.
    html : str
        Its page, relative to the folder of all; empty where there is none.
    findings : int
    seconds : float
    resumed : bool
        Made by an earlier call.
    """

    name: str
    folder: str
    parameters: Mapping[str, Any]
    decision: str
    sentence: str
    html: str = ""
    findings: int = 0
    seconds: float = 0.0
    resumed: bool = False

    @property
    def failed(self) -> bool:
        return self.decision in FAILING or not self.html


def as_table(made: Sequence[Made]) -> pd.DataFrame:
    """The table of all reports; parameters that differ have a column each."""
    names = list(dict.fromkeys(key for one in made for key in one.parameters))
    turned = [key for key in names if len({str(one.parameters.get(key)) for one in made if key in one.parameters}) > 1]
    same_report = len({one.name for one in made}) == 1
    return pd.DataFrame(
        [
            {"report": one.name if not same_report else one.folder}
            | ({key: one.parameters.get(key, "") for key in turned} if same_report else {})
            | {"decision": one.decision, "sentence": one.sentence, "findings": one.findings, "time_s": one.seconds}
            for one in made
        ]
    )


def write_overview(target: Path, title: str, made: Sequence[Made]) -> Path:
    """Write the page: one file, links relative to it, no network."""
    frame = as_table(made)
    frame["report"] = [_link(one, text) for one, text in zip(made, frame["report"], strict=True)]
    frame["decision"] = [
        tables.Markup(
            f'<span class="cz-badge {_LOOKS.get(one.decision, "undecided")}">{tables.escape(one.decision)}</span>'
        )
        for one in made
    ]
    shown = tables.table(frame, rows=len(frame), markup=("report", "decision"), headings={"time_s": "took"})
    failed = sum(one.failed for one in made)
    state = f"{len(made)} reports" + (f"; {failed} failed or need a look." if failed else ", all made.")
    cells = [
        nbformat.v4.new_markdown_cell(f"# {title}\n\n{state}"),
        nbformat.v4.new_code_cell("", outputs=[_shown(shown)]),
    ]
    with tempfile.TemporaryDirectory(prefix="cuzklab-") as private:
        notebook = Path(private) / "index.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
        return export_html(notebook, target, note="Each row links to its report", kind=INDEX)


def _shown(html: str) -> Any:
    return nbformat.v4.new_output("display_data", data={"text/html": html})


def _link(one: Made, text: str) -> str:
    if not one.html:
        return tables.escape(text)
    return tables.Markup(f'<a href="{tables.escape(quote(one.html))}">{tables.escape(text)}</a>')

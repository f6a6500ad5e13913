"""The index page of many reports: what each came to, with a link to its page."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat
import pandas as pd

from cuzklab.report import decisions, tables
from cuzklab.report.display import badge
from cuzklab.report.html import export_html
from cuzklab.report.masthead import INDEX

# Above the table of reports that were made with the small values of their parameters.
_QUICK = (
    "Small runs: made with <code>--quick</code>, every part of every report over the small runs that its parameters"
    " name. Figures and decisions hold for those only; to act on them, make the reports without it."
)


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
        return self.decision in decisions.FAILING or not self.html


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


def write_overview(target: Path, title: str, made: Sequence[Made], quick: bool = False) -> Path:
    """Write the page: one file, links relative to it, no network; `quick`: it says that the runs were small."""
    frame = as_table(made)
    frame["report"] = [_link(one, text) for one, text in zip(made, frame["report"], strict=True)]
    frame["decision"] = [badge(one.decision, decisions.look_of(one.decision)) for one in made]
    shown = tables.table(frame, rows=len(frame), markup=("report", "decision"), headings={"time_s": "took"})
    warning = f'<div class="cz-warning">{_QUICK}</div>' if quick else ""
    cells = [
        nbformat.v4.new_markdown_cell(f"# {title}\n\n{_state(made)}"),
        nbformat.v4.new_code_cell("", outputs=[_shown(warning + _legend(made) + shown)]),
    ]
    with tempfile.TemporaryDirectory(prefix="cuzklab-") as private:
        notebook = Path(private) / "index.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
        return export_html(notebook, target, note="Each row links to its report", kind=INDEX)


def _state(made: Sequence[Made]) -> str:
    """How many there are, of which decision, and whether any needs a look."""
    failed = sum(one.failed for one in made)
    words = f"{len(made)} report{'s' if len(made) != 1 else ''}: {decisions.counted(one.decision for one in made)}."
    return words + (f" {failed} failed or need{'s' if failed == 1 else ''} a look." if failed else " All were made.")


def _legend(made: Sequence[Made]) -> str:
    """What the colours of the decisions on the page mean."""
    there = {decisions.look_of(one.decision) for one in made}
    items = "".join(
        f'<li><span class="cz-badge {look}">{look}</span> {tables.escape(words)}</li>'
        for look, words in decisions.MEANINGS.items() if look in there
    )  # fmt: skip
    return f'<ul class="cz-legend" aria-label="What the colours of decisions mean">{items}</ul>'


def _shown(html: str) -> Any:
    return nbformat.v4.new_output("display_data", data={"text/html": html})


def _link(one: Made, text: str) -> str:
    if not one.html:
        return tables.escape(text)
    return tables.Markup(f'<a href="{tables.escape(quote(one.html))}">{tables.escape(text)}</a>')

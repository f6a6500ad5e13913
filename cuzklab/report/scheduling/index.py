"""The page of all scheduled reports: what became of each, links to them, and the trends of their figures."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat
import pandas as pd

from cuzklab.analysis.history import SeriesJudgement, history, judgements
from cuzklab.report import tables
from cuzklab.report.figures.axes import Absent
from cuzklab.report.figures.trend import trend
from cuzklab.report.html import PLOTLY, export_html
from cuzklab.report.masthead import INDEX
from cuzklab.report.naming import figure_name
from cuzklab.report.scheduling.log import Entry
from cuzklab.report.scheduling.night import SCHEDULED, log_of
from cuzklab.trace.store import list_runs
from cuzklab.units import format_value

LATEST = 30  # entries of a schedule in its table
MOST_TRENDS = 8  # series in one figure


@dataclass(frozen=True)
class Section:
    """What the page says of one schedule."""

    name: str
    folder: Path
    entries: tuple[Entry, ...]
    judged: tuple[SeriesJudgement, ...]


def write_index(store: Path) -> Path:
    """Write ``store/index.html`` anew from what is stored; it appears whole or not at all.

    Returns
    -------
    Path
        The page: one file, links relative to it, no network.
    """
    store = Path(store).resolve()
    folder = store / SCHEDULED
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    sections = [_section(name, store) for name in names]
    cells = [nbformat.v4.new_markdown_cell(_heading(sections))]
    for section in sections:
        cells += _cells(section)
    with tempfile.TemporaryDirectory(prefix="cuzklab-") as private:
        notebook = Path(private) / "index.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
        return export_html(notebook, store / "index.html", note="Made anew after each scheduled report", kind=INDEX)


def _section(name: str, store: Path) -> Section:
    log = log_of(name, store)
    judged = judgements(history(list_runs(store / SCHEDULED / name)), log.confirms())
    return Section(name, store / SCHEDULED / name, tuple(log), tuple(judged))


def _heading(sections: list[Section]) -> str:
    if not sections:
        return "# Scheduled reports\n\nNone has been made yet: `cuzklab schedule list` says what is planned."
    bad = [section.name for section in sections if section.entries and section.entries[-1].outcome != "done"]
    state = f"The newest report of {', '.join(bad)} needs a look." if bad else "Nothing needs a look."
    return f"# Scheduled reports\n\n{state}"


def _cells(section: Section) -> Iterator[Any]:
    yield nbformat.v4.new_markdown_cell(f"## {section.name}")
    yield _shown({"text/html": _entries_table(section)})
    worst = section.judged[:MOST_TRENDS]
    figure = trend(worst, "What it measured, over time")
    if isinstance(figure, Absent):
        yield _shown({"text/html": f'<p class="cz-absent">{tables.escape(figure.reason)}</p>'})
    else:
        yield _shown({PLOTLY: json.loads(figure.to_json())})
    if section.judged:
        table = tables.table(_judged_frame(section.judged), "Every figure against its history, the worst first.")
        yield _shown({"text/html": tables.folded("every figure", table)})


def _shown(data: dict[str, Any]) -> Any:
    """A cell that shows something and has no code."""
    output = nbformat.v4.new_output("display_data", data=data)
    return nbformat.v4.new_code_cell("", outputs=[output])


def _entries_table(section: Section) -> str:
    rows = []
    ordinary = [entry for entry in section.entries if not entry.confirms]
    for entry in reversed(ordinary[-LATEST:]):
        reruns = sum(other.confirms == entry.folder for other in section.entries)
        rows.append(
            {
                "when": entry.started.replace("T", " ")[:16],
                "outcome": tables.Markup(f'<span class="cz-badge {_BADGE[entry.outcome]}">{entry.outcome}</span>')
                if entry.outcome in _BADGE else tables.escape(entry.outcome),
                "what it says": entry.words,
                "reruns": reruns,
                "missed before": entry.missed,
                "report": _link(section, entry),
            }
        )  # fmt: skip
    frame = pd.DataFrame(rows)
    caption = f"The newest {len(rows)} of {len(ordinary)} reports." if len(ordinary) > len(rows) else ""
    return tables.table(frame, caption, markup=("outcome", "report")) if len(frame) else ""


_BADGE = {"done": "ok", "failed": "failed", "alarm": "against"}


def _link(section: Section, entry: Entry) -> str:
    """A link to a report's page, relative to this one."""
    pages = sorted((section.folder / entry.folder).glob("*.html")) if entry.folder else []
    if not pages:
        return tables.escape(entry.folder or "–")
    address = "/".join(map(quote, (SCHEDULED, section.name, entry.folder, pages[0].name)))
    return tables.Markup(f'<a href="{tables.escape(address)}">{tables.escape(entry.folder)}</a>')


def _judged_frame(judged: tuple[SeriesJudgement, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "figure": figure_name(one),
                "now": format_value(one.level, one.unit),
                "before": format_value(one.baseline_level, one.unit) if one.judgement.baseline else "–",
                "effect_share": one.judgement.effect if one.judgement.state != "too short" else None,
                "judged": one.judgement.state,
                "runs": f"{one.judgement.candidates} against {one.judgement.baseline}",
                "level changed at": ", ".join(Path(change).name for change in one.changes) or "–",
            }
            for one in judged
        ]
    )  # fmt: skip

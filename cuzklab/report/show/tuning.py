"""A search for the best configuration: ranking, fronts, the map over device memory, what limits the best; its record.

Everything is handed in as rows and as the JSON of the search, so that this package need not know how one searches.
Called as `show.tuning.NAME`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cuzklab.report import display, tables
from cuzklab.report.display import badge
from cuzklab.report.figures import tuning as figures
from cuzklab.report.postmortem import write_record
from cuzklab.units import format_size, percent

Rows = Sequence[Mapping[str, Any]]
_RIGHT = ("gw", "pw", "gt", "lookahead", "VRAM", "s/proof", "90 % of runs", "behind", "proofs/h", "cost/proof",
          "host peak", "VRAM peak", "gain of throughput", "90 % interval")  # fmt: skip


def overview(sentence: str, conditions: str, tiles: Sequence[tuple[str, str]]) -> None:
    """The answer, and the figures that carry it."""
    shown = "".join(
        f'<div class="cz-tile"><div class="value">{tables.prose(value)}</div>'
        f'<div class="what">{tables.prose(what)}</div>{badge("simulated")}</div>'
        for value, what in tiles
    )
    display.markup(
        f'<div class="cz-verdict described"><p class="sentence">{tables.prose(sentence)}</p>'
        f"<p>{tables.prose(conditions)}.</p>" + (f'<div class="cz-tiles">{shown}</div>' if shown else "") + "</div>"
    )


def rows(content: Rows, caption: str, fold: str = "") -> None:
    """A table of rows for people."""
    frame = pd.DataFrame(list(content))
    display.table(frame, caption, fold=fold, right=[name for name in _RIGHT if name in frame.columns])


def front(points: Rows, confirmed: Rows, table: Rows, memory: str, conditions: str) -> None:
    """Speed against a kind of memory, and the front's table."""
    display.figure(figures.speed_against_memory(points, confirmed, memory, conditions))
    rows(table, f"Pareto front of s/proof against {memory}, from the least memory upwards. {conditions}.")


def crossover(found: Mapping[str, Any], table: Rows) -> None:
    """The map of designs over device memory, its summary, and all its numbers.

    Parameters
    ----------
    found : mapping
        As `cuzklab.tuning.Crossover.to_json`.
    """
    cells = [{"design": row["design"], **cell} for row in found["designs"] for cell in row["cells"]]
    sizes = sorted({cell["vram_bytes"] for cell in cells})
    designs = [row["design"] for row in found["designs"]]
    conditions = (
        f"Simulated: batch average of c=j={found['c']}, pw={found['pw']}, {found['workload']}, {found['hardware']} "
        f"with other amounts of memory, {found['seeds']} seeds"
    )
    display.figure(figures.crossover_map(cells, designs, sizes, found["baseline"], conditions))
    summary = [
        {
            **row, "best with most memory s/proof": _decimals(row["best with most memory s/proof"], 2),
            "gw there": "–" if row["gw there"] is None else str(row["gw there"]),
            "against baseline there": _percent(row["against baseline there"]),
        }
        for row in table
    ]  # fmt: skip
    frame = pd.DataFrame(summary)
    caption = (
        "Runs from: the smallest amount compared with which some number of workers is safe and ends well. Pays from: "
        "the smallest from which on it is faster than the baseline, beyond the spread of seeds."
    )
    display.table(frame, caption, right=list(frame.columns)[1:])
    each = pd.DataFrame(
        {
            "design": design,
            **{
                format_size(cell["vram_bytes"]): f"{cell['batch_average_s']:.1f} (gw{cell['gw']})"
                if cell["batch_average_s"] is not None else _short(cell["why"])
                for cell in cells if cell["design"] == design
            },
        }
        for design in designs
    )  # fmt: skip
    display.table(
        each, "s/proof and GPU workers of the best.", fold="All numbers of the map", right=list(each.columns)[1:]
    )


def limits(explanation: Mapping[str, Any], table: Rows) -> None:
    """What limits a configuration: the picture and its table.

    Parameters
    ----------
    explanation : mapping
        As `cuzklab.simulate.explain.Explanation.to_json`.
    """
    conditions = explanation["conditions"]
    knobs = ", ".join(f"{name}={conditions[name]}" for name in ("c", "j", "pw", "gw"))
    what = f"Simulated: {conditions['policy']}, {knobs}, {explanation['seeds']} seeds"
    display.text(explanation["sentence"])
    display.figure(figures.gains(explanation["gains"], what))
    rows([{**row, "": row[""] or " "} for row in table], f"{what}. Gains of throughput by the batch average.")


def conclude(
    sentence: str, findings: Sequence[Mapping[str, Any]], found: Mapping[str, Any], out: Path,
    parameters: Mapping[str, object],
) -> Path:  # fmt: skip
    """Write the record of this report.

    Parameters
    ----------
    findings : sequence of mapping
        claim, sure, evidence.
    found : mapping
        The JSON of the search, of the map and of the explanation, by name.
    """
    record = {
        "question": "Which configuration proves fastest, and what does it cost in memory?",
        "verdict": {"decision": "tuned", "sentence": sentence},
        "findings": list(findings),
        "runs": [],
        **found,
    }
    return write_record(record, out, parameters)


def _decimals(value: float | None, count: int) -> str:
    return "–" if value is None else f"{value:.{count}f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else percent(share, 1, signed=True)


def _short(why: str) -> str:
    return why if len(why) <= 40 else why[:39] + "…"

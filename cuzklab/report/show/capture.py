"""The sections of a post-mortem of one recording that nobody compares: what it shows, and what it cannot."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from cuzklab.analysis import capture, projection
from cuzklab.analysis.frames import missing
from cuzklab.report import display, tables
from cuzklab.report.display import badge
from cuzklab.report.naming import sentence
from cuzklab.report.postmortem import PostMortem, anchor, describe, tiles
from cuzklab.trace import Run
from cuzklab.units import format_seconds, format_size

_ANSWERS = {"yes": "ok", "no": "failed", "in part": "doubt", "none": ""}
_LONGEST_CELL = 90


def recording(run: Run) -> PostMortem:
    """What is found in a run by itself."""
    found = capture.findings(run)
    return describe((run,), f"What happened in {run.info.title or run.name}?", found, capture.headline(found))


def overview(post: PostMortem) -> None:
    """What the recording shows in a sentence, and the figures that carry it."""
    shown = "".join(
        f'<div class="cz-tile"><div class="value">{tables.prose(tile.value)}</div>'
        f'<div class="what">{tables.prose(tile.what)}</div>{badge(tile.obtained)}'
        f' <a class="why" href="#{anchor(post, tile.finding)}">evidence</a></div>'
        for tile in tiles(post)
    )
    display.markup(
        '<div class="cz-verdict described"><p class="word">What it shows</p>'
        f'<p class="sentence">{tables.prose(post.verdict.sentence)}</p>'
        + (f'<div class="cz-tiles">{shown}</div>' if shown else "")
        + "</div>"
    )


def about(run: Run) -> None:
    """What was recorded: program, machine, profiler, length; and what the importer has to say about it."""
    info, conditions = run.info, run.info.conditions
    length = conditions.get("duration_ns")
    processes = conditions.get("processes") or {}
    pairs = {
        "recording": info.title,
        "program": conditions.get("program"),
        "processes": ", ".join(f"{name} {number}".strip() for number, name in processes.items()),
        "length": format_seconds(length * 1e-9) if isinstance(length, int) else None,
        "GPUs": ", ".join(
            f"{device.get('index')}: {device.get('name')}"
            + (f", {format_size(device['vram_limit_bytes'])}" if device.get("vram_limit_bytes") else "")
            for device in info.devices
        ),
        "NVTX domains": ", ".join(
            f"{name} ({count:,} ranges)" for name, count in (conditions.get("nvtx_domains") or {}).items()
        ),
        "recorded with": " ".join(
            f"{name} {version}" for name, version in info.versions.items() if name in ("nsys", "schema")
        ),
        "joined with": _joined(conditions.get("capture")),
    }  # fmt: skip
    display.facts({name: value for name, value in pairs.items() if value})
    _link(conditions)
    if info.notes:
        listed = "".join(f"<li>{tables.escape(sentence(note))}</li>" for note in info.notes)
        display.markup(f'<div class="cz-text"><p>Notes of the import:</p><ul>{listed}</ul></div>')


def blind_spots(run: Run) -> None:
    """What the recording can tell, and what it cannot and why."""
    rows = capture.blind_spots(run)
    rows["answer"] = [badge(answer, _ANSWERS[answer]) for answer in rows["answer"]]
    display.table(rows, headings={"question": "does it tell …"}, markup=("answer",))
    placement(run)


def _joined(facts: object) -> str:
    """How a run was joined with a capture of it; empty where it was not."""
    names = ("matched", "shared", "residual_median_ns", "residual_max_ns")
    if not isinstance(facts, dict) or any(type(facts.get(name)) is not int for name in names):
        return ""
    matched, shared, median, most = (facts[name] for name in names)
    return (
        f"a capture with Nsight Systems, by {matched:,} of {shared:,} ranges that both have; their times then differ by"
        f" {format_seconds(median * 1e-9)} in the median, by {format_seconds(most * 1e-9)} at most"
    )


def _link(conditions: Mapping[str, object]) -> None:
    """The capture's own report, where it was kept."""
    facts = conditions.get("capture")
    file = (facts.get("report") if isinstance(facts, dict) else "") or conditions.get("report")
    if isinstance(file, str) and file.endswith(".nsys-rep") and Path(file).is_absolute():
        # A URI of a file, whatever the run says: it cannot be a script.
        display.markup(
            f'<div class="cz-text"><p>In Nsight Systems: <a href="{tables.escape(Path(file).as_uri())}">'
            f"{tables.escape(Path(file).name)}</a> (<code>nsys-ui {tables.escape(shlex.quote(file))}</code>)</p></div>"
        )


def placement(run: Run) -> None:
    """Of a log: how sure the place of lines is that name no partition."""
    rows = capture.placement(run)
    if len(rows):
        display.table(
            rows,
            "Lines that name neither time nor partition, by how sure it is whose they are: only one call could have"
            " written it; its durations fit one call only; they fit several (in doubt); they fit none (not placed).",
        )


def ranges_on_gpu(run: Run) -> None:
    """Ranges projected onto the GPU, and the work that no range owns."""
    _table_or_why(
        run, projection.by_name(run), "ranges on the GPU", ("spans", "kernels", "transfers", "api_calls"),
        "Span: from the first start to the last end on the GPU. Busy: the part of it in which the range's own work ran;"
        " the rest are gaps. Queue: from the return of a launch to the start on the GPU.", 30,
    )  # fmt: skip
    left = projection.outside(run)
    if len(left):
        wanted = ["process", "thread", "operations", "work_ns", "busy_ns", "span_ns", "queue_max_ns"]
        display.table(left[wanted], "Work on the GPU that no range owns, by the thread that launched it.")


def ranges(run: Run) -> None:
    """Durations of ranges on the threads."""
    _table_or_why(
        run, projection.range_times(run), "ranges", ("spans",), "All ranges of each name, on their threads.", 30
    )


def kernels(run: Run) -> None:
    """Kernels by name."""
    _table_or_why(run, capture.kernel_times(run), "kernels", ("kernels",), "Kernels by name, longest first.", 20)


def copies(run: Run) -> None:
    """Copies by direction, with their rate."""
    found = capture.copy_rates(run)
    found = found.assign(rate=[f"{format_size(rate)}/s" for rate in found.pop("bytes_per_s")])
    _table_or_why(run, found, "copies", ("transfers",), "Copies and fills (set).", 20, right=("rate",))


def waits(run: Run) -> None:
    """Waits of threads, by what they called."""
    _table_or_why(run, capture.wait_times(run), "waits", ("waits",), "Waits of threads, by the call.", 20)


def _table_or_why(
    run: Run, rows: pd.DataFrame, what: str, needed: tuple[str, ...], caption: str, most: int, right: tuple = ()
) -> None:
    """A table, or the sentence that says why there is none."""
    if not len(rows):
        lacking = missing(run, *needed)
        why = f": the run has no rows of {lacking}" if lacking else ": no range launched anything"
        display.markup(f'<p class="cz-absent">{tables.escape(f"No table of {what}{why}.")}</p>')
        return
    text = [column for column in rows if not pd.api.types.is_numeric_dtype(rows[column])]
    cut = rows.assign(**{column: rows[column].map(_shortened) for column in text if column not in right})
    display.table(cut, caption, rows=most, right=right)


def _shortened(value: object) -> object:
    text = value if isinstance(value, str) else None
    return value if text is None or len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"

"""A capture joined with the run that it was taken of: what the device did, among the run's own spans."""

from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from cuzklab.errors import BadInput
from cuzklab.ingest.capturing.agreement import agreement
from cuzklab.ingest.capturing.alignment import Alignment, Ranges, align
from cuzklab.trace import TABLES, Columns, Run, write_run
from cuzklab.trace.nesting import Nesting, nesting
from cuzklab.trace.schema import arrow_schema

_DOMAIN = "cuzk"
_FROM_CAPTURE = ("kernels", "transfers", "api_calls")
_TIMES = ("start", "end", "time", "issue", "launch")
_MOST_ATTACHED_BYTES = 64 << 20


def attach(run: Run, captured: Run, place: Path, report_file: str = "") -> Run:
    """Write a run with the device's side of a capture of it.

    Kernels, copies and API calls are the capture's, in the run's time; each kernel and copy belongs to the run's
    innermost span on the thread that asked for it. Device memory stays the run's own where it recorded it (the capture
    then adds what was allocated as a counter), else it is the capture's. What the program did before the run's first
    span or after its last is left out. Spans that were found in the capture carry domain, style and process of the
    NVTX range that they are. How far both agree, stage by stage, stands in the condition `capture`.

    Parameters
    ----------
    run, captured : Run
        The run, and the imported capture.
    place : Path
        Where the joined run shall lie.
    report_file : str
        The capture's own report, for whoever opens Nsight Systems; empty where it was not kept.

    Raises
    ------
    BadInput
        The capture is not of this run.
    """
    spans = run.table("spans")
    theirs = captured.table("spans")
    theirs = theirs[(theirs["domain"] == _DOMAIN) & (theirs["style"] == "push_pop")].reset_index(drop=True)
    try:
        found = align(_ranges(spans), _ranges(theirs))
    except BadInput as error:
        raise BadInput(f"{captured.info.title}: {error}") from None
    join = _Join(run, spans, theirs, found)
    tables = {name: _table(name, join.moved(captured.table(name), name)) for name in _FROM_CAPTURE}
    agreed = agreement(
        spans, theirs, found.pairs, run.table("kernels"), join.moved(captured.table("kernels"), "kernels")
    )
    own = {name: run.table(name) for name in TABLES if name not in _FROM_CAPTURE} | {"spans": join.spans(theirs)}
    notes = [f"Joined with a capture of Nsight Systems: {found.in_words()}."]
    outside = {name: len(captured.table(name)) - len(tables[name]) for name in _FROM_CAPTURE}
    if any(outside.values()):
        words = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in outside.items() if count)
        notes.append(f"Of the capture {words} lie outside the run's own time and were left out.")
    for name in _FROM_CAPTURE:
        if len(run.table(name)):
            notes.append(f"{len(run.table(name)):,} {name} that the run had recorded itself gave way to the capture's.")
    memory = join.moved(captured.table("vram"), "vram")
    if len(own["vram"]) and len(memory):
        own["counters"] = pd.concat([own["counters"], _live(memory)], ignore_index=True)
    elif len(memory):
        own["vram"] = memory
    own["counters"] = pd.concat(
        [one for one in (own["counters"], join.moved(captured.table("counters"), "counters")) if len(one)]
        or [own["counters"]], ignore_index=True,
    )  # fmt: skip
    tables |= {name: _table(name, rows) for name, rows in own.items()}
    states = {name: (captured if name in _FROM_CAPTURE else run).availability.get(name, {}) for name in TABLES}
    info = replace(
        run.info,
        notes=(*run.info.notes, *notes, *(f"Capture: {note}" for note in captured.info.notes)),
        conditions={**run.info.conditions, "capture": _facts(found, captured, report_file) | {"agreement": agreed}},
        inputs={**run.info.inputs, **captured.info.inputs},
        versions={**run.info.versions, **{k: v for k, v in captured.info.versions.items() if k in ("nsys", "schema")}},
        devices=run.info.devices or captured.info.devices,
    )
    return write_run(
        place, info, Columns(tables),
        tuple(name for name, entry in states.items() if entry.get("state") == "not captured" and not len(tables[name])),
        tuple(name for name, entry in states.items() if entry.get("state") == "lost"),
        {name: entry.get("reason", "") for name, entry in states.items()},
        _attachments(run.path),
    )  # fmt: skip


class _Join:
    """Puts rows of the capture into the run's time and among its spans."""

    def __init__(self, run: Run, spans: pd.DataFrame, theirs: pd.DataFrame, found: Alignment) -> None:
        self._spans, self._found = spans, found
        self._window = (int(spans["start"].min()), int(spans["end"].max()))
        votes: dict[str, Counter[str]] = {}
        mine, other = spans["thread"].tolist(), theirs["thread"].tolist()
        for own_row, capture_row in found.pairs.tolist():
            votes.setdefault(other[capture_row], Counter())[mine[own_row]] += 1
        self._threads = {theirs_: counted.most_common(1)[0][0] for theirs_, counted in votes.items()}
        self._stacks: dict[str, tuple[np.ndarray, Nesting]] = {}
        for thread in set(self._threads.values()):
            rows = np.flatnonzero((spans["thread"] == thread).to_numpy())
            starts, ends = (spans[name].to_numpy(np.int64)[rows] for name in ("start", "end"))
            self._stacks[thread] = (rows, nesting(starts, ends))

    def spans(self, theirs: pd.DataFrame) -> pd.DataFrame:
        """The run's spans; those that are in the capture with what it says of them as ranges."""
        rows = self._spans.copy()
        mine, other = self._found.pairs[:, 0], self._found.pairs[:, 1]
        for name in ("domain", "style", "process"):
            values = rows[name].to_numpy(copy=True)
            values[mine] = theirs[name].to_numpy()[other]
            rows[name] = values
        return rows

    def moved(self, rows: pd.DataFrame, table: str) -> pd.DataFrame:
        """Rows in the run's time; kernels, copies and memory with worker, partition and span of who asked for them."""
        rows = rows.copy()
        for name in _TIMES:
            if name in rows.columns:
                rows[name] = self._times(rows[name])
        first, last = (rows["time"], rows["time"]) if "time" in rows.columns else (rows["start"], rows["end"])
        rows = rows[(last >= self._window[0]) & (first <= self._window[1])].reset_index(drop=True)
        if "thread" in rows.columns:
            rows["thread"] = rows["thread"].map(lambda thread: self._threads.get(thread, thread))
        if table in ("kernels", "transfers", "vram"):
            asked = {"kernels": "launch", "transfers": "issue", "vram": "time"}[table]
            self._own(rows, rows[asked], table)
        return rows

    def _times(self, column: pd.Series) -> pd.Series:
        known = column.notna()
        moved = column.copy()
        moved[known] = self._found.to_run(column[known].to_numpy(np.int64))
        return moved

    def _own(self, rows: pd.DataFrame, asked: pd.Series, table: str) -> None:
        workers, partitions, names = (rows[name].tolist() if name in rows.columns else [""] * len(rows)
                                      for name in ("worker", "partition", "span"))  # fmt: skip
        own = {name: self._spans[name].tolist() for name in ("worker", "partition", "name")}
        places: dict[str, list[int]] = {}
        for place, (worker, known) in enumerate(zip(workers, asked.notna().tolist(), strict=True)):
            thread = self._threads.get(worker)
            if thread is not None and known:
                places.setdefault(thread, []).append(place)
        moments = asked.fillna(0).to_numpy(np.int64)
        for thread, mine in places.items():
            span_rows, stack = self._stacks[thread]
            for place, inner in zip(mine, stack.innermost(moments[mine]).tolist(), strict=True):
                workers[place] = thread
                if inner >= 0:
                    row = int(span_rows[inner])
                    workers[place], partitions[place] = own["worker"][row] or thread, own["partition"][row]
                    names[place] = own["name"][row]
        rows["worker"], rows["partition"] = workers, partitions
        if table == "kernels":
            rows["span"] = names


def _ranges(spans: pd.DataFrame) -> Ranges:
    return Ranges(spans["name"].tolist(), spans["start"].to_numpy(np.int64), spans["end"].to_numpy(np.int64))


def _table(name: str, rows: pd.DataFrame) -> pa.Table:
    schema = arrow_schema(name)
    order = next(key for key in ("time", "requested", "start") if key in schema.names)
    rows = rows.sort_values(order, kind="stable", ignore_index=True)
    return pa.Table.from_pandas(rows[schema.names], schema=schema, preserve_index=False)


def _live(memory: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "time": memory["time"],
            "name": "captured gpu" + memory["device"].astype(str) + " live_bytes",
            "value": memory["live"].astype(float),
        }
    )


def _facts(found: Alignment, captured: Run, report_file: str) -> dict[str, Any]:
    kept = {one.name: getattr(found, one.name) for one in fields(found) if one.name != "pairs"}
    return kept | {"title": captured.info.title, "report": report_file}


def _attachments(path: Path) -> dict[str, str]:
    """Other files of the run, which go with it."""
    return {
        file.name: file.read_text(encoding="utf-8", errors="replace")
        for file in sorted(path.glob("*.json"))
        if file.name != "run.json" and file.stat().st_size <= _MOST_ATTACHED_BYTES
    }

"""A trace in the form that analyses work on, and the timeline table that figures are drawn from.

Workers are named by their root: the threads that ``gpu0.w1`` starts (``gpu0.w1/prep``) work for it. Stages are named
without their part: ``batch_add.l`` is a use of ``batch_add``.
"""

import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

import numpy as np
import pandas as pd

from cuzklab.analysis.intervals import Intervals, union
from cuzklab.analysis.kernel_names import short_name
from cuzklab.analysis.model import MAX_EVIDENCE_ROWS
from cuzklab.trace import Run

TIMELINE_COLUMNS = (
    "group", "lane", "category", "start_ns", "end_ns", "label", "worker", "partition", "device", "stream",
    "open",
)  # fmt: skip
WORK_COLUMNS = ("start_ns", "end_ns", "stage", "part", "worker", "partition", "device", "thread")

_TIME_COLUMNS = {
    "spans": ("start", "end"),
    "locks": ("requested", "acquired", "released"),
    "vram": ("time",),
    "transfers": ("start", "end"),
    "kernels": ("start", "end"),
    "waits": ("start", "end"),
    "api_calls": ("start", "end"),
}


def per_run(compute: Callable[[Run], pd.DataFrame]) -> Callable[[Run], pd.DataFrame]:
    """Compute a table of a run once for as long as the run is in memory: stored runs do not change."""
    kept: dict[int, pd.DataFrame] = {}

    @wraps(compute)
    def table_of(run: Run) -> pd.DataFrame:
        if id(run) not in kept:
            kept[id(run)] = compute(run)
            weakref.finalize(run, kept.pop, id(run), None)
        return kept[id(run)].copy()

    return table_of


def table(rows: Iterable[tuple[Any, ...]], columns: Mapping[str, str]) -> pd.DataFrame:
    """A frame of rows whose columns have the given types, also when there are none."""
    return pd.DataFrame(list(rows), columns=list(columns)).astype(dict(columns))


def records(rows: pd.DataFrame, at_most: int = MAX_EVIDENCE_ROWS) -> tuple[dict[str, Any], ...]:
    """Rows as plain values that JSON knows, for evidence: the first ones, nulls as None."""
    return tuple(
        {
            name: None if pd.isna(value) else getattr(value, "item", lambda value=value: value)()
            for name, value in row.items()
        }
        for row in rows.head(at_most).to_dict("records")
    )


def root(actors: pd.Series) -> pd.Series:
    """The worker for which each actor works: what stands before the first slash."""
    return _by_name(actors, lambda names: names.str.partition("/")[0])


def _by_name(texts: pd.Series, change: Callable[[pd.Series], pd.Series]) -> pd.Series:
    """Texts changed: each different one once, because a million rows have few."""
    if not len(texts):
        return texts
    codes, names = pd.factorize(texts, use_na_sentinel=False)
    changed = change(pd.Series(names, dtype=texts.dtype))
    return changed.take(codes).set_axis(texts.index)


def window(run: Run) -> tuple[int, int]:
    """First and last moment of a run, in nanoseconds, over everything that happened; (0, 0) without any."""
    columns = [run.table(name)[column] for name, columns in _TIME_COLUMNS.items() for column in columns]
    known = [column for column in columns if column.notna().any()]
    if not known:
        return 0, 0
    return min(int(column.min()) for column in known), max(int(column.max()) for column in known)


def missing(run: Run, *tables: str) -> str:
    """Which of some tables a run lacks and why, as text; empty where it has rows in each."""
    absent = []
    for table in tables:
        if not len(run.table(table)):
            entry = run.availability.get(table, {})
            state, reason = entry.get("state", "not captured"), entry.get("reason", "")
            absent.append(f"{table} ({state}: {reason})" if reason else f"{table} ({state})")
    return ", ".join(absent)


@per_run
def device_work(run: Run) -> pd.DataFrame:
    """What ran on the devices.

    From the kernels where they were captured, else from the spans of GPU stages (which contain launch delays).

    Returns
    -------
    DataFrame
        Columns `WORK_COLUMNS`; start_ns and end_ns int64, device int64 (0 where the trace does not say).
    """
    kernels = run.table("kernels")
    if len(kernels):
        stage = kernels["span"].where(kernels["span"] != "", kernels["name"])
        return _work(kernels, stage, kernels["stream"])
    spans = run.table("spans")
    spans = spans[spans["category"] == "gpu"]
    return _work(spans, spans["name"], spans["thread"])


@per_run
def cpu_work(run: Run) -> pd.DataFrame:
    """Stages that ran on the CPU; columns `WORK_COLUMNS`."""
    spans = run.table("spans")
    spans = spans[spans["category"] == "cpu"]
    return _work(spans, spans["name"], spans["thread"])


def _work(rows: pd.DataFrame, names: pd.Series, thread: pd.Series) -> pd.DataFrame:
    parts = names.str.partition(".") if len(names) else pd.DataFrame({0: names, 2: names})
    return pd.DataFrame(
        {
            "start_ns": rows["start"],
            "end_ns": rows["end"],
            "stage": parts[0],
            "part": parts[2],
            "worker": root(rows["worker"]),
            "partition": rows["partition"],
            "device": rows["device"].clip(lower=0),
            "thread": thread,
        }
    ).reset_index(drop=True)


def as_set(rows: pd.DataFrame) -> Intervals:
    """The times that the rows of a table with start_ns and end_ns cover."""
    return union(rows["start_ns"], rows["end_ns"])


def _kernel_label(kernels: pd.DataFrame) -> pd.Series:
    """A kernel's name after the stage's that it belongs to, so that it is drawn as a part of that."""
    if not len(kernels):
        return kernels["name"]  # of no rows a map makes numbers, which are not joined with text
    span = kernels["span"]
    name = _by_name(kernels["name"], lambda names: names.map(short_name).astype(names.dtype))
    return name.where((span == "") | (span == name), span + "." + name)


def timeline(run: Run) -> pd.DataFrame:
    """Everything with an extent in time, by lane, to be drawn.

    Returns
    -------
    DataFrame
        One row a bar: `group` (worker, lock, device), `lane` (thread, lock or device queue), `category` (cpu, gpu,
        transfer, memory, call, ``wait:KIND``, hold), `start_ns`, `end_ns` (int64), `label`, `worker`, `partition`,
        `device` (−1: none), `stream` (of the device; empty where unknown), `open` (True where it had not ended when
        the recording did). In order of group, lane and start.
    """
    _, end = window(run)
    spans, waits, locks = run.table("spans"), run.table("waits"), run.table("locks")
    spans = spans[spans["category"] != "lock"]  # ranges that mean locks: they are shown as waits and holds
    kernels, transfers = run.table("kernels"), run.table("transfers")
    held = locks[locks["acquired"].notna()]
    thread = spans["thread"].where(spans["thread"] != "", spans["worker"])
    of_device = spans[(spans["category"] == "gpu")] if not len(kernels) else spans.iloc[:0]
    parts = [
        _bars(spans, "worker", thread, spans["category"], spans["name"]),
        _bars(waits, "worker", waits["worker"], "wait:" + waits["kind"], waits["on"]),
        _bars(
            held.assign(start=held["acquired"], end=held["released"].fillna(end), open=held["released"].isna()),
            "lock", held["lock"], "hold", root(held["worker"]),
        ),
        _bars(kernels, "device", _device_lane(kernels, "kernels"), "gpu", _kernel_label(kernels)),
        _bars(of_device, "device", _device_lane(of_device, "stages"), "gpu", of_device["name"]),
        _bars(
            transfers, "device", _device_lane(transfers, "copies"), "transfer",
            transfers["direction"] + transfers["pinned"].map({True: " pinned", False: " pageable"}).astype(str),
        ),
    ]  # fmt: skip
    filled = [part for part in parts if len(part)] or parts[:1]
    order = {"worker": 0, "lock": 1, "device": 2}
    groups = [np.full(len(part), order[part["group"].iloc[0]], dtype=np.int8) for part in filled if len(part)]
    bars = pd.concat(filled, ignore_index=True)
    lanes, _ = pd.factorize(bars["lane"], sort=True)
    group = np.concatenate([np.zeros(0, dtype=np.int8), *groups])
    places = np.lexsort((bars["end_ns"], bars["start_ns"], lanes, group))
    bars = bars.take(places).reset_index(drop=True)
    return bars[list(TIMELINE_COLUMNS)]


def _device_lane(rows: pd.DataFrame, what: str) -> pd.Series:
    return "gpu" + rows["device"].clip(lower=0).astype(str) + " " + what


def _bars(rows: pd.DataFrame, group: str, lane: pd.Series, category: pd.Series | str, label: pd.Series) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "group": group,
            "lane": lane,
            "category": category,
            "start_ns": rows["start"].astype(np.int64),
            "end_ns": rows["end"].astype(np.int64),
            "label": label,
            "worker": root(rows["worker"]),
            "partition": rows["partition"],
            "device": rows.get("device", -1),
            "stream": rows.get("stream", ""),
            "open": rows.get("open", False),
        }
    )

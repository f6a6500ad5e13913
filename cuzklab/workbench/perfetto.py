"""A stretch of a picture as a trace for Perfetto: the JSON form of Chrome's trace events."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cuzklab.atomic import atomic_write
from cuzklab.report.canvas import Picture

_MICROSECOND = 1000  # the format counts in microseconds


def write_stretch(picture: Picture, start_ns: int, end_ns: int, target: Path) -> int:
    """Write what is in a stretch of time, cut at its edges, and device memory as counters.

    Parameters
    ----------
    picture : Picture
    start_ns, end_ns : int
        From the start of the run.
    target : Path
        Appears whole or not at all.

    Returns
    -------
    int
        Number of spans written.
    """
    rows = np.repeat(np.arange(len(picture.row_count)), picture.row_count)
    ends = picture.start + picture.length
    inside = np.flatnonzero((ends >= start_ns) & (picture.start <= end_ns))
    with atomic_write(target, "w") as file:
        file.write('{"displayTimeUnit":"ns","otherData":')
        json.dump({"title": picture.title, "from_ns": start_ns, "to_ns": end_ns}, file)
        file.write(',"traceEvents":[\n')
        processes = _processes(picture)
        events = [*_names(picture, processes), *_counters(picture, start_ns, end_ns)]
        file.write(",\n".join(json.dumps(event) for event in events))
        for place in inside.tolist():
            file.write(",\n" + json.dumps(_span(picture, place, int(rows[place]), processes, start_ns, end_ns)))
        file.write("\n]}\n")
    return len(inside)


def _names(picture: Picture, processes: list[int]) -> Iterator[dict[str, Any]]:
    """Processes are the sections of the picture, threads its rows."""
    for number, section in enumerate(_sections(picture)):
        yield {"ph": "M", "name": "process_name", "pid": number + 1, "tid": 0, "args": {"name": section}}
    for row in range(len(picture.row_lane)):
        lane = picture.lanes[int(picture.row_lane[row])]
        ids = {"pid": processes[row], "tid": row + 1}
        yield {"ph": "M", "name": "thread_name", **ids, "args": {"name": lane.label}}
        yield {"ph": "M", "name": "thread_sort_index", **ids, "args": {"sort_index": row}}


def _sections(picture: Picture) -> list[str]:
    return list(dict.fromkeys(lane.section for lane in picture.lanes))


def _processes(picture: Picture) -> list[int]:
    """The process of each row."""
    numbers = {section: number + 1 for number, section in enumerate(_sections(picture))}
    return [numbers[picture.lanes[lane].section] for lane in picture.row_lane.tolist()]


def _span(picture: Picture, place: int, row: int, processes: list[int], start_ns: int, end_ns: int) -> dict[str, Any]:
    start = max(int(picture.start[place]), start_ns)
    end = min(int(picture.start[place] + picture.length[place]), end_ns)
    kind = picture.kinds[int(picture.kind[place])]
    name = {key: picture.strings[int(getattr(picture, key)[place])] for key in ("label", "worker", "partition")}
    args = {key: name[key] for key in ("worker", "partition") if name[key]}
    return {
        "ph": "X", "name": name["label"] or kind.name, "cat": kind.role if kind.role != "work" else kind.name,
        "ts": start / _MICROSECOND, "dur": max(end - start, 0) / _MICROSECOND,
        "pid": processes[row], "tid": row + 1, "args": args,
    }  # fmt: skip


def _counters(picture: Picture, start_ns: int, end_ns: int) -> Iterator[dict[str, Any]]:
    for memory in picture.memory:
        before = int(np.searchsorted(memory.time, start_ns, side="right")) - 1
        inside = np.flatnonzero((memory.time > start_ns) & (memory.time <= end_ns))
        places = [before, *inside.tolist()] if before >= 0 else inside.tolist()
        for place in places:
            yield {
                "ph": "C", "name": f"{memory.title} (bytes live)", "pid": 1, "tid": 0,
                "ts": max(int(memory.time[place]), start_ns) / _MICROSECOND,
                "args": {"live": int(memory.live_bytes[place])},
            }  # fmt: skip

"""What a timeline draws, out of a run: lanes and rows of spans by kind, and device memory below them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cuzklab.analysis import frames
from cuzklab.report.canvas.coded import Coded, coded, shared, together
from cuzklab.report.canvas.columns import encode
from cuzklab.report.canvas.kinds import Kind, kinds_of
from cuzklab.report.canvas.memory import Memory, memory_of
from cuzklab.report.canvas.rows import rows_of
from cuzklab.report.figures.axes import ordered, short_worker, workers_of
from cuzklab.report.naming import label
from cuzklab.trace import Run

_LONGEST_TEXT = 400  # characters of a name; templates of C++ are longer and say no more
_SECTIONS = {
    "gpu": "GPU workers", "lock": "locks: who holds them", "device": "device, by stream", "other": "other threads",
}  # fmt: skip


@dataclass(frozen=True)
class Lane:
    """A lane: its heading's section, the name that the trace gives it, and a shorter one for the margin."""

    section: str
    group: str
    name: str
    label: str


@dataclass(frozen=True)
class Picture:
    """A run as a timeline draws it.

    Attributes
    ----------
    title, unit : str
        `unit` is ns, or step for a counterexample.
    origin_ns, length_ns : int
        Times of spans count from the origin.
    lanes : tuple of Lane
    row_lane, row_first, row_count : ndarray of int64, shape (r,)
        The lane of each row, and which spans are in it. Spans of a row are in order and do not overlap.
    kinds : tuple of Kind
    strings : tuple of str
        Names, which `label`, `worker` and `partition` of a span are places in.
    start, length : ndarray of int64, shape (n,)
    kind, label, worker, partition : ndarray of int64, shape (n,)
    open : ndarray of bool, shape (n,)
        Not ended when the recording was.
    merged : ndarray of int64, shape (n,)
        How many spans of the run it stands for; above 1 only in a picture that was thinned.
    idle : ndarray of int64, shape (n,)
        Of a bar that stands for several spans: time in it in which none of them is.
    source : ndarray of int64, shape (n,)
        The row of `frames.timeline` that it is. It is not drawn.
    memory : tuple of Memory
        One a device.
    note : str
        What is missing from the picture, in one sentence.
    """

    title: str
    unit: str
    origin_ns: int
    length_ns: int
    lanes: tuple[Lane, ...]
    row_lane: NDArray[np.int64]
    row_first: NDArray[np.int64]
    row_count: NDArray[np.int64]
    kinds: tuple[Kind, ...]
    strings: tuple[str, ...]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    kind: NDArray[np.int64]
    label: NDArray[np.int64]
    worker: NDArray[np.int64]
    partition: NDArray[np.int64]
    open: NDArray[np.bool_]
    merged: NDArray[np.int64]
    idle: NDArray[np.int64]
    source: NDArray[np.int64]
    memory: tuple[Memory, ...] = ()
    note: str = ""

    def __len__(self) -> int:
        return len(self.start)

    def to_bytes(self) -> bytes:
        """The picture for the canvas (see `columns`)."""
        memory, memory_columns, segments = Memory.columns(self.memory)
        header = {
            "title": self.title,
            "unit": self.unit,
            "length": max(self.length_ns, 1),
            "spans": int(self.merged.sum()),
            "note": self.note,
            "lanes": [asdict(lane) for lane in self.lanes],
            "kinds": [asdict(kind) for kind in self.kinds],
            "strings": self.strings,
            "memory": memory,
        }
        columns = {name: getattr(self, name) for name in (
            "row_lane", "row_first", "row_count", "start", "length", "kind", "label", "worker", "partition", "merged",
            "idle",
        )}  # fmt: skip
        columns["open"] = self.open.astype(np.int64)
        return encode(header, columns | memory_columns, {"start": "row"} | segments)


def picture_of(run: Run, *, title: str = "", memory: bool = True, bars: pd.DataFrame | None = None) -> Picture:
    """Everything in a run that has an extent in time, and its device memory.

    Parameters
    ----------
    run : Run
    title : str
        By default what reports call the run.
    memory : bool
        Whether device memory is in it.
    bars : DataFrame, optional
        `frames.timeline` of the run, where it is at hand.
    """
    origin, end = frames.window(run)
    if run.info.time_unit != "ns":
        origin = 0
    bars = frames.timeline(run) if bars is None else bars
    return Picture(
        title=title or label(run),
        unit="ns" if run.info.time_unit == "ns" else "step",
        origin_ns=origin,
        length_ns=end - origin,
        memory=memory_of(run, origin) if memory else (),
        **_spans(run, bars, origin),
    )


def _spans(run: Run, bars: pd.DataFrame, origin: int) -> dict[str, object]:
    names = {
        name: coded(bars[name]) for name in ("group", "lane", "category", "stream", "label", "worker", "partition")
    }  # fmt: skip
    lanes, lane_of = _lanes(names)
    lengths = (bars["end_ns"] - bars["start_ns"]).to_numpy(float)
    kinds, kind_of = kinds_of(names, lengths, workers_of(run), foreign=run.info.origin == "imported")
    start = bars["start_ns"].to_numpy(np.int64) - origin
    length = np.maximum(bars["end_ns"].to_numpy(np.int64) - origin - start, 0)
    order = np.lexsort((-length, start, lane_of))
    lane_of, start, length = lane_of[order], start[order], length[order]
    row = np.zeros(len(order), dtype=np.int64)
    edges = np.searchsorted(lane_of, np.arange(len(lanes) + 1))
    for first, last in pairwise(edges.tolist()):
        row[first:last] = rows_of(start[first:last], start[first:last] + length[first:last])
    by_row = np.lexsort((start, row, lane_of))
    order, lane_of, row, start, length = order[by_row], lane_of[by_row], row[by_row], start[by_row], length[by_row]
    begins = np.flatnonzero(np.diff(lane_of, prepend=-1) | np.diff(row, prepend=-1))
    strings, codes = shared([names["label"], names["worker"], names["partition"]])
    return {
        "lanes": tuple(lanes),
        "row_lane": lane_of[begins],
        "row_first": begins,
        "row_count": np.diff(np.append(begins, len(order))),
        "kinds": kinds,
        "strings": tuple(text[:_LONGEST_TEXT] for text in strings),
        "start": start,
        "length": length,
        "kind": kind_of[order],
        "label": codes[0][order],
        "worker": codes[1][order],
        "partition": codes[2][order],
        "open": bars["open"].to_numpy(bool)[order],
        "merged": np.ones(len(order), dtype=np.int64),
        "idle": np.zeros(len(order), dtype=np.int64),
        "source": order.astype(np.int64),
    }


def _lanes(names: Mapping[str, Coded]) -> tuple[list[Lane], NDArray[np.int64]]:
    """Lanes from top to bottom, and the lane of each bar.

    Workers that use a device with their threads, locks, devices by stream, the other threads.
    """
    group, of_lane, stream, partition, worker = (
        names[name] for name in ("group", "lane", "stream", "partition", "worker")
    )
    _, uses = together(names["category"], worker)
    users = {worker for category, worker in uses if category in ("hold", "gpu")}
    codes, keys = together(group, of_lane, _stream_names(stream, partition, worker))
    found: dict[str, dict[str, None]] = {"gpu": {}, "lock": {}, "device": {}, "other": {}}
    sections = []
    for kind, lane, streams in keys:
        owner = lane.partition("/")[0]
        section = kind if kind != "worker" else "gpu" if owner in users else "other"
        sections.append((section, f"{lane} · {short_worker(streams)}" if streams else lane))
        found[section].setdefault(sections[-1][1])
    lanes, places = [], {}
    for section, of_section in found.items():
        in_order = _in_order(section, list(of_section))
        for lane, words in zip(in_order, _labels(section, in_order), strict=True):
            places[section, lane] = len(lanes)
            role = "worker" if section in ("gpu", "other") else section
            lanes.append(Lane(_SECTIONS[section], role, lane[:_LONGEST_TEXT], words[:_LONGEST_TEXT] or "(no name)"))
    place_of_code = np.array([places[key] for key in sections], dtype=np.int64)
    return lanes, place_of_code[codes] if len(codes) else codes


def _in_order(section: str, lanes: list[str]) -> list[str]:
    """Threads beside the worker that they work for; numbers in numerical order."""
    in_order = [*ordered(lanes), *(lane for lane in lanes if not lane)]
    if section == "device":
        return in_order
    rank = {owner: number for number, owner in enumerate(ordered(lane.partition("/")[0] for lane in lanes))}
    return sorted(in_order, key=lambda lane: rank.get(lane.partition("/")[0], len(rank)))


def _labels(section: str, lanes: list[str]) -> list[str]:
    """Lanes as the margin names them: workers without their device, streams without what is told by their name."""
    if section == "lock":
        return lanes
    if section != "device":
        return [short_worker(lane) for lane in lanes]
    short = [f"{lane.partition(' ')[0]} {lane.partition(' · ')[2]}" if " · " in lane else lane for lane in lanes]
    return [
        words if short.count(words) == 1 else lane.replace(" · ", " ") for words, lane in zip(short, lanes, strict=True)
    ]


def _stream_names(stream: Coded, partition: Coded, worker: Coded) -> Coded:
    """Streams as lanes name them: one that is made anew for each partition is told by whose it is and what it does."""
    partitions = {text for text in partition.texts if text}
    if not any(text.rpartition(".")[0] in partitions for text in stream.texts):
        return stream
    codes, keys = together(stream, worker)
    texts = [
        f"{short_worker(owner)} {text.rpartition('.')[2]}".strip() if text.rpartition(".")[0] in partitions else text
        for text, owner in keys
    ]
    once = list(dict.fromkeys(texts))
    place = {text: number for number, text in enumerate(once)}
    return Coded(np.array([place[text] for text in texts], dtype=np.int64)[codes], once)


def beside(left: Picture, right: Picture, names: Sequence[str] = ("left", "right")) -> Picture:
    """Two pictures on one axis, both from their own origin: lanes of one kind of both stand together."""
    if left.unit != right.unit:
        raise ValueError(f"a picture in {left.unit} and one in {right.unit} have no common axis")
    kinds = tuple(dict.fromkeys((*left.kinds, *right.kinds)))
    strings = (*left.strings, *right.strings)
    texts, spans, lanes = len(left.strings), len(left), len(left.lanes)
    place = {kind: number for number, kind in enumerate(kinds)}

    def recoded(of: Picture) -> NDArray[np.int64]:
        places = np.array([place[kind] for kind in of.kinds], dtype=np.int64)
        return places[of.kind] if len(of.kind) else of.kind

    def both(column: str, shift: int = 0) -> NDArray[np.int64]:
        return np.concatenate((getattr(left, column), getattr(right, column) + shift))

    # What is compared stands together: the workers of both, then the locks of both, and so on.
    sections = list(_SECTIONS.values())
    whose = [(name, lane) for name, of in zip(names, (left, right), strict=True) for lane in of.lanes]
    both_lanes = [replace(lane, section=f"{name} · {lane.section}") for name, lane in whose]
    order = sorted(range(len(whose)), key=lambda place: (sections.index(whose[place][1].section), place))
    return replace(
        left,
        title=f"{names[0]}: {left.title}; {names[1]}: {right.title}",
        origin_ns=0,
        length_ns=max(left.length_ns, right.length_ns),
        lanes=tuple(both_lanes[place] for place in order),
        row_lane=np.argsort(order)[both("row_lane", lanes)],
        row_first=both("row_first", spans),
        row_count=both("row_count"),
        kinds=kinds,
        strings=strings,
        kind=np.concatenate((recoded(left), recoded(right))),
        **{name: both(name, texts) for name in ("label", "worker", "partition")},
        **{name: both(name) for name in ("start", "length", "open", "merged", "idle", "source")},
        memory=tuple(
            replace(of, title=f"{name} {of.title}")
            for name, picture in zip(names, (left, right), strict=True)
            for of in picture.memory
        ),
        note=" ".join(filter(None, (left.note, right.note))),
    )  # fmt: skip

"""Anybody's trace events as a trace: slices become spans, and what PyTorch's profiler says of the GPU becomes kernels,
copies, API calls and memory.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from cuzklab.ingest.chrome.events import nanoseconds, whole
from cuzklab.ingest.model import Availability
from cuzklab.ingest.privacy import Texts
from cuzklab.ingest.rows import Rows
from cuzklab.trace.columns import NULL
from cuzklab.trace.nesting import nesting

_DEEPEST_STACK = 10_000
_MOST_OPEN = 1_000_000
_DIRECTION = re.compile(r"(?i)\b(?:memcpy )?([HDP])to([HDP])\b|\bmemcpy ([HDP])2([HDP])")
_APIS = {"cuda_runtime": "runtime", "cuda_driver": "driver"}
_KERNEL_CATEGORIES = ("kernel", "concurrent_kernel")
# Slices that repeat, on the device's lane, what stands elsewhere.
_REPEATED = ("gpu_user_annotation",)
_CUDA_DEVICE = 1  # of PyTorch's kinds of device
_LARGEST_BYTES = 1 << 50


@dataclass
class Reader:
    """Takes events one at a time.

    Attributes
    ----------
    dropped, unmatched : int
        Events whose times cannot be; ends without a beginning.
    unknown : Counter
        Phases that were passed over, and how often.
    """

    texts: Texts
    dropped: int = 0
    unmatched: int = 0
    open_count: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    _rows: dict[str, Rows] = field(
        default_factory=lambda: {
            name: Rows(name) for name in ("spans", "kernels", "transfers", "api_calls", "vram", "counters")
        }
    )
    _open: dict[tuple[str, ...], list[tuple[int, str, str]]] = field(default_factory=lambda: defaultdict(list))
    _open_total: int = 0
    _thread_names: dict[str, str] = field(default_factory=dict)
    _process_names: dict[str, str] = field(default_factory=dict)
    _latest_ns: int = 0

    def add(self, event: Mapping[str, Any]) -> None:
        """Take an event."""
        phase = event.get("ph")
        if phase == "M":
            self._name(event)
            return
        at = nanoseconds(event.get("ts"))
        if not isinstance(phase, str) or at is None:
            self.dropped += 1
            return
        self._latest_ns = max(self._latest_ns, at)
        if phase == "X":
            took = nanoseconds(event.get("dur", 0))
            if took is None or took < 0:
                self.dropped += 1
                return
            self._latest_ns = max(self._latest_ns, at + took)
            self._slice(event, at, at + took)
        elif phase in "BbS":
            self._begin(event, phase, at)
        elif phase in "EeF":
            self._end(event, phase, at)
        elif phase in ("i", "I", "R", "n"):
            self._instant(event, at)
        elif phase == "C":
            self._count(event, at)
        else:
            self.unknown[self.texts(phase)[:8]] += 1

    # Slices

    def _slice(self, event: Mapping[str, Any], start: int, end: int) -> None:
        category, arguments = self._category(event), event.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        correlation = whole(arguments.get("correlation"))
        correlation = -1 if correlation is None else correlation
        name = self.texts(event.get("name")) or "(no name)"
        device = whole(arguments.get("device"))
        common = {
            "start": start, "end": end, "correlation": correlation, "process": self._process(event),
            "device": 0 if device is None or not 0 <= device < 1 << 31 else device,
            "stream": self.texts(arguments.get("stream")),
        }  # fmt: skip
        if category in _KERNEL_CATEGORIES:
            self._rows["kernels"].add(name=name, **common)
        elif category in ("gpu_memcpy", "gpu_memset"):
            size = whole(arguments.get("bytes"))
            match = _DIRECTION.search(name)
            way = f"{match[1] or match[3]}2{match[2] or match[4]}".lower() if match else "unknown"
            self._rows["transfers"].add(
                issue=start, bytes=size if size is not None and 0 <= size < _LARGEST_BYTES else 0,
                direction="set" if category == "gpu_memset" else way, pinned="pinned" in name.lower(), **common,
            )  # fmt: skip
        elif category in _APIS:
            self._rows["api_calls"].add(
                start=start, end=end, name=name, api=_APIS[category], process=common["process"],
                thread=self._thread(event), correlation=correlation,
            )  # fmt: skip
        elif category not in _REPEATED:
            self._span(event, start, end, name, category)

    def _span(
        self, event: Mapping[str, Any], start: int, end: int, name: str, category: str, style: str = "", is_open=False
    ) -> None:  # fmt: skip
        thread = self._thread(event)
        self._rows["spans"].add(
            start=start, end=end, name=name, category=category or "range", process=self._process(event), thread=thread,
            worker=thread, style=style, open=is_open,
        )  # fmt: skip

    def _begin(self, event: Mapping[str, Any], phase: str, at: int) -> None:
        stack = self._open[self._key(event, phase)]
        if len(stack) >= _DEEPEST_STACK or self._open_total >= _MOST_OPEN:
            self.dropped += 1
            return
        self._open_total += 1
        stack.append((at, self.texts(event.get("name")) or "(no name)", self._category(event)))

    def _end(self, event: Mapping[str, Any], phase: str, at: int) -> None:
        stack = self._open.get(self._key(event, phase))
        if not stack or stack[-1][0] > at:
            self.unmatched += 1
            return
        self._open_total -= 1
        start, name, category = stack.pop()
        self._span(event, start, at, name, category, "" if phase == "E" else "start_end")

    def _key(self, event: Mapping[str, Any], phase: str) -> tuple[str, ...]:
        """Slices end on the thread where they began; asynchronous ones have an id."""
        if phase in "BE":
            return "thread", self._thread(event)
        place = event.get("id2") if isinstance(event.get("id2"), dict) else {}
        number = event.get("id", place.get("global", place.get("local")))
        return "async", str(event.get("pid"))[:64], self._category(event), self.texts(number)

    def _instant(self, event: Mapping[str, Any], at: int) -> None:
        arguments = event.get("args")
        if event.get("name") == "[memory]" and isinstance(arguments, dict):
            self._memory(event, arguments, at)
        else:
            self._span(event, at, at, self.texts(event.get("name")) or "(no name)", self._category(event), "mark")

    def _memory(self, event: Mapping[str, Any], arguments: Mapping[str, Any], at: int) -> None:
        size, live = whole(arguments.get("Bytes")), whole(arguments.get("Total Allocated"))
        device, address = whole(arguments.get("Device Id")), whole(arguments.get("Addr"))
        if size is None or live is None or abs(size) >= _LARGEST_BYTES or not 0 <= live < _LARGEST_BYTES:
            self.dropped += 1
        elif whole(arguments.get("Device Type")) == _CUDA_DEVICE:
            self._rows["vram"].add(
                time=at, op="alloc" if size >= 0 else "free", bytes=abs(size), live=live, limit=0,
                buffer="allocation" if address is None else f"allocation at {address:#x}",
                device=0 if device is None else max(device, 0), worker=self._thread(event),
            )  # fmt: skip

    def _count(self, event: Mapping[str, Any], at: int) -> None:
        arguments = event.get("args")
        values = arguments if isinstance(arguments, dict) else {}
        name = self.texts(event.get("name")) or "(no name)"
        for key, value in list(values.items())[:64]:
            number = _finite(value)
            if number is not None:
                title = name if len(values) == 1 else f"{name} {self.texts(key)}"
                self._rows["counters"].add(time=at, name=title, value=number)

    # Who is who

    def _category(self, event: Mapping[str, Any]) -> str:
        return self.texts(event.get("cat"))[:128]

    def _process(self, event: Mapping[str, Any]) -> int:
        number = whole(event.get("pid"))
        return 0 if number is None else number

    def _thread(self, event: Mapping[str, Any]) -> str:
        return f"{str(event.get('pid'))[:64]}\t{str(event.get('tid'))[:64]}"

    def _name(self, event: Mapping[str, Any]) -> None:
        arguments = event.get("args")
        name = arguments.get("name") if isinstance(arguments, dict) else None
        if isinstance(name, str) and event.get("name") == "thread_name":
            self._thread_names[self._thread(event)] = self.texts(name)
        elif isinstance(name, str) and event.get("name") == "process_name":
            self._process_names[str(event.get("pid"))[:64]] = self.texts(name)

    def _labels(self) -> dict[str, str]:
        """Names of threads for people, each once."""
        keys = dict.fromkeys(
            key for name in ("spans", "api_calls", "vram") for key in self._rows[name].words() if "\t" in key
        )
        found: dict[str, str] = {}
        taken: set[str] = set()
        for key in keys:
            pid, _, tid = key.partition("\t")
            name = self._thread_names.get(key) or self._process_names.get(pid) or "thread"
            # Before a slash stands the worker that a thread works for; a path is none.
            name = name.rpartition("/")[2].strip() or "thread"
            number = self.texts(tid)
            label = name if name.endswith(number) and name != number else f"{name} {number}"
            if label in taken:
                label = f"{label} of {self.texts(pid)}"
            while label in taken:
                label += "'"
            taken.add(label)
            found[key] = label
        return found

    # The end

    def tables(self) -> dict[str, pa.Table]:
        """What was read, once there are no more events."""
        for (kind, *_rest), stack in list(self._open.items()):
            for start, name, category in stack:
                self.open_count += 1
                event = dict(zip(("pid", "tid"), _rest[0].split("\t"), strict=False)) if kind == "thread" else {}
                self._span(event, start, max(self._latest_ns, start), name, category, is_open=True)
        labels = self._labels()
        made = {name: rows.table(labels) for name, rows in self._rows.items()}
        return made | _launches(made)


def _finite(value: Any) -> float | None:
    if isinstance(value, bool | str) or value is None or isinstance(value, dict | list):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if np.isfinite(number) else None


def _launches(made: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Kernels and copies with the call that asked for them, and the innermost span in which it was made."""
    calls, spans = made["api_calls"], made["spans"]
    number = calls.column("correlation").to_numpy()
    order = np.argsort(number, kind="stable")
    order = order[number[order] >= 0]
    asked = calls.column("start").to_numpy()
    thread = np.array(calls.column("thread").to_pylist(), object)
    inside = _Innermost(spans)
    found = {}
    for name in ("kernels", "transfers"):
        rows = made[name]
        mine = rows.column("correlation").to_numpy()
        place = np.minimum(np.searchsorted(number[order], mine), max(len(order) - 1, 0))
        known = (number[order][place] == mine) & (mine >= 0) if len(order) else np.zeros(len(mine), bool)
        call = np.where(known, order[place], -1) if len(order) else np.full(len(mine), -1)
        start = np.where(call >= 0, asked[call], NULL) if len(asked) else np.full(len(mine), NULL)
        who = [thread[one] if one >= 0 else "" for one in call.tolist()]
        changed = {"worker": pa.array(who, pa.string())}
        if name == "kernels":
            changed["launch"] = pa.array(start, pa.int64(), mask=start == NULL)
            changed["span"] = pa.array(inside.names(who, start), pa.string())
        else:
            changed["issue"] = pa.array(np.where(start == NULL, rows.column("start").to_numpy(), start), pa.int64())
        for column, values in changed.items():
            rows = rows.set_column(rows.schema.get_field_index(column), column, values)
        found[name] = rows
    return found


class _Innermost:
    """The innermost span of a thread at a moment."""

    def __init__(self, spans: pa.Table) -> None:
        self._names = np.array(spans.column("name").to_pylist(), object)
        by_thread: dict[str, list[int]] = defaultdict(list)
        rows = zip(spans.column("thread").to_pylist(), spans.column("style").to_pylist(), strict=True)
        for row, (thread, style) in enumerate(rows):
            if not style:
                by_thread[thread].append(row)
        starts, ends = spans.column("start").to_numpy(), spans.column("end").to_numpy()
        self._stacks = {
            thread: (np.array(rows), nesting(starts[rows], ends[rows])) for thread, rows in by_thread.items()
        }

    def names(self, threads: list[str], moments: np.ndarray) -> list[str]:
        found = [""] * len(threads)
        places: dict[str, list[int]] = defaultdict(list)
        for place, thread in enumerate(threads):
            if thread in self._stacks:
                places[thread].append(place)
        for thread, mine in places.items():
            rows, stack = self._stacks[thread]
            for place, inner in zip(mine, stack.innermost(moments[mine]).tolist(), strict=True):
                found[place] = self._names[rows[inner]] if inner >= 0 else ""
        return found


def availability(tables: Mapping[str, pa.Table]) -> dict[str, Availability]:
    """What such a trace has and has not."""
    why = {
        "spans": ("empty", "the trace has no slices"),
        "kernels": ("not captured", "the trace has no events of category kernel"),
        "transfers": ("not captured", "the trace has no events of category gpu_memcpy or gpu_memset"),
        "api_calls": ("not captured", "the trace has no events of category cuda_runtime or cuda_driver"),
        "vram": ("not captured", "the trace has no events [memory], which PyTorch writes with profile_memory=True"),
        "counters": ("empty", "the trace has no counters"),
        "locks": ("not captured", "trace events do not tell of locks"),
        "waits": ("not captured", "trace events do not say which slices are waits"),
    }
    return {
        name: Availability("present") if name in tables and len(tables[name]) else Availability(*reason)
        for name, reason in why.items()
    }

"""A memory snapshot as a run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuzklab import __version__
from cuzklab.errors import BadInput
from cuzklab.ingest.files import beginning
from cuzklab.ingest.memory_snapshot.plain import load_plain
from cuzklab.ingest.model import Availability, Imported, Options, facts
from cuzklab.ingest.privacy import Texts
from cuzklab.ingest.rows import Rows
from cuzklab.trace import TABLES, RunInfo
from cuzklab.units import Metric, format_size

_LARGEST_BYTES = 1 << 50
_LATEST_US = 1 << 51
_MOST_FRAMES = 12
_REPORT_EVENTS = 20_000
_MARKS = (b"segments", b"device_traces")
_LOOKED_AT_BYTES = 1 << 16


def recognises(path: Path) -> bool:
    """Whether a file is a pickle with the names of a snapshot near its beginning, or is called one."""
    if not path.is_file():
        return False
    first = beginning(path, _LOOKED_AT_BYTES)
    pickled = first[:1] == b"\x80" and 2 <= first[1:2].ljust(1, b"\0")[0] <= 5
    return pickled and (path.suffix in (".pickle", ".pkl") or any(mark in first for mark in _MARKS))


def read(path: Path, options: Options) -> Imported:
    """Read a snapshot.

    Raises
    ------
    BadInput
        Not plain data, or no snapshot.
    """
    options.report(0.05, "unpickling plain data")
    content = load_plain(path)
    if not isinstance(content, dict) or not isinstance(content.get("segments"), list):
        raise BadInput(f"{path}: no memory snapshot (a dictionary with segments and device_traces)")
    texts = Texts(options.secrets, options.keep_private)
    reading = _Reading(texts)
    traces = content.get("device_traces")
    segments = _by_device(content["segments"])
    lists = traces if isinstance(traces, list) else []
    for device in sorted({*range(len(lists)), *segments}):
        events = lists[device] if device < len(lists) and isinstance(lists[device], list) else []
        reading.device(device, events, segments.get(device, []), options)
    tables = {"vram": reading.vram.table(), "counters": reading.counters.table()}
    return Imported(reading.info(path), tables, _availability(reading))


def _by_device(segments: list) -> dict[int, list[Mapping[str, Any]]]:
    found: dict[int, list[Mapping[str, Any]]] = {}
    for segment in segments:
        if isinstance(segment, dict):
            device = segment.get("device", 0)
            if type(device) is int and 0 <= device < 1024:
                found.setdefault(device, []).append(segment)
    return found


@dataclass
class _Reading:
    texts: Texts
    vram: Rows = field(default_factory=lambda: Rows("vram"))
    counters: Rows = field(default_factory=lambda: Rows("counters"))
    notes: list[str] = field(default_factory=list)
    dropped: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    untimed: bool = False
    devices: list[dict[str, object]] = field(default_factory=list)
    peak: int = 0
    events: int = 0
    stacks: int = 0
    _first_ns: int = -1

    def device(self, device: int, events: list, segments: list[Mapping[str, Any]], options: Options) -> None:
        """Events of one device. What was live before the first is what is live at the end, less what the events add."""
        active, reserved, largest_free = _blocks(segments)
        if not events and not segments:
            return
        self.devices.append({"index": device, "name": f"GPU {device}", "vram_limit_bytes": 0})
        rows = [row for row in (self._event(event, place) for place, event in enumerate(events)) if row is not None]
        rows.sort(key=lambda row: row[0])
        live = active - sum(_change(action, size, ("alloc",), ("free_completed",)) for _, action, _, size, *_ in rows)
        held = reserved - sum(
            _change(action, size, ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap"))
            for _, action, _, size, *_ in rows
        )
        start = rows[0][0] if rows else 0
        if live < 0 or held < 0:
            self.notes.append(
                f"GPU {device}: the events add up to more than the snapshot's segments; some are missing."
            )
            live, held = max(live, 0), max(held, 0)
        if live:
            self._add(start, "alloc", "allocated before the recording", live, device, live, "")
        self.counters.add(time=start, name=f"gpu{device} reserved_bytes", value=float(held))
        for number, (time, action, address, size, stream, frames) in enumerate(rows):
            if number % _REPORT_EVENTS == 0:
                options.report(0.5 + 0.4 * number / len(rows), f"GPU {device}: {number:,} events")
            buffer = f"{frames.split(' < ')[0]} at {address:#x}" if frames else f"allocation at {address:#x}"
            if action in ("alloc", "free_completed"):
                live = max(live + (size if action == "alloc" else -size), 0)
                op = "alloc" if action == "alloc" else "free"
                self._add(time, op, buffer, size, device, live, frames, stream)
            elif action == "oom":
                self._add(time, "fail", frames.split(" < ")[0] or "request", size, device, live, frames, stream)
                self.counters.add(time=time, name=f"gpu{device} free_memory_bytes", value=float(address))
            elif action.startswith("segment"):
                grows = action in ("segment_alloc", "segment_map")
                held = max(held + (size if grows else -size), 0)
                self.counters.add(time=time, name=f"gpu{device} reserved_bytes", value=float(held))
        self.events += len(rows)
        self.notes.append(
            f"GPU {device}: {format_size(active)} live in {format_size(reserved)} reserved when the snapshot was taken;"
            f" the largest free block was {format_size(largest_free)}."
        )

    def _add(
        self, time: int, op: str, buffer: str, size: int, device: int, live: int, frames: str, stream: str = ""
    ) -> None:
        self.peak = max(self.peak, live)
        self.vram.add(time=time, op=op, buffer=buffer, bytes=size, device=device, live=live, limit=0,
                      worker=f"stream {stream}" if stream else "", stack=frames)  # fmt: skip

    def _event(self, event: Any, place: int) -> tuple[int, str, int, int, str, str] | None:
        if not isinstance(event, dict):
            self.dropped += 1
            return None
        action, size = event.get("action"), event.get("size")
        if action not in ("alloc", "free_completed", "oom", "segment_alloc", "segment_free", "segment_map",
                          "segment_unmap"):  # fmt: skip
            if action not in ("free_requested", "free", "snapshot", "workspace_snapshot"):
                self.unknown[self.texts(action)[:40]] += 1
            return None
        address = event.get("device_free" if action == "oom" else "addr", 0)
        time = event.get("time_us", place)
        self.untimed |= "time_us" not in event
        if not (_fits(size, _LARGEST_BYTES) and _fits(address, 1 << 63) and _fits(time, _LATEST_US)):
            self.dropped += 1
            return None
        frames = self._stack(event.get("frames"))
        stream = event.get("stream", "")
        return time * 1000, action, address, size, self.texts(stream) if stream != 0 else "0", frames

    def _stack(self, frames: Any) -> str:
        """The innermost functions of a stack, with the file's name and the line."""
        words = []
        for frame in frames[:_MOST_FRAMES] if isinstance(frames, list) else ():
            if isinstance(frame, dict) and isinstance(frame.get("name"), str):
                file = frame.get("filename")
                file = file.replace("\\", "/").rpartition("/")[2] if isinstance(file, str) else ""
                line = frame.get("line")
                words.append(f"{frame['name'][:200]} ({file[:80]}:{line if type(line) is int else 0})")
        self.stacks += bool(words)
        return self.texts(" < ".join(words))

    def info(self, path: Path) -> RunInfo:
        notes = [
            *self.notes,
            *(
                f"{count:,} {words}."
                for count, words in (
                    (self.dropped, "events have a size, address or time that cannot be, and were left out"),
                    (
                        sum(self.unknown.values()),
                        f"events of kinds that are not read: {', '.join(sorted(self.unknown)[:8])}",
                    ),
                )
                if count
            ),
        ]
        if self.untimed and self.events:
            notes.append("The events carry no time: they are a microsecond apart, in their order.")
        if self.texts.redacted:
            notes.append(f"Secrets were taken out of {self.texts.redacted} texts.")
        conditions = facts(format="memory snapshot", events=self.events)
        metrics = (Metric("peak_vram", self.peak, "measured", conditions).to_json(),) if self.peak else ()
        return RunInfo(
            "imported", self.texts(path.name.removesuffix(".pickle")), conditions=conditions,
            devices=tuple(self.devices), metrics=metrics, notes=tuple(notes), versions={"cuzklab": __version__},
            machine={"note": "a snapshot does not say where it was taken"},
        )  # fmt: skip


def _change(action: str, size: int, more: tuple[str, ...], less: tuple[str, ...]) -> int:
    return size if action in more else -size if action in less else 0


def _fits(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value < most


def _blocks(segments: list[Mapping[str, Any]]) -> tuple[int, int, int]:
    """Bytes in active blocks, bytes of all segments, and the largest inactive block."""
    active = reserved = largest = 0
    for segment in segments:
        size = segment.get("total_size")
        reserved += size if _fits(size, _LARGEST_BYTES) else 0
        blocks = segment.get("blocks")
        for block in blocks if isinstance(blocks, list) else ():
            size = block.get("size") if isinstance(block, dict) else None
            if not _fits(size, _LARGEST_BYTES):
                continue
            if block.get("state") == "inactive":
                largest = max(largest, size)
            elif isinstance(block.get("state"), str) and block["state"].startswith("active"):
                active += size
    return active, reserved, largest


def _availability(reading: _Reading) -> dict[str, Availability]:
    why = "a memory snapshot tells of PyTorch's allocator only"
    found = {name: Availability("not captured", why) for name in TABLES}
    if reading.events:
        found["vram"] = Availability(
            "present", "what PyTorch's allocator gave out; not what others took from the device"
        )
    elif len(reading.vram):
        found["vram"] = Availability("present", "no events were recorded: only what was live when it was taken")
    else:
        found["vram"] = Availability("empty", "nothing was live, and no events were recorded")
    if len(reading.counters):
        found["counters"] = Availability("present", "memory that the allocator had reserved")
    return found

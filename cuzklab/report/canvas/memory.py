"""Device memory below a timeline: whose it is at each moment, against the limit, on the same axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cuzklab.analysis import vram
from cuzklab.report import theme
from cuzklab.report.figures.axes import short_worker, workers_of
from cuzklab.trace import Run

MOST_LAYERS = 12  # owners' buffers with an area of their own: the largest
MOST_FAILURES = 200
_OTHERS, _REST = "other buffers", "not traced"
_FAR_ABOVE = 40  # a limit so many times above the peak would leave nothing else to see
_LIGHTER = (0.0, 0.28, 0.5, 0.66)  # how much of a buffer's colour is white: the largest of a worker is the strongest


@dataclass(frozen=True)
class Layer:
    """The live bytes of a worker's buffer: `level_bytes` from each of `event` on, places in the device's `time`."""

    name: str
    colour: str
    pattern: str
    event: NDArray[np.int64]
    level_bytes: NDArray[np.int64]


@dataclass(frozen=True)
class Memory:
    """A device's memory over time: layers add up to `live_bytes` at every moment.

    Attributes
    ----------
    title : str
    limit_bytes : int
        0: none known, or far above everything.
    time, live_bytes : ndarray of int64, shape (m,)
        Live bytes from each moment on.
    layers : tuple of Layer
        From the bottom up.
    failures : tuple of mapping
        Requests that did not fit: time, what (buffer and worker), bytes, live.
    """

    title: str
    limit_bytes: int
    time: NDArray[np.int64]
    live_bytes: NDArray[np.int64]
    layers: tuple[Layer, ...]
    failures: tuple[Mapping[str, Any], ...] = ()

    @staticmethod
    def columns(of: Sequence["Memory"]) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]], dict[str, str]]:
        """Header, columns and segments of some devices for `columns.encode`."""
        layers = [layer for memory in of for layer in memory.layers]
        header, number = [], 0
        for memory in of:
            header.append(
                {
                    "title": memory.title, "limit": memory.limit_bytes, "failures": list(memory.failures),
                    "layers": [{"name": layer.name, "colour": layer.colour, "pattern": layer.pattern,
                                "place": number + place} for place, layer in enumerate(memory.layers)],
                }
            )  # fmt: skip
            number += len(memory.layers)

        def segments(name: str, lengths: list[int]) -> dict[str, NDArray[Any]]:
            counts = np.array(lengths, dtype=np.int64)
            return {f"{name}_first": np.cumsum(counts) - counts, f"{name}_count": counts}

        columns = {
            **segments("device", [len(memory.time) for memory in of]),
            "live_time": _joined([memory.time for memory in of]),
            "live": _joined([memory.live_bytes for memory in of]),
            **segments("layer", [len(layer.event) for layer in layers]),
            "layer_event": _joined([layer.event for layer in layers]),
            "layer_level": _joined([layer.level_bytes for layer in layers]),
        }
        return header, columns, {"live_time": "device", "layer_event": "layer"}


def kept_events(memory: Memory, events: NDArray[np.int64]) -> Memory:
    """The memory at some of its events only, in order: layers have the bytes that they have at each of these."""
    layers = []
    for layer in memory.layers:
        before = np.searchsorted(layer.event, events, side="right")
        level = np.concatenate(([0], layer.level_bytes))[before]
        layers.append(replace(layer, **dict(zip(("event", "level_bytes"), _changes(level), strict=True))))
    return replace(memory, time=memory.time[events], live_bytes=memory.live_bytes[events], layers=tuple(layers))


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(np.int64)


def memory_of(run: Run, origin: int) -> tuple[Memory, ...]:
    """The memory of each device of a run, times from `origin`; none where it was not traced."""
    steps = vram.steps(run)
    if not len(steps):
        return ()
    lives, failed, workers = vram.allocations(run), vram.failed_requests(run), workers_of(run)
    return tuple(
        _device(
            int(device), rows, lives[lives["device"] == device], failed[failed["device"] == device], workers, origin
        )
        for device, rows in steps.groupby("device", sort=True)
    )


def _device(
    device: int, steps: pd.DataFrame, lives: pd.DataFrame, failed: pd.DataFrame, workers: list[str], origin: int
) -> Memory:
    time, live = steps["time_ns"].to_numpy(np.int64) - origin, steps["live_bytes"].to_numpy(np.int64)
    peak, limit = int(live.max()), int(steps["limit_bytes"].max())
    if limit > _FAR_ABOVE * peak and not len(failed):
        limit = 0
    place = pd.Series(np.arange(len(steps)), index=steps.index)
    lives = lives.assign(
        buffer=lives["buffer"].str.partition(" at 0x")[0] if len(lives) else lives["buffer"],
        begins=place.reindex(lives["first_event"]).to_numpy(float),
        ends=place.reindex(lives["last_event"]).to_numpy(float),  # missing: to the end of the recording
    )
    layers, traced = _layers(lives, len(time), workers)
    rest = np.maximum(live - traced, 0)
    if rest.any():
        layers.append(Layer(_REST, theme.WAIT, "x", *_changes(rest)))
    shown = failed.head(MOST_FAILURES).to_dict("records")
    failures = tuple(
        {
            "time": int(row["time_ns"]) - origin, "what": f"{row['worker']} asks for {row['buffer']}"[:400],
            "bytes": int(row["requested_bytes"]), "live": int(row["live_bytes"]),
        }
        for row in shown
    )  # fmt: skip
    return Memory(f"gpu{device} memory", limit, time, live, tuple(layers), failures)


def _layers(lives: pd.DataFrame, events: int, workers: list[str]) -> tuple[list[Layer], NDArray[np.int64]]:
    """One layer a worker's buffer, the largest ones, and their sum after each event."""
    keys = pd.MultiIndex.from_arrays([lives["worker"], lives["buffer"]])
    largest = lives.groupby(["worker", "buffer"])["bytes"].max().sort_values(ascending=False, kind="stable")
    shown = set(largest.index[:MOST_LAYERS])
    own = {key: keys == key for key in shown}
    own["", _OTHERS] = ~keys.isin(shown) if len(keys) else np.zeros(0, dtype=bool)
    rank = {key: number for number, key in enumerate(largest.index)}
    worker_rank = {name: number for number, name in enumerate(workers)}
    in_order = sorted(own, key=lambda key: (worker_rank.get(key[0], len(workers)), rank.get(key, len(rank)), key))
    layers, traced, seen = [], np.zeros(events, dtype=np.int64), {}
    for worker, buffer in in_order:
        rows = lives[own[worker, buffer]]
        if not len(rows):
            continue
        change = np.zeros(events, dtype=np.int64)
        np.add.at(change, rows["begins"].to_numpy(np.int64), rows["bytes"].to_numpy(np.int64))
        ended = rows[rows["ends"].notna()]
        np.subtract.at(change, ended["ends"].to_numpy(np.int64), ended["bytes"].to_numpy(np.int64))
        level = np.cumsum(change)
        traced += level
        nth = seen[worker] = seen.get(worker, -1) + 1
        colour = _lighter(theme.colour_of_worker(worker, workers), _LIGHTER[min(nth, len(_LIGHTER) - 1)])
        pattern = theme.PATTERNS[worker_rank.get(worker, 0) % len(theme.PATTERNS)]
        words = f"{short_worker(worker)} {buffer}".strip()[:400]
        layers.append(Layer(words, colour, pattern, *_changes(level)))
    return layers, traced


def _changes(level: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Only the events at which a step function changes, and its value from then on."""
    events = np.flatnonzero(np.diff(level, prepend=0))
    return events, level[events]


def _lighter(colour: str, share: float) -> str:
    channels = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (255 - channel) * share):02x}" for channel in channels)

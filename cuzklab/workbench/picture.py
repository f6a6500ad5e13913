"""What the design bench draws of a simulation: columns for the canvas, tables beside it. No markup.

Times are seconds since the start of the batch, rounded to milliseconds: a screen shows no more.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cuzklab.report.theme import colour_of_worker, colours_apart
from cuzklab.simulate import Simulation
from cuzklab.trace.metrics import CALL, KINDS
from cuzklab.units import METRIC_KINDS, format_seconds, format_size, format_value

_NS = 1e-9
_HIDDEN = ("jobs", "results", "synthesised")  # queues that an idle engine waits at; their waits are no contention
_HELD = "held by "
_CAPTIONS = {"prove_time": "prove time", "peak_vram": "peak device memory", "peak_host": "peak host memory"}
# Of these more is better; of the others less.
MORE_IS_BETTER = ("call_occupancy", "kernel_occupancy")


def picture(simulation: Simulation) -> dict[str, Any]:
    """Everything that is drawn and tabulated at once, after each move of a slider.

    Returns
    -------
    dict
        `lanes`, `bars`, `waits`, `vram`, `locks`, `metrics`, `outcome`, `explanation`, `conditions`, `end_s`, `notes`:
        what JSON can hold.
    """
    recorder = simulation.recorder
    spans, kernels, locks, waits, vram = map(recorder.table, ("spans", "kernels", "locks", "waits", "vram"))
    lanes = _lanes(spans, locks, simulation.devices)
    bars, names = _bars(lanes, spans, kernels, locks)
    end_s = max((_last(table, column) for table, column in ((spans, "end"), (waits, "end"), (vram, "time"))), default=0)
    return {
        "outcome": simulation.outcome,
        "explanation": simulation.explanation,
        "end_s": round(end_s, 3),
        "lanes": lanes,
        "names": names,
        "colours": _colours(names),
        "bars": bars,
        "waits": _waits(lanes, waits),
        "vram": _vram(vram, simulation),
        "locks": _locks(locks, end_s),
        "metrics": metrics(simulation),
        "conditions": {key: value for key, value in simulation.conditions.items() if key != "seed"},
        "notes": list(simulation.notes),
    }


def metrics(simulation: Simulation) -> list[dict[str, Any]]:
    """The figures, each with its kind, unit and how it was obtained; those that do not exist say why."""
    rows = []
    for name, kind in KINDS.items():
        metric = simulation.metrics.get(name)
        unit, meaning = METRIC_KINDS[kind]
        rows.append(
            {
                "name": name, "kind": kind, "caption": _CAPTIONS.get(kind, kind.replace("_", " ")), "unit": unit,
                "meaning": meaning, "value": metric.value if metric else None,
                "text": format_value(metric.value, unit) if metric else "none",
                "reason": simulation.reasons.get(name, ""), "more_is_better": kind in MORE_IS_BETTER,
            }
        )  # fmt: skip
    return rows


def _strings(table: pa.Table, column: str) -> list[str]:
    return table.column(column).to_pylist()


def _seconds(table: pa.Table, column: str) -> np.ndarray:
    return table.column(column).to_numpy().astype(np.float64) * _NS


def _last(table: pa.Table, column: str) -> float:
    return float(_seconds(table, column).max()) if len(table) else 0.0


def _root(names: Sequence[str]) -> list[str]:
    return [name.partition("/")[0] for name in names]


def _lanes(spans: pa.Table, locks: pa.Table, devices: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Devices, then locks, then the workers of devices, then those of synthesis."""
    workers = sorted({name for name in _root(_strings(spans, "worker")) if name}, key=_natural)
    held = sorted(set(_strings(locks, "lock")))
    cards = [f"gpu{device['index']}" for device in devices]
    gpu = [name for name in workers if name.startswith("gpu")]
    return [
        *({"kind": "device", "name": name, "label": f"{name} kernels"} for name in cards),
        *({"kind": "lock", "name": name, "label": name} for name in held),
        *({"kind": "worker", "name": name, "label": name} for name in gpu),
        *({"kind": "synthesis", "name": name, "label": name} for name in workers if name not in gpu),
    ]  # fmt: skip


def _natural(name: str) -> tuple[str, int, str]:
    digits = "".join(character for character in name if character.isdigit())
    return name.rstrip("0123456789"), int(digits[-6:] or 0), name


def _bars(
    lanes: list[dict[str, str]], spans: pa.Table, kernels: pa.Table, locks: pa.Table
) -> tuple[dict[str, list[Any]], list[str]]:
    """Bars as columns: lane, start, length, and the index of the name."""
    at = {(lane["kind"], lane["name"]): number for number, lane in enumerate(lanes)}
    kind_of = {lane["name"]: lane["kind"] for lane in lanes}
    names: dict[str, int] = {}
    found: list[tuple[int, float, float, int, str]] = []

    def add(key: tuple[str, str], start: float, end: float, name: str, partition: str) -> None:
        if key in at and end > start:
            found.append((at[key], start, end, names.setdefault(name, len(names)), partition))

    for start, end, name, category, worker, partition in zip(
        _seconds(spans, "start"), _seconds(spans, "end"), _strings(spans, "name"), _strings(spans, "category"),
        _root(_strings(spans, "worker")), _strings(spans, "partition"),
    ):  # fmt: skip
        if category != CALL and category != "gpu":
            add((kind_of.get(worker, ""), worker), start, end, name, partition)
    for start, end, name, device, partition, worker in zip(
        _seconds(kernels, "start"), _seconds(kernels, "end"), _strings(kernels, "name"),
        _strings(kernels, "device"), _strings(kernels, "partition"), _root(_strings(kernels, "worker")),
    ):  # fmt: skip
        add(("device", f"gpu{device}"), start, end, name, partition)
        add(("worker", worker), start, end, name, partition)
    if len(locks):
        held = locks.filter(pa.compute.is_valid(locks.column("acquired")))
        ends = pa.compute.fill_null(held.column("released"), int(_last(spans, "end") / _NS))
        for lock, start, end, worker, partition in zip(
            _strings(held, "lock"), _seconds(held, "acquired"), ends.to_numpy() * _NS, _root(_strings(held, "worker")),
            _strings(held, "partition"),
        ):  # fmt: skip
            add(("lock", lock), start, end, _HELD + worker, partition)
    found.sort(key=lambda bar: (bar[0], bar[1]))
    columns = list(zip(*found)) or [(), (), (), (), ()]
    return {
        "lane": list(columns[0]),
        "start": [round(value, 3) for value in columns[1]],
        "length": [round(end - start, 3) for start, end in zip(columns[1], columns[2])],
        "name": list(columns[3]),
        "partition": list(columns[4]),
    }, list(names)


def _colours(names: Sequence[str]) -> list[str]:
    holders = [name.removeprefix(_HELD) for name in names if name.startswith(_HELD)]
    apart = colours_apart([name for name in names if not name.startswith(_HELD)])
    return [apart.get(name) or colour_of_worker(name.removeprefix(_HELD), holders) for name in names]


def _waits(lanes: list[dict[str, str]], waits: pa.Table) -> dict[str, list[Any]]:
    """Waits of the devices' workers, but for those in which there was nothing to do."""
    at = {lane["name"]: number for number, lane in enumerate(lanes) if lane["kind"] == "worker"}
    rows = [
        (at[worker], round(start, 3), round(end - start, 3), kind, on, holder)
        for start, end, kind, on, holder, worker in zip(
            _seconds(waits, "start"), _seconds(waits, "end"), _strings(waits, "kind"), _strings(waits, "on"),
            _strings(waits, "holder"), _strings(waits, "worker"),
        )
        if worker in at and end > start and on not in _HIDDEN
    ]  # fmt: skip
    columns = list(zip(*rows)) or [(), (), (), (), (), ()]
    return {name: list(column) for name, column in zip(("lane", "start", "length", "kind", "on", "holder"), columns)}


def _vram(vram: pa.Table, simulation: Simulation) -> dict[str, Any]:
    """The sum of live allocations after each change, and the limit; of the first device."""
    device = simulation.devices[0]
    limit_bytes = int(device["vram_limit_bytes"])
    first = vram.filter(pa.compute.equal(vram.column("device"), int(device["index"]))) if len(vram) else vram
    live = first.column("live").to_numpy() if len(first) else np.zeros(0, np.int64)
    failed = [
        round(time, 3) for time, op in zip(_seconds(first, "time"), _strings(first, "op")) if op == "fail"
    ]  # fmt: skip
    peak = int(live.max()) if len(live) else 0
    return {
        "time": np.round(_seconds(first, "time"), 3).tolist(),
        "gib": np.round(live / (1 << 30), 3).tolist(),
        "limit_gib": round(limit_bytes / (1 << 30), 3),
        "margin_gib": round(int(device["margin_bytes"]) / (1 << 30), 3),
        "failed": failed,
        "rows": [
            ["peak", format_size(peak)], ["limit", format_size(limit_bytes)],
            ["left at the peak", format_size(limit_bytes - peak)], ["requests refused", str(len(failed))],
        ],
    }  # fmt: skip


def _locks(locks: pa.Table, end_s: float) -> list[dict[str, Any]]:
    """Each lock: how often it was waited for, how long in all and at the most, and the share of time it was held."""
    rows = []
    if not len(locks):
        return rows
    last_ns = int(end_s / _NS)
    requested = locks.column("requested").to_numpy()
    acquired = pa.compute.fill_null(locks.column("acquired"), last_ns).to_numpy()
    released = pa.compute.fill_null(locks.column("released"), last_ns).to_numpy()
    given_up = pa.compute.is_null(locks.column("acquired")).to_numpy()
    names = np.array(_strings(locks, "lock"))
    for name in sorted(set(names.tolist())):
        mine = names == name
        wait = (acquired - requested)[mine] * _NS
        hold = np.where(given_up, 0, released - acquired)[mine] * _NS
        rows.append(
            {
                "lock": name, "uses": int(mine.sum()), "waited": int((wait > 0).sum()),
                "wait_s": float(wait.sum()), "wait": format_seconds(float(wait.sum())),
                "longest": format_seconds(float(wait.max())),
                "held": f"{float(hold.sum()) / end_s:.1%}" if end_s else "0 %",
            }
        )  # fmt: skip
    return rows

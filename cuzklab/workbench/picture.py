"""What the design bench draws of a simulation: columns for the canvas, tables beside it. No markup.

Times are seconds since the start of the batch. What is drawn can be made of a simulation that is still going on.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from cuzklab.report.theme import colour_of_worker, colours_apart
from cuzklab.simulate import Simulation
from cuzklab.trace import Recorder
from cuzklab.trace.metrics import CALL, KINDS
from cuzklab.units import METRIC_KINDS, format_seconds, format_size, format_value, percent
from cuzklab.workbench.packed import Column, Texts, places, reals

_NS = 1e-9
_HIDDEN = ("jobs", "results", "synthesised")  # queues that an idle engine waits at; their waits are no contention
_HELD = "held by "
_CAPTIONS = {"prove_time": "prove time", "peak_vram": "peak device memory", "peak_host": "peak host memory"}
# Of these more is better; of the others less.
MORE_IS_BETTER = ("call_occupancy", "kernel_occupancy")

Device = Mapping[str, Any]


def picture(simulation: Simulation) -> dict[str, Any]:
    """Everything that is drawn and tabulated at once, after each move of a slider.

    Returns
    -------
    dict
        That of `chart`, and `locks`, `metrics`, `outcome`, `explanation`, `conditions`, `notes`.
    """
    drawn = chart(simulation.recorder, simulation.devices)
    return {
        **drawn,
        "outcome": simulation.outcome,
        "explanation": simulation.explanation,
        "locks": locks(simulation.recorder, drawn["end_s"]),
        "metrics": metrics(simulation),
        "conditions": {key: value for key, value in simulation.conditions.items() if key != "seed"},
        "notes": list(simulation.notes),
    }


def chart(recorder: Recorder, devices: Sequence[Device]) -> dict[str, Any]:
    """What the canvas draws of the rows that are recorded so far.

    Parameters
    ----------
    recorder : Recorder
    devices : sequence of mapping
        `index`, `vram_limit_bytes` and `margin_bytes` of each.

    Returns
    -------
    dict
        `lanes`, `names` and `colours` of bars; `bars` and `waits` as columns (see `packed`), their texts in `texts`;
        `vram`; `end_s`. What JSON and bytes can hold.
    """
    rows = recorder.rows
    lanes = _lanes(rows, devices)
    texts = Texts()
    bars, names = _bars(lanes, rows, texts)
    waits = _waits(lanes, rows["waits"], texts)
    return {
        "end_s": round(_end_ns(rows) * _NS, 3),
        "lanes": lanes,
        "names": names,
        "colours": _colours(names),
        "bars": bars,
        "waits": waits,
        "texts": list(texts),
        "vram": _vram(rows["vram"], devices[0]),
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


def _end_ns(rows: Mapping[str, Sequence[Any]]) -> int:
    return max(
        (max(map(attrgetter(column), rows[table])) for table, column in _LASTS if rows[table]),
        default=0,
    )


_LASTS = (("spans", "end"), ("waits", "end"), ("vram", "time"))


def _root(name: str) -> str:
    return name.partition("/")[0]


def _lanes(rows: Mapping[str, Sequence[Any]], devices: Sequence[Device]) -> list[dict[str, str]]:
    """Devices, then locks, then the workers of devices, then those of synthesis."""
    workers = sorted({_root(name) for name in {row.worker for row in rows["spans"]} if name}, key=_natural)
    held = sorted({row.lock for row in rows["locks"]})
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
    lanes: list[dict[str, str]], rows: Mapping[str, Sequence[Any]], texts: Texts
) -> tuple[dict[str, Column], list[str]]:
    """Bars as columns in order of lane and time, and the names that they refer to."""
    at = {(lane["kind"], lane["name"]): number for number, lane in enumerate(lanes)}
    of_worker = {lane["name"]: number for number, lane in enumerate(lanes) if lane["kind"] in ("worker", "synthesis")}
    names = Texts()
    found = [
        (of_worker[worker], row.start, row.end, names(row.name), texts(row.partition))
        for row in rows["spans"]
        if row.category != CALL and row.category != "gpu" and (worker := _root(row.worker)) in of_worker
    ]
    for row in rows["kernels"]:
        bar = row.start, row.end, names(row.name), texts(row.partition)
        for lane in (at.get(("device", f"gpu{row.device}")), of_worker.get(_root(row.worker))):
            if lane is not None:
                found.append((lane, *bar))
    last = max((row.end for row in rows["spans"]), default=0)
    found += [
        (at["lock", row.lock], row.acquired, last if row.released is None else row.released,
         names(_HELD + _root(row.worker)), texts(row.partition))
        for row in rows["locks"] if row.acquired is not None
    ]  # fmt: skip
    columns = np.array([bar for bar in found if bar[2] > bar[1]], dtype=np.int64).reshape(-1, 5)
    columns = columns[np.lexsort((columns[:, 1], columns[:, 0]))]
    lane, start, end, name, partition = columns.T
    return {
        "lane": places(lane), "start": reals(start * _NS), "length": reals((end - start) * _NS), "name": places(name),
        "partition": places(partition),
    }, list(names)  # fmt: skip


def _colours(names: Sequence[str]) -> list[str]:
    holders = [name.removeprefix(_HELD) for name in names if name.startswith(_HELD)]
    apart = colours_apart([name for name in names if not name.startswith(_HELD)])
    return [apart.get(name) or colour_of_worker(name.removeprefix(_HELD), holders) for name in names]


def _waits(lanes: list[dict[str, str]], waits: Sequence[Any], texts: Texts) -> dict[str, Column]:
    """Waits of the devices' workers, but for those in which there was nothing to do."""
    at = {lane["name"]: number for number, lane in enumerate(lanes) if lane["kind"] == "worker"}
    shown = sorted(
        (row for row in waits if row.worker in at and row.end > row.start and row.on not in _HIDDEN),
        key=attrgetter("start"),
    )
    return {
        "lane": places([at[row.worker] for row in shown]),
        "start": reals([row.start * _NS for row in shown]),
        "length": reals([(row.end - row.start) * _NS for row in shown]),
        **{name: texts.places([getattr(row, name) for row in shown]) for name in ("kind", "on", "holder")},
    }


def _vram(rows: Sequence[Any], device: Device) -> dict[str, Any]:
    """The sum of live allocations after each change, and the limit; of the first device."""
    limit_bytes, index = int(device["vram_limit_bytes"]), int(device["index"])
    first = [(row.time, row.live) for row in rows if row.device == index]
    time, live = np.array(first, dtype=np.int64).reshape(-1, 2).T
    failed = [round(row.time * _NS, 3) for row in rows if row.device == index and row.op == "fail"]
    peak = int(live.max()) if len(live) else 0
    return {
        "time": reals(time * _NS),
        "gib": reals(live / (1 << 30)),
        "limit_gib": round(limit_bytes / (1 << 30), 3),
        "margin_gib": round(int(device["margin_bytes"]) / (1 << 30), 3),
        "failed": failed,
        "rows": [
            ["peak", format_size(peak)], ["limit", format_size(limit_bytes)],
            ["left at the peak", format_size(limit_bytes - peak)], ["requests refused", str(len(failed))],
        ],
    }  # fmt: skip


def locks(recorder: Recorder, end_s: float) -> list[dict[str, Any]]:
    """Each lock: how often it was waited for, how long in all and at the most, and the share of time it was held."""
    last = round(end_s / _NS)
    uses: dict[str, list[tuple[int, int]]] = {}
    for row in recorder.rows["locks"]:
        acquired = last if row.acquired is None else row.acquired
        held = 0 if row.acquired is None else (last if row.released is None else row.released) - acquired
        uses.setdefault(row.lock, []).append((acquired - row.requested, held))
    found = []
    for name, times in sorted(uses.items()):
        wait_s, held_s = (sum(part) * _NS for part in zip(*times))
        found.append(
            {
                "lock": name, "uses": len(times), "waited": sum(wait > 0 for wait, _ in times),
                "wait_s": wait_s, "wait": format_seconds(wait_s),
                "longest": format_seconds(max(wait for wait, _ in times) * _NS),
                "held": percent(held_s / end_s, 1) if end_s else "0 %",
            }
        )  # fmt: skip
    return found

"""What takes longer than a slider may: what limits the engine, whether the checker refuses it, how sure figures are.

``python -m cuzklab.workbench.second_look`` is the child process of `consult`: it reads one request a line and answers
in lines, the quickest part first. A newer request ends the work on an older one. It ends when its input does.
"""

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cuzklab import check as checker
from cuzklab.analysis.occupancy import cause_named, idle, occupancy
from cuzklab.analysis.phrases import sentence_case
from cuzklab.errors import BadInput
from cuzklab.policies import UnknownPolicy
from cuzklab.profiles import load_workload
from cuzklab.simulate import Simulation, predict
from cuzklab.stages import partition_sizes
from cuzklab.trace import Run, RunInfo
from cuzklab.trace.schema import TABLES
from cuzklab.units import format_seconds, format_value, percent, sizes_in_words
from cuzklab.workbench.design import Design, conditions_of, hardware_of, policy_of, simulated
from cuzklab.workbench.patience import as_written

CHECK_SECONDS = 10.0
_MOST_STEPS = 200
_CHILD_PATIENCE_S = 40.0  # longer than a check may take
_BUSY = 0.85  # from this kernel occupancy on, the device itself is what limits


class Superseded(Exception):
    """A newer request has come."""


def limits(simulation: Simulation) -> dict[str, Any]:
    """The limiting resource in a sentence, and where the device's idle time went.

    Returns
    -------
    dict
        `sentence`, and `rows` of cause, seconds and share of the batch.
    """
    recorder = simulation.recorder
    frames = {name: recorder.table(name).to_pandas(integer_object_nulls=True) for name in TABLES}
    for column in ("acquired", "released"):
        frames["locks"][column] = frames["locks"][column].astype("Int64")
    frames["kernels"]["launch"] = frames["kernels"]["launch"].astype("Int64")
    run = Run(Path("simulated"), RunInfo("simulated", "simulated", devices=simulation.devices), frames)
    busy = occupancy(run)
    if not len(busy):
        return {"sentence": "No kernel ever ran.", "rows": []}
    first = busy.iloc[0]
    causes = idle(run)
    causes = causes[causes["device"] == first["device"]]
    rows = [["kernels run", "", format_seconds(first["kernel_busy_ns"] * 1e-9), percent(first["kernel_occupancy"], 1)]]
    rows += [
        [
            f"idle: {cause_named(row.cause).idles}",
            row.explanation,
            format_seconds(row.time_ns * 1e-9),
            percent(row.share, 1),
        ]
        for row in causes.itertuples()
    ]
    if first["kernel_occupancy"] >= _BUSY:
        return {
            "sentence": f"The device itself: kernels run {percent(first['kernel_occupancy'], 0)} of the time.",
            "rows": rows,
        }
    inside = causes[~causes["cause"].isin(["ramp", "drain"])]
    largest = (inside if len(inside) else causes).iloc[0]
    owed = cause_named(largest["cause"]).owed_to
    return {
        "sentence": f"{sentence_case(owed)}: the device idles {percent(largest['share'], 0)} of the batch for it.",
        "rows": rows,
    }


def checked(design: Design, newer: Callable[[], bool]) -> dict[str, Any]:
    """The checker's verdict on the design's workers and memory, with the shortest schedule of each finding.

    Returns
    -------
    dict
        `verdict`, `line`, `findings` (kind, message, steps).
    """

    def progress(*_: Any) -> None:
        if newer():
            raise Superseded

    hardware = hardware_of(design)
    shape = load_workload(design.workload).shape
    result = checker.check(
        policy_of(design), workers=design.gw, partitions=2 if design.gw <= 2 else 1, vram_bytes=design.vram_bytes,
        sizes=partition_sizes(shape, hardware.device.model), workload=shape.name,
        margin_bytes=hardware.device.margin_bytes, seconds=CHECK_SECONDS, progress=progress,
    )  # fmt: skip
    return {
        "verdict": result.verdict,
        "line": checker.verdict_line(result),
        "findings": [
            {
                "kind": finding.kind.replace("_", " "),
                "message": sizes_in_words(finding.message),
                "where": finding.where,
                "shortest": finding.shortest,
                "steps": [
                    [step.step, step.actor, _effect(step), step.where] for step in finding.schedule[:_MOST_STEPS]
                ],
            }
            for finding in sorted(result.findings, key=lambda finding: len(finding.schedule))
        ],
    }  # fmt: skip


def _effect(step: checker.Step) -> str:
    return sizes_in_words(step.effect) + (f" ({step.phase})" if step.phase else "")


def intervals(design: Design, newer: Callable[[], bool]) -> dict[str, Any]:
    """90 % intervals of the figures for a single run, in words by name, and what they contain."""

    def report(share: float, words: str = "") -> None:
        if newer():
            raise Superseded

    prediction = predict(
        policy_of(design), hardware_of(design), design.workload, report=report, **conditions_of(design)
    )
    return {
        "outcomes": dict(prediction.outcomes),
        "rows": {
            name: [low, high, _between(low, high, prediction.metrics[name].unit)]
            for name, (low, high) in prediction.intervals.items()
            if name in prediction.metrics
        },
        "how": prediction.notes[-1],
    }


def _between(low: float, high: float, unit: str) -> str:
    first, last = (format_value(value, unit).replace(" ", "\u00a0") for value in (low, high))
    return first if first == last else f"{first} to {last}"


def look(design: Design, newer: Callable[[], bool]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The parts of an answer, as they become known."""
    simulation = simulated(design)
    yield "limits", limits(simulation)
    for part, work in (("check", checked), ("intervals", intervals)):
        if newer():
            raise Superseded
        try:
            with as_written(design.policy, design.source, _CHILD_PATIENCE_S):
                answer = work(design, newer)
        except (BadInput, UnknownPolicy) as error:
            answer = {"error": str(error)}
        yield part, answer


def main() -> None:
    """Answer until the input ends. The sliders go first where cores are few."""
    os.nice(10)
    waiting: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(waiting,), daemon=True).start()
    while (request := waiting.get()) is not None:
        while not waiting.empty():
            newest = waiting.get()
            if newest is None:
                return
            request = newest
        number = request["number"]
        try:
            for part, answer in look(Design.from_json(request["design"]), lambda: not waiting.empty()):
                _answer(number, part, answer)
        except Superseded:
            continue
        except (BadInput, UnknownPolicy) as error:
            _answer(number, "limits", {"error": str(error)})
        _answer(number, "done", {})


def _read(waiting: "queue.SimpleQueue[Mapping[str, Any] | None]") -> None:
    for line in sys.stdin:
        waiting.put(json.loads(line))
    waiting.put(None)


def _answer(number: int, part: str, answer: Mapping[str, Any]) -> None:
    print(json.dumps({"number": number, "part": part, "answer": answer}), flush=True)


if __name__ == "__main__":
    main()

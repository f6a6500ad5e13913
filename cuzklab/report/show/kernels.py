"""Kernels: where they stand under the roof of their machine, and what a change of one did."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from cuzklab.report import display, figures
from cuzklab.report.postmortem import write_record
from cuzklab.report.tables import number


class Measured(Protocol):
    """A bench under its roof: see `cuzklab.backends.roofline.Roofline`."""

    backend: str
    device: str
    conditions: str
    unit: str
    operations_per_s: float
    bytes_per_s: float
    rows: list[dict[str, Any]]


def roofline(measured: Measured) -> None:
    """The picture, and its table."""
    where = f"{measured.backend} backend on {measured.device}, {measured.conditions}"
    drawn = figures.roofline(
        measured.rows, measured.operations_per_s, measured.bytes_per_s, measured.unit, where
    )  # fmt: skip
    display.figure(drawn)
    frame = pd.DataFrame(
        [
            {
                "kernel": row["kernel"], "size": f"2^{row['log2n']}", "median_s": row["median_ms"] / 1e3,
                "floor_s": row["floor_ms"] / 1e3, "times the floor": f"{row['median_ms'] / row['floor_ms']:.2f}",
                f"{measured.unit}, G/s": f"{row['operations_per_s'] / 1e9:,.1f}",
                "a byte": f"{row['intensity']:.1f}", "roof_share": row["roof_share"],
                "limit": _limit(measured, row),
            }
            for row in measured.rows
        ]
    )  # fmt: skip
    right = ("size", "times the floor", f"{measured.unit}, G/s", "a byte")
    display.table(
        frame, f"Medians, measured on {measured.device}.", headings={"roof_share": "of the roof"}, right=right
    )


def _limit(measured: Measured, row: Mapping[str, Any]) -> str:
    """Which side of the roof a row stands under."""
    return "memory" if row["intensity"] * measured.bytes_per_s < measured.operations_per_s else "multiplier"


def trial(rows: Sequence[Mapping[str, Any]], what: str) -> None:
    """A change of a kernel beside the shipped one, and the verdict in words."""
    shipped, changed = rows
    frame = pd.DataFrame(
        [
            {
                "variant": row["variant"], "median_s": row["median_ms"] / 1e3, "min_s": row["min_ms"] / 1e3,
                "to shipped": f"{row['time_ratio']:.3f}",
            }
            for row in rows
        ]
    )  # fmt: skip
    display.table(frame, what, headings={"min_s": "minimum"}, right=("to shipped",))
    ratio = changed["time_ratio"]
    word = "faster" if ratio < 1 else "slower"
    display.text(
        f"Same result; the change is {number(abs(1 - ratio) * 100)} % {word} in the median of neighbouring calls "
        f"({number(changed['median_ms'])} ms, as shipped {number(shipped['median_ms'])} ms)."
    )


def furthest(measured: Measured) -> str:
    """The answer in a sentence: which kernel is furthest from its floor, at its largest size."""
    one = max(_largest(measured).values(), key=lambda row: row["median_ms"] / row["floor_ms"])
    return (
        f"{len(measured.rows)} measurements on {measured.device}; furthest from its floor is {one['kernel']} of"
        f" 2^{one['log2n']}, {one['median_ms'] / one['floor_ms']:.2f} times."
    )


def _largest(measured: Measured) -> dict[str, Mapping[str, Any]]:
    """The row of each kernel at its largest size."""
    largest: dict[str, Mapping[str, Any]] = {}
    for row in measured.rows:
        if row["log2n"] >= largest.get(row["kernel"], row)["log2n"]:
            largest[row["kernel"]] = row
    return largest


def conclude_kernels(measured: Measured, out: Path, parameters: Mapping[str, object]) -> Path:
    """Write the record of this report: what each kernel reaches at its largest size."""
    findings = [
        {
            "claim": f"{kernel} of 2^{row['log2n']} takes {number(row['median_ms'])} ms, "
            f"{row['median_ms'] / row['floor_ms']:.2f} times the floor of {measured.device}.",
            "sure": "measured",
            "evidence": dict(row),
        }
        for kernel, row in _largest(measured).items()
    ]
    record = {
        "question": "How near are the kernels to what this machine can do?",
        "verdict": {"decision": "measured", "sentence": furthest(measured)},
        "findings": findings,
        "runs": [],
        "roofline": {
            "backend": measured.backend, "device": measured.device, "conditions": measured.conditions,
            "unit": measured.unit, "operations_per_s": measured.operations_per_s, "bytes_per_s": measured.bytes_per_s,
            "rows": measured.rows,
        },
    }  # fmt: skip
    return write_record(record, out, parameters)

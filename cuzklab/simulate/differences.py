"""Differences between conditions, apart from levels: sign and size of what a change does, published and simulated."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from cuzklab import resources
from cuzklab.errors import BadInput
from cuzklab.profiles import Hardware, read_toml
from cuzklab.simulate.compare import DEFAULT_SEEDS, condition_key, simulate_rows
from cuzklab.simulate.published import PublishedRow, row_of

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Difference:
    """A published change of a figure from one set of conditions to another.

    Attributes
    ----------
    before, after : PublishedRow
        Without a value: only their conditions and kind count.
    least, most : float
        Bounds of the published relative change.
    run_to_run : float
        What published runs of one configuration differ by.
    """

    words: str
    before: PublishedRow
    after: PublishedRow
    least: float
    most: float
    run_to_run: float

    @property
    def published(self) -> float:
        return (self.least + self.most) / 2


@dataclass(frozen=True)
class Change:
    """A published change and the simulated one.

    Attributes
    ----------
    simulated : float or None
        Relative change of the mean over the seeds.
    low, high : float or None
        90 % interval over seeds.
    """

    difference: Difference
    simulated: float | None
    low: float | None
    high: float | None

    @property
    def verdict(self) -> str:
        """``reproduced``, ``not reproduced``, ``no change, as published``, ``unresolved`` or ``not simulated``.

        A published change below what two runs of one configuration differ by is unresolved; one that was published as
        none must not be larger than that in the simulation. Otherwise the sign must be the same, and the size within
        the published bounds or as near to them as two runs of one configuration are to each other.
        """
        difference = self.difference
        if self.simulated is None:
            return "not simulated"
        if difference.least == difference.most == 0:
            small = abs(self.simulated) < difference.run_to_run
            return "no change, as published" if small else "not reproduced"
        if abs(difference.published) < difference.run_to_run:
            return "unresolved"
        same_sign = self.simulated * difference.published > 0
        margin = math.log1p(difference.run_to_run)
        least, most = math.log1p(difference.least) - margin, math.log1p(difference.most) + margin
        near = least <= math.log1p(self.simulated) <= most
        return "reproduced" if same_sign and near else "not reproduced"

    def to_json(self) -> dict[str, Any]:
        return {
            "difference": self.difference.words,
            "kind": self.difference.before.metric.kind,
            "published_least": self.difference.least,
            "published_most": self.difference.most,
            "simulated": self.simulated,
            "low": self.low,
            "high": self.high,
            "verdict": self.verdict,
        }


def load_differences(path: Path | None = None) -> tuple[Difference, ...]:
    """Published differences from a TOML file; the shipped `lab/published/differences.toml` unless another is given.

    Raises
    ------
    BadInput
        Unknown or missing field, impossible value; names file, entry and field.
    """
    path = path or resources.folder("lab") / "published" / "differences.toml"
    document, _ = read_toml(path)
    known = {"title", "source", "hardware", "workload", "run_to_run", "difference"}
    if (wrong := sorted(set(document) ^ known)) and wrong:
        raise BadInput(f"{path}: field {wrong[0]} is {'missing' if wrong[0] in known else 'unknown'}")
    if not isinstance(document["difference"], list) or not isinstance(document["run_to_run"], float):
        raise BadInput(f"{path}: difference must be a list of sections [[difference]], run_to_run a number")
    return tuple(
        _difference(f"{path}: difference {number}", entry, document)
        for number, entry in enumerate(document["difference"], 1)
    )


def _difference(where: str, entry: Any, document: dict[str, Any]) -> Difference:
    fields = {"words", "kind", "before", "after", "least", "most"}
    if not isinstance(entry, dict) or set(entry) != fields:
        raise BadInput(f"{where}: must have the fields {', '.join(sorted(fields))} and no others")
    if not isinstance(entry["words"], str):
        raise BadInput(f"{where}: field words must be text")
    for key in ("least", "most"):
        if type(entry[key]) not in (int, float) or not -1 < entry[key] < 100:
            raise BadInput(f"{where}: field {key} must be a relative change above -1")
    if entry["least"] > entry["most"]:
        raise BadInput(f"{where}: field least is above most")
    sides = []
    for key in ("before", "after"):
        if not isinstance(entry[key], dict) or not {"policy", "conditions"} <= set(entry[key]):
            raise BadInput(f"{where}: field {key} must state policy and conditions")
        row = {**entry[key], "kind": entry["kind"], "value": 1.0}
        sides.append(row_of(f"{where}: {key}", row, document["hardware"], document["workload"]))
    return Difference(entry["words"], *sides, float(entry["least"]), float(entry["most"]), document["run_to_run"])


def compare_differences(
    differences: Sequence[Difference] | None = None,
    seeds: Sequence[int] = DEFAULT_SEEDS,
    hardware: Hardware | None = None,
    report: Report = lambda share, words="": None,
) -> tuple[Change, ...]:
    """Simulate both sides of each difference, on the same draws.

    Parameters
    ----------
    differences : sequence of Difference, optional
        The shipped ones unless given.
    seeds, hardware, report
        As `cuzklab.simulate.compare.compare_with_published`.
    """
    differences = load_differences() if differences is None else differences
    rows = [row for one in differences for row in (one.before, one.after)]
    found = simulate_rows(rows, seeds, hardware, report)
    changes = []
    for one in differences:
        figure = one.before.figure
        before, after = found[condition_key(one.before)], found[condition_key(one.after)]
        logs = [
            math.log(b[figure] / a[figure]) for a, b in zip(before, after, strict=True) if figure in a and figure in b
        ]
        if len(logs) < len(seeds):
            changes.append(Change(one, None, None, None))
            continue
        middle = fmean(logs)
        half = 1.645 * stdev(logs) if len(logs) > 1 else 0.0
        changes.append(Change(one, *(math.expm1(value) for value in (middle, middle - half, middle + half))))
    return tuple(changes)

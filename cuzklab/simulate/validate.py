"""The model against everything that was published: every row with its error and its interval.

Rows that were fitted and rows that are predictions stand in one table and are counted apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from cuzklab.profiles import Hardware, load_hardware
from cuzklab.simulate.calibrate import tolerance
from cuzklab.simulate.compare import DEFAULT_SEEDS, Comparison, compare_with_published, condition_key, simulate_rows
from cuzklab.simulate.predict import interval
from cuzklab.simulate.published import PublishedRow, load_published
from cuzklab.units import percent

Report = Callable[[float, str], None]
THROUGHPUT_KINDS = ("batch_average", "steady_interval")  # as published


@dataclass(frozen=True)
class ValidatedRow:
    """A published row, the simulation's mean over seeds, and the 90 % interval of a single run.

    Attributes
    ----------
    interval : (float, float) or None
        None where the published result is an outcome, or where the row is not simulated.
    """

    comparison: Comparison
    interval: tuple[float, float] | None

    @property
    def met(self) -> bool | None:
        """Whether the error is within the tolerance of the figure's kind; None where there is no error."""
        error, row = self.comparison.error, self.comparison.row
        return None if error is None else abs(error) <= tolerance(row.metric.kind, row.conditions["gw"])

    @property
    def covered(self) -> bool | None:
        """Whether the published figure lies in the interval."""
        if self.interval is None or self.comparison.row.metric is None:
            return None
        return self.interval[0] <= self.comparison.row.metric.value <= self.interval[1]


def validate(
    rows: Sequence[PublishedRow] | None = None,
    seeds: Sequence[int] = DEFAULT_SEEDS,
    members: int = 6,
    hardware: Hardware | None = None,
    report: Report = lambda share, words="": None,
) -> tuple[ValidatedRow, ...]:
    """Simulate every published row with several seeds, and with near-equal fits of the profile.

    Parameters
    ----------
    rows : sequence of PublishedRow, optional
        The shipped ones unless given.
    seeds : sequence of int
    members : int
        Near-equal fits, at most; each with one seed of its own.
    hardware : Hardware, optional
        In place of the rows' own.
    report : callable (share, words), optional
    """
    rows = load_published() if rows is None else rows
    machine = hardware or load_hardware(rows[0].hardware)
    fits = machine.calibration.members[1 : members + 1] if machine.calibration else ()
    part = len(seeds) / (len(seeds) + len(fits))
    compared = compare_with_published(rows, seeds, machine, lambda share, words: report(share * part, words))
    near = []
    for number in range(len(fits)):
        report(part + (1 - part) * number / len(fits), f"near-equal fit {number + 1} of {len(fits)}")
        other = machine.with_constants(machine.calibration.member(number + 1))
        near.append(simulate_rows(rows, (100 + number,), other))
    report(1.0, "done")
    found = []
    for one in compared:
        row = one.row
        if row.metric is None or one.simulated is None:
            found.append(ValidatedRow(one, None))
            continue
        others = [figures[condition_key(row)][0].get(row.figure) for figures in near]
        scatter = machine.calibration.scatter_of(row.metric.kind) if machine.calibration else None
        known = [value for value in others if value]
        found.append(ValidatedRow(one, interval(one.values, known, scatter, row.metric.kind)))
    return tuple(found)


def table(validated: Sequence[ValidatedRow]) -> list[dict[str, Any]]:
    """A line a row: conditions, use, kind, published, simulated, interval, error; seconds, bytes or shares."""
    lines = []
    for one in validated:
        facts = one.comparison.to_json()
        row = one.comparison.row
        outcomes = one.comparison.outcomes
        ended = ", ".join(f"{outcomes.count(name)} of {len(outcomes)} {name}" for name in dict.fromkeys(outcomes))
        is_outcome = row.metric is None
        lines.append(
            {
                "design": row.policy,
                "conditions": row.words.partition(" ")[2]
                + (f" (assumed: {', '.join(row.assumed)})" * bool(row.assumed))
                + (f"; {row.not_simulated}" * bool(row.not_simulated)),
                "use": facts["use"],
                "kind": f"{facts['label']} {facts['kind']}".strip().replace("_", " "),
                "published": _words(row, None if is_outcome else row.metric.value, row.outcome),
                "simulated": "–"
                if row.not_simulated
                else _words(row, one.comparison.simulated.value if one.comparison.simulated else None, ended),
                "90 % of runs": " to ".join(_words(row, value, "") for value in one.interval) if one.interval else "",
                "error_share": facts["error"],
                "within tolerance": {True: "yes", False: "NO", None: ""}[one.met],
            }
        )
    return lines


def _words(row: PublishedRow, value: float | None, otherwise: str) -> str:
    from cuzklab.units import format_value

    return otherwise if value is None else format_value(value, row.metric.unit)


def summary(validated: Sequence[ValidatedRow]) -> list[dict[str, Any]]:
    """Errors of fitted rows and of predictions apart, by kind: number, median, largest, and how many intervals hold.

    Throughput is batch averages and steady intervals together.
    """
    lines = []
    for use in ("fit", "prediction"):
        chosen = [
            one for one in validated if one.comparison.to_json()["use"] == use and one.comparison.error is not None
        ]
        kinds = {
            "throughput": [one for one in chosen if one.comparison.row.metric.kind in THROUGHPUT_KINDS],
            "prove time": [one for one in chosen if one.comparison.row.metric.kind == "prove_time"],
            "peak host memory": [one for one in chosen if one.comparison.row.metric.kind == "peak_host"],
            "GPU side (gpu_total, occupancy)": [
                one for one in chosen if one.comparison.row.metric.kind in ("duration", "share", "call_occupancy")
            ],
        }
        for words, ones in kinds.items():
            if ones:
                errors = [abs(one.comparison.error) for one in ones]
                lines.append(
                    {
                        "use": use, "figures": words, "rows": len(ones), "median_error_share": median(errors),
                        "largest_error_share": max(errors),
                        "within_tolerance_share": fmean(bool(one.met) for one in ones),
                        "in_interval_share": fmean(bool(one.covered) for one in ones),
                    }
                )  # fmt: skip
    outcomes = [one.comparison for one in validated if one.comparison.row.metric is None]
    if outcomes:
        lines.append(
            {
                "use": "outcomes", "figures": "out of memory, with every seed", "rows": len(outcomes),
                "median_error_share": None, "largest_error_share": None, "within_tolerance_share": None,
                "in_interval_share": fmean(one.same_outcome for one in outcomes),
            }
        )  # fmt: skip
    return lines


def record(validated: Sequence[ValidatedRow], changes: Sequence[Any]) -> dict[str, Any]:
    """The verdict of a validation with its findings, as a report keeps it: a finding for each line of `summary`.

    Parameters
    ----------
    validated : sequence of ValidatedRow
    changes : sequence of cuzklab.simulate.differences.Change
    """
    findings = []
    for line in summary(validated):
        if line["median_error_share"] is not None:
            claim = (
                f"{line['figures']}, {line['use']}: {line['rows']} rows, "
                f"median error {percent(line['median_error_share'], 1)},"
                f" largest {percent(line['largest_error_share'], 1)}."
            )
        else:
            claim = f"{line['figures']}: {percent(line['in_interval_share'], 0)} of {line['rows']} rows."
        findings.append({"claim": claim, "sure": "simulated", "evidence": dict(line)})
    findings += [
        {"claim": f"{one.difference.words}: {one.verdict}.", "sure": "simulated", "evidence": one.to_json()}
        for one in changes
    ]
    predicted = [
        abs(one.comparison.error)
        for one in validated
        if one.comparison.error is not None
        and not one.comparison.row.fit
        and one.comparison.row.metric.kind in THROUGHPUT_KINDS
    ]
    comparisons = [one.comparison for one in validated]
    missed = [
        f"{one.row.metric.kind.replace('_', ' ')} of {one.row.words} ({percent(one.error, 1, signed=True)})"
        for one, verdict in zip(comparisons, validated, strict=True)
        if verdict.met is False
    ]
    missed += [
        f"{one.row.outcome} of {one.row.words} not with every seed"
        for one in comparisons
        if one.outcomes and one.row.metric is None and not one.same_outcome
    ]
    wrong = [one.difference.words for one in changes if one.verdict == "not reproduced"]
    sentence = (
        f"{len(predicted)} predictions of throughput have a median error of {percent(median(predicted), 1)}"
        f" and a largest of {percent(max(predicted), 1)}; missed: {', '.join(missed) or 'no row'}; "
        f"not reproduced: {', '.join(wrong) or 'no change'}."
    )
    return {
        "question": "Does the simulator predict what was published?",
        "verdict": {"decision": "simulated", "sentence": sentence},
        "findings": findings,
        "runs": [],
    }

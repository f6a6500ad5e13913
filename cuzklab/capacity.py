"""The operator's question: which designs fit a machine, with how many workers, and which of them is fastest there.

Feasibility is proved (every interleaving, for every byte of a range of device memory); speed is simulated, for the
limits of interest and only where the design is safe.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cuzklab import policies
from cuzklab.analysis.case import figure, metric
from cuzklab.analysis.model import Finding
from cuzklab.analysis.phrases import counted, listing
from cuzklab.check.feasibility import Interval, Range
from cuzklab.experiment import Step, carry_out
from cuzklab.progress import Report, part
from cuzklab.trace import Run
from cuzklab.units import GiB, Metric, format_seconds, format_size

FROM_BYTES, TO_BYTES = 8 * GiB, 96 * GiB
_SAFE = "safe"


@dataclass(frozen=True)
class Option:
    """A design with a number of workers a device, and where it is safe.

    Attributes
    ----------
    place : str
        The policy's name, or the path of its file.
    workers : int
    intervals : tuple of Interval
        Of device memory, in order and without gaps.
    """

    place: str
    workers: int
    intervals: tuple[Interval, ...]

    @property
    def policy(self) -> str:
        """The name under which its runs are stored."""
        return policies.name_of(self.place)

    def at(self, vram_bytes: int) -> Interval:
        """What is known of an amount of device memory."""
        return next(
            one
            for one in self.intervals
            if one.from_bytes <= vram_bytes and (one.to_bytes is None or vram_bytes <= one.to_bytes)
        )

    @property
    def safe_from_bytes(self) -> int | None:
        """From here on the design is safe however much there is; None where that is not known."""
        last = self.intervals[-1]
        return last.from_bytes if last.verdict == _SAFE else None


def options(
    names: Sequence[str], workers: Sequence[int], report: Report = lambda share, words="": None
) -> tuple[Option, ...]:
    """Every design with every number of workers, checked for each byte from `FROM_BYTES` to `TO_BYTES`."""
    pairs = [(name, count) for name in names for count in workers]
    found = []
    for number, (name, count) in enumerate(pairs):
        report(number / len(pairs), f"checking {name} with {counted(count, 'worker')}")
        covered = Range(policies.load(name), count, 1).cover(FROM_BYTES, TO_BYTES)
        found.append(Option(name, count, tuple(covered)))
    return tuple(found)


def simulations(
    safe: Sequence[Option],
    limits: Sequence[int],
    out: Path,
    *,
    hardware: str,
    workload: str,
    proofs: int,
    seed: int,
    report: Report = lambda share, words="": None,
) -> tuple[Run, ...]:
    """A simulation of each option at each limit of device memory at which it is safe; stored ones are not repeated."""
    steps = [
        Step(
            "simulate",
            {
                "policy": option.place, "workers": option.workers, "proofs": proofs, "in_flight": proofs,
                "synthesis_workers": 10, "vram": f"{limit / GiB:g}GiB", "hardware": hardware, "workload": workload,
                "seed": seed,
            },
        )
        for option in safe
        for limit in limits
        if option.at(limit).verdict == _SAFE
    ]  # fmt: skip
    return tuple(
        carry_out(step, out, part(report, number / len(steps), (number + 1) / len(steps), f"{step.label} "))
        for number, step in enumerate(steps)
    )


def table(found: Sequence[Option], limits: Sequence[int], runs: Sequence[Run]) -> pd.DataFrame:
    """One row an option and limit: `policy`, `workers`, `vram_bytes`, `verdict`, `why`, `batch_average_s`,
    `peak_vram_bytes`, `peak_host_bytes`, `kernel_occupancy`; figures are missing where nothing was simulated."""
    rows = []
    for option in found:
        for limit in limits:
            place = option.at(limit)
            run = next((run for run in runs if _is_of(run, option, limit)), None)
            values = {kind: metric(run, kind) if run else None for kind in _FIGURES}
            rows.append(
                {"policy": option.policy, "workers": option.workers, "vram_bytes": limit, "verdict": place.verdict,
                 "why": place.message, "outcome": run.info.outcome if run else ""}
                | {_FIGURES[kind]: value.value if value else None for kind, value in values.items()}
            )  # fmt: skip
    return pd.DataFrame(rows)


_FIGURES = {
    "batch_average": "batch_average_s", "peak_vram": "peak_vram_bytes", "peak_host": "peak_host_bytes",
    "kernel_occupancy": "kernel_occupancy",
}  # fmt: skip


def _is_of(run: Run, option: Option, limit: int) -> bool:
    conditions = run.info.conditions
    return (
        run.info.policy == option.policy
        and conditions.get("gw") == option.workers
        and conditions.get("vram_bytes") == limit
    )


def is_simulation_of(choice: Finding, run: Run) -> bool:
    """Whether a run is the simulation that a `fastest_feasible` finding chose."""
    workers = choice.figures[0].conditions.get("gw")
    conditions = run.info.conditions
    mine = (run.info.policy, conditions.get("vram_bytes"), conditions.get("gw"))
    return mine == (choice.subject, choice.vram_bytes, workers)


def findings(found: Sequence[Option], limits: Sequence[int], runs: Sequence[Run]) -> tuple[Finding, ...]:
    """Which option is fastest at each limit, and where each option is safe."""
    return (*_fastest(found, limits, runs), *(_where_safe(option) for option in found))


def _fastest(found: Sequence[Option], limits: Sequence[int], runs: Sequence[Run]) -> Iterator[Finding]:
    for limit in limits:
        there = [
            (option, run, value)
            for option in found
            for run in runs
            if _is_of(run, option, limit) and run.info.outcome == "ok" and (value := metric(run, "batch_average"))
        ]
        unsafe = [f"{one.policy} with {one.workers}" for one in found if one.at(limit).verdict != _SAFE]
        if not there:
            yield Finding(
                id="nothing_fits", claim=f"On {format_size(limit)} none of the designs asked about is safe.",
                role="context", certainty="proved", figures=(Metric("size", limit, "computed", {}, "device memory"),),
                evidence=(), runs=(), would_change="more device memory, or other designs", aspect="feasibility",
                vram_bytes=limit, gist="none is safe",
            )  # fmt: skip
            continue
        there.sort(key=lambda one: (one[2].value, one[0].workers))
        best, run, value = there[0]
        # Fewer workers that are as fast are the better choice: they take less memory.
        best, run, value = min(
            (one for one in there if one[2].value <= value.value * 1.005),
            key=lambda one: (one[0].workers, one[2].value),
        )
        yield Finding(
            id="fastest_feasible",
            claim=f"On {format_size(limit)} the fastest safe choice is {best.policy} with"
            f" {counted(best.workers, 'worker')} a device: {format_seconds(value.value)}/proof (batch average,"
            f" simulated)."
            + (f" Not safe there: {listing(unsafe)}." if unsafe else ""),
            role="context",
            certainty="simulated",
            figures=(value, figure(run, "size", limit, "device memory")),
            evidence=tuple(
                {"policy": option.policy, "workers": option.workers, "batch_average_s": one.value}
                for option, _, one in there
            ),
            runs=tuple(run.name for _, run, _ in there),
            would_change="another host: more synthesis, or more bandwidth of its memory",
            aspect="performance",
            subject=best.policy,
            vram_bytes=limit,
            gist=f"is the fastest safe choice with {counted(best.workers, 'worker')}",
        )  # fmt: skip


def _where_safe(option: Option) -> Finding:
    safe = [one for one in option.intervals if one.verdict == _SAFE]
    words = listing(
        f"from {format_size(one.from_bytes)} on" if one.to_bytes is None or one.to_bytes >= TO_BYTES
        else f"from {format_size(one.from_bytes)} to {format_size(one.to_bytes + 1)}" for one in safe
    )  # fmt: skip
    start = option.safe_from_bytes
    return Finding(
        id="safe_where",
        claim=f"{option.policy} with {counted(option.workers, 'worker')} a device is safe {words}, on every"
        " interleaving."
        if safe
        else f"{option.policy} with {counted(option.workers, 'worker')} a device is nowhere safe up to"
        f" {format_size(TO_BYTES)}.",
        role="context",
        certainty="proved",
        figures=(Metric("size", start, "computed", {}, f"{option.policy} with {option.workers} safe from"),)
        if start is not None
        else (),
        evidence=tuple(one.to_json() for one in option.intervals),
        runs=(),
        would_change="other sizes of a partition, or more partitions at a time than were checked",
        aspect="feasibility",
        subject=option.policy,
        vram_bytes=start,
        gist=f"is safe {words}" if safe else "is nowhere safe",
    )

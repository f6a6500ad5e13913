"""What the candidate gains over the baseline: figures of one kind, conditions that agree, and the noise beside them."""

from collections.abc import Iterator, Sequence

from cuzklab.analysis.case import RECORDED, Case
from cuzklab.analysis.compare import JUDGED_BY, MIN_SAMPLES, Comparison, compare_repeated, turned, unlike
from cuzklab.analysis.model import Finding, certainty_of
from cuzklab.analysis.phrases import differences, memory, run_kind
from cuzklab.analysis.registry import finding
from cuzklab.trace import Run
from cuzklab.units import Metric, format_value, percent

_OF_A_REPETITION = ("seed", "repeat")  # a simulation is repeated with another seed


@finding
def gain_over_baseline(case: Case) -> Iterator[Finding]:
    """One finding for completed runs of the candidate under equal conditions; of context where there is no baseline."""
    for group in alike_groups(case, case.select(case.candidate, RECORDED, ("ok",))):
        run = group[0]
        baselines = case.select(case.baseline, (run.info.origin,), ("ok",))
        if not baselines:
            yield _incomparable(case, run, f"there is no completed run of {case.baseline} of the same origin")
            continue
        alike = [other for other in baselines if not unlike(run, other)]
        if not alike:
            continue  # `metrics_not_comparable` says why
        limit_bytes = case.limit_bytes(run)
        # The fairest baseline: the same device, then the fewest knobs turned.
        others = min(
            alike_groups(case, alike),
            key=lambda some: (case.limit_bytes(some[0]) != limit_bytes, len(turned(run, some[0]))),
        )
        found = [result for kind in JUDGED_BY if (result := compare_repeated(group, others, kind)) is not None]
        if found:
            yield _gain(case, group, others, found)


def alike_groups(case: Case, runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Runs gathered by origin, limit and conditions, so that repetitions of one thing stand together."""
    groups: dict[tuple[str, int | None, str], list[Run]] = {}
    for run in runs:
        conditions = repr(
            sorted((item for item in run.info.conditions.items() if item[0] not in _OF_A_REPETITION), key=str)
        )
        groups.setdefault((run.info.origin, case.limit_bytes(run), conditions), []).append(run)
    return [tuple(group) for group in groups.values()]


def _incomparable(case: Case, run: Run, why: str) -> Finding:
    return Finding(
        id="gain_over_baseline",
        claim=f"What {case.candidate} gains over {case.baseline} in {run_kind(run)} {memory(case.limit_bytes(run))}"
        f" cannot be said: {why}.",
        role="context",
        certainty=certainty_of(run),
        figures=(),
        evidence=(),
        runs=(run.name,),
        would_change=f"a run of {case.baseline} under the same conditions",
        aspect="coverage",
        subject=case.candidate,
        vram_bytes=case.limit_bytes(run),
        gist="has no baseline to be compared with",
    )


def _gain(case: Case, group: tuple[Run, ...], others: tuple[Run, ...], found: list[Comparison]) -> Finding:
    run, other = group[0], others[0]
    judged = found[0]
    knobs = turned(run, other)
    limit_bytes, other_limit_bytes = case.limit_bytes(run), case.limit_bytes(other)
    on_other = "" if other_limit_bytes == limit_bytes else f" {memory(other_limit_bytes)}"
    claim = (
        f"{case.candidate} {memory(limit_bytes)} takes {_value(judged.candidate)}"
        f" ({_kind(judged)}) in {run_kind(run)} where {case.baseline}{on_other} takes"
        f" {_value(judged.baseline)}: it {_change(judged)}{_noise(judged)}."
    )
    if knobs:
        claim += f" They differ in {differences(knobs)}."
    role = "context" if not judged.resolved else "supports" if judged.gain > 0 else "against"
    return Finding(
        id="gain_over_baseline",
        claim=claim,
        role=role,
        certainty=certainty_of(run, other),
        figures=tuple(figure for result in found for figure in (result.candidate, result.baseline)),
        evidence=tuple(
            {
                "kind": result.candidate.kind,
                "candidate": result.candidate.value,
                "baseline": result.baseline.value,
                "unit": result.candidate.unit,
                "ratio": result.ratio,
                "ratio_low": result.low,
                "ratio_high": result.high,
                "candidate_samples": result.samples[0],
                "baseline_samples": result.samples[1],
                "sampled": result.sampled,
            }
            for result in found
        ),
        runs=tuple(one.name for one in (*group, *others)),
        would_change="more partitions or repeated runs, which resolve smaller differences" if role == "context"
        else "other conditions: more proofs in flight, other numbers of workers, another host",
        aspect="coverage" if _too_few(judged) else "performance",
        subject=case.candidate,
        vram_bytes=limit_bytes,
        gist=_gist(judged, run),
    )  # fmt: skip


def _value(metric: Metric) -> str:
    return format_value(metric.value, metric.unit)


def _change(result: Comparison) -> str:
    return f"{'saves' if result.gain >= 0 else 'costs'} {percent(abs(result.gain))}"


def _noise(result: Comparison) -> str:
    if result.sampled == "runs":
        mine, theirs = result.samples
        apart = f"{_between(result)} from run to run"
        span = f"medians of {mine} and {theirs} runs; {apart}"
        return f" ({span})" if result.resolved else f", which is below the noise ({span})"
    if result.measured:
        return f", but one run does not tell how much the next would differ; it takes {MIN_SAMPLES} of each"
    if result.low is None:
        return f", but {min(result.samples) + 1} {result.sampled} are too few to know the noise"
    span = f"95 % interval {_between(result)} from the spread of {result.sampled}"
    return f" ({span})" if result.resolved else f", which is below the noise ({span})"


def _between(result: Comparison) -> str:
    """From where to where a saving, or a cost, may lie."""
    ends = (1 - result.high, 1 - result.low) if result.gain >= 0 else (result.low - 1, result.high - 1)
    return " to ".join(percent(end) for end in ends)


def _kind(result: Comparison) -> str:
    return result.candidate.kind.replace("_", " ")


def _too_few(result: Comparison) -> bool:
    """Whether the samples are too few to tell even whether there is a difference: that is no result."""
    return result.low is None or (result.measured and result.sampled != "runs")


def _gist(result: Comparison, run: Run) -> str:
    if _too_few(result):
        return f"was measured too few times to tell a gain in {run_kind(run)}"
    if not result.resolved:
        return f"gains nothing that can be told from noise in {run_kind(run, more=_change(result))}"
    return f"{_change(result)} in {run_kind(run)}"

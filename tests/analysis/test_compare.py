"""Comparisons: refused where they mean nothing, resolved where the spread allows it, the same each time."""

import dataclasses

import numpy as np
import pytest

from cuzklab.analysis.compare import bootstrap_ratio, compare, differing, unlike
from cuzklab.trace import Run
from tests.analysis.example import phase9_like, phase10_roomy


def with_info(run: Run, **changes) -> Run:
    return Run(run.path, dataclasses.replace(run.info, **changes))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return phase10_roomy(folder, "simulated", gain_ms=2), phase9_like(folder, "simulated")


def test_ratio_and_interval_of_runs_without_spread(runs):
    found = compare(*runs, "batch_average")
    assert found.ratio == pytest.approx(164 / 172)
    # 38 ms against 40 ms between partitions, always: the interval has no width, and is scaled to the figures' ratio
    assert (found.low, found.high) == (pytest.approx(164 / 172), pytest.approx(164 / 172))
    assert found.gain == pytest.approx(8 / 172)
    assert found.resolved
    assert (found.samples, found.sampled) == ((3, 3), "partitions")


def test_a_run_against_itself_is_no_difference(runs):
    found = compare(runs[1], runs[1], "batch_average")
    assert found.ratio == 1
    assert not found.resolved


def test_a_kind_that_one_lacks_cannot_be_compared(runs):
    assert compare(*runs, "prove_time") is None


def test_prove_time_is_sampled_by_calls(runs):
    records = [
        {"kind": "prove_time", "value": value, "obtained": "measured", "label": "", "conditions": {}}
        for value in (0.288, 0.304)
    ]
    candidate, baseline = (with_info(run, metrics=(record,)) for run, record in zip(runs, records, strict=True))
    found = compare(candidate, baseline, "prove_time")
    assert found.samples == (4, 4)
    assert found.low < found.ratio < found.high


def test_enough_proofs_are_sampled_as_proofs(runs):
    one = [with_info(run, conditions={**run.info.conditions, "partitions": 1}) for run in runs]
    assert compare(*one, "batch_average").sampled == "proofs"


def test_bootstrap_resolves_what_is_larger_than_the_spread_and_nothing_smaller():
    generator = np.random.default_rng(3)
    base = generator.normal(100, 5, 200)
    low, high = bootstrap_ratio(generator.normal(95, 5, 200), base)
    assert low < high < 1
    low, high = bootstrap_ratio(generator.normal(100, 5, 200), base)
    assert low < 1 < high


def test_bootstrap_covers_the_true_ratio_about_as_often_as_it_says():
    generator = np.random.default_rng(7)
    inside = 0
    for _ in range(100):
        low, high = bootstrap_ratio(generator.exponential(90, 60), generator.exponential(100, 60))
        inside += low <= 0.9 <= high
    assert 88 <= inside <= 100  # 95 expected; P(fewer than 88) < 0.5 %


def test_bootstrap_is_reproducible_and_declines_too_few():
    values = np.arange(1, 20)
    assert bootstrap_ratio(values, values + 3) == bootstrap_ratio(values, values + 3)
    assert bootstrap_ratio(values[:2], values) == (None, None)
    assert bootstrap_ratio(values, np.zeros(9)) == (None, None)


def test_two_versions_of_one_design_differ_in_its_source(runs):
    one, other = (
        with_info(run, policy="mine", inputs={"policy mine": digit * 64})
        for run, digit in zip(runs[:2], "ab", strict=True)
    )
    assert differing(one, other)["source of the policy"] == ("a" * 12, "b" * 12)
    assert "source of the policy" not in differing(one, with_info(other, policy="phase9"))  # another design says so
    assert "source of the policy" not in differing(one, with_info(other, inputs={}))  # of older runs it is not known


def test_differing_conditions_are_named_and_some_forbid_a_comparison(runs):
    candidate = with_info(runs[0], conditions={**runs[0].info.conditions, "gw": 3, "workload": "other"})
    assert differing(candidate, runs[1]) == {"gw": (3, 2), "workload": ("other", "example")}
    assert unlike(candidate, runs[1]) == {"workload": ("other", "example")}

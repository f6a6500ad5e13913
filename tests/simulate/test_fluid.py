"""Fluid sharing: exact ends by hand, and laws that hold for any jobs."""

import math

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from cuzklab.simulate.fluid import NS_PER_S, Fluid


def ends(capacity_per_s, jobs):
    """Ends in seconds of jobs (start in seconds, amount, limit)."""
    env = simpy.Environment()
    fluid, found = Fluid(env, capacity_per_s), [math.nan] * len(jobs)

    def job(number, start_s, amount, limit_per_s):
        yield env.timeout(round(start_s * NS_PER_S))
        yield fluid.serve(amount, limit_per_s)
        found[number] = env.now / NS_PER_S

    for number, values in enumerate(jobs):
        env.process(job(number, *values))
    env.run()
    return found


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([(0, 100, 100)], [1.0]),
        ([(0, 100, 50)], [2.0]),
        ([(0, 100, 1e9)], [1.0]),
        # Two equal transfers take twice as long.
        ([(0, 100, 100), (0, 100, 100)], [2.0, 2.0]),
        # The second arrives half-way: half alone, then half shared; the rest of the second alone.
        ([(0, 100, 100), (0.5, 100, 100)], [1.5, 2.0]),
        # A slow one takes 20 a second; the fast one gets the other 80.
        ([(0, 40, 20), (0, 160, 100)], [2.0, 2.0]),
        # A slow one takes 20, two fast ones 40 each; when the slow one is done, 50 each.
        ([(0, 20, 20), (0, 90, 100), (0, 90, 100)], [1.0, 2.0, 2.0]),
        # Below the capacity nobody disturbs anybody.
        ([(0, 30, 30), (0, 60, 30), (0.5, 30, 30)], [1.0, 2.0, 1.5]),
        ([(0, 0, 10), (3, 0, 10)], [0.0, 3.0]),
    ],
)
def test_exact_ends(jobs, expected):
    assert ends(100.0, jobs) == expected


JOBS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 500), st.integers(1, 300)), min_size=1, max_size=8)
NS = 2e-8  # every change of plan rounds to whole nanoseconds


@given(JOBS)
def test_nobody_is_faster_than_its_limit_and_all_together_than_the_capacity(jobs):
    found = ends(100.0, jobs)
    for end, (start_s, amount, limit) in zip(found, jobs, strict=True):
        assert end - start_s >= amount / min(limit, 100) - NS
    assert max(found) - min(start_s for start_s, _, _ in jobs) >= sum(amount for _, amount, _ in jobs) / 100 - NS


@given(st.lists(st.integers(1, 500), min_size=1, max_size=8))
def test_no_capacity_is_lost_while_there_is_work(amounts):
    found = ends(100.0, [(0, amount, 100) for amount in amounts])
    assert max(found) == pytest.approx(sum(amounts) / 100, abs=NS)
    assert [amount for _, amount in sorted(zip(found, amounts, strict=True))] == sorted(amounts)


@given(JOBS)
def test_a_further_job_delays_and_never_hastens(jobs):
    without, with_another = ends(100.0, jobs), ends(100.0, [*jobs, (2, 100, 60)])
    assert all(late >= early - NS for early, late in zip(without, with_another[:-1], strict=True))

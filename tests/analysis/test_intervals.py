"""Interval algebra against a model that can be seen to be right: sets of unit intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzklab.analysis import intervals as iv

SPAN = st.tuples(st.integers(-20, 60), st.integers(-3, 25)).map(lambda pair: (pair[0], pair[0] + pair[1]))
SPANS = st.lists(SPAN, max_size=12)


def units(spans) -> set[int]:
    return {
        unit for start, end in np.asarray(spans, dtype=np.int64).reshape(-1, 2).tolist() for unit in range(start, end)
    }


def of(spans) -> iv.Intervals:
    return iv.union([start for start, _ in spans], [end for _, end in spans])


def assert_is_set(found: iv.Intervals) -> None:
    assert found.dtype == np.int64
    assert found.ndim == 2
    assert found.shape[1] == 2
    assert (found[:, 1] > found[:, 0]).all()
    assert (found[1:, 0] > found[:-1, 1]).all()


@given(SPANS)
def test_union_covers_what_its_intervals_cover(spans):
    found = of(spans)
    assert_is_set(found)
    assert units(found) == units(spans)
    assert iv.total(found) == len(units(spans))


@given(SPANS, SPANS)
def test_intersection_difference_and_merge(left, right):
    a, b = of(left), of(right)
    for found, expected in (
        (iv.intersection(a, b), units(left) & units(right)),
        (iv.difference(a, b), units(left) - units(right)),
        (iv.merge(a, b), units(left) | units(right)),
    ):
        assert_is_set(found)
        assert units(found) == expected


@given(SPANS, st.integers(-10, 30), st.integers(0, 40))
def test_clip_and_complement(spans, start, extent):
    window = set(range(start, start + extent))
    inside, outside = iv.clip(of(spans), start, start + extent), iv.complement(of(spans), start, start + extent)
    assert units(inside) == units(spans) & window
    assert units(outside) == window - units(spans)
    assert_is_set(inside)
    assert_is_set(outside)


@given(SPANS, SPANS)
def test_covered_measures_each_interval_by_itself(spans, by):
    found = iv.covered([start for start, _ in spans], [end for _, end in spans], of(by))
    assert found.dtype == np.int64
    assert found.tolist() == [len(set(range(start, end)) & units(by)) for start, end in spans]


@given(SPANS)
def test_depth_is_the_number_of_open_intervals(spans):
    times, depths = iv.time_by_depth([start for start, _ in spans], [end for _, end in spans])
    for unit in range(-25, 90):
        place = np.searchsorted(times, unit, side="right") - 1
        assert (depths[place] if place >= 0 else 0) == sum(start <= unit < end for start, end in spans)


@given(SPANS)
def test_mean_depth_is_the_mean_over_the_units_of_an_interval(spans):
    found = iv.mean_depth([start for start, _ in spans], [end for _, end in spans])
    for (start, end), depth in zip(spans, found, strict=True):
        open_at = [sum(other <= unit < until for other, until in spans) for unit in range(start, end)]
        assert depth == pytest.approx(sum(open_at) / len(open_at) if open_at else 0.0, rel=1e-12)


def test_nanoseconds_of_a_long_uptime_stay_exact():
    start = 2**62 + 1  # a float would round this to a multiple of 1024
    found = iv.union([start, start + 3], [start + 3, start + 7])
    assert found.tolist() == [[start, start + 7]]
    assert iv.covered([start + 1], [start + 6], found).tolist() == [5]
    assert iv.total(iv.difference(found, iv.union([start + 2], [start + 3]))) == 6

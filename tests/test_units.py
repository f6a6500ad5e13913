"""Sizes, times and metrics that refuse to be compared across kinds."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzklab.units import (
    GiB,
    Metric,
    MetricKindError,
    format_seconds,
    format_size,
    format_value,
    parse_size,
    percent,
    percent_range,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("16GiB", 16 * GiB), ("512 MiB", 512 << 20), ("4096", 4096), ("1.5GiB", 3 * GiB // 2), ("1e9", 10**9),
        ("2 gb", 2 * 10**9), (17, 17),
    ],
)  # fmt: skip
def test_sizes_are_read_as_people_write_them(text, size_bytes):
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "16 gigs", "0.3", "nan", "1e99GiB", "16GiB;", "0x10"])
def test_what_is_not_a_size_is_refused(text):
    with pytest.raises(ValueError, match=r"size|memory|whole"):
        parse_size(text)


@given(st.integers(min_value=0, max_value=2**50))
def test_a_number_of_bytes_reads_as_itself(size_bytes):
    assert parse_size(str(size_bytes)) == size_bytes


def test_figures_are_written_with_three_digits_and_a_unit():
    assert format_size(13.774781744927168 * GiB) == "13.8 GiB"
    assert format_size(100) == "100 B"
    assert format_seconds(0.0005514) == "551 µs"
    assert format_seconds(37.42) == "37.4 s"
    assert format_seconds(0) == "0.00 s"
    assert format_value(0.4567, "1") == "0.457"
    assert format_value(1234, "1") == "1,234"


def test_a_quotient_of_two_kinds_is_refused():
    steady = Metric("steady_interval", 37.4, "published")
    prove = Metric("prove_time", 32.1, "published")
    with pytest.raises(MetricKindError, match="prove_time and steady_interval"):
        prove.ratio(steady)
    with pytest.raises(MetricKindError):
        assert prove < steady


def test_a_quotient_within_a_kind_is_the_quotient_of_values():
    assert Metric("steady_interval", 18.7, "simulated").ratio(Metric("steady_interval", 37.4, "published")) == 0.5


def test_unknown_kinds_and_origins_of_a_figure_are_refused():
    with pytest.raises(ValueError, match="unknown kind"):
        Metric("seconds_per_proof", 1, "measured")
    with pytest.raises(ValueError, match="guessed"):
        Metric("prove_time", 1, "guessed")


@pytest.mark.parametrize(
    ("share", "more", "text"),
    [
        (0.63, {}, "63 %"), (0.0424, {}, "4.2 %"), (0.05, {}, "5 %"), (0.9996, {}, "100 %"), (0, {}, "0 %"),
        (0.0995, {}, "10 %"), (0.0004, {}, "under 0.1 %"), (-0.0004, {}, "over −0.1 %"), (-0.025, {}, "−2.5 %"),
        (0.0117, {"decimals": 2}, "1.17 %"), (0.531, {"decimals": 1, "signed": True}, "+53.1 %"),
        (-0.03, {"decimals": 1, "signed": True}, "−3.0 %"), (-0.0001, {"decimals": 1, "signed": True}, "±0.0 %"),
        (0.012, {"decimals": 1}, "1.2 %"),
    ],
)  # fmt: skip
def test_shares_are_written_in_one_way(share, more, text):
    assert percent(share, **more) == text


def test_a_range_of_changes_has_signs():
    assert percent_range(-0.03, 0.0859) == "−3.0 % to +8.6 %"


def test_nothing_else_writes_percentages():
    root = Path(__file__).parent.parent
    files = [*(root / "cuzklab").rglob("*.py"), *(root / "notebooks").glob("*.ipynb")]
    found = [
        f"{file.name}: {line.strip()}"
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.search(r":[+,]?\.\d%\}|\"[+,]?\.\d%\"", line)
    ]
    assert len(files) > 300
    assert found == []


def test_a_share_that_is_no_number_is_told_as_one():
    """It comes from stored figures, and a page that shows it must not fail for it."""
    assert percent(float("nan")) == percent(float("nan"), 1) == "nan %"

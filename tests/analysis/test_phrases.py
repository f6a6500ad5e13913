"""Sentences: what repeats is said once, sizes and shares read well."""

import pytest

from cuzklab.analysis.phrases import listing, merged, percent
from cuzklab.units import sizes_in_words


def test_listing():
    assert [listing(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]


def test_clauses_that_begin_alike_are_joined():
    clauses = ["it gains nothing in the run with gw 2", "it gains nothing in the run with gw 3", "it fails",
               "it fails"]  # fmt: skip
    assert merged(clauses) == ["it gains nothing in the run with gw 2 and 3", "it fails"]
    assert merged(["a b c d", "a b c d e"]) == ["a b c d", "a b c d e"]  # nothing would be left of the first


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.63, "63 %"), (0.042, "4.2 %"), (1, "100 %"), (-0.0712, "−7.1 %"), (0.0004, "under 0.1 %"),
     (-0.0004, "over −0.1 %")],
)  # fmt: skip
def test_percent(share, text):
    assert percent(share) == text


def test_sizes_in_words():
    assert sizes_in_words("gpu0 d_bc 8589934592 B") == "gpu0 d_bc 8.00 GiB"

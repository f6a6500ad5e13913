"""Sentences: what repeats is said once, sizes and shares read well."""

from cuzklab.analysis.phrases import listing, merged, rows_of
from cuzklab.units import sizes_in_words


def test_listing():
    assert [listing(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]


def test_clauses_that_begin_alike_are_joined():
    clauses = ["it gains nothing in the run with gw 2", "it gains nothing in the run with gw 3", "it fails",
               "it fails"]  # fmt: skip
    assert merged(clauses) == ["it gains nothing in the run with gw 2 and 3", "it fails"]
    assert merged(["a b c d", "a b c d e"]) == ["a b c d", "a b c d e"]  # nothing would be left of the first


def test_sizes_in_words():
    assert sizes_in_words("gpu0 d_bc 8589934592 B") == "gpu0 d_bc 8.00 GiB"


def test_the_size_of_a_circuit_is_read_from_its_name():
    assert rows_of("porep-shaped-20") == "2^20 rows"
    assert rows_of("porep-32g") == "porep-32g"

"""Amounts of memory behave as integers do, and know up to where everything that was computed with them stays so."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzklab.check.amounts import Amount, Log
from cuzklab.units import format_size

SMALL = st.integers(0, 60)


def computed(vram, a, b, c):
    """What a policy might do with the amount that is free."""
    free = vram - a
    rest = free % c
    return (
        free >= b, free < b, b <= free, a - vram > -b, free == b, free != c, 2 * free - vram > c, max(free, b) == b,
        free // c, rest > b % 7, rest + free > b, divmod(vram, c)[1] < 3, sorted((free, b, c)).index(b), bool(free),
        -free < -b, (vram + a) * 2 >= b,
    )  # fmt: skip


@settings(max_examples=500)
@given(st.integers(1, 60), SMALL, SMALL, st.integers(1, 9))
def test_nothing_changes_below_the_next_threshold(vram, a, b, c):
    log = Log(vram)
    found = tuple(map(int, computed(Amount(vram, log), a, b, c)))
    assert found == tuple(map(int, computed(vram, a, b, c)))
    until = log.next_threshold()
    for more in range(vram, 150 if until is None else until):
        assert tuple(map(int, computed(more, a, b, c))) == found
    assert not log.opaque


def test_a_threshold_is_where_the_answer_changes():
    for predicate, threshold in (
        (lambda vram: vram - 10 >= 30, 40), (lambda vram: vram - 10 < 30, 40), (lambda vram: vram > 40, 41),
        (lambda vram: vram <= 40, 41), (lambda vram: 50 - vram >= 7, 44), (lambda vram: 3 * vram >= 100, 34),
        (lambda vram: vram // 16, 32),
    ):  # fmt: skip
        log = Log(20)
        predicate(Amount(20, log))
        assert log.next_threshold() == threshold
        assert predicate(threshold) != predicate(threshold - 1)


def test_amounts_that_grow_together_are_compared_once_and_for_all():
    log = Log(20)
    vram = Amount(20, log)
    assert (vram - 3 < vram, vram - 5 == vram - 5, type(vram - vram)) == (True, True, int)
    assert log.thresholds == set()


@pytest.mark.parametrize(
    "use",
    [lambda vram: vram / 2, lambda vram: vram * vram, lambda vram: vram >> 2, lambda vram: float(vram),
     lambda vram: 100 // vram, lambda vram: vram > 2.5, lambda vram: vram.bit_length(), lambda vram: -vram // 3,
     lambda vram: vram % -3, lambda vram: round(vram)],
)  # fmt: skip
def test_what_cannot_be_followed_is_told_with_its_line(use):
    log = Log(20)
    assert use(Amount(20, log)) == use(20)
    assert log.opaque.startswith("test_amounts.py:")


def test_writing_an_amount_down_is_no_comparison():
    log = Log(16 << 30)
    vram = Amount(16 << 30, log)
    assert (format_size(vram), f"{vram} B") == ("16.0 GiB", "17179869184 B")
    assert (log.opaque, log.thresholds) == ("", set())
    assert type(pickle.loads(pickle.dumps(vram))) is int

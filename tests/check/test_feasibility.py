"""How much device memory a design needs: exact to the byte, and not monotone."""

import random

import pytest

from cuzklab.check import check
from cuzklab.check.feasibility import Interval, Range, joined
from cuzklab.errors import BadInput
from cuzklab.policies import from_source, load
from cuzklab.stages import POREP_32G, partition_sizes
from cuzklab.units import GiB, MiB

SIZES = partition_sizes(POREP_32G)
STAGED, MARGIN = SIZES.d_a + SIZES.d_bc, 512 * MiB
H_MSM = SIZES.scratch["h_msm", ""]


def covered(name, workers, partitions=1, first=8 * GiB, last=64 * GiB, **options):
    part = Range(load(name, **options), workers, partitions)
    return [(one.from_bytes, one.to_bytes, one.verdict) for one in part.cover(first, last)]


def test_phase_10_ordered_is_safe_then_unsafe_again():
    # Below d_a + d_bc + margin the query says no, so memory is taken inside `compute`, by one worker at a time. From
    # there on one stages while another may be about to allocate; two staged partitions make it safe.
    assert covered("phase10_ordered", 2) == [
        (8 * GiB, STAGED - 1, "unsafe"),
        (STAGED, STAGED + MARGIN - 1, "safe"),
        (STAGED + MARGIN, 2 * STAGED - 1, "unsafe"),
        (2 * STAGED, None, "safe"),
    ]


def test_phase_9_is_unsafe_where_its_margin_does_not_cover_the_h_msm():
    assert covered("phase9", 2) == [
        (8 * GiB, STAGED - 1, "unsafe"),
        (STAGED, STAGED + MARGIN - 1, "safe"),
        (STAGED + MARGIN, STAGED + H_MSM - 1, "unsafe"),
        (STAGED + H_MSM, None, "safe"),
    ]


@pytest.mark.parametrize("partitions", [1, 2])
def test_the_reservation_is_safe_wherever_one_partition_fits(partitions):
    assert covered("phase10_reservation", 2, partitions) == [(8 * GiB, STAGED - 1, "unsafe"), (STAGED, None, "safe")]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [3])
def test_phase_10_ordered_needs_as_many_staged_partitions_as_there_are_workers(workers):
    expected = [(8 * GiB, STAGED - 1, "unsafe")]
    for staged in range(1, workers):
        expected.append((staged * STAGED, staged * STAGED + MARGIN - 1, "safe"))
        expected.append((staged * STAGED + MARGIN, (staged + 1) * STAGED - 1, "unsafe"))
    assert covered("phase10_ordered", workers) == [*expected, (workers * STAGED, None, "safe")]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("phase10_ordered", {}),
        ("phase10_nested", {"on_full": "wait"}),
        ("phase12", {}),
        pytest.param("phase10_ticket", {}, marks=pytest.mark.slow),
    ],
)
def test_a_check_anywhere_says_the_same(name, options):
    policy = load(name, **options)
    intervals = Range(policy, 2, 1).cover(8 * GiB, 40 * GiB)
    edges = [one.from_bytes for one in intervals[1:]]
    amounts = [edge - offset for edge in edges for offset in (0, 1)]
    amounts += [random.Random(name).randint(8 * GiB, 40 * GiB) for _ in range(6)]
    for vram_bytes in amounts:
        verdict = check(policy, workers=2, partitions=1, vram_bytes=vram_bytes, shortest=False).verdict
        (here,) = [one for one in intervals if one.from_bytes <= vram_bytes <= (one.to_bytes or vram_bytes)]
        assert here.verdict == verdict, vram_bytes


def test_with_a_step_only_its_amounts_are_looked_at():
    part = Range(load("phase9"), 2, 1, step_bytes=2 * GiB)
    assert [(one.from_bytes, one.to_bytes, one.verdict) for one in part.cover(8 * GiB, 20 * GiB)] == [
        (8 * GiB, 10 * GiB, "unsafe"), (12 * GiB, 20 * GiB, "safe"),
    ]  # fmt: skip


OPAQUE = '''"""Decides by the square of the amount of memory."""
from cuzklab.policies.effects import Alloc, Free, QueryFree
from cuzklab.policies.model import program


@program
def prove_partition(p, gpu):
    free = yield QueryFree(gpu)
    if free * free > 400:
        yield Free((yield Alloc(gpu, "x", 10)))
    else:
        yield Free((yield Alloc(gpu, "x", 30)))
'''


def test_a_policy_that_cannot_be_followed_needs_a_step():
    policy = from_source("squares", OPAQUE, "squares.py")
    with pytest.raises(BadInput, match=r"squares\.py:9: the policy computes .* give a step"):
        Range(policy, 1, 1).cover(5, 50)
    intervals = Range(policy, 1, 1, step_bytes=5).cover(5, 50)
    assert [(one.from_bytes, one.to_bytes, one.verdict) for one in intervals] == [(5, 20, "unsafe"), (25, 50, "safe")]


def test_what_is_covered_is_kept_when_it_is_to_stop():
    kept = []
    part = Range(load("phase10_ordered"), 3, 1)
    part.keep = lambda intervals, reached: kept.append((intervals, reached))
    part.stop = lambda: len(kept) == 2  # asked in the first search that is large enough to look up
    with pytest.raises(KeyboardInterrupt):
        part.cover(8 * GiB, 48 * GiB)
    assert [(one.from_bytes, one.verdict) for one in kept[-1][0]] == [(8 * GiB, "unsafe"), (STAGED, "safe")]
    assert kept[-1][1] == STAGED + MARGIN


def test_what_takes_too_many_states_is_unknown_and_says_so():
    part = Range(load("phase10_ordered"), 3, 1, max_states=1000)
    (interval,) = part.cover(40 * GiB, 40 * GiB + 100)
    assert (interval.verdict, interval.message) == ("unknown", "1000 states were not enough")


def test_neighbours_of_one_verdict_are_joined():
    one, two = Interval(1, 4, "unsafe", ("oom",), "first"), Interval(5, 9, "unsafe", ("leak",), "second")
    assert joined([one, two, Interval(10, None, "safe")]) == [
        Interval(1, 9, "unsafe", ("leak", "oom"), "first"), Interval(10, None, "safe"),
    ]  # fmt: skip

"""The reductions change how much is looked at, never what is found: compared with the plain search.

The programs are random: two or three actors with two locks, one device, a semaphore, a flag, a queue.
"""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cuzklab.check import check, explore
from cuzklab.policies import load
from cuzklab.policies.effects import Acquire, Release
from cuzklab.policies.model import Partition, program
from cuzklab.units import GiB
from tests.check.programs import LOCKS, SIZES, script

_LOCK = st.integers(0, 1)
_SIMPLE = st.one_of(
    st.tuples(st.sampled_from(["acquire", "release"]), _LOCK),
    st.tuples(st.just("alloc"), st.integers(2, 7), st.sampled_from(["fail", "wait"])),
    st.tuples(st.just("free"), st.booleans()),
    st.tuples(st.sampled_from(["launch", "query", "compute", "notify", "wait", "get"])),
    st.tuples(st.sampled_from(["set", "clear", "wait_unless_set"])),
    st.tuples(st.just("put"), st.integers(0, 1)),
    st.tuples(st.sampled_from(["reserve", "unreserve"]), st.sampled_from([4, 6])),
)  # fmt: skip
_LOCKED = st.tuples(_LOCK, st.lists(_SIMPLE, max_size=2)).map(
    lambda of: [("acquire", of[0]), *of[1], ("release", of[0])]
)
_BORROWED = st.tuples(st.integers(2, 7), st.sampled_from(["fail", "wait"]), st.lists(_SIMPLE, max_size=1)).map(
    lambda of: [("alloc", of[0], of[1]), *of[2], ("free", False)]
)
_FORKED = st.tuples(st.lists(_SIMPLE, max_size=2), st.lists(_SIMPLE, max_size=1), st.booleans()).map(
    lambda of: [("fork", tuple(of[0])), *of[1], *([("join",)] if of[2] else [])]
)
_PROGRAM = st.lists(
    st.one_of(_SIMPLE.map(lambda step: [step]), _LOCKED, _BORROWED, _FORKED), min_size=1, max_size=3
).map(lambda pieces: tuple(step for piece in pieces for step in piece)[:6])
_WORKER = st.lists(_PROGRAM, min_size=1, max_size=2)


_DEADLOCKS = ("capacity_deadlock", "lock_order_deadlock", "lost_wakeup", "leak")


def _found(programs, **how):
    exploration = explore(programs, **how)
    assert exploration.complete and all(finding.shortest for finding in exploration.findings)
    causes = {(finding.kind, finding.sites): len(finding.schedule) for finding in exploration.findings}
    assert len(causes) == len(exploration.findings)
    return causes, exploration.outcomes


@settings(max_examples=200, deadline=None)
@given(st.lists(_WORKER, min_size=2, max_size=3), st.booleans())
def test_reduced_search_finds_what_the_plain_search_finds(workers, alike):
    if alike:
        workers[-1] = workers[0]
    used = [sequence if len(workers) == 2 else sequence[:1] for sequence in workers]
    assume(any(step[0] not in ("free", "join") for sequence in used for steps in sequence for step in steps))
    programs = {f"w{number}": tuple(script(*steps) for steps in sequence) for number, sequence in enumerate(used)}
    plain, outcomes = _found(programs, partial_order=False, merge=False, symmetric=False)
    for partial_order, symmetric in ((True, False), (False, True), (True, True)):
        how = {"partial_order": partial_order, "symmetric": symmetric}
        assert _found(programs, merge=False, **how) == (plain, outcomes)
    merged = _found(programs, partial_order=False, symmetric=False)
    for partial_order, symmetric in ((True, False), (False, True), (True, True)):
        assert _found(programs, partial_order=partial_order, symmetric=symmetric) == merged
    # A node that stands for several histories may promise more help to those who wait than each of them would, so that
    # a deadlock is only certain some steps later.
    assert merged[1] == outcomes and merged[0].keys() == plain.keys()
    for cause, length in plain.items():
        assert merged[0][cause] == length or (cause[0] in _DEADLOCKS and merged[0][cause] > length)


@pytest.mark.parametrize("policy", ["phase9", "phase10_ordered", "phase10_nested"])
@pytest.mark.parametrize(("workers", "partitions"), [(2, 2), (3, 1)])
def test_reductions_agree_on_policies(policy, workers, partitions):
    options = {"on_full": "wait"} if policy == "phase10_nested" else {}

    def found(**how):
        result = check(
            load(policy, **options), workers=workers, partitions=partitions, vram_bytes=16 * GiB, **how
        )  # fmt: skip
        assert result.complete and all(finding.shortest for finding in result.findings)
        return [(finding.kind, finding.sites, len(finding.schedule)) for finding in result.findings], result.states

    findings, states = found()
    without_symmetry, more_states = found(symmetric=False)
    assert findings == without_symmetry and states < more_states


def test_workers_that_only_look_alike_are_told_apart():
    @program
    def odd_one(p):
        yield Acquire(LOCKS[0])
        if p.proof == 1:
            yield Acquire(LOCKS[1])
            yield Release(LOCKS[1])
        yield Release(LOCKS[0])

    programs = {f"w{number}": (odd_one(Partition(number, 0, SIZES)),) for number in range(3)}
    found = explore(programs)
    assert (found.verdict, found.states) == ("safe", explore(programs, symmetric=False).states)


def test_one_of_two_equal_states_is_visited():
    programs = {f"w{number}": (script(("acquire", 0), ("release", 0)),) for number in range(3)}
    # Places before, inside, after: 27, but for those with two or three inside (6 + 1): 20. Up to names: 4 with nobody
    # inside and 3 with one.
    assert explore(programs, partial_order=False, symmetric=False).states == 20
    assert explore(programs, partial_order=False).states == 4 + 3


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("policy", ["phase9", "phase10_ordered"])
def test_more_workers_than_renamings_are_told_apart_and_judged_alike(policy, most, monkeypatch):
    monkeypatch.setattr("cuzklab.check.symmetry._MOST_RENAMINGS", most)
    found = check(load(policy), workers=3, partitions=1, vram_bytes=16 * GiB)
    monkeypatch.undo()
    wanted = check(load(policy), workers=3, partitions=1, vram_bytes=16 * GiB)
    assert found.complete and found.verdict == wanted.verdict
    assert {(one.kind, len(one.schedule)) for one in found.findings} == {
        (one.kind, len(one.schedule)) for one in wanted.findings
    }
    assert found.states >= wanted.states

"""The reductions change how much is looked at, never what is found: compared with the plain search.

The programs are random: two or three actors with two locks, one device, a semaphore, a flag, a queue.
"""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cuzklab.check import explore
from tests.check.programs import script

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


def _found(programs, **how):
    exploration = explore(programs, **how)
    assert exploration.complete and all(finding.shortest for finding in exploration.findings)
    causes = {(finding.kind, finding.sites): len(finding.schedule) for finding in exploration.findings}
    assert len(causes) == len(exploration.findings)
    return causes, exploration.outcomes


@settings(max_examples=300, deadline=None)
@given(st.lists(_WORKER, min_size=2, max_size=3))
def test_reduced_search_finds_what_the_plain_search_finds(workers):
    used = [sequence if len(workers) == 2 else sequence[:1] for sequence in workers]
    assume(any(step[0] not in ("free", "join") for sequence in used for steps in sequence for step in steps))
    programs = {f"w{number}": tuple(script(*steps) for steps in sequence) for number, sequence in enumerate(used)}
    plain = _found(programs, partial_order=False, merge=False)
    for partial_order, merge in ((True, True), (True, False), (False, True)):
        assert _found(programs, partial_order=partial_order, merge=merge) == plain

"""Bad input is refused by name, and a search that did not cover everything claims nothing."""

import itertools
import re
from types import SimpleNamespace

import pytest

from cuzklab.check import check, explore, render_text
from cuzklab.check.search import Budget
from cuzklab.errors import BadInput
from cuzklab.policies import load
from cuzklab.policies.effects import Acquire, Compute, Put, QueryFree, Release
from cuzklab.policies.model import Queue, program
from cuzklab.units import GiB
from tests.check.programs import GPU, LOCKS, PARTITION, plain

RED, _ = LOCKS
WORK = Compute("stage", PARTITION)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"workers": 0}, "workers must be at least 1, not 0"),
        ({"partitions": 0}, "partitions must be at least 1, not 0"),
        ({"devices": -1}, "devices must be at least 1, not -1"),
        ({"vram_bytes": 0}, "vram must be at least 1 B, not 0"),
        ({"margin_bytes": -1}, "the margin cannot be negative: -1"),
        ({"max_states": 0}, "max_states must be positive, not 0"),
        ({"seconds": 0}, "seconds must be positive, not 0"),
    ],
)
def test_conditions_that_make_no_sense(conditions, message):
    with pytest.raises(BadInput, match=re.escape(message)):
        check(load("phase9"), **({"workers": 1, "partitions": 1, "vram_bytes": 16 * GiB} | conditions))


def _refused(make, match):
    with pytest.raises(BadInput, match=match) as caught:
        explore({"a": (program(make)(),)})
    assert "\n" not in str(caught.value)


def test_something_unknown_is_yielded():
    def wrong():
        yield WORK
        yield 5

    _refused(wrong, r"test_limits\.py:\d+: the program of a yields 5, which is no effect")


def test_a_program_that_raises():
    def wrong():
        yield WORK
        {}["missing"]

    _refused(wrong, r"test_limits\.py:\d+: the program of a raised KeyError: 'missing'")


def test_a_program_that_comes_to_the_same_for_ever():
    def wrong():
        while True:
            yield WORK

    _refused(wrong, r"test_limits\.py:\d+: the program of a can go on for ever \(Compute stage\)")


def test_a_program_that_counts_for_ever(monkeypatch):
    monkeypatch.setattr("cuzklab.check.automaton.MAX_EFFECTS", 500)

    def wrong():
        for number in itertools.count():
            yield Compute("stage", PARTITION, part=str(number))

    _refused(wrong, r"the program of a yields more than 500 effects; does it end\?")


def test_a_program_that_never_yields():
    def wrong():
        yield WORK
        while True:
            pass

    _refused(wrong, r"test_limits\.py:\d+: the program of a runs on without yielding an effect; does it end\?")


def test_a_program_that_depends_on_something_else():
    count = itertools.count()

    def wrong():
        yield Compute("stage", PARTITION, part=str(next(count)))
        yield QueryFree(GPU)
        yield WORK

    @program
    def busy():
        yield Acquire(RED)
        yield Release(RED)

    # Seen as soon as a second branch of the program has to be replayed.
    with pytest.raises(BadInput, match="a policy must depend on nothing but its arguments and the results it receives"):
        explore({"a": (program(wrong)(),), "b": (plain(*_borrowing()),)}, merge=False)


def _borrowing():
    from cuzklab.policies.effects import Launch

    return (Launch(GPU, "stage", PARTITION),)


def test_something_that_cannot_be_told_apart():
    def wrong():
        yield Put(Queue("box"), [])

    _refused(wrong, r"is not hashable, so states cannot be told apart")


@pytest.mark.parametrize("of", [{}, {"a": ()}, {"a": (plain(),)}])
def test_nothing_to_check(of):
    with pytest.raises(BadInput, match="nothing to check"):
        explore(of)


def test_no_program():
    with pytest.raises(BadInput, match="is not a program; decorate its generator function with @program"):
        explore({"a": (42,)})


def test_a_policy_without_the_decorator(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def prove_partition(p, gpu):\n    yield 1\n")
    with pytest.raises(BadInput, match="policy mine: prove_partition must be a generator function decorated"):
        check(load(file), workers=1, partitions=1, vram_bytes=16 * GiB)


# --- limits ----------------------------------------------------------------------------------------------------------


def many():
    return {f"w{number}": (plain(*[WORK] * 12),) for number in range(4)}


def test_too_few_states_claim_nothing():
    found = explore(many(), partial_order=False, symmetric=False, max_states=3000)
    assert (found.complete, found.verdict, found.findings) == (False, "unknown", ())
    assert found.stopped == "3000 states were not enough"
    assert 3000 <= found.states < 13**4


def test_time_is_limited():
    clock = SimpleNamespace(now=0.0)
    budget = Budget(10, 5.0, clock=lambda: clock.now)
    budget.check(9)
    clock.now = 5.0
    with pytest.raises(Exception, match=r"5 s were not enough"):
        budget.check(9)


def test_an_interruption_leaves_what_was_covered():
    def stop(states, seconds):
        raise KeyboardInterrupt

    found = explore(many(), partial_order=False, symmetric=False, progress=stop)
    assert (found.complete, found.verdict, found.stopped) == (False, "unknown", "interrupted")
    assert found.states == 1024


def test_what_was_found_before_an_interruption_counts_but_is_not_called_shortest():
    def stop(states, seconds):
        raise KeyboardInterrupt

    found = explore(many() | {"z": (plain(Release(RED)),)}, partial_order=False, symmetric=False, progress=stop)
    assert (found.complete, found.verdict) == (False, "unsafe")
    assert [(finding.kind, finding.shortest) for finding in found.findings] == [("release_by_non_owner", False)]


def test_an_incomplete_check_says_that_it_proves_nothing():
    found = check(
        load("phase9"),
        workers=3,
        partitions=2,
        vram_bytes=16 * GiB,
        partial_order=False,
        symmetric=False,
        max_states=1500,
    )
    assert found.to_json()["verdict"] == "unknown" and not found.to_json()["complete"]
    text = render_text(found, width=300)
    assert "nothing found, but not every interleaving was covered: 1500 states were not enough" in text
    assert "That is no proof of safety." in text


def test_progress_is_told():
    seen = []
    explore(many(), partial_order=False, symmetric=False, progress=lambda states, seconds: seen.append(states))
    assert seen == [1024 * number for number in range(1, 13**4 // 1024 + 1)]

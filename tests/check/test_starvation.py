"""Waiting for ever though the scheduling is fair: named programs, and their repaired twins."""

import pytest

from cuzklab.check import explore, render_text
from cuzklab.check.findings import CheckResult
from cuzklab.errors import BadInput
from cuzklab.policies.effects import Acquire, Compute, Get, Notify, Put, ReadFlag, Release, SetFlag, Wait, WaitClear
from cuzklab.policies.model import Flag, Queue, Semaphore, program
from tests.check.programs import LOCKS, PARTITION, plain, steps

RED, BLUE = LOCKS
STOP, BELL, JOBS = Flag("stop"), Semaphore("bell"), Queue("jobs", 1)
WORK = Compute("stage", PARTITION)


@program
def works_until_told(lock):
    """Takes the lock again and again, until it is told to stop."""
    while not (yield ReadFlag(STOP)):
        yield Acquire(lock)
        yield WORK
        yield Release(lock)


@program
def polls(flag):
    while not (yield ReadFlag(flag)):
        yield WORK


@program
def serves_until_told():
    """Takes from the queue until it is told to stop; what it takes it puts back for others."""
    while not (yield ReadFlag(STOP)):
        job = yield Get(JOBS)
        yield Put(JOBS, job)


DEFECTS = {
    # The one that would end the loop needs the lock for that, and nothing makes the other let it in.
    "passed at a lock": (
        {"a": works_until_told(RED), "b": plain(Acquire(RED), SetFlag(STOP), Release(RED))},
        ("b",), {"a"}, "b can be passed for ever by a at Acquire red",
    ),
    "passed by two": (
        {"a": works_until_told(RED), "b": works_until_told(RED),
         "c": plain(Acquire(RED), SetFlag(STOP), Release(RED))},
        ("c",), {"a", "b"}, "c can be passed for ever by",
    ),
    "polling for what never comes": ({"a": polls(Flag("never"))}, ("a",), set(), "a can go round for ever"),
    "passed at a queue": (
        {"a": serves_until_told(), "b": plain(Put(JOBS, 1), Get(JOBS), SetFlag(STOP), Put(JOBS, 2))},
        ("b",), {"a"}, "b can be passed for ever by a at",
    ),
}  # fmt: skip
REPAIRED = {
    "passed at a lock": {"a": works_until_told(RED), "b": plain(SetFlag(STOP), Acquire(RED), Release(RED))},
    "passed by two": {
        "a": works_until_told(RED), "b": works_until_told(RED), "c": plain(SetFlag(STOP), Acquire(RED), Release(RED)),
    },
    "polling for what never comes": {"a": polls(STOP), "b": plain(WORK, SetFlag(STOP))},
    "passed at a queue": {"a": serves_until_told(), "b": plain(Put(JOBS, 1), SetFlag(STOP))},
}  # fmt: skip


def found(programs):
    return explore({name: (one,) for name, one in programs.items()})


@pytest.mark.parametrize("name", DEFECTS)
def test_starvation_is_found(name):
    programs, actors, movers, message = DEFECTS[name]
    exploration = found(programs)
    starving = [
        finding for finding in exploration.findings if finding.kind == "starvation" and finding.actors == actors
    ]
    assert starving and exploration.complete
    for finding in starving:
        assert finding.message.startswith(message)
        loop = finding.schedule[finding.loop_from - 1 :]
        assert loop and {step.actor for step in loop} - set(actors) <= movers
        assert (actors[0] in {step.actor for step in loop}) == (not movers)


@pytest.mark.parametrize("name", REPAIRED)
def test_the_repaired_twin_ends_under_every_fair_schedule(name):
    exploration = found(REPAIRED[name])
    assert (exploration.findings, exploration.complete, exploration.outcomes) == ((), True, {"ok"})


def test_the_schedule_goes_round():
    (finding,) = found(DEFECTS["passed at a lock"][0]).findings
    # Wherever the round begins, it is one round of a, in which b is blocked at least once.
    assert finding.loop_from == len(finding.schedule) - 3
    assert sorted(line for line in steps(finding)[finding.loop_from - 1 :]) == [
        "a: Acquire red", "a: Compute stage", "a: ReadFlag stop", "a: Release red",
    ]  # fmt: skip
    conditions = {"workers": 1, "partitions": 1, "devices": 1, "vram_bytes": 1 << 30, "options": {}}
    text = render_text(CheckResult("mine", conditions, found(DEFECTS["passed at a lock"][0])))
    assert f"From step {finding.loop_from} on it repeats itself for ever" in text


def test_a_lock_that_is_taken_in_turn_starves_nobody():
    # b stops a by a flag that it sets while it holds the other lock, which a lets go of only for b to have it.
    @program
    def in_turn(mine, others):
        while not (yield ReadFlag(STOP)):
            yield Wait(mine)
            yield Notify(others)

    @program
    def stops(mine, others):
        yield Wait(mine)
        yield SetFlag(STOP)
        yield Notify(others)

    first, second = Semaphore("first", 1), Semaphore("second")
    assert found({"a": in_turn(first, second), "b": stops(second, first)}).findings == ()


def test_whoever_can_move_at_every_moment_is_not_left_out_for_ever():
    # a's rounds alone are an endless schedule, but not a fair one: b could ring at any moment.
    assert found({"a": polls(STOP), "b": plain(SetFlag(STOP))}).findings == ()


def test_a_finite_number_of_rounds_delays_but_does_not_starve():
    @program
    def three_times():
        for _ in range(3):
            yield Acquire(RED)
            yield Release(RED)

    assert found({"a": three_times(), "b": plain(Acquire(RED), Release(RED))}).findings == ()


def test_deadlocks_and_starvation_come_side_by_side():
    programs = DEFECTS["passed at a lock"][0] | {"c": plain(Wait(BELL))}
    assert sorted({finding.kind for finding in found(programs).findings}) == ["lost_wakeup", "starvation"]


def test_an_endless_program_that_asks_nothing_of_the_others_is_refused():
    @program
    def endless():
        while True:
            yield Acquire(RED)
            yield Release(RED)

    with pytest.raises(BadInput, match=r"the program of a can go on for ever \((Acquire|Release) red\); does it end\?"):
        found({"a": endless(), "b": plain(Acquire(RED), Release(RED))})


def test_a_wait_for_a_flag_is_no_round():
    assert found({"a": plain(WaitClear(STOP)), "b": plain(SetFlag(STOP))}).findings[0].kind == "lost_wakeup"

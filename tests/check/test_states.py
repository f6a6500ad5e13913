"""Numbers of states counted by hand."""

import pytest

from cuzklab.check import explore
from cuzklab.policies.effects import (
    Acquire,
    ClearFlag,
    Compute,
    Fork,
    Join,
    Launch,
    Notify,
    QueryFree,
    ReadFlag,
    Release,
    SetFlag,
    Wait,
    WaitClear,
)
from cuzklab.policies.model import Flag, Partition, program
from tests.check.programs import FLAG, GPU, LOCKS, PARTITION, SEMAPHORE, SIZES, kinds, plain, script

RED, _ = LOCKS
WORK = Compute("stage", PARTITION)


def states(programs, **how):
    found = explore({name: (only,) for name, only in programs.items()}, symmetric=False, **how)
    assert found.complete
    return found.states


@pytest.mark.parametrize(("actors", "steps"), [(1, 3), (2, 2), (3, 2)])
def test_independent_actors(actors, steps):
    programs = {f"w{number}": plain(*[WORK] * steps) for number in range(actors)}
    # Each actor stands at one of steps + 1 places; reduced, there is one schedule of actors · steps moves.
    assert states(programs, partial_order=False) == (steps + 1) ** actors
    assert states(programs) == actors * steps + 1


def test_one_lock():
    programs = {name: plain(Acquire(RED), Release(RED)) for name in "ab"}
    # Three places each, but for both inside: 9 − 1. Acquisitions must be interleaved, so nothing can be left out.
    assert states(programs, partial_order=False) == 8
    assert states(programs) == 8


def test_work_inside_a_lock_is_not_interleaved_with_others():
    # Five places each (before, 3 inside, after); 25 − 9 with both inside. Reduced: the work of one runs through.
    programs = {name: plain(Acquire(RED), WORK, WORK, Release(RED)) for name in "ab"}
    assert states(programs, partial_order=False) == 25 - 9
    # Two orders, each 8 moves long, so 9 states, of which the first and the last are shared.
    assert states(programs) == 2 * 9 - 2


def test_a_launch_takes_two_steps():
    programs = {"a": plain(Launch(GPU, "stage", PARTITION)), "b": plain(QueryFree(GPU))}
    # a before, inside, after; b before, after: 3 · 2. What b learns is gone with its end.
    assert states(programs, partial_order=False) == 6


def test_what_is_learned_and_kept_tells_states_apart():
    @program
    def keep():
        free = yield QueryFree(GPU)
        yield Compute("stage", PARTITION, part=str(free))

    # b: before, two nodes in the middle (10 free or 7 during the launch), after. With a before: before, 10, after;
    # with a inside: before, 10, 7, after; with a after: before, 10, 7, after.
    assert states({"a": plain(Launch(GPU, "stage", PARTITION)), "b": keep()}, partial_order=False) == 3 + 4 + 4


def test_histories_that_come_to_the_same_share_a_node():
    @program
    def forget():
        enough = (yield QueryFree(GPU)) >= 5
        yield Compute("roomy" if enough else "tight", PARTITION)

    programs = {"a": plain(Launch(GPU, "stage", PARTITION)), "b": forget()}
    # 10 and 7 are both enough: b has three places, and a three.
    assert states(programs, partial_order=False) == 9
    assert states(programs, partial_order=False, merge=False) == 11


def test_loops_are_not_merged_by_their_variables_alone():
    # In both rounds the variables are the same; only the loop's iterator, on the generator's stack, tells them apart.
    @program
    def rounds():
        for _ in (0, 0, 0):
            yield WORK

    assert states({"a": rounds()}) == 4


def test_nothing_is_remembered_from_one_program_to_the_next():
    one = plain(WORK)
    found = explore({"a": (one, one), "b": (one,)}, partial_order=False)
    assert (found.states, found.complete) == (3 * 2, True)


def test_fork_and_join():
    @program
    def parent():
        yield Join((yield Fork(plain(WORK, WORK), "child")))

    # before; forked and the child at 0, 1, 2 of its steps; joined.
    assert states({"a": parent()}, partial_order=False) == 1 + 3 + 1


def test_a_notification_before_the_wait_is_kept():
    programs = {"a": plain(Notify(SEMAPHORE)), "b": plain(Wait(SEMAPHORE))}
    # (before, before), (notified, before), (notified, after): the wait cannot come first.
    assert states(programs, partial_order=False) == 3


def test_reduction_keeps_apart_what_shares_a_device():
    programs = {name: script(("alloc", 4, "fail"), ("free", False)) for name in "ab"}
    assert states(programs, partial_order=False) == 9
    assert states(programs) == 9


def test_a_flag_counts_as_state_only_where_somebody_looks_at_it():
    writers = {name: plain(SetFlag(FLAG), ClearFlag(FLAG)) for name in "abc"}
    # Nobody looks: the effects of each writer commute with all others, so that one order of six steps is enough.
    assert states(writers) == 7
    assert states(writers | {"d": plain(ReadFlag(FLAG))}) > 2 * 3**3
    # A flag that nobody clears any more holds back whoever waits for that.
    found = explore({"a": (plain(SetFlag(FLAG)),), "b": (plain(WaitClear(FLAG)),)})
    assert [(finding.kind, finding.actors) for finding in found.findings] == [("lost_wakeup", ("b",))]


def test_each_partitions_flag_is_watched_where_workers_are_alike():
    @program
    def one(p):
        flag = Flag(f"{p.name}.flag")
        yield SetFlag(flag)
        yield Notify(SEMAPHORE)
        yield ReadFlag(flag)
        yield Wait(SEMAPHORE)
        yield Wait(SEMAPHORE)

    programs = {f"w{number}": (one(Partition(number, 0, SIZES)),) for number in range(3)}
    found = explore(programs)
    assert kinds(found) == ["lost_wakeup"] == kinds(explore(programs, symmetric=False))

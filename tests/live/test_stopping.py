"""Races at the end of a run that happened: each is made certain here."""

import threading
from types import SimpleNamespace

import pytest

from cuzklab.live.board import Blocked, Board, Stopped, Verdict
from cuzklab.live.primitives import Mutex
from cuzklab.policies import effects as e
from cuzklab.policies.model import Lock, program
from tests.live.programs import SmallWorkload, run_small, small_partition


def test_a_lock_taken_while_the_run_is_being_stopped_is_not_kept():
    board = Board(lambda: 0, lambda actor, waited: None)
    mutex, actor = Mutex(board, "L"), SimpleNamespace(name="a", pending_fault=None)
    with board.mutex:
        board.stop(Verdict("fault", "stopped"))
    for _ in range(2):
        with pytest.raises(Stopped):
            mutex.acquire(actor)
    assert mutex.holder == ""


def test_a_task_that_fails_just_before_it_is_joined_is_heard_of():
    # The join is ready, since the task has ended; its fault came after the joining actor had looked for one.
    board = Board(lambda: 0, lambda actor, waited: None)
    fault = e.ReleaseByNonOwner("late")
    actor = SimpleNamespace(name="a", pending_fault=fault)
    with board.mutex, pytest.raises(e.ReleaseByNonOwner, match="late"):
        board.wait(actor, Blocked("join", "a/child", lambda: True))
    assert actor.pending_fault is None


def test_a_fault_that_comes_after_its_parents_last_effect_is_not_lost():
    class Waits(SmallWorkload):
        def compute(self, partition, stage, part, threads):
            while any(thread.name == "a/child" for thread in threading.enumerate()):
                pass

    @program
    def child():
        yield e.Release(Lock("L"))

    @program
    def parent():
        yield e.Fork(child())
        yield e.Compute("prep_msm", small_partition())

    ended = run_small({"a": parent()}, Waits()).ended
    assert ended.outcome == "fault"
    assert ended.explanation == "a: a/child releases L, held by nobody"

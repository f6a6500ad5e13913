"""Recorded locks behave as those of `threading` do, and tell who had what when."""

import itertools
import queue
import threading

import pytest

from cuzklab.trace.recorders import BoundedSemaphore, Condition, Lock, RLock, Semaphore, owner, record


def until(condition):
    """Let other threads run until something is so."""
    for _ in itertools.count():
        if condition():
            return
        threading.Event().wait(0.001)


def in_thread(function, name="t"):
    thread = threading.Thread(target=function, name=name, daemon=True)
    thread.start()
    return thread


def uses(recording, lock=None):
    recording.stop()
    return [use for use in recording.rows["locks"] if lock in (None, use.lock)]


def test_a_free_lock_is_acquired_when_it_is_requested(recording, clock):
    lock = Lock("L", recording=recording)
    with owner("w0", "p1", recording=recording), lock:
        assert lock.locked()
        clock.pass_by(50)
    (use,) = uses(recording)
    assert (use.lock, use.worker, use.partition, use.thread, use.permits) == ("L", "w0", "p1", "MainThread", 1)
    assert (use.requested == use.acquired, use.released - use.acquired, use.holder_at_request) == (True, 51, "")


def test_a_wait_is_told_with_who_had_the_lock(recording, clock):
    lock = Lock("L", recording=recording)
    lock.acquire()
    waiting = in_thread(lambda: (lock.acquire(), lock.release()), "victim")
    until(lambda: any(sink.events for sink in recording._sinks if sink is not recording.local.sink))
    clock.pass_by(1000)
    lock.release()
    waiting.join()
    holder, victim = uses(recording)
    assert victim.thread == "victim" and victim.holder_at_request == "MainThread"
    assert holder.released < victim.acquired and victim.acquired - victim.requested > 1000
    (wait,) = recording.rows["waits"]
    assert (wait.kind, wait.on, wait.holder, wait.worker) == ("lock", "L", "MainThread", "victim")
    assert (wait.start, wait.end) == (victim.requested, victim.acquired)


@pytest.mark.parametrize("make", [Lock, RLock])
def test_attempts_that_fail_are_recorded(recording, make):
    lock = make("L", recording=recording)
    lock.acquire()
    found = []
    in_thread(lambda: found.extend([lock.acquire(False), lock.acquire(timeout=0.001)])).join()
    assert found == [False, False]
    lock.release()
    held, tried, timed = uses(recording)
    assert (tried.acquired, timed.acquired) == (None, None)
    assert tried.requested == tried.released and timed.released > timed.requested
    assert tried.holder_at_request == timed.holder_at_request == "MainThread"
    assert held.released > held.acquired


def test_a_lock_can_be_given_back_by_another_thread(recording):
    lock = Lock("L", recording=recording)
    for number in range(3):
        lock.acquire()
        in_thread(lock.release, f"t{number}").join()
    found = uses(recording)
    assert [use.thread for use in found] == ["MainThread"] * 3
    assert all(use.acquired < use.released for use in found)
    assert all(before.released < after.acquired for before, after in itertools.pairwise(found))


def test_threads_that_give_back_what_others_took_are_told_apart(recording):
    """A takes, B gives back and takes, A gives back: each thread's own turns alone would join A's first to its last."""
    lock = Lock("L", recording=recording)
    steps = [queue.Queue() for _ in range(2)]

    def other():
        steps[0].get()
        lock.release()
        lock.acquire()
        steps[1].put(None)

    thread = in_thread(other, "B")
    lock.acquire()
    steps[0].put(None)
    steps[1].get()
    lock.release()
    thread.join()
    found = uses(recording)
    assert [use.thread for use in found] == ["MainThread", "B"]
    assert found[0].released < found[1].acquired < found[1].released


def test_locks_refuse_what_those_of_threading_refuse(recording):
    lock, reentrant = Lock("L", recording=recording), RLock("R", recording=recording)
    with pytest.raises(RuntimeError):
        lock.release()
    with pytest.raises(RuntimeError):
        reentrant.release()
    for it in (lock, reentrant):
        with pytest.raises(ValueError):
            it.acquire(False, 1)
        with pytest.raises(ValueError):
            it.acquire(True, -2)
    with reentrant:
        failure = []

        def release():
            try:
                reentrant.release()
            except RuntimeError as error:
                failure.append(error)

        in_thread(release).join()
        assert len(failure) == 1
    assert len(uses(recording)) == 1


def test_a_reentrant_lock_is_one_use_from_the_outermost_to_the_last(recording, clock):
    lock = RLock("R", recording=recording)
    with lock:
        with lock:
            assert lock.acquire()
            clock.pass_by(5)
            lock.release()
        clock.pass_by(5)
    lock.acquire()
    with lock:
        pass
    lock.release()
    first, second = uses(recording)
    assert first.released - first.acquired == 11 and second.acquired < second.released


def test_a_lock_held_to_the_end_has_no_release(recording):
    lock = Lock("L", recording=recording)
    lock.acquire()
    (use,) = uses(recording)
    assert (use.released, use.acquired is None) == (None, False)
    lock.release()


@pytest.mark.parametrize("kind", ["default", "Lock", "RLock", "threading"])
def test_a_condition_hands_over(recording, kind):
    lock = {"default": None, "Lock": Lock("L", recording=recording), "RLock": RLock("L", recording=recording),
            "threading": threading.Lock()}[kind]  # fmt: skip
    condition = Condition(lock, name="C", recording=recording)
    items = []

    def consume():
        with condition:
            condition.wait_for(lambda: items)

    thread = in_thread(consume, "consumer")
    until(lambda: condition._waiters)
    with condition:
        items.append(1)
        condition.notify()
    thread.join()
    with pytest.raises(RuntimeError):
        condition.notify()
    found = uses(recording)
    (wait,) = [row for row in recording.rows["waits"] if row.on == "C"]
    assert (wait.kind, wait.worker) == ("barrier", "consumer")
    # The consumer took the lock, gave it up to wait, and took it again.
    expected = [] if kind == "threading" else ["MainThread", "consumer", "consumer"]
    assert sorted(use.thread for use in found) == expected
    assert all(use.acquired < use.released for use in found)


def test_a_condition_gives_up_in_time(recording):
    condition = Condition(name="C", recording=recording)
    with condition, condition:
        assert condition.wait(0.001) is False
    assert len(uses(recording, "C lock")) == 2


def test_a_semaphore_tells_each_permit(recording, clock):
    permits = Semaphore(2, name="S", recording=recording)
    with permits, permits:
        assert permits.acquire(blocking=False) is False
        assert permits.acquire(timeout=0.001) is False
        clock.pass_by(100)
    first, second, tried, timed = uses(recording)
    assert [use.acquired is None for use in (first, second, tried, timed)] == [False, False, True, True]
    assert first.acquired < second.acquired < first.released < second.released
    assert tried.holder_at_request == "MainThread"


def test_permits_given_back_by_another_thread_end_the_oldest_use(recording):
    permits = Semaphore(0, name="S", recording=recording)
    permits.release(2)  # given before anybody had one: no use
    permits.acquire()
    permits.acquire()
    in_thread(lambda: permits.release(2), "other").join()
    first, second = uses(recording)
    assert first.released is not None and second.released is not None and first.released < second.released


def test_a_semaphore_wakes_who_waits(recording):
    permits = Semaphore(0, name="S", recording=recording)
    threads = [in_thread(permits.acquire, f"t{number}") for number in range(3)]
    until(lambda: permits._waiting == 3)
    permits.release(3)
    for thread in threads:
        thread.join()
    assert sorted(use.thread for use in uses(recording)) == ["t0", "t1", "t2"]
    assert {row.kind for row in recording.rows["waits"]} == {"barrier"}


def test_semaphores_refuse_what_those_of_threading_refuse(recording):
    bounded = BoundedSemaphore(1, name="B", recording=recording)
    with bounded:
        pass
    with pytest.raises(ValueError, match="B is released more often"):
        bounded.release()
    with pytest.raises(ValueError):
        Semaphore(-1)
    with pytest.raises(ValueError):
        bounded.acquire(False, 1)
    with pytest.raises(ValueError):
        bounded.release(0)
    assert len(uses(recording)) == 1


def test_locks_serve_the_standard_library(recording):
    """A queue on recorded locks, which makes three conditions of one lock."""
    works = queue.Queue(2)
    works.mutex = Lock("queue", recording=recording)
    works.not_empty, works.not_full = (Condition(works.mutex, name=n, recording=recording) for n in ("some", "room"))
    got = []
    thread = in_thread(lambda: got.extend(works.get() for _ in range(50)))
    for number in range(50):
        works.put(number)
    thread.join()
    assert got == list(range(50))
    found = uses(recording, "queue")
    assert len(found) >= 100 and all(use.released for use in found)


def test_many_threads_exclude_each_other_and_lose_nothing():
    lock, total = Lock("L"), 0

    def add():
        nonlocal total
        for _ in range(2000):
            with lock:
                total += 1

    with record() as recording:
        threads = [in_thread(add, f"t{number}") for number in range(4)]
        for thread in threads:
            thread.join()
    assert total == 8000
    found = recording.rows["locks"]
    assert len(found) == 8000
    in_order = sorted(found, key=lambda use: use.acquired)
    assert all(before.released <= after.acquired for before, after in itertools.pairwise(in_order))


def test_names_default_to_the_place():
    for it in (Lock(), RLock(), Condition(), Semaphore(), BoundedSemaphore()):
        assert it.name.startswith("test_locks.py:")

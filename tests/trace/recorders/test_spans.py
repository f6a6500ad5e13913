"""Spans are what was entered and left, with the owner of their thread; off, they are nothing."""

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzklab.trace.recorders import Recording, owner, record, span
from cuzklab.trace.recorders.spans import span_of


def rows(recording):
    recording.stop()
    return recording.rows["spans"]


def test_spans_nest_and_carry_owner_category_and_device(recording, clock):
    make = span_of(recording)
    with owner("w0", "p0.1", 7, recording=recording), make("prove", "call", 0):
        clock.pass_by(100)
        with make("ntt_h", "gpu", 1):
            clock.pass_by(10)
    with make("after"):
        pass
    outer, inner, after = rows(recording)
    assert (outer.name, outer.category, outer.device, outer.parent) == ("prove", "call", 0, "")
    assert (inner.name, inner.category, inner.device, inner.parent) == ("ntt_h", "gpu", 1, "prove")
    assert (inner.worker, inner.partition, inner.proof) == ("w0", "p0.1", 7)
    assert (inner.end - inner.start, inner.start - outer.start, outer.end - inner.end) == (11, 101, 1)
    assert (after.worker, after.partition, after.proof, after.thread) == ("MainThread", "", -1, "MainThread")


def test_one_span_serves_recursion_and_all_threads(recording):
    make = span_of(recording)

    @make("fib", "cpu")
    def fib(n):
        """Fibonacci's numbers."""
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    found = []
    threads = [threading.Thread(target=lambda: found.append(fib(7)), name=f"t{number}") for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [13] * 4
    assert (fib.__name__, fib.__doc__) == ("fib", "Fibonacci's numbers.")
    spans = rows(recording)
    assert len(spans) == 4 * 41
    assert all(one.start < one.end for one in spans)
    assert sorted(one.thread for one in spans if one.parent == "") == ["t0", "t1", "t2", "t3"]


def test_a_span_ends_when_its_body_raises(recording):
    with pytest.raises(ZeroDivisionError), span_of(recording)("bad"):
        raise ZeroDivisionError
    (bad,) = rows(recording)
    assert bad.end > bad.start
    assert recording.notes == ()


@pytest.mark.parametrize("kind", ["generator", "coroutine"])
def test_a_decorator_refuses_what_runs_in_pieces(kind):
    def generator():
        yield

    async def coroutine():
        pass

    with pytest.raises(TypeError, match="a span cannot follow"):
        span("it")({"generator": generator, "coroutine": coroutine}[kind])


def test_without_a_recording_nothing_is_kept():
    with span("before"):
        pass
    with record() as recording:
        with span("during"):
            pass
        left_open = span("entered while on")
        left_open.__enter__()
    left_open.__exit__(None, None, None)
    with span("after"):
        pass
    assert [one.name for one in recording.rows["spans"]] == ["during", "entered while on"]
    assert recording.notes == ("recording: 1 spans had not ended when the recording did; they end with it",)


def test_a_span_entered_before_the_recording_is_left_out():
    early = span("early")
    early.__enter__()
    with record() as recording:
        with span("inside"):
            pass
        early.__exit__(None, None, None)
    assert [one.name for one in recording.rows["spans"]] == ["inside"]


def test_one_recording_of_the_process_at_a_time():
    with record(), pytest.raises(RuntimeError, match="end it first"):
        record()


def test_the_owner_of_before_counts_when_the_recording_begins():
    with owner("w9", "p9"), record() as recording, span("it"):
        pass
    (it,) = recording.rows["spans"]
    assert (it.worker, it.partition) == ("w9", "p9")


def paired_one_by_one(events):
    """What spans events make, by the plainest program: (start, end, name, parent)."""
    found, stack = [], []
    for time, name, begins in events:
        if begins:
            stack.append((time, name, stack[-1][1] if stack else ""))
        else:
            place = next((p for p in range(len(stack) - 1, -1, -1) if stack[p][1] == name), None)
            if place is not None:
                start, name, parent = stack.pop(place)
                found.append((start, time, name, parent))
    return found, stack


@given(
    steps=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60),
    pieces=st.integers(1, 7),
)
def test_any_order_of_beginnings_and_ends_is_paired_the_innermost_first(steps, pieces):
    """Also where they are not nested, and however the events are cut into batches."""
    ticks = iter(range(1, 10_000))
    recording = Recording(lambda: next(ticks))
    make = span_of(recording)
    with recording:
        events = []
        start = recording.clock()
        for number, (name, begins) in enumerate(steps):
            one = make(name)
            one.__enter__() if begins else one.__exit__(None, None, None)
            events.append((start + number + 1, name, begins))
            if random.Random(number).randrange(pieces) == 0:
                recording.drain()
    found, still_open = paired_one_by_one(events)
    told = [(one.start, one.end, one.name, one.parent) for one in recording.rows["spans"]]
    assert sorted(row[:3] for row in told if row[:2] in {f[:2] for f in found}) == sorted(row[:3] for row in found)
    assert len(told) == len(found) + len(still_open)
    nested = all(begins or not found for _, _, begins in events)
    if nested:
        assert sorted(row for row in told if row in found) == sorted(found)

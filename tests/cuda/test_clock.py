"""Anchors of a device's clock, on a device of which both clocks are made up: the claim must bound the error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzklab.backends.cuda.clock import DeviceClock

OFFSET_NS = 7_000_000_123


class Machine:
    """Both clocks; each record waits and is waited for as long as it is told, and the device may run fast."""

    def __init__(self, delays_ns, parts_per_million=0.0):
        self.now_ns = 1_000_000
        self.delays_ns = iter(delays_ns)
        self.rate = 1 + parts_per_million * 1e-6
        machine = self

        class Event:
            device_ns = 0.0
            truth_ns = 0

            @property
            def done(self):
                step_ns = min(1_000, self.after_ns)
                machine.now_ns += step_ns
                self.after_ns -= step_ns
                return not self.after_ns

            def synchronize(self):
                machine.now_ns += self.after_ns

        class Stream:
            def __init__(self, non_blocking=False):
                pass

            def record(self, event):
                before_ns, event.after_ns = next(machine.delays_ns)
                machine.now_ns += before_ns
                event.truth_ns = machine.now_ns
                event.device_ns = machine.now_ns * machine.rate + OFFSET_NS

        self.Event, self.Stream = Event, Stream

    @staticmethod
    def get_elapsed_time(one, other):
        return round((other.device_ns - one.device_ns) / 500) * 500 / 1e6  # as CUDA: steps of half a microsecond

    def event(self):
        event = self.Event()
        event.truth_ns = self.now_ns
        event.device_ns = self.now_ns * self.rate + OFFSET_NS
        return event


def forever(delays, last=(4_000, 4_000)):
    yield from delays
    while True:
        yield last


delays = st.lists(st.tuples(st.integers(1_000, 3_000_000), st.integers(1_000, 3_000_000)), max_size=20)


@given(delays)
def test_the_claim_bounds_the_error_however_long_records_wait(given_delays):
    machine = Machine(forever(given_delays))
    clock = DeviceClock(machine, lambda: machine.now_ns)
    machine.now_ns += 300_000
    event = machine.event()
    assert abs(clock.moment_ns(event) - event.truth_ns) <= clock.worst_uncertainty_ns + 1_000


def test_waits_of_a_device_that_others_use_are_outlasted():
    machine = Machine(forever([(700_000, 2_000)] * 8))  # more than the tries of a quiet device
    clock = DeviceClock(machine, lambda: machine.now_ns)
    assert clock.worst_uncertainty_ns <= 20_000


def test_a_device_that_stays_busy_is_given_up_on_and_the_claim_says_so():
    machine = Machine(forever([], (900_000, 900_000)))
    clock = DeviceClock(machine, lambda: machine.now_ns)
    assert machine.now_ns < 30_000_000
    assert 800_000 <= clock.worst_uncertainty_ns <= 900_000


def test_bounds_on_either_side_together_are_tighter_than_each():
    machine = Machine(forever([(1_000, 90_000), (90_000, 1_000)], (500_000, 500_000)))
    clock = DeviceClock(machine, lambda: machine.now_ns)
    assert clock.worst_uncertainty_ns <= 3_000


@pytest.mark.parametrize("parts_per_million", [0, 100])
def test_drift_shows_in_the_claim_once_the_next_anchor_is_taken(parts_per_million):
    machine = Machine(forever([]), parts_per_million)
    clock = DeviceClock(machine, lambda: machine.now_ns)
    anchor = clock.anchor()
    machine.now_ns += 490_000_000
    event = machine.event()
    machine.now_ns += 20_000_000
    clock.anchor()
    assert abs(clock.moment_ns(event, anchor) - event.truth_ns) <= clock.worst_uncertainty_ns
    assert (clock.worst_uncertainty_ns > 40_000) == (parts_per_million > 0)

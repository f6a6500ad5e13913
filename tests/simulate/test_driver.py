"""The driver's lock: one holder at a time, and launches only while there is none."""

import simpy

from cuzklab.simulate.driver import DriverLock


def run(holders=(), launches=()):
    """(start, end) of holders (asked at, lasting), times of launches that were asked for, and what was told when."""
    env = simpy.Environment()
    told = []
    lock = DriverLock(env, lambda held: told.append((env.now, held)))
    spans, launched = {}, []

    def holder(number, asked_at, lasts):
        yield env.timeout(asked_at)
        yield lock.take()
        start = env.now
        yield env.timeout(lasts)
        lock.give()
        spans[number] = (start, env.now)

    def launch(asked_at):
        yield env.timeout(asked_at)
        while lock.held:
            yield lock.free()
        launched.append(env.now)

    for number, (asked_at, lasts) in enumerate(holders):
        env.process(holder(number, asked_at, lasts))
    for asked_at in launches:
        env.process(launch(asked_at))
    env.run()
    return [spans[number] for number in range(len(holders))], launched, told


def test_holders_come_one_after_the_other_in_order_of_arrival():
    spans, _, told = run([(0, 4), (2, 1), (1, 2)])
    assert spans == [(0, 4), (6, 7), (4, 6)]
    assert told == [(0, True), (7, False)]


def test_launches_wait_until_nobody_holds_it():
    spans, launched, told = run([(1, 2), (2, 3), (8, 1)], launches=(0, 1.5, 4, 7))
    assert spans == [(1, 3), (3, 6), (8, 9)] and launched == [0, 6, 6, 7]
    assert told == [(1, True), (6, False), (8, True), (9, False)]

"""A lock that kernels share and that changes of memory mappings hold alone: given in order of arrival."""

import simpy

from cuzklab.simulate.exclusion import Exclusion


def spans(*jobs):
    """(start, end) of jobs (whether alone, asked at, lasting)."""
    env = simpy.Environment()
    lock, found = Exclusion(env), {}

    def job(number, alone, asked_at, lasts):
        yield env.timeout(asked_at)
        yield lock.exclude() if alone else lock.share()
        start = env.now
        yield env.timeout(lasts)
        lock.leave()
        found[number] = (start, env.now)

    for number, values in enumerate(jobs):
        env.process(job(number, *values))
    env.run()
    return [found[number] for number in range(len(jobs))]


def test_some_share_and_one_is_alone():
    assert spans((False, 0, 4), (False, 1, 4), (True, 2, 3), (True, 2, 1)) == [(0, 4), (1, 5), (5, 8), (8, 9)]


def test_nobody_overtakes_one_who_wants_to_be_alone():
    assert spans((False, 0, 4), (True, 1, 2), (False, 2, 1), (False, 3, 1)) == [(0, 4), (4, 6), (6, 7), (6, 7)]

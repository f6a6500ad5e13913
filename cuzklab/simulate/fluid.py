"""Sharing of a resource among those who use it at the same time: a device's kernels, the bus to it.

Each job has an amount and a rate that it cannot exceed. The capacity is shared max–min fairly: nobody gets more than
its own limit, and what is left is split evenly among the rest. Rates change only when a job arrives or ends, so a job's
end is known exactly between two such moments.
"""

from collections.abc import Callable
from dataclasses import dataclass

import simpy

NS_PER_S = 1_000_000_000


@dataclass(slots=True, eq=False)
class _Job:
    remaining: float
    limit_per_s: float
    done: simpy.Event
    rate_per_s: float = 0.0
    end_ns: int = 0


class Fluid:
    """A resource of which concurrent jobs get a share.

    Parameters
    ----------
    env : simpy.Environment
        Its clock counts whole nanoseconds.
    capacity_per_s : float
        Amount that the resource does in a second, in the jobs' unit.
    """

    def __init__(self, env: simpy.Environment, capacity_per_s: float) -> None:
        self._env = env
        self._capacity_per_s = capacity_per_s
        self._jobs: list[_Job] = []
        self._since_ns = 0
        self._plan = 0

    def serve(self, amount: float, limit_per_s: float) -> simpy.Event:
        """An event that happens when `amount` has been done for a job that can take `limit_per_s` at most."""
        job = _Job(amount, min(limit_per_s, self._capacity_per_s), self._env.event())
        if amount <= 0:
            return job.done.succeed()
        self._advance()
        self._jobs.append(job)
        self._share()
        return job.done

    def _advance(self) -> None:
        """Charge every job with what it got since the last change."""
        elapsed_s = (self._env.now - self._since_ns) / NS_PER_S
        self._since_ns = self._env.now
        if elapsed_s:
            for job in self._jobs:
                job.remaining -= job.rate_per_s * elapsed_s

    def _share(self) -> None:
        """Give every job its rate from now on, and wake up when the first of them ends."""
        self._plan += 1  # what was planned before holds no longer
        jobs, now_ns = self._jobs, self._env.now
        if not jobs:
            return
        left, waiting = self._capacity_per_s, len(jobs)
        # Those who can take least come first: what they leave is for the others.
        for job in sorted(jobs, key=_limit) if waiting > 1 else jobs:
            job.rate_per_s = rate = min(job.limit_per_s, left / waiting)
            left -= rate
            waiting -= 1
            job.end_ns = now_ns + max(0, round(job.remaining / rate * NS_PER_S))
        first_ns = min(job.end_ns for job in jobs)
        self._env.timeout(first_ns - now_ns, self._plan).callbacks.append(self._end)

    def _end(self, timeout: simpy.Event) -> None:
        if timeout.value != self._plan:
            return  # a job has come or gone since: another plan is in force
        self._advance()
        now_ns = self._env.now
        ended = [job for job in self._jobs if job.end_ns <= now_ns]
        self._jobs = [job for job in self._jobs if job.end_ns > now_ns]
        self._share()
        for job in ended:
            job.done.succeed()


_limit: Callable[[_Job], float] = lambda job: job.limit_per_s  # noqa: E731

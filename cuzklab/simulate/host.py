"""The host's processor and memory, shared by the CPU stages that run at the same time.

A job is a stage of n threads that alone takes a known time. While it runs, it advances at the rate

    share(R) / share(n) / (1 + m · (u^p + κ · Σ_pools min(1, W / LLC)))

* Cores. R threads are runnable. share(R) = throughput(R) / R, where throughput(R) is R up to the number of cores c;
  beyond, hardware threads share cores, and it grows linearly to c·y at c·t threads (t threads a core together do y
  times the work of one), and no more. Above c threads everybody is slowed equally, as a scheduler does it on average.
* Memory. m is the part of the stage's time alone that waits for memory. u is what the *other* jobs draw at their full
  speed, over what irregular accesses reach together (bandwidth · efficiency); p > 1 makes overload superlinear. A job
  alone has u = 0: its own traffic is in its time alone.
* Cache. A pool of threads with working set W (threads · buckets of one thread) pushes others' data out of the
  last-level cache; κ is how much longer their memory waits last when it fills all of it.
* Waking up. A thread that works in short bursts between waits, as one that launches kernels, has to get a core again
  for each of them. While more than c·t threads are runnable it waits for that, too, and its rate is divided by
  1 + b · w · (R / (c·t) − 1)²: with one thread too many it hardly ever waits, with twice as many as there are it does
  every time, behind others that do the same. b = 1 on average, for many bursts; one burst keeps its core (b = 0) or
  loses it, which the caller draws.

Where c, t, y, p, κ, w come from: `[host]` of the profile; m: its `[memory_share]`; traffic: the stage table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import simpy

from cuzklab.profiles import Host
from cuzklab.simulate.fluid import NS_PER_S


@dataclass(frozen=True, slots=True)
class Demand:
    """What a job asks of the host: jobs that ask for the same advance at the same rate.

    Attributes
    ----------
    threads : int
    memory_share : float
        Part of its time alone that waits for memory.
    traffic_bytes_per_s : float
        What it draws from memory at full speed.
    cache_share : float
        Part of the last-level cache that its threads fill, at most 1; 0 for a single thread.
    in_bursts : float
        How much of the average wait for a core it has, between short bursts of work; 0: it does not work in such.
    """

    threads: int
    memory_share: float = 0.0
    traffic_bytes_per_s: float = 0.0
    cache_share: float = 0.0
    in_bursts: float = 0.0


def throughput(host: Host, threads: int) -> float:
    """Work a second of so many runnable threads, in that of one that has a core to itself."""
    if threads <= host.cores:
        return threads
    sharing = min(threads, host.hardware_threads) - host.cores
    extra = host.hardware_threads - host.cores
    return host.cores * (1 + (host.smt_yield - 1) * (sharing / extra if extra else 0.0))


def rates(host: Host, running: Sequence[tuple[Demand, int]]) -> list[float]:
    """Rate at which a job of each demand advances, where so many of each run; 1 is that of a job alone."""
    threads, traffic, cache = 0, 0.0, 0.0
    for demand, count in running:
        threads += count * demand.threads
        traffic += count * demand.traffic_bytes_per_s
        cache += count * demand.cache_share
    share, bandwidth = throughput(host, threads) / threads, host.shared_bandwidth_bytes_per_s
    found = []
    for demand, _ in running:
        rate = share
        if demand.threads > 1:
            rate *= demand.threads / throughput(host, demand.threads)
        if demand.memory_share:
            others = max(0.0, traffic - demand.traffic_bytes_per_s) / bandwidth
            stall = others**host.overload_exponent + host.cache_pressure * max(0.0, cache - demand.cache_share)
            rate /= 1 + demand.memory_share * stall
        if demand.in_bursts and threads > host.hardware_threads:
            rate /= 1 + demand.in_bursts * host.wakeup_penalty * (threads / host.hardware_threads - 1) ** 2
        found.append(rate)
    return found


@dataclass(slots=True, eq=False)
class Job:
    """One stage on the processor; `done` happens at its end."""

    done: simpy.Event
    alone_s: float
    end_at: float
    group: "_Group"

    def progress(self) -> float:
        """Part that is done, 0 to 1, when last looked at by the processor."""
        return 1.0 if self.done.triggered else 1.0 - (self.end_at - self.group.advanced_s) / self.alone_s


@dataclass(slots=True, eq=False)
class _Group:
    """Jobs with one demand. Each ends when the group has advanced to where the job's time is used up."""

    demand: Demand
    advanced_s: float = 0.0
    rate: float = 0.0
    jobs: list[tuple[float, int, Job]] = field(default_factory=list)


class Processor:
    """Runs jobs on the host.

    Parameters
    ----------
    env : simpy.Environment
        Its clock counts whole nanoseconds.
    host : Host
    """

    def __init__(self, env: simpy.Environment, host: Host) -> None:
        self._env, self._host = env, host
        self._groups: dict[Demand, _Group] = {}
        self._since_ns = self._plan = self._number = 0

    def __len__(self) -> int:
        """Jobs that run."""
        return sum(len(group.jobs) for group in self._groups.values())

    def run(self, alone_s: float, demand: Demand) -> Job:
        """Start a job that alone would take `alone_s` seconds."""
        self.advance()
        group = self._groups.get(demand)
        if group is None:
            group = self._groups[demand] = _Group(demand)
        job = Job(self._env.event(), alone_s, group.advanced_s + alone_s, group)
        if alone_s <= 0:
            job.done.succeed()
            return job
        self._number += 1
        heappush(group.jobs, (job.end_at, self._number, job))
        self._share()
        return job

    def advance(self) -> None:
        """Bring the progress of all jobs up to now."""
        elapsed_s = (self._env.now - self._since_ns) / NS_PER_S
        self._since_ns = self._env.now
        if elapsed_s:
            for group in self._groups.values():
                group.advanced_s += group.rate * elapsed_s

    def throughput(self, threads: int) -> float:
        """Work a second of so many runnable threads, in that of one that has a core to itself."""
        return throughput(self._host, threads)

    def _share(self) -> None:
        """Give every group its rate from now on, and wake up when the first job ends."""
        self._groups = {demand: group for demand, group in self._groups.items() if group.jobs}
        if not self._groups:
            return
        running = [(demand, len(group.jobs)) for demand, group in self._groups.items()]
        first_s = float("inf")
        for group, rate in zip(self._groups.values(), rates(self._host, running), strict=True):
            if not rate:
                raise OverflowError("a job that never ends")
            group.rate = rate
            first_s = min(first_s, (group.jobs[0][0] - group.advanced_s) / rate)
        self._plan += 1
        delay_ns = max(0, round(first_s * NS_PER_S))
        self._env.timeout(delay_ns, self._plan).callbacks.append(self._end)

    def _end(self, timeout: simpy.Event) -> None:
        if timeout.value != self._plan:
            return  # a job has come since: another plan is in force
        self.advance()
        ended: list[Job] = []
        for group in self._groups.values():
            # Half a nanosecond of progress is below what the clock can tell.
            while group.jobs and group.jobs[0][0] - group.advanced_s <= 0.6e-9:
                ended.append(heappop(group.jobs)[2])
        self._share()
        for job in ended:
            job.done.succeed()

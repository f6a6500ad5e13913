"""The driver's lock: while one thread locks or unlocks pages, no other does, and nobody launches kernels.

What is queued on a device goes on. A stage launches as it goes, though, so one that is under way stands still at its
next launch, and goes on where it was when the lock is free.
"""

from collections import deque
from collections.abc import Callable

import simpy


class DriverLock:
    """Held by one at a time, in order of arrival.

    Parameters
    ----------
    env : simpy.Environment
    told : callable (bool)
        Called with True when somebody has taken it, so that launches stop, and with False when it is free again.
    """

    def __init__(self, env: simpy.Environment, told: Callable[[bool], None]) -> None:
        self._env, self._told = env, told
        self.held = False
        self._waiting: deque[simpy.Event] = deque()
        self._launches: list[simpy.Event] = []

    def take(self) -> simpy.Event:
        """An event that happens when the caller has it."""
        event = self._env.event()
        if self.held:
            self._waiting.append(event)
        else:
            self.held = True
            self._told(True)
            event.succeed()
        return event

    def give(self) -> None:
        """Whoever had it is done; those who wait for it come before launches."""
        if self._waiting:
            self._waiting.popleft().succeed()
            return
        self.held = False
        launches, self._launches = self._launches, []
        for launch in launches:
            launch.succeed()
        self._told(False)

    def free(self) -> simpy.Event:
        """An event that happens when nobody has it; look at `held` again then."""
        event = self._env.event()
        self._launches.append(event)
        return event

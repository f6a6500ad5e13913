"""What excludes what in a process: kernels go on side by side, but none beside a change of its memory mappings."""

from collections import deque

import simpy


class Exclusion:
    """A fair lock, given in order of arrival: shared by many, or held by one alone.

    Parameters
    ----------
    env : simpy.Environment
    """

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self._shared = 0
        self._alone = False
        self._waiting: deque[tuple[bool, simpy.Event]] = deque()

    def share(self) -> simpy.Event:
        """An event that happens when the caller may go on beside others."""
        return self._ask(alone=False)

    def exclude(self) -> simpy.Event:
        """An event that happens when the caller may go on alone."""
        return self._ask(alone=True)

    def leave(self) -> None:
        """Whoever went on is done."""
        if self._alone:
            self._alone = False
        else:
            self._shared -= 1
        self._let_in()

    def _ask(self, alone: bool) -> simpy.Event:
        event = self._env.event()
        self._waiting.append((alone, event))
        self._let_in()
        return event

    def _let_in(self) -> None:
        while self._waiting and not self._alone:
            alone, event = self._waiting[0]
            if alone and self._shared:
                return
            self._waiting.popleft()
            if alone:
                self._alone = True
            else:
                self._shared += 1
            event.succeed()

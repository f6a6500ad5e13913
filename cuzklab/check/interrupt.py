"""Ctrl-C during a search: it stops at its next look at the clock, in order, and says what it has covered."""

import signal
import threading
from types import FrameType
from typing import Any

from cuzklab.check.search import LimitReached, Progress

INTERRUPTED = "interrupted"


class Interruptible:
    """While the block runs, the first Ctrl-C stops searches that look here; a second one ends everything at once.

    Parameters
    ----------
    told : callable (states, seconds), optional
        Passed on what a search tells.
    """

    def __init__(self, told: Progress | None = None) -> None:
        self.asked = False
        self._told = told
        self._before: Any = None

    def __enter__(self) -> "Interruptible":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def look(self, states: int, seconds: float) -> None:
        """To be given to a search as its `progress`."""
        if self.asked:
            raise LimitReached(INTERRUPTED)
        if self._told is not None:
            self._told(states, seconds)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

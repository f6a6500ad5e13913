"""A clock that tells what a test says, and recordings on it."""

import threading

import pytest

from cuzklab.trace.recorders import Recording


class Clock:
    """Nanoseconds that pass by one at each look, and by as many as a test wants."""

    def __init__(self) -> None:
        self.now = 0
        self._mutex = threading.Lock()

    def __call__(self) -> int:
        with self._mutex:
            self.now += 1
            return self.now

    def pass_by(self, nanoseconds: int) -> None:
        with self._mutex:
            self.now += nanoseconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recording(clock):
    with Recording(clock) as started:
        yield started

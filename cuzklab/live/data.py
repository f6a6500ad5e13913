"""What the stages of partitions have left so far in a live run, so that none begins before its data are there.

A stage that is run too early would not always fail: it would take what lies in the buffer and prove something else.
A copy counts as made when it is queued: whoever reads its targets before it has ended is refused by `device_memory`.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from cuzklab.policies.effects import Effect
from cuzklab.policies.effects.data import refuse_early, written


class Data:
    """The data that were written. Many threads add to it, each partition's own."""

    def __init__(self) -> None:
        self._written: set[Hashable] = set()

    def read(self, key: Hashable) -> bool:
        return key in self._written

    def write(self, key: Hashable, value: Any) -> None:
        self._written.add(key)

    @contextmanager
    def step(self, effect: Effect) -> Iterator[None]:
        """Carry out a step of a partition: it finds what it reads, and leaves what it writes.

        Raises
        ------
        ReadBeforeWrite
        """
        refuse_early(self, effect)
        yield
        written(self, effect)

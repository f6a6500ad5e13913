"""The temporaries of kernels on a device that plays a smaller card: a pool of their own, under what the card has left.

Sums of points ask how much that is (`left_bytes`) and take smaller batches where it is little; what does not fit is
refused by the pool. Tables, buckets and lists do not shrink in proportion to a circuit as its vectors do, so on a card
that is scaled down with the circuit the temporaries have `FLOOR_BYTES` in any case. With 2^26 rows or more on a card
of 16 GiB in proportion, the card's memory is the limit of everything.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cuzklab.units import GiB

FLOOR_BYTES = 2 * GiB


class Workspace:
    """A pool of device memory with a limit that may change.

    Parameters
    ----------
    cuda : module
        CuPy's `cuda`.
    changed : callable, optional
        Called after each allocation.

    Attributes
    ----------
    peak_bytes : int
        Most that it has held.
    """

    def __init__(self, cuda: Any, changed: Callable[[], None] = lambda: None) -> None:
        self._cuda, self._changed = cuda, changed
        self._pool = cuda.MemoryPool()
        self.peak_bytes = self._last_held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """What it has taken from the card, in use or not."""
        return self._pool.total_bytes()

    def left_bytes(self) -> int:
        """What it could still hand out."""
        return max(0, self._pool.get_limit() - self._pool.used_bytes())

    def allow(self, most_bytes: int) -> None:
        """Set the limit; memory that is not in use is given back where it holds more."""
        self._pool.set_limit(size=max(1, most_bytes))
        if self.held_bytes > most_bytes:
            self.trim()

    def trim(self) -> None:
        """Give what is not in use back to the card."""
        self._pool.free_all_blocks()
        self._last_held_bytes = self.held_bytes

    @contextmanager
    def current(self) -> Iterator[None]:
        """Serve what this thread allocates inside."""
        with self._cuda.using_allocator(self._malloc):
            before, _mine.workspace = getattr(_mine, "workspace", None), self
            try:
                yield
            finally:
                _mine.workspace = before

    def _malloc(self, size_bytes: int) -> Any:
        try:
            memory = self._pool.malloc(size_bytes)
        except self._cuda.memory.OutOfMemoryError:
            self.trim()  # pieces of a size that is no longer asked for
            memory = self._pool.malloc(size_bytes)
        if (held_bytes := self.held_bytes) != self._last_held_bytes:
            self._last_held_bytes = held_bytes
            self.peak_bytes = max(self.peak_bytes, held_bytes)
            self._changed()
        return memory


_mine = threading.local()


def left_bytes() -> int | None:
    """Device memory that kernels of this thread may still take, None where nothing limits them but the card."""
    workspace = getattr(_mine, "workspace", None)
    return None if workspace is None else workspace.left_bytes()

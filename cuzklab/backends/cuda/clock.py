"""The device's clock and the machine's: moments of CUDA events as nanoseconds of the monotonic clock."""

import threading
import time
from dataclasses import dataclass
from typing import Any

_TRIES = 8
_LONGEST_NS = 500_000_000
"""Age of an anchor: event times are single-precision milliseconds, and the two clocks drift."""


@dataclass(frozen=True)
class Anchor:
    """An event whose moment is known on both clocks, to within `uncertainty_ns` either way."""

    event: Any
    moment_ns: int
    uncertainty_ns: int


class DeviceClock:
    """Maps events of one device to the machine's monotonic clock.

    An event is recorded in an empty stream and waited for; it happened between the two looks at the clock. The best
    of a few tries is kept for half a second.

    Parameters
    ----------
    cuda : module
        CuPy's `cuda`; the device must be current wherever this is used.
    """

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._stream = cuda.Stream(non_blocking=True)
        self._mutex = threading.Lock()
        self.worst_uncertainty_ns = 0
        self._anchor = self._look()

    def anchor(self) -> Anchor:
        """An anchor of now, from which moments of about now may be told at any later time."""
        with self._mutex:
            if time.monotonic_ns() - self._anchor.moment_ns > _LONGEST_NS:
                self._anchor = self._look()
            return self._anchor

    def moment_ns(self, event: Any, anchor: Anchor | None = None) -> int:
        """When an event that has happened did so, by an anchor of about that time."""
        anchor = anchor or self.anchor()
        return anchor.moment_ns + round(1e6 * self._cuda.get_elapsed_time(anchor.event, event))

    def _look(self) -> Anchor:
        best = min((self._try() for _ in range(_TRIES)), key=lambda anchor: anchor.uncertainty_ns)
        self.worst_uncertainty_ns = max(self.worst_uncertainty_ns, best.uncertainty_ns)
        return best

    def _try(self) -> Anchor:
        event = self._cuda.Event()
        before = time.monotonic_ns()
        self._stream.record(event)
        event.synchronize()
        after = time.monotonic_ns()
        return Anchor(event, (before + after) // 2, (after - before + 1) // 2)

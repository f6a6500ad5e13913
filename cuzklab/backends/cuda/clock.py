"""The device's clock and the machine's: moments of CUDA events as nanoseconds of the monotonic clock."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_FEWEST_TRIES = 8
_ENOUGH_NS = 20_000
_LONGEST_LOOK_NS = 10_000_000
"""Where others use the device, a time slice of theirs passes between a record and its turn: a few milliseconds."""
_SPIN_NS = 100_000
"""So long is an event asked for, before its thread gives the interpreter up for it and must wait to have it back."""
_LONGEST_NS = 500_000_000
"""Age of an anchor: event times are single-precision milliseconds, and the two clocks drift."""
_EVENT_STEP_NS = 1_000
"""Twice the resolution of the time between two events."""


@dataclass(frozen=True)
class Anchor:
    """An event whose moment is known on both clocks, to within `uncertainty_ns` either way."""

    event: Any
    moment_ns: int
    uncertainty_ns: int


class DeviceClock:
    """Maps events of one device to the machine's monotonic clock.

    An event is recorded in an empty stream and waited for; it happened between the two looks at the clock. Several of
    them, whose distances are known, bound each other: the anchor lies where all bounds overlap. Tries go on until they
    bound it well enough or the time for them is up, and the anchor is kept for half a second.

    Parameters
    ----------
    cuda : module
        CuPy's `cuda`; the device must be current wherever this is used.
    now_ns : callable, optional
        The machine's clock.

    Attributes
    ----------
    worst_uncertainty_ns : int
        By how much any moment told so far may be off, either way: the worst anchor's bounds, or how far an anchor had
        moved by the time the next was taken, where that is more.
    """

    def __init__(self, cuda: Any, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._cuda = cuda
        self._now_ns = now_ns
        self._stream = cuda.Stream(non_blocking=True)
        self._mutex = threading.Lock()
        self.worst_uncertainty_ns = 0
        self._anchor = self._look()
        self._note(self._anchor.uncertainty_ns)

    def anchor(self) -> Anchor:
        """An anchor of now, from which moments of about now may be told at any later time."""
        with self._mutex:
            if self._now_ns() - self._anchor.moment_ns > _LONGEST_NS:
                before, self._anchor = self._anchor, self._look()
                moved_ns = abs(self.moment_ns(self._anchor.event, before) - self._anchor.moment_ns)
                self._note(self._anchor.uncertainty_ns)
                if moved_ns > before.uncertainty_ns:
                    self._note(moved_ns + self._anchor.uncertainty_ns)
            return self._anchor

    def moment_ns(self, event: Any, anchor: Anchor | None = None) -> int:
        """When an event that has happened did so, by an anchor of about that time."""
        anchor = anchor or self.anchor()
        return anchor.moment_ns + self._between_ns(anchor.event, event)

    def _note(self, uncertainty_ns: int) -> None:
        self.worst_uncertainty_ns = max(self.worst_uncertainty_ns, uncertainty_ns)

    def _between_ns(self, one: Any, other: Any) -> int:
        return round(1e6 * self._cuda.get_elapsed_time(one, other))

    def _look(self) -> Anchor:
        """Bounds of the first try's moment, from it and from those after it; if they contradict, the tightest one's."""
        began = self._now_ns()
        first, earliest, latest = self._try()
        tries = 1
        while tries < _FEWEST_TRIES or (
            latest - earliest > 2 * _ENOUGH_NS and self._now_ns() - began < _LONGEST_LOOK_NS
        ):
            event, before, after = self._try()
            tries += 1
            between_ns = self._between_ns(first, event)
            before, after = before - between_ns - _EVENT_STEP_NS, after - between_ns + _EVENT_STEP_NS
            if max(earliest, before) <= min(latest, after):
                earliest, latest = max(earliest, before), min(latest, after)
            elif after - before < latest - earliest:
                earliest, latest = before, after
        return Anchor(first, (earliest + latest) // 2, (latest - earliest + 1) // 2)

    def _try(self) -> tuple[Any, int, int]:
        """An event, and two moments between which it happened."""
        event = self._cuda.Event()
        before = self._now_ns()
        self._stream.record(event)
        while not event.done and self._now_ns() - before < _SPIN_NS:
            pass
        event.synchronize()
        return event, before, self._now_ns()

"""The log's clock: milliseconds since the engine started, which starts again when the engine does.

Threads write their lines a little out of order, so a small step back is no error, and an engine may say nothing for
minutes. A larger step, in either direction, is believed only if the next line with a time agrees: otherwise a torn
number would move everything after it.
"""

from dataclasses import dataclass

from cuzklab.ingest.engine_log.vocabulary import LATEST_NS, Event

# Lines of one engine are never further out of order than this.
DISORDER_NS = 60 * 10**9
SILENCE_NS = 3600 * 10**9


@dataclass
class Clock:
    """Gives events their time in the whole log.

    Attributes
    ----------
    latest_ns : int
        The latest time so far, over all starts of the engine.
    restarts, unconfirmed : int
        How often the engine started again; lines whose time no other line confirmed, which were left out.
    """

    latest_ns: int = 0
    restarts: int = 0
    unconfirmed: int = 0
    _offset_ns: int = 0
    _doubtful: Event | None = None

    def place(self, event: Event) -> list[tuple[Event, bool]]:
        """The events that are certain now, and of each whether the engine started again just before it."""
        if self._agrees(event, self.latest_ns - self._offset_ns):
            self._forget_doubtful()
            return [(self._placed(event), False)]
        doubtful, self._doubtful = self._doubtful, None
        if doubtful is None or not self._agrees(event, doubtful.time_ns):
            self.unconfirmed += doubtful is not None
            self._doubtful = event
            return []
        restarted = doubtful.time_ns < self.latest_ns - self._offset_ns
        if restarted:
            self.restarts += 1
            self._offset_ns = self.latest_ns
        if self._offset_ns + max(event.time_ns, doubtful.time_ns) > LATEST_NS:
            self.unconfirmed += 2
            return []
        return [(self._placed(doubtful), restarted), (self._placed(event), False)]

    def finish(self) -> None:
        """The log is at its end: what is doubtful stays so."""
        self._forget_doubtful()

    def _agrees(self, event: Event, with_ns: int) -> bool:
        # A log may begin at any time of the engine's life, so its first line is as doubtful as any.
        return -DISORDER_NS <= event.time_ns - with_ns <= SILENCE_NS

    def _forget_doubtful(self) -> None:
        self.unconfirmed += self._doubtful is not None
        self._doubtful = None

    def _placed(self, event: Event) -> Event:
        event.time_ns += self._offset_ns
        self.latest_ns = max(self.latest_ns, event.time_ns)
        return event

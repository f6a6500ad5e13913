"""What a live run records about itself: the recorders of `trace.recorders`, with the actor whose doing it is."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from cuzklab.trace.recorders import LockEvents, Recording, VramTracer
from cuzklab.trace.recorders.log import NOBODY
from cuzklab.trace.recorders.names import OWNERS, THREADS, Owner
from cuzklab.trace.recorders.spans import attributes, domain, set_owner, span_of


class Who(Protocol):
    """Whose doing it is. The name is that of the thread."""

    name: str
    worker: str
    partition: str
    proof: int


class LockUses:
    """Uses of one lock, written down as they become known."""

    def __init__(self, recording: Recording, name: str) -> None:
        # Waits are recorded by the board, which knows of every kind.
        self._events = LockEvents(recording, name, wait_kind="")

    def left(self, requested: int, holder: str) -> None:
        """A request that was never answered: when it was made, and who had the lock."""
        self._events.requested(THREADS.number(holder) if holder else NOBODY, time=requested)

    def acquired(self, requested: int, holder: str) -> None:
        """A request that was answered just now; `holder` had the lock before, or nobody."""
        self.left(requested, holder)
        self._events.acquired()

    def released(self, time: int) -> None:
        """The lock was given back."""
        self._events.released(time=time)


class Instruments:
    """Rows, events and NVTX ranges of one run, all of which the actors' own threads record.

    Parameters
    ----------
    recording : Recording or None
        None records nothing, which is how the cost of recording is measured.

    Attributes
    ----------
    vram : VramTracer or None
    """

    def __init__(self, recording: Recording | None) -> None:
        self._recording = recording
        self._span = span_of(recording) if recording else None
        self._locks: dict[str, LockUses] = {}
        self.vram = VramTracer(recording=recording) if recording else None

    def start(self) -> None:
        if self._recording:
            self._recording.start()

    def stop(self) -> None:
        if self._recording:
            self._recording.stop()

    def add(self, row: Any) -> None:
        """Keep a row that is known as a whole."""
        if self._recording:
            self._recording.add(row)

    def owner(self, who: Who) -> int:
        """Say for whom the calling thread works from now on, unless it is known; the number of that."""
        number = OWNERS.number(Owner(who.worker, who.partition, who.proof))
        if self._recording.local.sink.owner != number:
            set_owner(self._recording, number)
        return number

    def lock(self, who: Who, name: str) -> LockUses | None:
        """Where uses of a lock are written down; None where nothing is recorded."""
        if not self._recording:
            return None
        self.owner(who)
        uses = self._locks.get(name)
        if uses is None:
            uses = self._locks[name] = LockUses(self._recording, name)
        return uses

    def begin_range(self, name: str, category: str) -> Any:
        """Open an NVTX range that any thread may end."""
        return domain().start_range(attributes(name, category)) if self._recording else None

    def end_range(self, range_id: Any) -> None:
        if self._recording:
            domain().end_range(range_id)

    def span(
        self, who: Who, name: str, category: str, device: int = -1, parent: str = ""
    ) -> AbstractContextManager[None]:
        """Record what a thread does inside, also when it fails."""
        if not self._recording:
            return nullcontext()
        self.owner(who)
        span = self._span(name, category, device, parent)
        profile = self._recording.profile
        return _sampled(span, profile.of(name)) if profile and category == "cpu" else span


@contextmanager
def _sampled(span: AbstractContextManager[None], sampling: AbstractContextManager[None]) -> Iterator[None]:
    with sampling, span:
        yield

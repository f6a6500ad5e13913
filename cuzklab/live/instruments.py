"""What a live run records about itself: rows of the trace, and NVTX ranges for whatever profiler is attached."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import nvtx

from cuzklab.trace.recorder import Recorder
from cuzklab.trace.schema import Span


class Who(Protocol):
    """Whose doing it is."""

    name: str
    worker: str
    partition: str
    proof: int


class Ranges:
    """NVTX ranges in the domain `cuzk`; the attributes of each name are made once."""

    def __init__(self) -> None:
        self._domain = nvtx.get_domain("cuzk")
        self._attributes: dict[tuple[str, str], Any] = {}

    def push(self, name: str, category: str) -> None:
        self._domain.push_range(self._attributes_of(name, category))

    def pop(self) -> None:
        self._domain.pop_range()

    def begin(self, name: str, category: str) -> Any:
        return self._domain.start_range(self._attributes_of(name, category))

    def end(self, range_id: Any) -> None:
        self._domain.end_range(range_id)

    def _attributes_of(self, name: str, category: str) -> Any:
        attributes = self._attributes.get((name, category))
        if attributes is None:
            attributes = self._domain.get_event_attributes(message=name, category=category)
            self._attributes[name, category] = attributes
        return attributes


class Instruments:
    """Rows and ranges of one run.

    Parameters
    ----------
    recorder : Recorder or None
        None records nothing, which is how the cost of recording is measured.
    """

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._ranges = Ranges() if recorder else None

    def add(self, row: Any) -> None:
        if self._recorder:
            self._recorder.add(row)

    def now(self) -> int:
        return self._recorder.clock() if self._recorder else 0

    def begin_range(self, name: str, category: str) -> Any:
        """Open an NVTX range that any thread may end."""
        return self._ranges.begin(name, category) if self._ranges else None

    def end_range(self, range_id: Any) -> None:
        if self._ranges:
            self._ranges.end(range_id)

    @contextmanager
    def span(self, who: Who, name: str, category: str, device: int = -1, parent: str = "") -> Iterator[None]:
        """Record what a thread does inside, also when it fails."""
        if not self._recorder:
            yield
            return
        self._ranges.push(name, category)
        start = self._recorder.clock()
        try:
            yield
        finally:
            end = self._recorder.clock()
            self._ranges.pop()
            self._recorder.add(
                Span(start, end, name, category, 0, who.name, who.worker, who.proof, who.partition, device, parent)
            )

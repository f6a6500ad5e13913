"""What one actor leaves in the trace: its spans and waits, lengths and amounts, and the GPU call that it works for."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from cuzklab.policies.model import Gpu, Queue
from cuzklab.trace.metrics import CALL, FAILED, HOST_MEMORY, PROVED
from cuzklab.trace.schema import Counter, Span, WaitInterval

if TYPE_CHECKING:
    from cuzklab.live.actor import Actor


class Trail:
    """Rows of one actor, recorded in its own thread.

    Parameters
    ----------
    actor : Actor
    parent : Trail or None
        Of the actor that forked it: it works for that one's call, and may be the one that ends it.
    """

    def __init__(self, actor: "Actor", parent: "Trail | None") -> None:
        self._actor = actor
        self._run = actor.run
        self._call_start: int | None = parent._call_start if parent else None
        self._call_range: Any = parent._call_range if parent else None

    def span(self, name: str, category: str, gpu: Gpu | None = None) -> AbstractContextManager[None]:
        """Record what the actor does inside, also when it fails."""
        parent = PROVED if self._call_start is not None else ""
        return self._run.instruments.span(self._actor, name, category, gpu.index if gpu else -1, parent)

    def waited(self, start: int, kind: str, on: str) -> None:
        """Record a wait that is over now; `kind` and `on` as in the table of waits."""
        actor = self._actor
        self._run.instruments.add(WaitInterval(start, self._run.now(), kind, on, "", actor.worker, actor.partition))

    def queue_length(self, queue: Queue, length: int) -> None:
        self._run.instruments.add(Counter(self._run.now(), f"queue {queue.name}", length))

    def host_memory(self) -> None:
        """What the workload has of the host's memory now."""
        self._run.instruments.add(Counter(self._run.now(), HOST_MEMORY, self._run.workload.host_bytes))

    def begin_call(self) -> None:
        """A worker has taken a partition."""
        self._call_start = self._run.now()
        self._call_range = self._run.instruments.begin_range(PROVED, CALL)

    def end_call(self, ok: bool) -> None:
        """The partition's GPU call is over; or it never had one, for its synthesis has failed."""
        start, self._call_start = self._call_start, None
        if start is None:
            return
        actor = self._actor
        self._run.instruments.end_range(self._call_range)
        self._run.instruments.add(
            Span(
                start, self._run.now(), PROVED if ok else FAILED, CALL, 0, actor.name, actor.worker, actor.proof,
                actor.partition, actor.device,
            )
        )  # fmt: skip

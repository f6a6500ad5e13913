"""Uploads, and who waits for them: an actor's thread, a stream, or a stage on the device."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuzklab.backends import device as devices
from cuzklab.policies import effects
from cuzklab.policies.effects import UseAfterFree
from cuzklab.policies.model import HostBuffer, Stream
from cuzklab.trace.schema import Transfer

if TYPE_CHECKING:
    from cuzklab.live.actor import Actor
    from cuzklab.live.run import Run


@dataclass(frozen=True)
class RecordedEvent:
    """What a policy gets for `RecordEvent`; `copies` are the uploads in the stream that it comes after."""

    stream: Stream
    event: devices.Event
    copies: tuple[devices.Work, ...] = ()


# --- uploads ---------------------------------------------------------------------------------------------------------


def upload(actor: "Actor", effect: effects.Upload) -> None:
    """Queue a copy from pinned memory and go on; wait for the end of one from pageable memory."""
    run = actor.run
    if effect.source in run.pinned:
        _wait_in_stream(run, effect.stream)
        run.pacing.copy_begun(actor, _queue(actor, effect, pinned=True))
        return
    with run.turn(effect.stream):
        wait_for_stream(actor, effect.stream)
        work = _queue(actor, effect, pinned=False)
        run.pacing.work_begun(actor, effect, work)
        with actor.trail.span("upload", "transfer", effect.stream.gpu):
            work.wait()


def _queue(actor: "Actor", effect: effects.Upload, pinned: bool) -> devices.Work:
    """Queue the copy on its stream."""
    run, gpu = actor.run, effect.stream.gpu
    if effect.source in run.freed:
        raise UseAfterFree(f"upload uses {effect.source.name}, which was freed")

    def start(memory: dict[str, devices.Memory]) -> devices.Work:
        targets = tuple(memory[buffer.name] for buffer in effect.targets)
        with actor.stage("upload", effect.partition):
            pieces = run.workload.pieces(effect.partition, effect.source, targets)
            size_bytes = sum(piece.source.nbytes for piece in pieces)
            issue = run.now()
            run.pacing.before_work(actor, run.stream(effect.stream))
            work = run.stream(effect.stream).upload(pieces, pinned=pinned)
        row = Transfer(
            0, 0, issue, size_bytes, "h2d", pinned, effect.stream.name, gpu.index, actor.worker, effect.partition.name
        )
        run.transfers.append((row, work))
        run.reading.setdefault(effect.source, []).append(work)
        run.copies.setdefault(effect.stream, []).append(work)
        return work

    with run.data.step(effect):
        return run.memory(gpu).begin(gpu, effect.targets, f"the upload of {effect.source.name}", start, writes=True)


def refuse_under_copy(run: "Run", source: HostBuffer, what: str) -> None:
    """Refuse to take memory away from which an upload under way copies."""
    if any(not work.done for work in run.reading.get(source, ())):
        raise UseAfterFree(f"{source.name} is {what} while an upload copies from it")


def copies_in(run: "Run", stream: Stream) -> tuple[devices.Work, ...]:
    """Uploads of a stream that are under way."""
    return tuple(work for work in run.copies.get(stream, ()) if not work.done)


# --- who waits -------------------------------------------------------------------------------------------------------


def record_event(run: "Run", stream: Stream) -> RecordedEvent:
    """An event after all that the stream has so far."""
    _wait_in_stream(run, stream)
    return RecordedEvent(stream, run.stream(stream).record(), copies_in(run, stream))


def wait_event(actor: "Actor", effect: effects.WaitEvent) -> None:
    """Wait in the actor's thread, or have a stream wait before what comes next in it."""
    if effect.stream is None:
        _wait_for_event(actor, effect.event)
    elif not effect.event.event.fired:
        actor.run.after.setdefault(effect.stream, []).append(effect.event)


def wait_for_stream(actor: "Actor", stream: Stream) -> None:
    """Wait for what a stream waits for, and for the work that it has."""
    for event in actor.run.after.pop(stream, ()):
        _wait_for_event(actor, event)
    _wait_for_event(actor, record_event(actor.run, stream))


def _wait_for_event(actor: "Actor", event: RecordedEvent) -> None:
    if event.event.fired:
        return
    start = actor.run.now()
    event.event.wait()
    actor.trail.waited(start, "event", event.stream.name)


def _wait_in_stream(run: "Run", stream: Stream) -> None:
    """Put the waits that a stream was told of into it, for what follows there."""
    for waited in run.after.get(stream, ()):
        run.stream(stream).wait(waited.event)


def arriving_for(run: "Run", effect: effects.Launch) -> tuple[devices.Work, ...]:
    """Uploads that a stage waits for on the device, one array at a time; none where its thread has to wait.

    The modelled engine has an event for each of a, b and c, so the transform of a overlaps the copy of b. A schedule
    that is to be followed knows no such overlap.
    """
    stream, device = effect.stream, run.memory(effect.gpu).device
    if not (device.takes_arrivals and run.pacing.overlaps and run.workload.takes_arrivals(effect.stage)):
        return ()
    waited = [event for event in run.after.get(stream, ()) if not event.event.fired]
    if not waited or not all(event.copies for event in waited) or copies_in(run, stream):
        return ()
    del run.after[stream]
    return tuple(work for event in waited for work in event.copies)

"""Uploads under way, and the stages that wait for them on the device instead of in their thread."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuzklab.backends import device as devices
from cuzklab.policies import effects
from cuzklab.policies.model import Stream

if TYPE_CHECKING:
    from cuzklab.live.run import Run


@dataclass(frozen=True)
class RecordedEvent:
    """What a policy gets for `RecordEvent`; `copies` are the uploads in the stream that it comes after."""

    stream: Stream
    event: devices.Event
    copies: tuple[devices.Work, ...] = ()


def copies_in(run: "Run", stream: Stream) -> tuple[devices.Work, ...]:
    """Uploads of a stream that are under way."""
    return tuple(work for work in run.copies.get(stream, ()) if not work.done)


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

"""The rules of work in Promela: copies and kernels on streams, CPU stages, and what waits for a device."""

from collections.abc import Sequence

from cuzklab.check.promela.memory import room_for
from cuzklab.check.promela.names import Names
from cuzklab.check.promela.options import Option, by_value, failing, following
from cuzklab.check.promela.points import OUT_OF_MEMORY, Point
from cuzklab.policies.effects import (
    Compute,
    DeviceSync,
    Effect,
    FreeHost,
    Launch,
    Pin,
    RecordEvent,
    Unpin,
    Upload,
    WaitEvent,
)
from cuzklab.policies.model import Buffer, Event, Gpu, Stream


def _pin(names: Names, point: Point, effect: Pin) -> list[Option]:
    return [Option((), (f"{names.pinned(effect)} = 1",), following(point))]


def _unpin(names: Names, point: Point, effect: Unpin) -> list[Option]:
    reading = names.source("reading", effect.buffer)
    return [
        Option((f"{reading} == 0",), (f"{names.pinned(effect)} = 0",), following(point)),
        Option((f"{reading} > 0",), (), failing(point, "use_after_free")),
    ]


def _free_host(names: Names, point: Point, effect: FreeHost) -> list[Option]:
    freed, reading = names.freed(effect.buffer), names.source("reading", effect.buffer)
    return [
        Option((f"{reading} > 0",), (), failing(point, "use_after_free")),
        Option((f"{reading} == 0", f"{freed} == 0"), (f"{freed} = 1",), following(point)),
        Option((f"{reading} == 0", f"{freed} != 0"), (), failing(point, "double_free")),
    ]


def _misuse(
    names: Names, point: Point, gpu: Gpu, buffers: Sequence[Buffer], guards: tuple[str, ...], fills: bool
) -> tuple[list[Option], list[str]]:
    """What goes wrong where work of a device is given buffers, the first of them first; and when nothing does."""
    options, well = [], []
    for buffer in buffers:
        if buffer.gpu != gpu:
            return [*options, Option((*guards, *well), (), failing(point, "wrong_device"))], ["false"]
        live = names.live(buffer)
        options.append(Option((*guards, *well, f"{live} == 0"), (), failing(point, "use_after_free")))
        well.append(f"{live} > 0")
        if not fills and buffer in names.filled:
            filling = names.on_buffer("filling", buffer)
            options.append(Option((*guards, *well, f"{filling} > 0"), (), failing(point, "use_after_free")))
            well.append(f"{filling} == 0")
    return options, well


def _under_way(names: Names, effect: Upload | Launch, change: str) -> list[str]:
    """What counts work under way, as it begins (++) or ends (--)."""
    upload = isinstance(effect, Upload)
    buffers = effect.targets if upload else effect.uses
    counters = [names.of("busy", effect.stream.gpu)]
    counters += [names.on_buffer("used", buffer) for buffer in buffers]
    if upload:
        counters += [names.on_buffer("filling", buffer) for buffer in buffers]
        counters.append(names.source("reading", effect.source))
    return [counter + change for counter in counters]


def _counted(names: Names, stream: Stream, *kinds: str) -> list[str]:
    return [f"{names.stream(kind, stream)}++" for kind in kinds] if stream in names.observed else []


def _upload(names: Names, point: Point, effect: Upload) -> list[Option]:
    found: list[Option] = []
    early, there = _unwritten(names, effect)
    pinned = names.source("pinned", effect.source) if effect.source in names.pinnable else "0"
    at_work = names.stream("at_work", effect.stream)
    for asynchronous in (False, True) if effect.source in names.pinnable else (False,):
        guards = (f"{pinned} == 1",) if asynchronous else (f"{pinned} == 0", *names.clear(effect.stream))
        freed = names.freed(effect.source)
        found += [Option((*guards, condition), (), failing(point, "read_before_write")) for condition in early]
        guards = (*guards, *there)
        wrong, well = _misuse(
            names, point, effect.stream.gpu, effect.targets, (*guards, f"{freed} == 0"), fills=True
        )  # fmt: skip
        found += [*wrong, Option((*guards, f"{freed} != 0"), (), failing(point, "use_after_free"))]
        changes = [*_counted(names, effect.stream, "issued"), *_under_way(names, effect, "++")]
        if asynchronous:
            changes.append(f"{names.fifo(effect.stream)}!{names.entry(effect.stream, effect)}")
        else:
            changes.append(f"{at_work}++")
        found.append(
            Option((*guards, f"{freed} == 0", *well), tuple(changes), following(point) if asynchronous else None)
        )
    return found


def stream_steps(names: Names, stream: Stream) -> list[Option]:
    """What a device does by itself with what stands first in the queue of a stream."""
    fifo, found = names.fifo(stream), []
    for number, entry in enumerate(names.entries[stream], 1):
        first = (f"{fifo}?[{number}]", f"{names.stream('at_work', stream)} == 0")
        if isinstance(entry, Event):
            found.append(Option((*first, _fired(names, entry)), (f"{fifo}?{number}",), None))
        else:
            changes = (
                f"{fifo}?{number}", *_under_way(names, entry, "--"), *_counted(names, stream, "done"),
                *_written(names, entry),
            )  # fmt: skip
            found.append(Option(first, changes, None))
    return found


def _record_event(names: Names, point: Point, effect: RecordEvent) -> list[Option]:
    issued = names.stream("issued", effect.stream)
    return by_value(names, point, issued, lambda event: event.count)


def _fired(names: Names, event: Event) -> str:
    return f"{names.stream('done', event.stream)} >= {event.count}"


def _wait_event(names: Names, point: Point, effect: WaitEvent) -> list[Option]:
    done = _fired(names, effect.event)
    if effect.stream is None:
        return [Option((done,), (), following(point))]
    entry = f"{names.fifo(effect.stream)}!{names.entry(effect.stream, effect.event)}"
    return [Option((done,), (), following(point)), Option((f"!({done})",), (entry,), following(point))]


def _launch(names: Names, point: Point, effect: Launch) -> list[Option]:
    gpu, ready = effect.gpu, names.clear(effect.stream)
    early, there = _unwritten(names, effect)
    options = [Option((*ready, condition), (), failing(point, "read_before_write")) for condition in early]
    ready = (*ready, *there)
    changes, room = [], ready
    if effect.scratch_bytes:
        fits, used = room_for(names, gpu, effect.scratch_bytes, pooled=False), names.of("used", gpu)
        room = (*ready, fits)
        changes.append(f"{used} = {used} + {names.units(effect.scratch_bytes)}")
        (failed,) = (branch for branch in point.branches if branch.received is OUT_OF_MEMORY)
        options.append(Option((*ready, f"!({fits})"), (), failed.target))
    wrong, well = _misuse(names, point, effect.stream.gpu, effect.uses, room, fills=False)
    changes += [f"{names.stream('at_work', effect.stream)}++", *_under_way(names, effect, "++")]
    begun = Option((*room, *well), (*changes, *_counted(names, effect.stream, "issued")), None)
    return [*options, *wrong, begun]


def end_of_work(names: Names, point: Point) -> Option:
    """What happens where a launch, or a copy from pageable memory, is under way."""
    effect, (after,) = point.effect, [branch for branch in point.branches if branch.received is not OUT_OF_MEMORY]
    changes = [
        f"{names.stream('at_work', effect.stream)}--", *_under_way(names, effect, "--"),
        *_counted(names, effect.stream, "done"), *_written(names, effect),
    ]  # fmt: skip
    if isinstance(effect, Launch) and effect.scratch_bytes:
        used = names.of("used", effect.gpu)
        changes.append(f"{used} = {used} - {names.units(effect.scratch_bytes)}")
    return Option((), tuple(changes), after.target)


def _compute(names: Names, point: Point, effect: Compute) -> list[Option]:
    early, there = _unwritten(names, effect)
    found = [Option((condition,), (), failing(point, "read_before_write")) for condition in early]
    return [*found, Option(there, tuple(_written(names, effect)), following(point))]


def _unwritten(names: Names, effect: Effect) -> tuple[list[str], tuple[str, ...]]:
    """That something which an effect reads is not there, if it reads anything; and that all of it is."""
    data = [names.datum(datum) for datum in effect.reads]
    early = f"({' || '.join(f'{datum} == 0' for datum in data)})"
    return [early] if data else [], tuple(f"{datum} == 1" for datum in data)


def _written(names: Names, effect: Effect) -> list[str]:
    """What tells that the data are there which an effect leaves, as far as anybody reads them."""
    return [f"{names.datum(datum)} = 1" for datum in effect.writes if datum in names.read]


def _device_sync(names: Names, point: Point, effect: DeviceSync) -> list[Option]:
    return [Option((f"{names.of('busy', effect.gpu)} == 0",), (), following(point))]


RULES = {
    Pin: _pin,
    Unpin: _unpin,
    FreeHost: _free_host,
    Upload: _upload,
    RecordEvent: _record_event,
    WaitEvent: _wait_event,
    Launch: _launch,
    Compute: _compute,
    DeviceSync: _device_sync,
}

"""The rule of each effect in Promela: what can happen at a point of a program, when, and what it changes.

Written from the descriptions in `cuzklab.policies.effects` and not from the code there, whose judge this is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuzklab.check.closure import END, OUT_OF_MEMORY, Failure, Point
from cuzklab.check.explore import site
from cuzklab.check.promela_names import Names
from cuzklab.errors import BadInput
from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    ClearFlag,
    Compute,
    DeviceSync,
    Effect,
    Exchange,
    Fork,
    Free,
    FreeHost,
    Get,
    Join,
    Launch,
    Notify,
    Pin,
    Put,
    QueryFree,
    ReadFlag,
    RecordEvent,
    Release,
    Reserve,
    SetFlag,
    TrimPool,
    Unpin,
    Unreserve,
    Upload,
    Wait,
    WaitClear,
    WaitEvent,
)
from cuzklab.policies.model import Buffer, Event, Gpu, Priority, Stream, priority_of

RUNNING, HAS_ENDED, JOINED = 1, 2, 3  # states of a forked program; 0 before it is forked
IMPOSSIBLE = Failure("unlisted", "")  # a value that `closure` did not think of


@dataclass(frozen=True)
class Option:
    """One thing that can happen at a point: when, what it changes, and what follows.

    Attributes
    ----------
    guards, changes : tuple of str
        Expressions, all of which must hold, and statements.
    target : int, Failure or None
        The point at which the actor stands then, or how it fails. None: its effect is under way and has yet to end.
    """

    guards: tuple[str, ...]
    changes: tuple[str, ...]
    target: int | Failure | None


def options(names: Names, point: Point) -> list[Option]:
    """What can happen at a point."""
    rule = RULES.get(type(point.effect))
    if rule is None:
        raise BadInput(f"{point.where}: {type(point.effect).__name__} has no translation to Promela")
    return rule(names, point, point.effect)


def _fits(names: Names, gpu: Gpu, size_bytes: int, pooled: bool) -> str:
    kept = "" if pooled else f" - {names.of('pool', gpu)}"
    return f"{names.units(size_bytes)} <= {names.units(gpu.vram_bytes)} - {names.of('used', gpu)}{kept}"


def _acquire(names: Names, point: Point, effect: Acquire) -> list[Option]:
    lock = names.lock(effect)
    return [Option((f"{lock} == 0",), (f"{lock} = {names.identities[point.actor]}",), _next(point))]


def _release(names: Names, point: Point, effect: Release) -> list[Option]:
    lock, identity = names.lock(effect), names.identities[point.actor]
    return [
        Option((f"{lock} == {identity}",), (f"{lock} = 0",), _next(point)),
        Option((f"{lock} != {identity}",), (), _failure(point, "release_by_non_owner")),
    ]


def _alloc(names: Names, point: Point, effect: Alloc) -> list[Option]:
    gpu, units = effect.gpu, names.units(effect.size_bytes)
    if effect.on_full == "wait" and effect.size_bytes > gpu.vram_bytes:
        return [Option((), (), _failure(point, "request_above_capacity"))]
    used, pool = names.of("used", gpu), names.of("pool", gpu)
    idle = (f"{names.of('busy', gpu)} == 0",) if effect.device_wide else ()
    fits = _fits(names, gpu, effect.size_bytes, effect.pooled)
    (taken,) = (branch for branch in point.branches if branch.received is not OUT_OF_MEMORY)
    changes = [f"{used} = {used} + {units}", f"{names.live(taken.received)}++"]
    if effect.pooled:
        changes.append(f"{pool} = ({pool} > {units} -> {pool} - {units} : 0)")
    options = [Option((*idle, fits), tuple(changes), taken.target)]
    options += [Option((*idle, f"!({fits})"), (), branch.target) for branch in point.branches if branch is not taken]
    return options


def _free(names: Names, point: Point, effect: Free) -> list[Option]:
    buffer = effect.buffer
    live, used, units = names.live(buffer), names.of("used", buffer.gpu), names.units(buffer.size_bytes)
    idle = (f"{names.of('busy', buffer.gpu)} == 0",) if effect.device_wide else ()
    changes = [f"{live}--", f"{used} = {used} - {units}"]
    if buffer.pooled:
        pool = names.of("pool", buffer.gpu)
        changes.append(f"{pool} = {pool} + {units}")
    used = names.on_buffer("used", buffer) if buffer in names.used else "0"
    return [
        Option((*idle, f"{live} > 0", f"{used} == 0"), tuple(changes), _next(point)),
        Option((*idle, f"{live} > 0", f"{used} > 0"), (), _failure(point, "use_after_free")),
        Option((*idle, f"{live} == 0"), (), _failure(point, "double_free")),
    ]


def _reserve(names: Names, point: Point, effect: Reserve) -> list[Option]:
    if effect.size_bytes > effect.gpu.vram_bytes:
        return [Option((), (), _failure(point, "request_above_capacity"))]
    units, total = names.units(effect.size_bytes), names.of("reserved", effect.gpu)
    return [
        Option(
            (f"{units} <= {names.units(effect.gpu.vram_bytes)} - {total}",),
            (f"{total} = {total} + {units}", f"{names.promised(point.actor, effect)}++"),
            _next(point),
        )
    ]


def _unreserve(names: Names, point: Point, effect: Unreserve) -> list[Option]:
    total, promised = names.of("reserved", effect.gpu), names.promised(point.actor, effect)
    changes = (f"{total} = {total} - {names.units(effect.size_bytes)}", f"{promised}--")
    return [
        Option((f"{promised} > 0",), changes, _next(point)),
        Option((f"{promised} == 0",), (), _failure(point, "release_by_non_owner")),
    ]


def _pin(names: Names, point: Point, effect: Pin) -> list[Option]:
    return [Option((), (f"{names.pinned(effect)} = 1",), _next(point))]


def _unpin(names: Names, point: Point, effect: Unpin) -> list[Option]:
    reading = names.source("reading", effect.buffer)
    return [
        Option((f"{reading} == 0",), (f"{names.pinned(effect)} = 0",), _next(point)),
        Option((f"{reading} > 0",), (), _failure(point, "use_after_free")),
    ]


def _misuse(
    names: Names, point: Point, gpu: Gpu, buffers: Sequence[Buffer], guards: tuple[str, ...], fills: bool
) -> tuple[list[Option], list[str]]:
    """What goes wrong where work of a device is given buffers, the first of them first; and when nothing does."""
    options, well = [], []
    for buffer in buffers:
        if buffer.gpu != gpu:
            return [*options, Option((*guards, *well), (), _failure(point, "wrong_device"))], ["false"]
        live = names.live(buffer)
        options.append(Option((*guards, *well, f"{live} == 0"), (), _failure(point, "use_after_free")))
        well.append(f"{live} > 0")
        if not fills and buffer in names.filled:
            filling = names.on_buffer("filling", buffer)
            options.append(Option((*guards, *well, f"{filling} > 0"), (), _failure(point, "use_after_free")))
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
    pinned = names.source("pinned", effect.source) if effect.source in names.pinnable else "0"
    at_work = names.stream("at_work", effect.stream)
    for asynchronous in (False, True) if effect.source in names.pinnable else (False,):
        guards = (f"{pinned} == 1",) if asynchronous else (f"{pinned} == 0", *names.clear(effect.stream))
        freed = names.freed(effect.source)
        wrong, well = _misuse(
            names, point, effect.stream.gpu, effect.targets, (*guards, f"{freed} == 0"), fills=True
        )  # fmt: skip
        found += [*wrong, Option((*guards, f"{freed} != 0"), (), _failure(point, "use_after_free"))]
        changes = [*_counted(names, effect.stream, "issued"), *_under_way(names, effect, "++")]
        if asynchronous:
            changes.append(f"{names.fifo(effect.stream)}!{names.entry(effect.stream, effect)}")
        else:
            changes.append(f"{at_work}++")
        found.append(Option((*guards, f"{freed} == 0", *well), tuple(changes), _next(point) if asynchronous else None))
    return found


def stream_steps(names: Names, stream: Stream) -> list[Option]:
    """What a device does by itself with what stands first in the queue of a stream."""
    fifo, found = names.fifo(stream), []
    for number, entry in enumerate(names.entries[stream], 1):
        first = (f"{fifo}?[{number}]", f"{names.stream('at_work', stream)} == 0")
        if isinstance(entry, Event):
            found.append(Option((*first, _fired(names, entry)), (f"{fifo}?{number}",), None))
        else:
            changes = (f"{fifo}?{number}", *_under_way(names, entry, "--"), *_counted(names, stream, "done"))
            found.append(Option(first, changes, None))
    return found


def _record_event(names: Names, point: Point, effect: RecordEvent) -> list[Option]:
    issued = names.stream("issued", effect.stream)
    return _by_value(names, point, issued, lambda event: event.count)


def _fired(names: Names, event: Event) -> str:
    return f"{names.stream('done', event.stream)} >= {event.count}"


def _wait_event(names: Names, point: Point, effect: WaitEvent) -> list[Option]:
    done = _fired(names, effect.event)
    if effect.stream is None:
        return [Option((done,), (), _next(point))]
    entry = f"{names.fifo(effect.stream)}!{names.entry(effect.stream, effect.event)}"
    return [Option((done,), (), _next(point)), Option((f"!({done})",), (entry,), _next(point))]


def _launch(names: Names, point: Point, effect: Launch) -> list[Option]:
    gpu, ready = effect.gpu, names.clear(effect.stream)
    options, changes, room = [], [], ready
    if effect.scratch_bytes:
        fits, used = _fits(names, gpu, effect.scratch_bytes, pooled=False), names.of("used", gpu)
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
        *_counted(names, effect.stream, "done"),
    ]  # fmt: skip
    if isinstance(effect, Launch) and effect.scratch_bytes:
        used = names.of("used", effect.gpu)
        changes.append(f"{used} = {used} - {names.units(effect.scratch_bytes)}")
    return Option((), tuple(changes), after.target)


def _compute(names: Names, point: Point, effect: Compute) -> list[Option]:
    return [Option((), (), _next(point))]


def _device_sync(names: Names, point: Point, effect: DeviceSync) -> list[Option]:
    return [Option((f"{names.of('busy', effect.gpu)} == 0",), (), _next(point))]


def _trim_pool(names: Names, point: Point, effect: TrimPool) -> list[Option]:
    changes = (f"{names.of('pool', effect.gpu)} = 0",)
    return [Option((f"{names.of('busy', effect.gpu)} == 0",), changes, _next(point))]


def _query_free(names: Names, point: Point, effect: QueryFree) -> list[Option]:
    gpu = effect.gpu
    taken = f"({names.of('used', gpu)} + {names.of('pool', gpu)})"
    options = _by_value(
        names, point, taken, lambda free_bytes: (gpu.vram_bytes - free_bytes) // names.system.unit_bytes
    )
    note = f'printf("unlisted amount on gpu{gpu.index}: %d\\n", {taken})'
    return [*options[:-1], Option(options[-1].guards, (note,), IMPOSSIBLE)]


def _by_value(names: Names, point: Point, expression: str, value: Callable[..., int]) -> list[Option]:
    """A branch for each value of an expression; the last option is that it has none of these."""
    by_target: dict[int | Failure, list[str]] = {}
    for branch in point.branches:
        by_target.setdefault(branch.target, []).append(f"{expression} == {value(branch.received)}")
    options = [Option((f"({' || '.join(tests)})",), (), target) for target, tests in by_target.items()]
    listed = " || ".join(test for tests in by_target.values() for test in tests)
    return [*options, Option((f"!({listed})",), (), IMPOSSIBLE)]


def _notify(names: Names, point: Point, effect: Notify) -> list[Option]:
    return [Option((), (f"{names.permits(effect.semaphore)}++",), _next(point))]


def _wait(names: Names, point: Point, effect: Wait) -> list[Option]:
    permits = names.permits(effect.semaphore)
    return [Option((f"{permits} > 0",), (f"{permits}--",), _next(point))]


def _set_flag(names: Names, point: Point, effect: SetFlag | ClearFlag) -> list[Option]:
    changes = (f"{names.flag(effect.flag)} = {int(isinstance(effect, SetFlag))}",)
    return [Option((), changes, _next(point))]


def _read_flag(names: Names, point: Point, effect: ReadFlag) -> list[Option]:
    return _by_value(names, point, names.flag(effect.flag), int)[:-1]


def _wait_clear(names: Names, point: Point, effect: WaitClear) -> list[Option]:
    return [Option((f"{names.flag(effect.flag)} == 0",), (), _next(point))]


def _free_host(names: Names, point: Point, effect: FreeHost) -> list[Option]:
    freed, reading = names.freed(effect.buffer), names.source("reading", effect.buffer)
    return [
        Option((f"{reading} > 0",), (), _failure(point, "use_after_free")),
        Option((f"{reading} == 0", f"{freed} == 0"), (f"{freed} = 1",), _next(point)),
        Option((f"{reading} == 0", f"{freed} != 0"), (), _failure(point, "double_free")),
    ]


def _exchange(names: Names, point: Point, effect: Exchange) -> list[Option]:
    slot, changes = names.slot(effect.slot), (f"{names.slot(effect.slot)} = {names.keep(effect.slot, effect.value)}",)
    return [
        Option((f"{slot} == {names.keep(effect.slot, branch.received)}",), changes, branch.target)
        for branch in point.branches
    ]


def _put(names: Names, point: Point, effect: Put) -> list[Option]:
    queue, item = names.queue(effect.queue), names.variables.number(effect.queue, effect.item)
    if priority_of(effect.item) != Priority.NORMAL:
        raise BadInput(f"queue {effect.queue.name}: items of several priorities have no translation")
    if effect.queue.capacity is not None:
        return [Option((f"nfull({queue})",), (f"{queue}!{item}",), _next(point))]
    return [
        Option((f"len({queue}) < {names.queue_bound}",), (f"{queue}!{item}",), _next(point)),
        Option((f"len({queue}) >= {names.queue_bound}",), (), _failure(point, "unbounded_queue")),
    ]


def _get(names: Names, point: Point, effect: Get) -> list[Option]:
    queue, options = names.queue(effect.queue), []
    for branch in point.branches:
        item = names.variables.number(effect.queue, branch.received)
        options.append(Option((f"{queue}?[{item}]",), (f"{queue}?{item}",), branch.target))
    return options


def _fork(names: Names, point: Point, effect: Fork) -> list[Option]:
    options, taken = [], []
    for branch in point.branches:  # the name itself, then with numbers
        task = names.task(branch.received.actor)
        guards = (*taken, f"{task} != {RUNNING}")
        if branch.starts == END:
            changes = (f"{task} = {HAS_ENDED}",)
        else:
            changes = (
                f"{task} = {RUNNING}",
                f"{names.starts(branch.received.actor)} = {branch.starts}",
                "running++",
            )
        options.append(Option(guards, changes, branch.target))
        taken.append(f"{task} == {RUNNING}")
    return [*options, Option(tuple(taken), (), IMPOSSIBLE)]


def _join(names: Names, point: Point, effect: Join) -> list[Option]:
    task = names.task(effect.task.actor)
    return [Option((f"({task} == {HAS_ENDED} || {task} == {JOINED})",), (f"{task} = {JOINED}",), _next(point))]


def _next(point: Point) -> int | Failure:
    """What follows an effect that has one result."""
    (branch,) = point.branches
    return branch.target


def _failure(point: Point, kind: str) -> Failure:
    """The effect of the point fails, and no program catches that."""
    return Failure(kind, site(point.effect, point.where, point.actor))


RULES: dict[type[Effect], Callable[..., list[Option]]] = {
    Acquire: _acquire, Release: _release, Alloc: _alloc, Free: _free,
    Reserve: _reserve, Unreserve: _unreserve, Pin: _pin, Unpin: _unpin,
    Upload: _upload, RecordEvent: _record_event, WaitEvent: _wait_event,
    Launch: _launch, Compute: _compute, DeviceSync: _device_sync,
    TrimPool: _trim_pool, QueryFree: _query_free, Notify: _notify, Wait: _wait,
    SetFlag: _set_flag, ClearFlag: _set_flag, ReadFlag: _read_flag, Put: _put,
    Get: _get, Fork: _fork, Join: _join, WaitClear: _wait_clear, Exchange: _exchange, FreeHost: _free_host,
}  # fmt: skip

"""Programs of effects in Promela, the language of the model checker SPIN: an oracle for the checker.

Each actor becomes a process, each of its points (`closure`) a label with one option for each thing that can happen
there, and what actors share becomes global variables. The rule of each effect is written here once more, from its
description and not from its code: nothing of `ready`, `start` or `finish` is called.

A fault ends a schedule: it sets `fault`, fails an assertion that names its number, and nobody moves any more; when all
actors have ended, `fault` is `ALL_ENDED`, and `left` the number of each thing that was not given back
(`Translation` tells the numbers). A deadlock is what SPIN calls an invalid end state.

Under *lenient* selection a step that would fail is not taken instead. Then an invalid end state is one in which
everybody waits or is about to fail: what a deadlock of some beside a certain fault of others looks like.

Sizes are counted in the largest unit that divides all of them. Not translated, because nothing shared depends on it:
how long anything takes, `Compute`, and how many pieces of work entered a stream on which no event is recorded.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from cuzklab.check.closure import END, OUT_OF_MEMORY, Branch, ClosedSystem, Failure, Point
from cuzklab.check.explore import site
from cuzklab.errors import BadInput
from cuzklab.policies.effects import (
    Acquire,
    Alloc,
    ClearFlag,
    Compute,
    DeviceSync,
    Effect,
    Fork,
    Free,
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
    WaitEvent,
)
from cuzklab.policies.model import Buffer, Event, Gpu, Queue, Semaphore, Stream

ALL_ENDED, UNLISTED = 1, 2  # values of `fault`; the latter: a value that `closure` thought impossible
_RUNNING, _ENDED, _JOINED = 1, 2, 3  # states of a forked program; 0 before it is forked
_MAX_UNITS = 2**30  # sums of two amounts must fit in 31 bits


@dataclass(frozen=True)
class Translation:
    """A model in Promela.

    Attributes
    ----------
    text : str
    faults : dict of int to Failure
        What a value of `fault` means; besides these there are `ALL_ENDED` and `UNLISTED`.
    left : dict of int to str
        What a value of `left` means: the thing that was not given back, as in a finding's sites.
    """

    text: str
    faults: dict[int, Failure]
    left: dict[int, str]


@dataclass(frozen=True)
class Option:
    """One thing that can happen at a point: when, what it changes, and where the actor stands then."""

    guards: tuple[str, ...]
    changes: tuple[str, ...] = ()
    target: int | Failure = END
    label: str = ""  # instead of the target's


_IMPOSSIBLE = Failure("unlisted", "")


def promela(systems: Sequence[ClosedSystem], queue_bound: int) -> Translation:
    """One Promela model for several systems, of which the environment variable CASE chooses one when it is verified.

    The variable LENIENT, if set, selects what happens at a step that fails (see above). A verifier of one model for
    many small systems spares a run of the C compiler for each.

    Parameters
    ----------
    systems : sequence of ClosedSystem
    queue_bound : int
        Items at which a queue without a capacity counts as growing without bound.

    Raises
    ------
    BadInput
        An effect that has no translation, or sizes whose common unit is too small to count them in 31 bits.
    """
    variables, faults = _Variables(), {_IMPOSSIBLE: UNLISTED}
    translated = [
        _System(system, f"c{case}_", variables, faults, queue_bound) for case, system in enumerate(systems)
    ]  # fmt: skip
    processes = [text for one in translated for text in one.processes()]
    cases = [f"  :: c_expr {{ chosen_case == {case} }} -> {one.beginning()}" for case, one in enumerate(translated)]
    left: dict[str, set[str]] = {}
    for thing, variable in {pair: None for one in translated for pair in one.left}:
        left.setdefault(thing, set()).add(variable)
    things = dict(enumerate(sorted(left), 1))
    text = "\n".join(
        [
            "c_decl { int chosen_case, lenient; }",
            "short fault; byte left, running; bit strict;",
            *variables.declarations(),
            *processes,
            "init {",
            "atomic {",
            '  c_code { chosen_case = atoi(getenv("CASE")); lenient = getenv("LENIENT") != 0; };',
            "  if :: c_expr { lenient } -> skip :: else -> strict = 1 fi;",
            "  if",
            *cases,
            "  fi",
            "}",
            "end_watch: d_step {",
            f"  fault == 0 && running == 0 -> fault = {ALL_ENDED}; assert(fault != {ALL_ENDED});",
            *(
                f"  if :: {' || '.join(sorted(left[thing]))} -> left = {number}; assert(left != {number}) :: else fi;"
                for number, thing in things.items()
            ),
            "  skip",
            "}",
            "}",
            "",
        ]
    )
    numbers = {number: failure for failure, number in faults.items() if failure is not _IMPOSSIBLE}
    return Translation(text, numbers, things)


class _Variables:
    """Global variables, all 0 at first; systems of one model share those of one name."""

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}
        self._types: dict[str, str] = {}

    def name(self, kind: str, *key: Hashable, type: str = "byte", size: str = "") -> str:
        """The variable that stands for a thing: its kind, and what it is."""
        if (kind, key) not in self._names:
            words = "_".join([kind, *(re.sub(r"\W+", "_", str(getattr(part, "name", part))) for part in key)])
            name, number = words, 1
            while name in self._types:
                number += 1
                name = f"{words}_{number}"
            self._names[kind, key] = name
            self._types[name] = f"{type} {name}{size};"
        return self._names[kind, key]

    def declarations(self) -> Iterable[str]:
        return self._types.values()


@dataclass
class _System:
    """The translation of one system."""

    system: ClosedSystem
    prefix: str
    variables: _Variables
    faults: dict[Failure, int]  # numbers of the faults of all systems
    queue_bound: int
    left: dict[tuple[str, str], None] = field(default_factory=dict)  # things, each with a variable that is 0 without

    def __post_init__(self) -> None:
        actors = self.system.actors()
        self._identities = {actor: number for number, actor in enumerate(actors, 1)}
        effects = [point.effect for point in self.system.points]
        self._observed = {effect.stream for effect in effects if isinstance(effect, RecordEvent)}
        self._observed |= {effect.event.stream for effect in effects if isinstance(effect, WaitEvent)}
        self._events: dict[Stream, set[Event]] = {}
        for effect in effects:
            if isinstance(effect, WaitEvent) and effect.stream is not None:
                self._events.setdefault(effect.stream, set()).add(effect.event)
        self._items: dict[Queue, list] = {}
        self._semaphores: dict[str, int] = {}
        if len(actors) > 250:
            raise BadInput(f"{len(actors)} actors; SPIN can have no more than 255 processes")

    # --- processes ---------------------------------------------------------------------------------------------------

    def processes(self) -> list[str]:
        """The process of each actor."""
        return [self._process(actor) for actor in self._identities]

    def beginning(self) -> str:
        """What starts the processes; to be called when all were translated."""
        statements = [
            f"running = {sum(root != END for root in self.system.roots.values())}",
            *(f"{name} = {initial}" for name, initial in self._semaphores.items() if initial),
            *(
                f"run {self._process_name(actor)}()"
                for actor in self._identities
                if self.system.roots.get(actor) != END
            ),
        ]
        return "; ".join(statements)

    def _process_name(self, actor: str) -> str:
        return f"{self.prefix}{self._identities[actor]}_{re.sub(r'[^a-zA-Z0-9]+', '_', actor)}"

    def _process(self, actor: str) -> str:
        points = [point for point in self.system.points if point.actor == actor]
        lines = [f"proctype {self._process_name(actor)}() {{"]
        if actor in self.system.roots:
            lines += [f"goto {self._label(self.system.roots[actor])};"]
        else:
            lines += ["end_idle: if"]
            starts = self._starts(actor)
            for root in sorted(self._started_points(actor)):
                lines += [f":: d_step {{ fault == 0 && {starts} == {root} -> {starts} = 0 }} goto {self._label(root)}"]
            lines += [":: false", "fi;"]
        for point in points:
            lines += [f"{self._label(point.number)}: if"]
            lines += [self._text(point, option) for option in self._options(point)]
            lines += [":: false", "fi;"]
            if isinstance(point.effect, Launch):
                (after,) = (branch for branch in point.branches if branch.received is None)
                lines += [f"{self._label(point.number)}_under_way: if"]
                lines += [self._text(point, self._end_of_launch(point, after)), "fi;"]
        lines += ["crashed: fault != 0; goto crashed;", "end_ended: false"]
        return "\n".join([*lines, "}"])

    def _started_points(self, actor: str) -> set[int]:
        return {
            branch.starts
            for point in self.system.points
            for branch in point.branches
            if isinstance(point.effect, Fork) and branch.received.actor == actor and branch.starts != END
        }

    def _label(self, target: int) -> str:
        return f"P{target}" if target != END else "end_ended"

    def _text(self, point: Point, option: Option) -> str:
        guards = ["fault == 0", *option.guards]
        if isinstance(option.target, Failure):
            number = self.faults.setdefault(option.target, len(self.faults) + UNLISTED)
            if option.target is not _IMPOSSIBLE:
                guards.append("strict")
            changes = (*option.changes, f"fault = {number}", f"assert(fault != {number})")
            label = "crashed"
        else:
            changes, label = list(option.changes), option.label or self._label(option.target)
            if option.target == END and not option.label:
                changes.append("running--")
                if point.actor not in self.system.roots:
                    changes.append(f"{self._task(point.actor)} = {_ENDED}")
                    label = "end_idle"
        return f":: d_step {{ {' && '.join(guards)} -> {'; '.join(changes) or 'skip'} }} goto {label}"

    # --- variables ---------------------------------------------------------------------------------------------------

    def _units(self, size_bytes: int) -> int:
        units = size_bytes // self.system.unit_bytes
        if units >= _MAX_UNITS:
            raise BadInput(f"{size_bytes} B are too many of {self.system.unit_bytes} B, the unit of all sizes")
        return units

    def _task(self, actor: str) -> str:
        return self.variables.name("task", actor)

    def _starts(self, actor: str) -> str:
        return self.variables.name("starts", actor, type="short")

    def _of(self, kind: str, gpu: Gpu) -> str:
        return self.variables.name(f"{kind}_gpu{gpu.index}", type="byte" if kind == "busy" else "int")

    def _live(self, buffer: Buffer) -> str:
        name = self.variables.name("live", buffer.owner, buffer.name, buffer.serial)
        self.left[f"device memory {buffer.name}", name] = None
        return name

    def _stream(self, kind: str, stream: Stream) -> str:
        return self.variables.name(kind, stream.gpu.index, stream)

    def _lock(self, effect: Acquire | Release) -> str:
        name = self.variables.name("lock", effect.lock)
        self.left[f"lock {effect.lock.name}", name] = None
        return name

    def _promised(self, actor: str, effect: Reserve | Unreserve) -> str:
        name = self.variables.name(
            "promised", effect.gpu.index, self._identities[actor], self._units(effect.size_bytes)
        )
        self.left[f"reservation gpu{effect.gpu.index}", name] = None
        return name

    def _pinned(self, effect: Pin | Unpin) -> str:
        name = self.variables.name("pinned", effect.buffer)
        bare = re.sub(r"\bp\d+\.\d+\.", "", effect.buffer.name)
        self.left[f"pinned memory {bare}", name] = None
        return name

    def _permits(self, semaphore: Semaphore) -> str:
        name = self.variables.name("permits", semaphore, type="short")
        self._semaphores[name] = semaphore.initial
        return name

    def _queue(self, queue: Queue) -> str:
        capacity = self.queue_bound + 1 if queue.capacity is None else queue.capacity
        if not 0 < capacity < 255:
            raise BadInput(f"queue {queue.name}: a capacity of {capacity} has no translation")
        return self.variables.name("queue", queue.name, capacity, type="chan", size=f" = [{capacity}] of {{ byte }}")

    def _item(self, queue: Queue, item: object) -> int:
        known = self._items.setdefault(queue, [])
        if item not in known:
            known.append(item)
        return known.index(item)

    # --- rules -------------------------------------------------------------------------------------------------------

    def _options(self, point: Point) -> list[Option]:
        rule = _RULES.get(type(point.effect))
        if rule is None:
            raise BadInput(f"{point.actor}: {type(point.effect).__name__} has no translation to Promela")
        return rule(self, point, point.effect)

    def _fits(self, gpu: Gpu, size_bytes: int, pooled: bool) -> str:
        kept = "" if pooled else f" - {self._of('pool', gpu)}"
        return f"{self._units(size_bytes)} <= {self._units(gpu.vram_bytes)} - {self._of('used', gpu)}{kept}"

    def _acquire(self, point: Point, effect: Acquire) -> list[Option]:
        lock = self._lock(effect)
        return [Option((f"{lock} == 0",), (f"{lock} = {self._identities[point.actor]}",), _next(point))]

    def _release(self, point: Point, effect: Release) -> list[Option]:
        lock, identity = self._lock(effect), self._identities[point.actor]
        return [
            Option((f"{lock} == {identity}",), (f"{lock} = 0",), _next(point)),
            Option((f"{lock} != {identity}",), (), _failure(point, "release_by_non_owner")),
        ]

    def _alloc(self, point: Point, effect: Alloc) -> list[Option]:
        gpu, units = effect.gpu, self._units(effect.size_bytes)
        if effect.on_full == "wait" and effect.size_bytes > gpu.vram_bytes:
            return [Option((), (), _failure(point, "request_above_capacity"))]
        used, pool = self._of("used", gpu), self._of("pool", gpu)
        idle = (f"{self._of('busy', gpu)} == 0",) if effect.device_wide else ()
        fits = self._fits(gpu, effect.size_bytes, effect.pooled)
        (taken,) = (branch for branch in point.branches if branch.received is not OUT_OF_MEMORY)
        changes = [f"{used} = {used} + {units}", f"{self._live(taken.received)}++"]
        if effect.pooled:
            changes.append(f"{pool} = ({pool} > {units} -> {pool} - {units} : 0)")
        options = [Option((*idle, fits), tuple(changes), taken.target)]
        options += [
            Option((*idle, f"!({fits})"), (), branch.target) for branch in point.branches if branch is not taken
        ]
        return options

    def _free(self, point: Point, effect: Free) -> list[Option]:
        buffer = effect.buffer
        live, used, units = self._live(buffer), self._of("used", buffer.gpu), self._units(buffer.size_bytes)
        idle = (f"{self._of('busy', buffer.gpu)} == 0",) if effect.device_wide else ()
        changes = [f"{live}--", f"{used} = {used} - {units}"]
        if buffer.pooled:
            pool = self._of("pool", buffer.gpu)
            changes.append(f"{pool} = {pool} + {units}")
        return [
            Option((*idle, f"{live} > 0"), tuple(changes), _next(point)),
            Option((*idle, f"{live} == 0"), (), _failure(point, "double_free")),
        ]

    def _reserve(self, point: Point, effect: Reserve) -> list[Option]:
        if effect.size_bytes > effect.gpu.vram_bytes:
            return [Option((), (), _failure(point, "request_above_capacity"))]
        units, total = self._units(effect.size_bytes), self._of("reserved", effect.gpu)
        return [
            Option(
                (f"{units} <= {self._units(effect.gpu.vram_bytes)} - {total}",),
                (f"{total} = {total} + {units}", f"{self._promised(point.actor, effect)}++"),
                _next(point),
            )
        ]

    def _unreserve(self, point: Point, effect: Unreserve) -> list[Option]:
        total, promised = self._of("reserved", effect.gpu), self._promised(point.actor, effect)
        changes = (f"{total} = {total} - {self._units(effect.size_bytes)}", f"{promised}--")
        return [
            Option((f"{promised} > 0",), changes, _next(point)),
            Option((f"{promised} == 0",), (), _failure(point, "release_by_non_owner")),
        ]

    def _pin(self, point: Point, effect: Pin | Unpin) -> list[Option]:
        return [Option((), (f"{self._pinned(effect)} = {int(isinstance(effect, Pin))}",), _next(point))]

    def _misuse(
        self, point: Point, gpu: Gpu, buffers: Sequence[Buffer], guards: tuple[str, ...] = ()
    ) -> tuple[list[Option], list[str]]:
        """What goes wrong where work of a device is given buffers, the first of them first; and when nothing does."""
        options, well = [], []
        for buffer in buffers:
            if buffer.gpu != gpu:
                return [*options, Option((*guards, *well), (), _failure(point, "wrong_device"))], ["false"]
            live = self._live(buffer)
            options.append(Option((*guards, *well, f"{live} == 0"), (), _failure(point, "use_after_free")))
            well.append(f"{live} > 0")
        return options, well

    def _counted(self, stream: Stream, *kinds: str) -> list[str]:
        return [f"{self._stream(kind, stream)}++" for kind in kinds] if stream in self._observed else []

    def _upload(self, point: Point, effect: Upload) -> list[Option]:
        # The copy is done as soon as it is queued, so that nobody sees the device busy with it.
        options, well = self._misuse(point, effect.stream.gpu, effect.targets)
        changes = self._counted(effect.stream, "issued", "done")
        return [*options, Option(tuple(well), tuple(changes), _next(point))]

    def _record_event(self, point: Point, effect: RecordEvent) -> list[Option]:
        issued = self._stream("issued", effect.stream)
        return self._by_value(point, issued, lambda event: event.count)

    def _wait_event(self, point: Point, effect: WaitEvent) -> list[Option]:
        done = f"{self._stream('done', effect.event.stream)} >= {effect.event.count}"
        if effect.stream is None:
            return [Option((done,), (), _next(point))]
        return [
            Option((done,), (), _next(point)),
            Option((f"!({done})",), (f"{self._after(effect.stream, effect.event)} = 1",), _next(point)),
        ]

    def _after(self, stream: Stream, event: Event) -> str:
        return self.variables.name("after", stream.gpu.index, stream, event.stream.gpu.index, event.stream, event.count)

    def _launch(self, point: Point, effect: Launch) -> list[Option]:
        gpu, awaited = effect.gpu, sorted(self._events.get(effect.stream, ()), key=str)
        marks = [self._after(effect.stream, event) for event in awaited]
        ready = tuple(
            f"({mark} == 0 || {self._stream('done', event.stream)} >= {event.count})"
            for mark, event in zip(marks, awaited, strict=True)
        )
        options, changes, room = [], [f"{mark} = 0" for mark in marks], ready
        if effect.scratch_bytes:
            fits, used = self._fits(gpu, effect.scratch_bytes, pooled=False), self._of("used", gpu)
            room = (*ready, fits)
            changes.append(f"{used} = {used} + {self._units(effect.scratch_bytes)}")
            (failed,) = (branch for branch in point.branches if branch.received is OUT_OF_MEMORY)
            options.append(Option((*ready, f"!({fits})"), (), failed.target))
        wrong, well = self._misuse(point, effect.stream.gpu, effect.uses, room)
        changes += [f"{self._of('busy', gpu)}++", *self._counted(effect.stream, "issued")]
        begun = Option((*room, *well), tuple(changes), label=f"{self._label(point.number)}_under_way")
        return [*options, *wrong, begun]

    def _end_of_launch(self, point: Point, after: Branch) -> Option:
        effect = point.effect
        changes = [f"{self._of('busy', effect.gpu)}--", *self._counted(effect.stream, "done")]
        if effect.scratch_bytes:
            used = self._of("used", effect.gpu)
            changes.append(f"{used} = {used} - {self._units(effect.scratch_bytes)}")
        return Option((), tuple(changes), after.target)

    def _compute(self, point: Point, effect: Compute) -> list[Option]:
        return [Option((), (), _next(point))]

    def _device_sync(self, point: Point, effect: DeviceSync) -> list[Option]:
        return [Option((f"{self._of('busy', effect.gpu)} == 0",), (), _next(point))]

    def _trim_pool(self, point: Point, effect: TrimPool) -> list[Option]:
        changes = (f"{self._of('pool', effect.gpu)} = 0",)
        return [Option((f"{self._of('busy', effect.gpu)} == 0",), changes, _next(point))]

    def _query_free(self, point: Point, effect: QueryFree) -> list[Option]:
        gpu = effect.gpu
        taken = f"({self._of('used', gpu)} + {self._of('pool', gpu)})"
        options = self._by_value(
            point, taken, lambda free_bytes: (gpu.vram_bytes - free_bytes) // self.system.unit_bytes
        )
        note = f'printf("unlisted amount on gpu{gpu.index}: %d\\n", {taken})'
        return [*options[:-1], Option(options[-1].guards, (note,), _IMPOSSIBLE)]

    def _by_value(self, point: Point, expression: str, value: Callable[..., int]) -> list[Option]:
        """A branch for each value of an expression; the last option is that it has none of these."""
        by_target: dict[int | Failure, list[str]] = {}
        for branch in point.branches:
            by_target.setdefault(branch.target, []).append(f"{expression} == {value(branch.received)}")
        options = [Option((f"({' || '.join(tests)})",), (), target) for target, tests in by_target.items()]
        listed = " || ".join(test for tests in by_target.values() for test in tests)
        return [*options, Option((f"!({listed})",), (), _IMPOSSIBLE)]

    def _notify(self, point: Point, effect: Notify) -> list[Option]:
        return [Option((), (f"{self._permits(effect.semaphore)}++",), _next(point))]

    def _wait(self, point: Point, effect: Wait) -> list[Option]:
        permits = self._permits(effect.semaphore)
        return [Option((f"{permits} > 0",), (f"{permits}--",), _next(point))]

    def _set_flag(self, point: Point, effect: SetFlag | ClearFlag) -> list[Option]:
        changes = (f"{self.variables.name('flag', effect.flag)} = {int(isinstance(effect, SetFlag))}",)
        return [Option((), changes, _next(point))]

    def _read_flag(self, point: Point, effect: ReadFlag) -> list[Option]:
        return self._by_value(point, self.variables.name("flag", effect.flag), int)[:-1]

    def _put(self, point: Point, effect: Put) -> list[Option]:
        queue, item = self._queue(effect.queue), self._item(effect.queue, effect.item)
        if effect.queue.capacity is not None:
            return [Option((f"nfull({queue})",), (f"{queue}!{item}",), _next(point))]
        return [
            Option((f"len({queue}) < {self.queue_bound}",), (f"{queue}!{item}",), _next(point)),
            Option((f"len({queue}) >= {self.queue_bound}",), (), _failure(point, "unbounded_queue")),
        ]

    def _get(self, point: Point, effect: Get) -> list[Option]:
        queue, options = self._queue(effect.queue), []
        for branch in point.branches:
            item = self._item(effect.queue, branch.received)
            options.append(Option((f"{queue}?[{item}]",), (f"{queue}?{item}",), branch.target))
        return options

    def _fork(self, point: Point, effect: Fork) -> list[Option]:
        options, taken = [], []
        for branch in point.branches:  # the name itself, then with numbers
            task = self._task(branch.received.actor)
            guards = (*taken, f"{task} != {_RUNNING}")
            if branch.starts == END:
                changes = (f"{task} = {_ENDED}",)
            else:
                changes = (
                    f"{task} = {_RUNNING}",
                    f"{self._starts(branch.received.actor)} = {branch.starts}",
                    "running++",
                )
            options.append(Option(guards, changes, branch.target))
            taken.append(f"{task} == {_RUNNING}")
        return [*options, Option(tuple(taken), (), _IMPOSSIBLE)]

    def _join(self, point: Point, effect: Join) -> list[Option]:
        task = self._task(effect.task.actor)
        return [Option((f"({task} == {_ENDED} || {task} == {_JOINED})",), (f"{task} = {_JOINED}",), _next(point))]


def _next(point: Point) -> int | Failure:
    """What follows an effect that has one result."""
    (branch,) = point.branches
    return branch.target


def _failure(point: Point, kind: str) -> Failure:
    """The effect of the point fails, and no program catches that."""
    return Failure(kind, site(point.effect, point.where, point.actor))


_RULES: dict[type[Effect], Callable[..., list[Option]]] = {
    Acquire: _System._acquire, Release: _System._release, Alloc: _System._alloc, Free: _System._free,
    Reserve: _System._reserve, Unreserve: _System._unreserve, Pin: _System._pin, Unpin: _System._pin,
    Upload: _System._upload, RecordEvent: _System._record_event, WaitEvent: _System._wait_event,
    Launch: _System._launch, Compute: _System._compute, DeviceSync: _System._device_sync,
    TrimPool: _System._trim_pool, QueryFree: _System._query_free, Notify: _System._notify, Wait: _System._wait,
    SetFlag: _System._set_flag, ClearFlag: _System._set_flag, ReadFlag: _System._read_flag, Put: _System._put,
    Get: _System._get, Fork: _System._fork, Join: _System._join,
}  # fmt: skip

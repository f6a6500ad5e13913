"""The rules of what programs coordinate themselves by in Promela: locks, semaphores, flags, slots, queues, forks."""

from cuzklab.check.promela.names import Names
from cuzklab.check.promela.options import IMPOSSIBLE, Option, by_value, failing, following
from cuzklab.check.promela.points import END, Point
from cuzklab.errors import BadInput
from cuzklab.policies.effects import (
    Acquire,
    ClearFlag,
    Exchange,
    Fork,
    Get,
    Join,
    Notify,
    Put,
    ReadFlag,
    Release,
    SetFlag,
    Wait,
    WaitClear,
)
from cuzklab.policies.model import Priority, priority_of

RUNNING, HAS_ENDED, JOINED = 1, 2, 3  # states of a forked program; 0 before it is forked


def _acquire(names: Names, point: Point, effect: Acquire) -> list[Option]:
    lock = names.lock(effect)
    return [Option((f"{lock} == 0",), (f"{lock} = {names.identities[point.actor]}",), following(point))]


def _release(names: Names, point: Point, effect: Release) -> list[Option]:
    lock, identity = names.lock(effect), names.identities[point.actor]
    return [
        Option((f"{lock} == {identity}",), (f"{lock} = 0",), following(point)),
        Option((f"{lock} != {identity}",), (), failing(point, "release_by_non_owner")),
    ]


def _notify(names: Names, point: Point, effect: Notify) -> list[Option]:
    return [Option((), (f"{names.permits(effect.semaphore)}++",), following(point))]


def _wait(names: Names, point: Point, effect: Wait) -> list[Option]:
    permits = names.permits(effect.semaphore)
    return [Option((f"{permits} > 0",), (f"{permits}--",), following(point))]


def _set_flag(names: Names, point: Point, effect: SetFlag | ClearFlag) -> list[Option]:
    changes = (f"{names.flag(effect.flag)} = {int(isinstance(effect, SetFlag))}",)
    return [Option((), changes, following(point))]


def _read_flag(names: Names, point: Point, effect: ReadFlag) -> list[Option]:
    return by_value(names, point, names.flag(effect.flag), int)[:-1]


def _wait_clear(names: Names, point: Point, effect: WaitClear) -> list[Option]:
    return [Option((f"{names.flag(effect.flag)} == 0",), (), following(point))]


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
        return [Option((f"nfull({queue})",), (f"{queue}!{item}",), following(point))]
    return [
        Option((f"len({queue}) < {names.queue_bound}",), (f"{queue}!{item}",), following(point)),
        Option((f"len({queue}) >= {names.queue_bound}",), (), failing(point, "unbounded_queue")),
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
    return [Option((f"({task} == {HAS_ENDED} || {task} == {JOINED})",), (f"{task} = {JOINED}",), following(point))]


RULES = {
    Acquire: _acquire,
    Release: _release,
    Notify: _notify,
    Wait: _wait,
    SetFlag: _set_flag,
    ClearFlag: _set_flag,
    ReadFlag: _read_flag,
    WaitClear: _wait_clear,
    Exchange: _exchange,
    Put: _put,
    Get: _get,
    Fork: _fork,
    Join: _join,
}

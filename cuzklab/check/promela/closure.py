"""Programs closed under every result that they might receive: for oracles, which judge the rules for themselves.

The checker asks the rules of `cuzklab.policies.effects` what an effect comes to in a state. A translation into another
tool's language must not: it needs the programs alone, with a branch for each result that could come, and states anew
when each comes. `close` unfolds all of them. Which amounts of free memory, which events, tasks and items there can be
is bounded from the programs themselves, generously; a translation must notice a value that is none of these.

Points that nobody can tell apart by what follows are one point, so that a policy which receives one of thirty amounts
of free memory and asks only whether it suffices has two continuations and not thirty. This is decided by what the
programs yield, not by looking into suspended generators as the checker does.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from cuzklab.check.automaton import ENDED, Escape, Node, Unfolding, fork_origin
from cuzklab.check.causes import site
from cuzklab.check.promela.points import END, OUT_OF_MEMORY, Branch, ClosedSystem, Failure, Point
from cuzklab.errors import BadInput
from cuzklab.policies.effects import (
    Alloc,
    Effect,
    Exchange,
    Fork,
    Get,
    Launch,
    OutOfDeviceMemory,
    Put,
    QueryFree,
    ReadFlag,
    RecordEvent,
    Reserve,
    Unreserve,
    Upload,
)
from cuzklab.policies.model import Buffer, Event, Gpu, Program, Queue, Slot, Stream, Task

MAX_NODES = 60_000
_MAX_AMOUNTS = 64  # of free memory, that are enumerated; where there are more they must be told
_SERIALS = 10_000  # of one program


@dataclass
class _Bounds:
    """Which results there can be; widened until nothing new turns up."""

    free_bytes: dict[Gpu, frozenset[int]] = field(default_factory=dict)
    issued: dict[Stream, int] = field(default_factory=dict)
    forks: dict[str, int] = field(default_factory=dict)
    items: dict[Queue | Slot, tuple[Any, ...]] = field(default_factory=dict)
    generations: dict[Queue | Slot, int] = field(default_factory=dict)


def close(
    programs: Mapping[str, Sequence[Program]], free_bytes: Mapping[Gpu, Collection[int]] | None = None
) -> ClosedSystem:
    """Unfold programs under every result that they might receive.

    Parameters
    ----------
    programs : mapping of str to sequence of Program
        The actors, and the programs that each runs one after another.
    free_bytes : mapping, optional
        Amounts of free memory that `QueryFree` can give, of devices on which there are too many to enumerate all
        multiples of the unit.

    Raises
    ------
    BadInput
        A program depends on the numbers in the message of a failed allocation, or there are too many histories.
    """
    bounds = _Bounds()
    while True:
        system = _Closure(programs, bounds).system()
        wider = _widened(system, bounds, free_bytes or {})
        if wider == bounds:
            return system
        bounds = wider


class _Closure:
    """One pass over the programs, under fixed bounds."""

    def __init__(self, programs: Mapping[str, Sequence[Program]], bounds: _Bounds) -> None:
        self._programs, self._bounds = programs, bounds
        self._unfolding = Unfolding(merge=False)
        self._points: list[Point] = []
        self._numbers: dict[Hashable, int] = {}
        self._closed: dict[int, int] = {ENDED: END}

    def system(self) -> ClosedSystem:
        roots = {
            actor: self._close(self._unfolding.root(actor, sequence)) for actor, sequence in self._programs.items()
        }
        sizes = {size for point in self._points for size in _sizes(point.effect)}
        return ClosedSystem(roots, tuple(self._points), gcd(*sizes) or 1)

    def _close(self, start: int) -> int:
        """The point that stands for a node; everything that follows it is closed first."""
        nodes, waiting = self._unfolding.nodes, [start]
        while waiting:
            number = waiting[-1]
            if number in self._closed:
                waiting.pop()
                continue
            if len(nodes) > MAX_NODES:
                raise BadInput(f"{nodes[number].where}: more than {MAX_NODES} histories; too many for a translation")
            following = list(self._following(nodes[number]))
            missing = [
                node
                for _, node, root in following
                for node in (node, root)
                if isinstance(node, int) and node not in self._closed
            ]
            if missing:
                waiting.extend(missing)
                continue
            self._closed[number] = self._point(nodes[number], following)
            waiting.pop()
        return self._closed[start]

    def _point(self, node: Node, following: list[tuple[Any, int | Escape, int | None]]) -> int:
        branches = tuple(
            dict.fromkeys(
                Branch(result, self._target(node.actor, target), None if root is None else self._closed[root])
                for result, target, root in following
            )
        )
        if sum(branch.received is OUT_OF_MEMORY for branch in branches) > 1:
            raise BadInput(f"{node.where}: {node.actor} depends on the numbers in the message of a failed allocation")
        key = (node.actor, node.effect, node.where, branches)
        try:
            hash(key)
        except TypeError:
            raise BadInput(f"{node.where}: {node.effect} has arguments that are not hashable") from None
        if key not in self._numbers:
            self._points.append(Point(len(self._points) + 1, *key))
            self._numbers[key] = len(self._points)
        return self._numbers[key]

    def _target(self, actor: str, following: int | Escape) -> int | Failure:
        if isinstance(following, Escape):
            return Failure(following.fault.kind, site(following.effect, following.where, actor))
        return self._closed[following]

    def _following(self, node: Node) -> Iterator[tuple[Any, int | Escape, int | None]]:
        """Each result that the effect might have, what follows in the program, and what it starts."""
        effect = node.effect
        for result in self._results(node):
            root = None
            if isinstance(effect, Fork):
                root = self._unfolding.root(result.actor, (effect.program,), origin=fork_origin(node, effect))
            yield result, self._unfolding.received(node, result), root
        if (name := _may_run_out(effect)) is not None:
            (size,) = _sizes(effect)
            for used in (effect.gpu.vram_bytes, effect.gpu.vram_bytes - size + 1):
                fault = OutOfDeviceMemory(name, size, used, effect.gpu.vram_bytes)
                yield OUT_OF_MEMORY, self._unfolding.thrown(node, fault), None

    def _results(self, node: Node) -> list[Any]:
        effect, bounds = node.effect, self._bounds
        match effect:
            case Alloc():
                partition = effect.partition.name if effect.partition else ""
                made = effect.name, effect.size_bytes, effect.gpu, node.actor, _serial(node), partition, effect.pooled
                return [Buffer(*made)]
            case QueryFree():
                return sorted(bounds.free_bytes.get(effect.gpu, (effect.gpu.vram_bytes,)))
            case ReadFlag():
                return [False, True]
            case RecordEvent():
                return [Event(effect.stream, count) for count in range(bounds.issued.get(effect.stream, 0) + 1)]
            case Get():
                return list(bounds.items.get(effect.queue, ()))
            case Exchange():
                return list(bounds.items.get(effect.slot, (None,)))
            case Fork():
                first = child_name(node.actor, effect)
                more = range(2, bounds.forks.get(first, 1) + 1)
                return [Task(first), *(Task(f"{first}#{number}") for number in more)]
        return [None]


def child_name(actor: str, effect: Fork) -> str:
    """The name of the actor that a fork starts while no other of that name runs."""
    return f"{actor}/{effect.name or effect.program.name}"


def _serial(node: Node) -> int:
    """A number that tells an allocation from the others of its actor: how many came before it in its program."""
    count, earlier = 1, node
    while earlier.parent is not None:
        count += isinstance(earlier.parent.effect, Alloc) and isinstance(earlier.received, Buffer)
        earlier = earlier.parent
    return node.position * _SERIALS + count


def _may_run_out(effect: Effect) -> str | None:
    """What memory is wanted for by an effect that may run out of it; None for one that does not."""
    if isinstance(effect, Alloc) and effect.on_full == "fail":
        return effect.name
    if isinstance(effect, Launch) and effect.scratch_bytes:
        return f"{effect.label} scratch"
    return None


def _sizes(effect: Effect) -> tuple[int, ...]:
    if isinstance(effect, Alloc | Reserve | Unreserve):
        return (effect.size_bytes,)
    if isinstance(effect, Launch) and effect.scratch_bytes:
        return (effect.scratch_bytes,)
    return ()


def _widened(system: ClosedSystem, bounds: _Bounds, told: Mapping[Gpu, Collection[int]]) -> _Bounds:
    """What results there can be, judged by what the programs may do under the bounds so far."""
    wider = _Bounds(
        dict(bounds.free_bytes), dict(bounds.issued), dict(bounds.forks), dict(bounds.items), dict(bounds.generations)
    )
    for point in system.points:
        match effect := point.effect:
            case QueryFree(gpu=gpu):
                amounts = {gpu.vram_bytes, *told.get(gpu, ())}
                if gpu.vram_bytes // system.unit_bytes < _MAX_AMOUNTS:
                    amounts.update(range(gpu.vram_bytes, -1, -system.unit_bytes))
                wider.free_bytes[gpu] = bounds.free_bytes.get(gpu, frozenset()) | amounts
            case RecordEvent(stream=stream):
                issued = system.longest(lambda other, stream=stream: _issues(other.effect, stream))
                wider.issued[stream] = max(issued, bounds.issued.get(stream, 0))
            case Fork():
                name = child_name(point.actor, effect)
                forks = system.longest(lambda other, name=name: _forks(other, name))
                wider.forks[name] = max(forks, bounds.forks.get(name, 0))
            case Put(queue=place, item=item) | Exchange(slot=place, value=item):
                known = wider.items.setdefault(place, (None,) if isinstance(place, Slot) else ())
                if item not in known and bounds.generations.get(place, 0) < _puts(system, place):
                    # A value that is made from the one before it, as a counter is, is of the next generation; there
                    # are no more generations than values are put there.
                    wider.items[place] = (*known, item)
                    wider.generations[place] = bounds.generations.get(place, 0) + 1
    return wider


def _puts(system: ClosedSystem, place: Queue | Slot) -> int:
    """How often all actors together may put a value into a queue or a slot."""

    def puts(effect: Effect) -> bool:
        if isinstance(effect, Exchange):
            return effect.slot == place and effect.value is not None
        return isinstance(effect, Put) and effect.queue == place

    return system.longest(lambda point: puts(point.effect))


def _forks(point: Point, name: str) -> bool:
    return isinstance(point.effect, Fork) and child_name(point.actor, point.effect) == name


def _issues(effect: Effect, stream: Stream) -> bool:
    return isinstance(effect, Upload | Launch) and effect.stream == stream

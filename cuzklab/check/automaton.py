"""Programs as automata: a generator cannot be copied, but it can be run again from its start.

A `Node` is a point in an actor's program: what the program has received so far, and the effect that it yields next.
Nodes are made when they are first reached and shared by all states; histories that leave a program at the same point
with the same variables share one node (`frames`). A worker's programs follow one another; where one
ends nothing is remembered, so the first node of the next is the same however the last one went.
"""

import sys
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, GeneratorType
from typing import Any

from cuzklab.check.frames import frozen_state
from cuzklab.errors import BadInput
from cuzklab.policies.effects import Effect, Fork, PolicyFault
from cuzklab.policies.model import Program

ABSENT, ENDED = 0, 1  # numbers that stand for an actor that was not started, and for one that has ended
MAX_EFFECTS = 20_000  # of one program; one that yields more is taken to be endless
_MAX_LINES = 2_000_000  # and instructions run between two effects; a program that runs more is taken to hang


@dataclass(frozen=True)
class Escape:
    """A fault left a program: it was raised at `effect` (line `where`) and not caught."""

    fault: PolicyFault
    effect: Effect
    where: str


@dataclass(eq=False, slots=True)
class Node:
    """A point in an actor's program.

    Attributes
    ----------
    index : int
        Its number; what stands for it in a state.
    effect : Effect or None
        What the program yields here; None in the node that stands for the end.
    where : str
        File and line of the yield.
    begun : Node or None
        Where the effect takes two steps and has made the first: the node at which it began.
    successors : dict
        What may follow, by what the program receives: a number, or an `Escape`.
    """

    index: int
    actor: str
    effect: Effect | None = None
    where: str = ""
    begun: "Node | None" = None
    successors: dict[Hashable, "int | Escape"] = field(default_factory=dict)
    programs: tuple[Program, ...] = ()
    position: int = 0
    origin: Hashable = None
    parent: "Node | None" = None
    received: Any = None
    depth: int = 0
    raised: tuple[Effect, str] | None = None
    generator: Generator[Any, Any, Any] | None = None


class Unfolding:
    """All nodes that were reached so far, of all actors."""

    def __init__(self, merge: bool = True) -> None:
        self.nodes: list[Node] = [Node(ABSENT, ""), Node(ENDED, "")]
        self._roots: dict[Hashable, int] = {}
        self._merge = merge
        self._points: dict[Hashable, int] = {}

    def root(self, actor: str, programs: Sequence[Program], position: int = 0, origin: Hashable = None) -> int:
        """The first node of the first program from `position` on that yields anything, else `ENDED`.

        `origin` tells apart programs of actors of one name.
        """
        programs = tuple(programs)
        if position == len(programs):
            return ENDED
        key = (actor, position, origin)
        if key not in self._roots:
            generator = _generator(programs[position])
            effect = _advance(actor, generator, lambda: next(generator))
            if effect is None:
                self._roots[key] = self.root(actor, programs, position + 1, origin)
            else:
                node = self._add(actor, effect, generator, programs=programs, position=position, origin=origin)
                self._roots[key] = node.index
        return self._roots[key]

    def started(self, node: Node) -> int:
        """The node at which a two-step effect of `node` is under way."""
        if "started" not in node.successors:
            index = len(self.nodes)
            self.nodes.append(
                Node(
                    index, node.actor, node.effect, node.where, begun=node, programs=node.programs,
                    position=node.position,
                )
            )  # fmt: skip
            node.successors["started"] = len(self.nodes) - 1
        return node.successors["started"]

    def received(self, node: Node, result: Any) -> int | Escape:
        """What follows when the program receives the result of its effect."""
        try:
            return node.successors[result]
        except KeyError:
            pass
        except TypeError:
            raise BadInput(f"{node.where}: {node.effect} gives an unhashable {type(result).__name__}") from None
        return self._extend(node, result, result, None)

    def thrown(self, node: Node, fault: PolicyFault) -> int | Escape:
        """What follows when the fault is thrown into the program at its effect."""
        key = ("thrown", type(fault), str(fault))
        if key in node.successors:
            return node.successors[key]
        return self._extend(node, key, None, fault)

    def _extend(self, node: Node, key: Hashable, result: Any, fault: PolicyFault | None) -> int | Escape:
        generator, node.generator = node.generator or self._replay(node), None
        raised = (node.effect, node.where) if fault else node.raised
        try:
            if fault:
                effect = _advance(node.actor, generator, lambda: generator.throw(fault))
            else:
                effect = _advance(node.actor, generator, lambda: generator.send(result))
        except PolicyFault as escaped:
            at = raised or (node.effect, node.where)
            node.successors[key] = Escape(escaped, *at)
            return node.successors[key]
        if effect is None:
            following = self.root(node.actor, node.programs, node.position + 1, node.origin)
        elif (point := self._point(node, effect, generator, raised)) in self._points:
            following = self._points[point]
        else:
            child = self._add(
                node.actor, effect, generator, programs=node.programs, position=node.position, origin=node.origin,
                parent=node, received=fault or result, depth=node.depth + 1, raised=raised,
            )  # fmt: skip
            following = child.index
            if point is not None:
                self._points[point] = following
        node.successors[key] = following
        return following

    def _point(self, node: Node, effect: Effect, generator: Any, raised: Any) -> Hashable | None:
        """What tells a point of a program from others, apart from its history; None where only that does."""
        state = frozen_state(generator) if self._merge else None
        if state is None:
            return None
        try:
            point = (node.actor, node.position, node.origin, effect, raised, state)
            hash(point)
        except TypeError:
            return None
        return point

    def _add(self, actor: str, effect: Effect, generator: Generator[Any, Any, Any], **more: Any) -> Node:
        node = Node(len(self.nodes), actor, effect, location(generator), generator=generator, **more)
        if node.depth >= MAX_EFFECTS:
            raise BadInput(f"{node.where}: the program of {actor} yields more than {MAX_EFFECTS} effects; does it end?")
        self.nodes.append(node)
        return node

    def _replay(self, node: Node) -> Generator[Any, Any, Any]:
        """A generator that stands at the node, run again from its start."""
        path = [node]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        generator = _generator(node.programs[node.position])
        effect = _advance(node.actor, generator, lambda: next(generator))
        for earlier, later in zip(reversed(path), list(reversed(path))[1:], strict=False):
            if effect != earlier.effect:
                break
            received = later.received
            if isinstance(received, PolicyFault):
                effect = _advance(node.actor, generator, lambda fault=received: generator.throw(fault))
            else:
                effect = _advance(node.actor, generator, lambda result=received: generator.send(result))
        if effect != node.effect:
            raise BadInput(
                f"{node.where}: the program of {node.actor} yielded {effect or 'nothing'} where it yielded "
                f"{node.effect} before; a policy must depend on nothing but its arguments and the results it receives"
            )
        return generator


def fork_origin(node: Node, effect: Fork) -> Hashable:
    """What tells the programs of forked actors apart: the program itself, or the node that forks it."""
    try:
        hash(effect.program)
    except TypeError:
        return node.index
    return effect.program


def _generator(program: Any) -> Generator[Any, Any, Any]:
    start = getattr(program, "start", None)
    if not callable(start):
        raise BadInput(f"{program!r} is not a program; decorate its generator function with @program")
    generator = start()
    if not isinstance(generator, GeneratorType):
        raise BadInput(f"{getattr(program, 'name', program)}: not a generator function; it must yield effects")
    return generator


def location(generator: Any) -> str:
    """File and line at which the innermost generator stands."""
    while isinstance(generator.gi_yieldfrom, GeneratorType):
        generator = generator.gi_yieldfrom
    frame = generator.gi_frame
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _advance(actor: str, generator: Any, step: Callable[[], Any]) -> Effect | None:
    """Run a program to its next effect; None at its end. Faults of the policy pass, everything else is bad input."""
    try:
        with _LineLimit(actor):
            effect = step()
    except StopIteration:
        return None
    except (PolicyFault, BadInput, KeyboardInterrupt):
        raise
    except Exception as error:
        frame = error.__traceback__
        while frame.tb_next is not None:
            frame = frame.tb_next
        place = f"{Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}"
        raise BadInput(f"{place}: the program of {actor} raised {type(error).__name__}: {error}") from error
    if not isinstance(effect, Effect):
        raise BadInput(
            f"{location(generator)}: the program of {actor} yields {effect!r}, which is no effect of "
            "cuzklab.policies.effects"
        )
    return effect


class _LineLimit:
    """Stops a program that runs on without yielding. It stands back while a debugger or a coverage tool traces."""

    def __init__(self, actor: str) -> None:
        self.actor, self.left = actor, _MAX_LINES

    def __enter__(self) -> None:
        self.active = sys.gettrace() is None
        if self.active:
            sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        if self.active:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = True  # a loop on one line is no new line
        self.left -= 1
        if self.left < 0:
            place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            raise BadInput(f"{place}: the program of {self.actor} runs on without yielding an effect; does it end?")
        return self._trace

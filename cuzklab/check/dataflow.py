"""Which data need not be minded, because on every schedule they are written before anybody reads them.

Who has written what would be part of every state, and a step that writes would have to be interleaved with all that
others do: a check would take many times the states. For most designs that is not needed. Along each program it is known
what must have been written by the time an actor stands at a node: what it wrote itself, and what it learnt where it
waited for another. A permit tells what its giver knew, a join what the other had done at its end, a stream what was
queued in it before, an item of a queue what was known to whoever put it there. `unordered` carries such facts along the
nodes of a complete survey, and meets them where ways come together; so a fact holds at a node however it was reached.

What is not known to be written where it is read may still be, for a reason that these rules do not see. It is what a
second survey must mind (`Model`, `minded`): that one is exact.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator

from cuzklab.check.automaton import ENDED, Node
from cuzklab.check.endings import Due
from cuzklab.check.model import Model
from cuzklab.check.symmetry import Symmetry
from cuzklab.policies.effects import (
    Alloc,
    DeviceSync,
    Effect,
    Exchange,
    Fork,
    Free,
    Get,
    Join,
    Launch,
    Notify,
    Put,
    ReadFlag,
    RecordEvent,
    SetFlag,
    TrimPool,
    Upload,
    Wait,
    WaitEvent,
)
from cuzklab.policies.model import Datum, Gpu

_EVERYTHING = -1  # what is known where nobody has come yet: a set of bits, as all sets of facts are here


def unordered(model: Model, due: Iterable[Due], symmetry: Symmetry | None = None) -> frozenset[Datum]:
    """Data that some schedule may read before they are written, as far as the order of the programs' steps tells.

    Parameters
    ----------
    model : Model
        Completely surveyed, without minding any data.
    due : iterable of Due
        Not asked of programs that run no stage at all: those are sketches of locks and memory.
    symmetry : Symmetry, optional
        Of the survey: what is to be minded of one actor is minded of all that are like it.
    """
    known = _Known(model)
    early = {datum for node in known.nodes() for datum in node.effect.reads if not known.has(node, datum)}
    sketch = not any(node.effect.writes for node in known.nodes())
    asked = () if sketch else [datum for one in due for datum in one.data]
    early |= {datum for datum in asked if not known.at_the_end(datum)}
    renamings = symmetry.all_renamings() if symmetry is not None and early else ()
    return frozenset(early | {renaming.of(datum) for renaming in renamings for datum in early})


class _Known:
    """What is certain at each node: facts that, once true, stay so.

    A fact is a `Datum` that is written; or ``(thing, datum)``: the datum is written once that thing has happened, where
    a stream means all that is in it now, an event itself, and ``("after", stream)`` the start of whatever comes next.
    ``("started", actor)`` says that an actor was forked.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._bits: dict[Hashable, int] = {}
        self._promises: dict[Hashable, dict[Datum, int]] = {}  # of a thing: its facts, by the datum
        self._started: dict[str, int] = {}  # of a forked actor: the fact that it was
        self._before = {root: 0 for root in model.roots.values() if root != ENDED}
        self._told: dict[Hashable, int] = {}  # of what one waits for and another gives: what every giver knew
        self._listeners: dict[Hashable, set[int]] = {}
        self._waiting = list(self._before)
        while self._waiting:
            self._pass(self._waiting.pop())

    def nodes(self) -> Iterator[Node]:
        """Nodes at which an effect begins."""
        for number in self._before:
            if (node := self._model.nodes[number]).begun is None:
                yield node

    def has(self, node: Node, datum: Datum) -> bool:
        """Whether a datum is certainly there when the effect of a node takes place."""
        facts = self._before[node.index]
        if isinstance(node.effect, Launch):
            facts |= self._kept(facts, *_waited_for(node.effect))
        return bool(facts & self._bit(datum))

    def at_the_end(self, datum: Datum) -> bool:
        """Whether a datum is certainly there when every program has ended."""
        model = self._model
        facts, ended = 0, [model.names[slot] for slot, root in model.roots.items() if root != ENDED]
        for name in ended:
            at_end = self._told.get(("end", name), _EVERYTHING)
            facts |= at_end
            ended += [child for child, bit in self._started.items() if at_end & bit and child not in ended]
        return bool(facts & self._bit(datum))

    def _bit(self, fact: Hashable) -> int:
        return self._bits.setdefault(fact, 1 << len(self._bits))

    # --- one step ---

    def _pass(self, number: int) -> None:
        """Carry what is known before a node's step to what follows it."""
        model, node, before = self._model, self._model.nodes[number], self._before[number]
        effect = node.effect
        if isinstance(effect, Fork):
            for slot, root in model.forks.get(number, ()):
                self._come_to(model.names[slot], root, before)
                before |= self._started.setdefault(model.names[slot], self._bit(("started", model.names[slot])))
        for following in tuple(model.successors.get(number, ())):
            for result in _results(node, following):
                after = before | self._learnt(number, node, following, result, before)
                self._come_to(node.actor, following, after)

    def _come_to(self, actor: str, following: int, facts: int) -> None:
        if following == ENDED:
            self._tell(("end", actor), facts)
            return
        old = self._before.get(following, _EVERYTHING)
        if old & facts != old or following not in self._before:
            self._before[following] = old & facts
            self._waiting.append(following)

    def _tell(self, what: Hashable, facts: int) -> None:
        old = self._told.get(what, _EVERYTHING)
        self._told[what] = old & facts
        if old & facts != old:
            self._waiting += self._listeners.get(what, ())

    def _hear(self, what: Hashable, number: int) -> int:
        self._listeners.setdefault(what, set()).add(number)
        return self._told.get(what, _EVERYTHING)

    def _learnt(self, number: int, node: Node, following: int, result: object, before: int) -> int:
        """What is known after a step besides what was known before it."""
        effect = node.effect
        match effect:
            case Notify(semaphore=thing) | SetFlag(flag=thing):
                self._tell(thing, before)
            case Put(queue=thing, item=item) | Exchange(slot=thing, value=item) if item is not None:
                self._tell((thing, item), before)
        match effect:
            case Wait(semaphore=semaphore):  # whose permits were all given by somebody, or it tells nothing
                return 0 if semaphore.initial else self._hear(semaphore, number)
            case ReadFlag(flag=flag) if result is True:
                return self._hear(flag, number)
            case Get(queue=thing) | Exchange(slot=thing) if result is not None:
                return self._hear((thing, result), number)
            case Join(task=task):
                return self._hear(("end", task.actor), number)
            case RecordEvent(stream=stream):
                return self._passed_on(before, stream, result)
            case WaitEvent(stream=None):
                return self._kept(before, effect.event)
            case WaitEvent():
                return self._passed_on(before, effect.event, ("after", effect.stream))
            case Upload() if node.begun is None and self._model.nodes[following].begun is None:  # it ends by itself
                return sum(self._promise(effect.stream, datum) for datum in effect.writes)
        waited = self._kept(before, *_waited_for(effect), *self._idle(effect))
        ends = node.begun is not None or not effect.two_steps  # not where it fails, and the program deals with that
        return waited | self._all(effect.writes) if ends else waited

    def _all(self, data: Iterable[Datum]) -> int:
        facts = 0
        for datum in data:
            facts |= self._bit(datum)
        return facts

    def _promise(self, thing: Hashable, datum: Datum) -> int:
        bit = self._bit((thing, datum))
        self._promises.setdefault(thing, {})[datum] = bit
        return bit

    def _kept(self, facts: int, *things: Hashable) -> int:
        """Data that are written now that some things have happened."""
        kept = 0
        for thing in things:
            for datum, bit in self._promises.get(thing, {}).items():
                if facts & bit:
                    kept |= self._bit(datum)
        return kept

    def _passed_on(self, facts: int, thing: Hashable, to: Hashable) -> int:
        """The promises of one thing as those of another that comes no sooner."""
        passed = 0
        for datum, bit in list(self._promises.get(thing, {}).items()):
            if facts & bit:
                passed |= self._promise(to, datum)
        return passed

    def _idle(self, effect: Effect) -> list[Hashable]:
        """Streams that are known to have been empty when an effect took place."""
        gpu: Gpu | None = None
        match effect:
            case DeviceSync(gpu=gpu) | TrimPool(gpu=gpu) | Alloc(gpu=gpu, device_wide=True):
                pass
            case Free(device_wide=True):
                gpu = effect.buffer.gpu
        return [thing for thing in self._promises if getattr(thing, "gpu", None) == gpu] if gpu is not None else []


def _results(node: Node, following: int) -> Collection[object]:
    """The results with which a program goes on to a node, where they tell anything."""
    if isinstance(node.effect, Get | Exchange | RecordEvent | ReadFlag):
        return [result for result, later in node.successors.items() if later == following]
    return (None,)


def _waited_for(effect: Effect) -> tuple[Hashable, ...]:
    """What has happened when work begins on a stream, where whoever begins it waits for that."""
    return (effect.stream, ("after", effect.stream)) if isinstance(effect, Launch | Upload) else ()

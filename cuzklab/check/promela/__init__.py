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

A stream is a queue with a process of its own: uploads from pinned memory stand in it, and events that whatever comes
later waits for; kernels and copies from pageable memory begin when it is empty.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cuzklab.check.promela.coordination import HAS_ENDED
from cuzklab.check.promela.names import Names, Variables
from cuzklab.check.promela.options import IMPOSSIBLE, Option
from cuzklab.check.promela.points import END, ClosedSystem, Failure, Point
from cuzklab.check.promela.rules import options
from cuzklab.check.promela.work import end_of_work, stream_steps
from cuzklab.errors import BadInput
from cuzklab.policies.effects import Fork, Launch, Upload
from cuzklab.policies.model import Stream

ALL_ENDED, UNLISTED = 1, 2  # values of `fault`; the latter: a value that `closure` thought impossible
_MAX_ACTORS, _MAX_INDIVISIBLE_STEPS = 250, 2040  # of one model: a little below what SPIN takes


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
        An effect that has no translation, sizes whose common unit is too small to count them in 31 bits, or more
        actors or indivisible steps than SPIN takes.
    """
    variables, faults = Variables(), {IMPOSSIBLE: UNLISTED}
    translated = [
        _System(Names(system, variables, queue_bound), f"c{case}", faults) for case, system in enumerate(systems)
    ]
    processes = [text for one in translated for text in one.processes()]
    if len(processes) > _MAX_ACTORS:
        raise BadInput(f"{len(processes)} actors are too many for SPIN: at most {_MAX_ACTORS}")
    cases = [f"  :: c_expr {{ chosen_case == {case} }} -> {one.beginning()}" for case, one in enumerate(translated)]
    left: dict[str, set[str]] = {}
    for thing, variable in {pair: None for one in translated for pair in one.names.left}:
        kept = {expression for one in translated for expression in one.names.kept.get(variable, ())}
        unless = f" && !({' || '.join(sorted(kept))})" if kept else ""
        left.setdefault(thing, set()).add(f"({variable}{unless})")
    things = dict(enumerate(sorted(left), 1))
    text = "\n".join(
        [
            "c_decl { int chosen_case, lenient; }",
            "short fault, left; byte running; bit strict;",
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
            f"end_watch: d_step {{ fault == 0 && running == 0 -> fault = {ALL_ENDED}; assert(fault != {ALL_ENDED}) }};",
            *(
                f"if :: {' || '.join(sorted(left[thing]))} -> left = {number}; assert(left != {number}) :: else fi;"
                for number, thing in things.items()
            ),
            "skip",
            "}",
            "",
        ]
    )
    if (steps := text.count("d_step")) > _MAX_INDIVISIBLE_STEPS:
        raise BadInput(f"{steps} indivisible steps are too many for SPIN: at most {_MAX_INDIVISIBLE_STEPS}")
    numbers = {number: failure for failure, number in faults.items() if failure is not IMPOSSIBLE}
    return Translation(text, numbers, things)


@dataclass
class _System:
    """The translation of one system."""

    names: Names
    prefix: str  # of its processes
    faults: dict[Failure, int]  # numbers of the faults of all systems

    def processes(self) -> list[str]:
        """The process of each actor, and of each stream in which something can stand."""
        actors = [self._process(actor) for actor in self.names.identities]
        return actors + [self._stream_process(number, stream) for number, stream in enumerate(self.names.entries)]

    def _stream_process(self, number: int, stream: Stream) -> str:
        steps = [
            f":: d_step {{ {' && '.join(['fault == 0', *option.guards])} -> {'; '.join(option.changes)} }}"
            for option in stream_steps(self.names, stream)
        ]
        return "\n".join([f"proctype {self.prefix}_stream{number}() {{", "end_idle: do", *steps, "od", "}"])

    def beginning(self) -> str:
        """What starts the processes; to be called when all were translated."""
        roots = self.names.system.roots
        statements = [
            f"running = {sum(root != END for root in roots.values())}",
            *(f"{name} = {value}" for name, value in self.names.initial.items() if value),
            *(f"run {self._process_name(actor)}()" for actor in self.names.identities if roots.get(actor) != END),
            *(f"run {self.prefix}_stream{number}()" for number in range(len(self.names.entries))),
        ]
        return "; ".join(statements)

    def _process_name(self, actor: str) -> str:
        return f"{self.prefix}_{self.names.identities[actor]}_{re.sub(r'[^a-zA-Z0-9]+', '_', actor)}"

    def _process(self, actor: str) -> str:
        """An actor that is there from the start begins at once; others wait until they are told where to begin."""
        system, lines = self.names.system, [f"proctype {self._process_name(actor)}() {{"]
        if actor in system.roots:
            lines.append(f"goto {_label(system.roots[actor])};")
        else:
            starts = self.names.starts(actor)
            told = (
                f":: d_step {{ fault == 0 && {starts} == {point} -> {starts} = 0 }} goto {_label(point)}"
                for point in sorted(_started_points(system, actor))
            )
            lines += ["end_idle: if", *told, ":: false", "fi;"]
        for point in system.points:
            if point.actor == actor:
                lines += [f"{_label(point.number)}: if", *self._texts(point, options(self.names, point)), "fi;"]
                if isinstance(point.effect, Launch | Upload):
                    end = end_of_work(self.names, point)
                    lines += [f"{_label(point.number)}_under_way: if", *self._texts(point, [end]), "fi;"]
        # Whoever failed goes round for ever, so that a schedule that ends so is no deadlock.
        return "\n".join([*lines, "crashed: fault != 0; goto crashed;", "end_ended: false", "}"])

    def _texts(self, point: Point, possible: list[Option]) -> list[str]:
        return [self._text(point, option) for option in possible] or [":: false"]

    def _text(self, point: Point, option: Option) -> str:
        guards, changes = ["fault == 0", *option.guards], list(option.changes)
        if isinstance(option.target, Failure):
            number = self.faults.setdefault(option.target, len(self.faults) + UNLISTED)
            if option.target is not IMPOSSIBLE:
                guards.append("strict")
            changes += [f"fault = {number}", f"assert(fault != {number})"]
            label = "crashed"
        elif option.target is None:
            label = f"{_label(point.number)}_under_way"
        else:
            label = _label(option.target)
        if option.target == END:
            changes.append("running--")
            if point.actor not in self.names.system.roots:
                changes.append(f"{self.names.task(point.actor)} = {HAS_ENDED}")
                label = "end_idle"
        if not changes:
            return f":: {' && '.join(guards)} -> goto {label}"
        return f":: d_step {{ {' && '.join(guards)} -> {'; '.join(changes)} }} goto {label}"


def _label(point: int) -> str:
    return f"P{point}" if point != END else "end_ended"


def _started_points(system: ClosedSystem, actor: str) -> set[int]:
    """The points at which a forked actor can begin."""
    return {
        branch.starts
        for point in system.points
        for branch in point.branches
        if isinstance(point.effect, Fork) and branch.received.actor == actor and branch.starts != END
    }
